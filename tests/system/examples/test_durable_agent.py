"""The durable agent dies of its state as it must, what was said before is true, and with one setting it lives.

``scripts/durable`` is run as a user runs it. What the state weighs is worked out here from what the repository holds.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from examples.durable_agent.repository import lines_of, topic_of
from tests import interpreters

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[3]
DURABLE = ROOT / "scripts" / "durable"
RUNTIMES = ("temporal", "langgraph", "dapr")
CAP = 2 * 1024 * 1024
VIEW = 32 * 1024
LAST = 5
"""The turn whose payload is refused."""


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Start it on a wide terminal, with settings of ours that are for other programs."""
    environ = {**os.environ, "COLUMNS": "160", "OTEL_TRACES_EXPORTER": "none", "AGENT_OTEL_SPANS": "off"}
    return subprocess.run((str(DURABLE), *arguments), env=environ, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session", autouse=True)
def _environment_made() -> None:
    """Make its environment outside the time that a test may take."""
    made = start("--help")
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Json]:
    """Return a function that runs it and reads its report, once for all workers of the test run."""
    mine = tmp_path_factory.getbasetemp()
    folder = (mine.parent if hasattr(request.config, "workerinput") else mine) / "durable"
    folder.mkdir(exist_ok=True)

    def get(runtime: str, turns: int = 8, *options: str) -> Json:
        with interpreters.lock(folder / f"{runtime}-{turns}.lock"):
            output = folder / str(turns) / "".join((runtime, *options)).replace("--", "-")
            if not (output / "transcript.txt").exists():
                done = start(runtime, "--turns", str(turns), "--output", str(output.parent), *options)
                if "needs Python 3.11" in done.stderr:
                    pytest.skip("sqlite3 cannot limit a connection before Python 3.11")
                assert done.returncode == 0, done.stdout + done.stderr
                (output / "transcript.txt").write_text(done.stdout)
            read: Json = json.loads((output / "report.json").read_text())
            return {**read, "transcript": (output / "transcript.txt").read_text()}

    return get


# --- by hand -------------------------------------------------------------------------------------------------------


@cache
def result_of(topic: str) -> str:
    """What a search for a topic finds: all lines of its file, as git shows them."""
    return "".join(f"{topic}.py:{number}:{line}\n" for number, line in enumerate(lines_of(topic), start=1))


def seen_of(result: str) -> str:
    """What the model sees of it."""
    return f"{result[:VIEW]}\n... [{len(result) - VIEW} bytes truncated] ..."


def state_after(turns: int) -> Json:
    """The state after so many turns of three searches each."""
    messages: list[Json] = [
        {"role": "system", "content": "You explain how a codebase is wired. Search before you answer."},
        {"role": "user", "content": "Which handlers are registered for which topic?"},
    ]
    calls = []
    for turn in range(turns):
        topics = [topic_of(3 * turn + number) for number in (1, 2, 3)]
        asked = [{"name": "search_code", "arguments": json.dumps({"pattern": topic})} for topic in topics]
        functions = [
            {"id": f"call_{topic}", "type": "function", "function": function}
            for topic, function in zip(topics, asked, strict=True)
        ]
        messages.append({"role": "assistant", "tool_calls": functions})
        for topic in topics:
            call, result = f"call_{topic}", result_of(topic)
            messages.append({"role": "tool", "tool_call_id": call, "content": seen_of(result)})
            calls.append({"id": call, "name": "search_code", "args": {"pattern": topic}, "result": result})
    return {"messages": messages, "accumulatedToolCalls": calls}


def temporal_bytes(state: Json) -> int:
    """Compact JSON in a Payload of 28 bytes more, in a Payloads of 4 more; a length from 2 MiB on is a byte longer."""
    size = len(json.dumps(state, separators=(",", ":")))
    return size + 32 + 2 * (size >= CAP)


def texts_of(state: Json) -> int:
    """The texts alone: LangGraph's MessagePack escapes nothing, and adds little."""
    seen = sum(len(message.get("content", "")) for message in state["messages"])
    return seen + sum(len(call["result"]) for call in state["accumulatedToolCalls"])


SIZES = {
    "temporal": [temporal_bytes(state_after(turn)) for turn in range(LAST)],
    "dapr": [len(json.dumps(state_after(turn))) for turn in range(LAST)],
    "langgraph": [texts_of(state_after(turn)) for turn in range(LAST)],
}


