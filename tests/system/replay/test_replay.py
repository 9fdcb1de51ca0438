"""Side effects of tools in a workflow that is replayed and retried: on a real Temporal server, on Dapr, on DBOS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.contract.suite import QUIET
from tests.system.engines import starting, temporal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.contract.cases import Json
    from tests.environments import Environment
    from tests.system.engines.temporal import Temporal

_STORE = {"AGENT_OTEL_CLAIM_CHECK": "memory:", "AGENT_OTEL_CLAIM_CHECK_KEY": "k" * 32}
_REMEDIES = {
    **_STORE,
    "AGENT_OTEL_RESULT_CEILING_BYTES": "auto",
    "AGENT_OTEL_MAX_TOOL_CALLS": "100",
    "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS": "1",
}
#: The second step is tried twice, and its tools were called in both attempts.
_BY_THE_RUNTIME = ["charge a", "charge b", "mail b", "charge b", "mail b", "charge c"]
#: The calls of the second attempt are answered.
_ONCE_EACH = ["charge a", "charge b", "mail b", "charge c"]


@pytest.fixture(scope="module")
def server() -> Iterator[Temporal]:
    with starting.or_skip(temporal.server()) as running:
        yield running


def _report(environment: Environment, server: Temporal, **settings: str) -> Json:
    done = environment.run(
        "import sys; from tests.system.replay.program import main; main(*sys.argv[1:])",
        server.address,
        env={**QUIET, **settings},
        check=True,
    )
    report: Json = json.loads(done.stdout.splitlines()[-1])
    assert report["by the replay"] == []
    assert report["messages"] == []
    return report


def ran(environment: Environment, program: str, *arguments: str, **settings: str) -> Json:
    """Run a program that reports what happened."""
    code = f"import sys; from tests.system.replay.{program} import main; main(*sys.argv[1:])"
    env = {**QUIET, "AGENT_OTEL": "1", **_REMEDIES, **settings}
    done = environment.run(code, *arguments, env=env, check=True, timeout=300)
    report: Json = json.loads(done.stdout.splitlines()[-1])
    assert report["messages"] == []
    return report


@pytest.mark.shows("000.replay")
def test_dapr_begins_the_workflow_again_and_no_tool(environment: Callable[[str], Environment]) -> None:
    report = ran(environment("dapr-1.19"), "dapr_program")
    assert report["begun"] >= len(_BY_THE_RUNTIME) - 2  # once for each attempt of an activity
    assert report["effects"] == _BY_THE_RUNTIME
    assert report["answers"] == ["receipt 1 of a..", "receipt 4 of b..", "receipt 6 of c.."]
    assert report["attempts"] == [None, None, None, 2, 2, None]


@pytest.mark.shows("000.replay")
def test_a_call_of_an_activity_that_dapr_retries_is_answered_from_the_store(
    environment: Callable[[str], Environment],
) -> None:
    report = ran(environment("dapr-1.19"), "dapr_program", AGENT_OTEL_ANSWER_RETRIES="on")
    assert report["effects"] == _ONCE_EACH
    assert report["answers"] == ["receipt 1 of a..", "receipt 2 of b..", "receipt 4 of c.."]


@pytest.mark.shows("000.replay")
def test_a_call_of_a_step_that_dbos_retries_is_answered_from_the_store(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    database = str(tmp_path / "system.sqlite")
    report = ran(environment("dbos"), "dbos_program", database, AGENT_OTEL_ANSWER_RETRIES="on")
    assert [*report["before"], *report["effects"]] == _ONCE_EACH
    assert report["answers"] == ["receipt 1 of a..", "receipt 2 of b..", "receipt 1 of c.."]


@pytest.mark.shows("000.replay")
def test_a_workflow_that_dbos_takes_up_calls_the_tools_of_its_last_step(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    report = ran(environment("dbos"), "dbos_program", str(tmp_path / "system.sqlite"))
    assert [*report["before"], *report["effects"]] == _BY_THE_RUNTIME
    assert report["effects"] == ["charge c"]
    assert report["attempts"] == [None, None, None, 2, 2]
    # The receipts of the other two are those of the process that died.
    assert report["answers"] == ["receipt 1 of a..", "receipt 4 of b..", "receipt 1 of c.."]


@pytest.mark.shows("000.replay")
@pytest.mark.parametrize(
    "settings", [{}, {"AGENT_OTEL": "1"}, {"AGENT_OTEL": "1", **_REMEDIES}], ids=["off", "on", "remedies"]
)
def test_a_replay_calls_no_tool_and_a_retry_those_of_its_step(
    environment: Callable[[str], Environment], server: Temporal, settings: dict[str, str]
) -> None:
    report = _report(environment("temporal"), server, **settings)
    assert report["effects"] == _BY_THE_RUNTIME
    assert report["answers"] == ["receipt 1 of a..", "receipt 4 of b..", "receipt 6 of c.."]


@pytest.mark.shows("000.replay")
def test_a_call_of_a_retried_step_is_marked(environment: Callable[[str], Environment], server: Temporal) -> None:
    calls = _report(environment("temporal"), server, AGENT_OTEL="1")["calls"]
    hashes = [call["tool.args_hash"] for call in calls]
    a, b, c = hashes[0], hashes[1], hashes[5]
    assert hashes == [a, b, b, b, b, c]
    assert len({a, b, c}) == 3
    assert [call.get("workflow.activity.attempt") for call in calls] == [None, None, None, 2, 2, None]


@pytest.mark.shows("000.replay")
def test_a_call_of_a_retried_step_is_answered_from_the_store(
    environment: Callable[[str], Environment], server: Temporal
) -> None:
    settings = {"AGENT_OTEL": "1", **_STORE, "AGENT_OTEL_ANSWER_RETRIES": "on"}
    report = _report(environment("temporal"), server, **settings)
    assert report["effects"] == _ONCE_EACH
    assert report["answers"] == ["receipt 1 of a..", "receipt 2 of b..", "receipt 4 of c.."]
