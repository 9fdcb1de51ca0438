"""Browser Use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from tests.contract import script
from tests.contract.cases import KEY, Case, Cut, Record
from tests.contract.delivery import LARGE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply
    from agent_otel.testing.servers.scripted import ScriptedServer

#: What the framework writes behind the results of a step that it has cut.
_NOTICE = "\n... [Content truncated at 60k characters]"
_STEP, _END = "\n<step>\n", "\n</agent_history>"


def answers(request: Json) -> dict[str, str]:
    """What the agent tells the model of each call: a line each of its last step, or all of it about a single call."""
    said = "".join(script.text_of(message) for message in request["messages"] if message["role"] == "user")
    calls = script.calls_of(said)
    history = said.partition("<agent_history>")[2].partition(_END)[0]
    if _STEP not in f"{history}\n":
        return {}
    told = history.partition(_STEP)[2].removeprefix("Result\n").partition(_NOTICE)[0]
    lines = told.split("\n") if len(calls) > 1 else [told]
    return dict(zip((id_ for id_, _, _ in calls), lines, strict=False))


def decide(request: Json) -> Reply:
    """Ask for the calls of the prompt at once, and then give the answer with the action for that."""
    said = "".join(script.text_of(message) for message in request["messages"] if message["role"] == "user")
    asked: list[Any] = [{name: arguments} for _, name, arguments in script.calls_of(said)]
    action = [{"done": {"text": "done", "success": True}}] if answers(request) else asked
    empty = dict.fromkeys(("thinking", "evaluation_previous_goal", "memory", "next_goal"), "")
    return json.dumps({**empty, "action": action}, ensure_ascii=False)


class TestBrowserUse(Delivery):
    """Browser Use 0.13."""

    agent = "browser_use"
    environment = "browser-use"
    integrations: ClassVar = {
        "browser-use": [
            "browser_use.tools.registry.service:Registry.execute_action",
            "browser_use.tools.service:Tools.act",
            "browser_use.agent.service:Agent.run",
        ],
    }
    has_runs = True
    run_span = "invoke_agent"
    modes: ClassVar = ("async",)
    origin = None
    knows_ids = False
    seconds = 120
    variables: ClassVar = {
        "ANONYMIZED_TELEMETRY": "false",
        "BROWSER_USE_CLOUD_SYNC": "false",
        "BROWSER_USE_SETUP_LOGGING": "false",
        "BROWSER_USE_VERSION_CHECK": "false",
    }
    decide = staticmethod(decide)
    own: ClassVar = {
        # The agent cuts all results of a step at 60,000 characters.
        "cut": LARGE,
        # 200 letters: g r ö ß e : and a blank are 9 bytes, 193 times ß 386.
        "remembered in part": Case(
            ("remembered",),
            (("call_27", "remembered", KEY),),
            (Record("remembered", "call_27", LOOKUP_BYTES, handed_back=395, cut=("framework", "shrunk")),),
        ),
    }

    # "Result" and a line end are 7 of the characters.
    cuts: ClassVar = {"cut": (Cut("big", "model_request", "shrunk", 59_993),)}

    @classmethod
    def results(cls, server: OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return the texts in which the results are."""
        return {call: text for request in server.requests for call, text in answers(request).items()}


del Delivery