def still_fit(runtime: str, turn: int) -> int:
    """How many turns after this one have a state that fits."""
    return sum(size <= CAP for size in SIZES[runtime][turn:])


# --- it dies -------------------------------------------------------------------------------------------------------


@pytest.mark.shows("000.grows_by_turn")
def test_the_story_is_that_of_a_state_that_grows_by_half_a_megabyte() -> None:
    assert [len(result_of(topic_of(number))) for number in (1, 24)] == [156_893, 156_893]
    for sizes in SIZES.values():
        growth = [after - before for before, after in pairwise(sizes)]
        assert all(560_000 < each < 580_000 for each in growth)
        assert sizes[-2] < CAP < sizes[-1]


def test_temporal_fails_the_workflow_task_until_the_workflow_times_out(report: Callable[..., Json]) -> None:
    ending = report("temporal")["ending"]
    assert ending["answer"] is None
    assert ending["cause"] == "WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE"
    assert ending["said"].startswith(
        "[TMPRL1103] Attempted to upload payloads with size that exceeded the error limit."
    )
    assert ending["seen"] == "WorkflowFailureError: Workflow execution failed: Workflow timed out"


def test_langgraph_cannot_save_its_checkpoint(report: Callable[..., Json]) -> None:
    ending = report("langgraph")["ending"]
    assert (ending["answer"], ending["said"]) == (None, "sqlite3.DataError: string or blob too big")


@pytest.mark.shows("000.refused_for_ever")
def test_dapr_hangs_and_says_why_in_the_sidecar_s_log_alone(report: Callable[..., Json]) -> None:
    ending = report("dapr")["ending"]
    assert ending["answer"] is None
    assert "trying to send message larger than max (" in ending["said"]
    assert ending["said"].endswith(f" vs. {CAP})")
    assert ending["seen"].endswith("the workflow is RUNNING")


# --- and it was told -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_each_turn_s_payload_is_what_the_state_weighs(report: Callable[..., Json], runtime: str) -> None:
    turns = report(runtime)["turns"]
    assert [turn["number"] for turn in turns] == [1, 2, 3, 4, LAST]
    assert [turn["fits"] for turn in turns] == [True, True, True, True, False]
    # The first says nothing: what goes into the model is as small as what comes out.
    around = {"langgraph": 6_000}.get(runtime, 0)
    for turn, expected in zip(turns[1:], SIZES[runtime][1:], strict=True):
        assert 0 <= turn["bytes"] - expected <= around
        assert turn["cap_bytes"] == CAP
        assert turn["utilization"] == turn["bytes"] / CAP


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.shows("000.near_cap")
def test_near_cap_is_counted_a_turn_before_the_end(report: Callable[..., Json], runtime: str) -> None:
    turns = report(runtime)["turns"]
    assert [turn["near_cap"] for turn in turns[:4]] == [0, 0, 0, 1]
    assert report(runtime)["near_cap_turn"] == LAST - 1


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.shows("000.grows_by_turn")
def test_the_turns_that_are_left_are_known_from_the_third_on(report: Callable[..., Json], runtime: str) -> None:
    first, second, *later = report(runtime)["turns"]
    assert first["turns_to_cap"] is second["turns_to_cap"] is None
    assert [still_fit(runtime, turn["number"]) for turn in later] == [1, 0, 0]
    for turn in later:
        assert abs(turn["turns_to_cap"] - still_fit(runtime, turn["number"])) <= 1
    assert 3 <= report(runtime)["few_turns_left_turn"] < LAST


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.shows("000.two_copies")
def test_the_two_copies_are_named_while_the_agent_lives(report: Callable[..., Json], runtime: str) -> None:
    first = report(runtime)["findings"][0]
    assert first["turn"] < LAST - 1
    assert set(first["duplicate_paths"]) == {"messages[].content", "accumulatedToolCalls[].result"}
    # Six results, with their quotes.
    results = [result_of(topic_of(number)) for number in range(1, 7)]
    assert first["duplicate_bytes"] == sum(len(json.dumps(seen_of(result))) for result in results)
    assert first["largest_path"] == "accumulatedToolCalls[].result"
    assert first["largest_path_bytes"] == sum(len(json.dumps(result)) for result in results)
    assert first["largest_tool"] == "search_code"
    assert first["largest_tool_bytes"] == first["largest_path_bytes"] + first["duplicate_bytes"]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.shows("000.unread")
