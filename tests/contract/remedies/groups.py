"""Cases with the same environment and the same settings: one child runs them all, each against a model of its own.

Calls and executions have ids of their own in each case, so that nothing of one is known in another. Warnings that are
logged once in a process show in the first case that gives rise to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.replies import Reply
from tests.contract.once import kept
from tests.contract.remedies.child import FUNCTIONS
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.contract.cases import Json
    from tests.environments import Environment

#: What a model says: it gets all requests, the last of them in OpenAI's shape, too, and a text for the ids of calls.
Decide: TypeAlias = Callable[[list[dict[str, Any]], dict[str, Any], str], Reply]
#: The fixture `came`: a function from the name of a scene to what came of it.
Read: TypeAlias = Callable[[str], "Came"]
_SECONDS = 180


class Carrier(NamedTuple):
    """A framework, its environment and the provider's server; how it is run.

    The program names an execution only where the framework has no run of its own.
    """

    agent: str
    environment: str
    server: type[OpenAIServer | ScriptedServer] = OpenAIServer
    mode: str = "async"
    setting: str = ""
    is_named: bool = False

    @property
    def function(self) -> str:
        """The function of the agent's module that runs it."""
        return FUNCTIONS[self.mode]

    def case(self, prompt: str, *tools: str) -> Json:
        """Return what the child is told of a run."""
        return {
            "agent": f"tests.contract.agents.{self.agent}",
            "tools": tools,
            "prompt": prompt,
            "mode": self.mode,
            "setting": self.setting,
        }


class Scene(NamedTuple):
    """Cases of a carrier that talk to the same model, by their names."""

    carrier: Carrier
    decide: Decide
    cases: dict[str, Json]


class Came(NamedTuple):
    """What came of a scene: the requests on the wire, the results in them by call id, and what the child reported.

    ``written`` is all that the child wrote, of the other scenes, too.
    """

    requests: list[Json]
    results: dict[str, str]
    cases: dict[str, Any]
    written: str

    def only(self) -> tuple[list[Json], Any]:
        """Return the requests, and the only case."""
        (case,) = self.cases.values()
        return self.requests, case


def fixture(scenes: Mapping[str, Scene], variables: Callable[[Path], Mapping[str, str]]) -> Any:
    """Return the fixture `came` of a module: each environment has one child for all of its scenes.

    ``variables`` are those of the child, which may depend on a folder of its own.
    """

    @pytest.fixture
    def came(
        request: pytest.FixtureRequest,
        tmp_path_factory: pytest.TempPathFactory,
        environment: Callable[[str], Environment],
    ) -> Read:
        def read(name: str) -> Came:
            row = scenes[name].carrier.environment
            beside = {key: scene for key, scene in scenes.items() if scene.carrier.environment == row}
            found = environment(row)
            report = kept(
                request,
                tmp_path_factory,
                lambda folder: run(beside, found, folder, variables(folder)),
                request.module.__name__,
                row,
            )
            return checked(report, name)

        return read

    return came


def run(scenes: Mapping[str, Scene], environment: Environment, folder: Path, variables: Mapping[str, str]) -> Json:
    """Run the scenes of an environment in one child; return the fields of `Came` of each."""
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(_server(scene, str(place))) for place, (name, scene) in enumerate(scenes.items())
        }
        plans = {
            f"{name}, {key}": {
                **case,
                "base_url": servers[name].base_url,
                "execution": f"{name}, {key}" if scene.carrier.is_named else "",
            }
            for name, scene in scenes.items()
            for key, case in scene.cases.items()
        }
        plan = folder / "plan.json"
        plan.write_text(json.dumps({"cases": plans, "hints": {}}))
        done = environment.run(
            "import runpy; runpy.run_module('tests.contract.remedies.child', run_name='__main__')",
            str(plan),
            env={**QUIET, "AGENT_OTEL": "1", **variables},
            timeout=_SECONDS,
            check=True,
        )
    reported = json.loads(done.stdout.splitlines()[-1])["cases"]
    return {
        name: Came(
            servers[name].requests,
            servers[name].tool_results(),
            {key: reported[f"{name}, {key}"] for key in scene.cases},
            done.stdout + done.stderr,
        )._asdict()
        for name, scene in scenes.items()
    }


def _server(scene: Scene, ids: str) -> Any:
    """Return a server whose model decides by all its requests."""
    server: Any = scene.carrier.server(lambda request: scene.decide(server.requests, request, ids))
    return server


def checked(report: Json, name: str) -> Came:
    """Return what came of a scene; fail with the traceback of a case that raised."""
    came = Came(**report[name])
    for case in came.cases.values():
        if case["raised"] is not None:
            pytest.fail(case["raised"], pytrace=False)
    return came