def test_the_bytes_that_no_model_reads_are_those_behind_the_cut(report: Callable[..., Json], runtime: str) -> None:
    first = report(runtime)["findings"][0]
    # LangGraph saves the state before the model gets the last turn's three results.
    delivered = [result_of(topic_of(number)) for number in range(1, 4 if runtime == "langgraph" else 7)]
    by_hand = sum(len(json.dumps(result[VIEW:])) - 2 for result in delivered)
    assert first["unread_path"] == "accumulatedToolCalls[].result"
    assert first["unread_bytes"] == pytest.approx(by_hand, rel=0.001)  # the notice of the cut


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.shows("000.refused_for_ever")
def test_a_refusal_that_repeats_itself_is_told(report: Callable[..., Json], runtime: str) -> None:
    told = report(runtime)
    assert told["rejected"] >= 2
    assert told["stuck_retries"] == told["rejected"] - 1


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_all_of_it_is_printed(report: Callable[..., Json], runtime: str) -> None:
    told = report(runtime)
    for turn in told["turns"]:
        assert f"{turn['bytes']:,}" in told["transcript"]
    for text in (told["ending"]["said"], told["ending"]["seen"], " and ".join(told["findings"][0]["duplicate_paths"])):
        assert text in told["transcript"]
    assert f"rejected {told['rejected']}, stuck_retries {told['stuck_retries']}" in told["transcript"]


# --- otherwise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_two_turns_end_with_an_answer(report: Callable[..., Json], runtime: str) -> None:
    told = report(runtime, 2)
    lines = sum(seen_of(result_of(topic_of(number))).count("\n") for number in range(1, 7))
    assert f"I have read 6 search results, {lines} lines of them" in told["ending"]["answer"]
    assert [told[counter] for counter in ("near_cap", "over_cap", "rejected", "stuck_retries")] == [0, 0, 0, 0]
    assert all(turn["fits"] for turn in told["turns"])


@pytest.mark.parametrize("runtime", ["temporal", "dapr"])
def test_the_page_shows_such_a_run(runtime: str) -> None:
    page = (ROOT / "docs" / "evidence" / "durable-agent.md").read_text()
    assert page.startswith("<!-- Generated by scripts/durable --write; do not edit. -->\n")
    for size in SIZES[runtime][1:]:
        assert f"{size:,}" in page


def test_the_agent_does_not_know_that_it_is_watched() -> None:
    for name in ("agent", "temporal_agent", "langgraph_agent", "dapr_agent", "ending", "repository"):
        source = (ROOT / "examples" / "durable_agent" / f"{name}.py").read_text()
        assert "agent_otel" not in source.lower()
        assert "claim" not in source.lower()


# --- with one setting ----------------------------------------------------------------------------------------------

LONG = 50


@pytest.fixture(scope="session")
def claimed(report: Callable[..., Json]) -> Json:
    """The report of 50 turns on Temporal with the claim check."""
    return report("temporal", LONG, "--claim-check")


@pytest.mark.shows("000.fifty_turns")
def test_fifty_turns_on_temporal_end_with_an_answer(claimed: Json) -> None:
    assert claimed["ending"]["answer"].startswith("I have read 150 search results, ")
    assert claimed["answered"] == LONG
    assert [turn["number"] for turn in claimed["turns"]] == [*range(1, LONG + 2)]
    assert all(turn["fits"] and turn["cap_bytes"] == CAP for turn in claimed["turns"])
    assert [claimed[counter] for counter in ("near_cap", "over_cap", "rejected", "stuck_retries")] == [0, 0, 0, 0]


def test_the_state_stays_far_below_the_cap(claimed: Json) -> None:
    sizes = [turn["bytes"] for turn in claimed["turns"]]
    assert sizes == sorted(sizes)
    assert sizes[-1] < CAP * 0.65


def test_the_history_stays_below_what_temporal_takes(claimed: Json) -> None:
    kept = claimed["ending"]["kept_bytes"]
    assert kept < 50 * 1024 * 1024
    # What the product has said last, in turn 50, is the history without the state of the turn after it.
    *_, last = (turn["history_bytes"] for turn in claimed["turns"] if turn["history_bytes"] is not None)
    assert kept - 2 * claimed["turns"][-1]["bytes"] < last < kept


@pytest.mark.shows("000.replay")
def test_the_workflow_replays_from_its_history(claimed: Json) -> None:
    # Of each of 50 turns at least: the model's activity and three of tools, of three events each, and a workflow task.
    assert claimed["later"]["events"] > LONG * 4 * 3
    assert claimed["later"]["replay_failure"] is None


@pytest.mark.shows("000.key")
def test_each_record_of_the_last_state_resolves_to_the_raw_result_in_another_process(claimed: Json) -> None:
    later = claimed["later"]
    expected = {f"call_{topic}": result_of(topic).encode() for topic in map(topic_of, range(1, 3 * LONG + 1))}
    assert later["records"] == len(expected) == claimed["stored"]
    assert [record["id"] for record in later["shown"]] == [*expected]
    for record, raw in zip(later["shown"], expected.values(), strict=True):
        assert (record["bytes"], record["sha256"]) == (len(raw), hashlib.sha256(raw).hexdigest())
        assert record["same"]
        assert record["record_bytes"] < VIEW + 1024
    handed_back = sum(record["record_bytes"] for record in later["shown"])
    assert claimed["removed_bytes"] == sum(map(len, expected.values())) - handed_back


@pytest.mark.shows("000.authorised")
def test_a_reference_is_of_no_use_to_somebody_else(claimed: Json) -> None:
    assert claimed["later"]["stranger"] == "NotFoundError: there is no such result"


def test_the_transcript_of_many_turns_shows_some_of_them(claimed: Json) -> None:
    lines = [line.split() for line in claimed["transcript"].splitlines()]
    rows = [int(line[0]) for line in lines if len(line) > 5 and line[0].isdigit() and line[3].endswith("%")]
    assert rows == [1, 2, 3, 4, 5, 10, 20, 30, 40, 50, 51]
    assert "the workflow does again what it has done" in claimed["transcript"]
    stored = sum(len(result_of(topic_of(number))) for number in range(1, 151))
    assert f"150 of these resolve to the {stored:,} bytes" in claimed["transcript"]


def test_langgraph_lives_with_it_too(report: Callable[..., Json]) -> None:
    told = report("langgraph", 12, "--claim-check")
    assert (told["answered"], told["stored"]) == (12, 36)
    assert told["ending"]["answer"].startswith("I have read 36 search results, ")
    assert max(turn["bytes"] for turn in told["turns"]) < CAP * 0.65


@pytest.mark.shows("000.fifty_turns")
def test_fifty_turns_on_dapr_end_with_an_answer_in_several_histories(report: Callable[..., Json]) -> None:
    told = report("dapr", LONG, "--claim-check")
    assert "I have read 150 search results, " in told["ending"]["answer"]
    assert (told["answered"], told["stored"]) == (LONG, 150)
    assert [turn["number"] for turn in told["turns"]] == [*range(1, LONG + 2)]
    sizes = [turn["bytes"] for turn in told["turns"]]
    assert sizes == sorted(sizes)
    assert sizes[-1] < CAP * 0.65
    assert [told[counter] for counter in ("near_cap", "over_cap", "rejected", "stuck_retries")] == [0, 0, 0, 0]
    # The last history has the state with which it began, of 50 turns, twice: as its input, and as the model's.
    assert 2 * sizes[-1] < told["ending"]["kept_bytes"] < 3 * sizes[-1]
    # No history had more than eleven states: that with which it began, and one for each of its ten turns.
    histories = [turn["history_bytes"] for turn in told["turns"] if turn["history_bytes"] is not None]
    assert sum(sizes[40:50]) < max(histories) < sum(sizes[39:51])


def test_the_page_compares_the_runs() -> None:
    page = (ROOT / "docs" / "evidence" / "durable-agent.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    header, _, *runs = rows
    found = {(run[0], run[1]): dict(zip(header, run, strict=True)) for run in runs}
    assert {runtime for runtime, _ in found} == {"Temporal", "LangGraph with SQLite", "Dapr Workflows"}
    for (_, setting), run in found.items():
        stored = int(run["results stored"])
        turns, state = int(run["turns"]), int(run["largest state"].replace(",", ""))
        assert (turns == LAST - 1, state > CAP, stored == 0) == ((True,) * 3 if setting == "off" else (False,) * 3)
    assert [(run["turns"], run["end"]) for (_, setting), run in found.items() if setting == "on"] == [
        ("50", "answers")
    ] * 3
