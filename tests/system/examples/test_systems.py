"""The scenarios that the remedies were made for: what leaves on the wire, with the authors' own numbers."""

from __future__ import annotations

import importlib
import itertools
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

ROOT = Path(__file__).resolve().parents[3]
PAGE = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "remedies").glob("*.md"))
TRIMMED, COMPACTED = "examples.systems.003_trimmed_history", "examples.systems.004_compacted_arguments"
WEAKEST = "examples.systems.001_weakest_layer"
LEAN, COPIES = "examples.systems.000_lean_state", "examples.systems.000_two_copies"
SUMMARISED = "examples.systems.002_summarised_history"
SLOW = 600
"""Seconds that a script may take on a busy machine."""


def _run(environment: Environment, module: str, expression: str) -> Any:
    code = f"import importlib, json\nscript = importlib.import_module('{module}')\nprint(json.dumps({expression}))"
    done = environment.run(code, env={"PYTHONPATH": str(ROOT)}, timeout=SLOW, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.shows("002.automatic_summary")
def test_a_long_run_goes_on_from_summaries(environment: Callable[[str], Environment]) -> None:
    script = importlib.import_module(SUMMARISED)
    table, requests, answer, summaries = _run(
        environment("langchain"),
        SUMMARISED,
        "[script.table(runs := script.runs()), *(run := [*runs.values()][1]), len(run.summaries)]",
    )
    assert table in PAGE
    cells = [[int(cell.replace(",", "")) for cell in row.split("|")[2:7]] for row in table.splitlines()[2:]]
    whole, summarised, limited = ([requests, largest, all_] for requests, largest, _, all_, _ in cells)
    # 30 searches and the answer; 27 results of 1,000 tokens and three of 4,000.
    assert whole[0] == 31
    assert 39_000 <= whole[1] <= 42_000
    # Besides the summaries, one request reads the first result again.
    assert summarised[0] == 31 + summaries + 1
    # "maxToken": no request has more; its summaries included, the run sends less than half.
    assert summarised[1] <= script.ABOVE
    assert summarised[2] < whole[2] / 2
    # 15 calls, the one that is skipped, and the answer.
    assert limited[0] == 17
    # "contextTokenLimit": half of it by default, although some last results have 4,000 tokens.
    sizes = [script.tokens(request) for request in requests]
    asked = [place for place, request in enumerate(requests) if "tools" not in request]
    assert len(asked) == summaries
    assert all(sizes[at + 1] <= script.ABOVE / 2 for at in asked if at + 1 not in asked)
    assert answer == f"The first source reports the finding 7919, the last one the finding {30 * 7919}."
    # The first result has left the transcript, and is read by the id of its call.
    before, last = (json.dumps(request) for request in requests[-2:])
    assert "context_summarize" in before
    assert "SUMMARIZED executionId:'call_" in before
    assert script.result_of(1) not in before
    assert script.result_of(1) in last


@pytest.mark.shows("003.forty_turns")
def test_a_conversation_of_40_turns_is_trimmed(environment: Callable[[str], Environment]) -> None:
    script = importlib.import_module(TRIMMED)
    found = _run(
        environment("strands"),
        TRIMMED,
        "[script.table(runs := script.runs()), [*runs.values()][-1].requests[-1]]",
    )
    table, request = found
    assert table in PAGE
    results = [
        block["toolResult"]["content"][0]["text"]
        for message in request["messages"]
        for block in message["content"]
        if "toolResult" in block
    ]
    assert 39 == len(results)
    # "Results of the last 2 turns stay verbatim."
    assert [script.result_of(38), script.result_of(39)] == results[-2:]
    for number, line in enumerate(results[:-2], 1):
        head = script.result_of(number)[:150]
        status = " error" if number % 10 == 0 else " success"
        assert f"[trimmed 3200 bytes] get_invoice{status}: {head}… ref_id=inv-{number}" == line
    # "36,000 input tokens in turn 40": the system prompt and 39 results of 800 tokens, and little else.
    before, after = ([int(cell.replace(",", "")) for cell in row.split("|")[2:5]] for row in table.splitlines()[2:])
    assert 4_000 + 39 * 800 <= before[0] <= 36_000
    # The prefix that the cache point covers is not rewritten.
    assert 4_000 <= before[1] == after[1]
    # A tenth of the system prompt, two results, 37 lines.
    assert 400 + 2 * 800 + 37 * 45 <= after[2] <= 400 + 2 * 800 + 37 * 60


LOOP = """
import importlib, json, openai
script = importlib.import_module("examples.systems.003_trimmed_history")
client = openai.OpenAI()
messages = [{"role": "system", "content": script.SYSTEM}, {"role": "user", "content": "Are my invoices paid?"}]
while True:
    answer = client.chat.completions.create(model="scripted", messages=messages).choices[0].message
    if not answer.tool_calls:
        break
    messages.append(answer.model_dump(exclude_none=True))
    for call in answer.tool_calls:
        result = script.result_of(json.loads(call.function.arguments)["number"])
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
"""


@pytest.mark.shows("003.forty_turns")
def test_a_raw_loop_without_a_prompt_cache_saves_89_percent_by_the_one_variable(
    environment: Callable[[str], Environment],
) -> None:
    def decide(request: Json) -> Reply:
        number = sum(message["role"] == "tool" for message in request["messages"]) + 1
        return [ToolCall(f"call_{number:024}", "get_invoice", {"number": number})] if number < 40 else "All are paid."

    with OpenAIServer(decide) as server:
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_TRIM_RESULTS": "1", "PYTHONPATH": str(ROOT), **server.environment}
        environment("langchain").run(LOOP, env=env, timeout=SLOW, check=True)
    results = [message["content"] for message in server.requests[-1]["messages"] if message["role"] == "tool"]
    assert len(results) == 39
    assert [len(result) for result in results[-2:]] == [3_200, 3_200]
    assert all(result.startswith("[trimmed 3200 bytes] get_invoice") for result in results[:-2])
    assert 1 - sum(map(len, results)) / (39 * 3_200) > 0.88


WRITING = """
import openai, prometheus_client
client, messages = openai.OpenAI(), [{"role": "user", "content": "Write the report."}]
while True:
    answer = client.chat.completions.create(model="scripted", messages=messages).choices[0].message
    if not answer.tool_calls:
        break
    messages.append(answer.model_dump(exclude_none=True))
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "written"} for call in answer.tool_calls]
print(prometheus_client.REGISTRY.get_sample_value(
    "agent_otel_tool_args_size_bytes_sum", {"gen_ai_tool_name": "write_file"}))
"""


@pytest.mark.shows("004.first_resend")
def test_arguments_are_measured_before_a_remedy_shortens_them(environment: Callable[[str], Environment]) -> None:
    arguments = {"path": "report.md", "content": "A line of the report.\n" * 2_000}

    def decide(request: Json) -> Reply:
        number = sum(message["role"] == "tool" for message in request["messages"])
        return [ToolCall(f"call_{number:024}", "write_file", arguments)] if number < 2 else "It is written."

    with OpenAIServer(decide) as server:
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_COMPACT_ARGUMENTS": "1", "PYTHONPATH": str(ROOT), **server.environment}
        done = environment("langchain").run(WRITING, env=env, timeout=SLOW, check=True)
    assert not any("A line of the report" in json.dumps(request) for request in server.requests)
    assert float(done.stdout) == 2 * len(json.dumps(arguments))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="sqlite3 cannot limit a connection")
@pytest.mark.shows("000.model_view")
def test_a_state_with_two_copies_is_refused_and_with_one_variable_it_is_not(
    environment: Callable[[str], Environment],
) -> None:
    before, after = _run(
        environment("langchain-sqlite"),
        COPIES,
        "[script.measured(), script.measured(AGENT_OTEL_CLAIM_CHECK='memory:')]",
    )
    states, requests, end = before
    # Three results of 200,000 bytes and their cuts of 32 KiB: two turns fit into 2 MiB, the third does not.
    assert [3 * 232_000 * turn <= size <= 3 * 236_000 * turn for turn, size in enumerate(states[1:], 1)] == [True] * 2
    assert "DataError: string or blob too big" == end
    states, requests, end = after
    assert "The agent has read it all." == end
    # The view of 32 KiB with its mark, three times a turn, and twice in the state; later a fair share of the room.
    grown = [size - previous for previous, size in itertools.pairwise(requests)]
    assert all(size <= 3 * (32 * 1024 + 1024) for size in grown)
    assert all(3 * 32_000 <= size for size in grown[:3])
    assert all(3 * 4_096 <= size for size in grown)
    assert max(states) < 2 * 1024 * 1024 * 0.7
    for turn, (state, request) in enumerate(zip(states[1:5], requests[1:5], strict=True), 2):
        row = re.search(rf"^\| {turn} \|.*\| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
        assert row is not None
        # Ids differ by some bytes from run to run.
        assert [state, request] == pytest.approx([int(cell.replace(",", "")) for cell in row.groups()], rel=0.01)


@pytest.mark.shows("000.lean_record")
def test_a_state_with_lean_records_stays_below_the_cap(environment: Callable[[str], Environment]) -> None:
    whole, lean = _run(
        environment("langchain"),
        LEAN,
        "[script.measured(lean=False), script.measured(lean=True, AGENT_OTEL_CLAIM_CHECK='memory:')]",
    )
    # Three results of 200,000 bytes a turn, each twice.
    assert all(one["state_bytes"] > turn * 3 * 2 * 200_000 for turn, one in enumerate(whole, 1))
    # Three views of 32 KiB, three previews of 4 KiB, and little else.
    assert all(one["state_bytes"] < turn * 3 * 38 * 1024 for turn, one in enumerate(lean, 1))
    last = lean[-1]["last"]
    assert (last["id"], last["args"], last["result_bytes"]) == ("call_7_2", {"query": "2"}, 200_000)
    assert last["result_ref"].startswith("claim:v2:tool-result/=/thread-1/search/call_7_2:200000:")
    assert len(last["truncated_preview"]) <= 4096


LEAN_ACTIVITY = """
import asyncio, importlib, json
script = importlib.import_module("examples.systems.000_lean_temporal")
found = asyncio.run(script.main())
print(json.dumps([len(found["content"].encode()), found["record"]]))
"""


@pytest.mark.shows("000.lean_record")
def test_a_lean_record_of_a_temporal_activity_keeps_no_result(environment: Callable[[str], Environment]) -> None:
    variables = {"AGENT_OTEL": "1", "AGENT_OTEL_CLAIM_CHECK": "memory:", "PYTHONPATH": str(ROOT)}
    done = environment("temporal").run(LEAN_ACTIVITY, env=variables, timeout=SLOW, check=True)
    content_bytes, record = json.loads(done.stdout.splitlines()[-1])
    # 14,285 lines of "pull requests" and a line end.
    assert (record["result_bytes"], record["args"], record["success"]) == (199_990, {"query": "pull requests"}, True)
    assert record["result_ref"].startswith("claim:v2:tool-result/=/run-1/search/call_1:199990:")
    assert content_bytes <= 32 * 1024
    assert len(record["truncated_preview"]) <= 4096


@pytest.mark.shows("004.first_resend")
def test_a_report_is_sent_to_the_model_once(environment: Callable[[str], Environment]) -> None:
    table, before, after = _run(
        environment("langchain"),
        COMPACTED,
        "[script.table(runs := script.runs()), *([len(run.summaries), run.copies] for run in [*runs.values()][-1])]",
    )
    assert table in PAGE
    copies = [[int(row.split("|")[column]) for column in (2, 4)] for row in table.splitlines()[2:]]
    assert [[10, 0], [190, 0], [before[1], 0]] == copies
    assert [2, 2] == [before[0], after[0]]
    assert before[1] > 0 == after[1]


@pytest.mark.shows("001.weakest_layer")
def test_a_server_withholds_what_its_host_would_cut(environment: Callable[[str], Environment]) -> None:
    table = _run(environment("mcp-1"), WEAKEST, "script.table()")
    assert table in (ROOT / "docs" / "recipes" / "cut-results.md").read_text()
    as_it_is, with_auto = ([cell.strip() for cell in row.split("|")[2:-1]] for row in table.splitlines()[2:])
    # 400 rows of 49 bytes and the digits of their numbers, ", " between them, one "true" for "false", 35 bytes around.
    produced = f"{400 * 49 + 10 + 90 * 2 + 300 * 3 + 399 * 2 - 1 + 35:,}"
    # The head and the tail of 5,000 bytes each, and the host's mark between them.
    assert [produced, "10,019", "1", "“no order is delayed”"] == as_it_is
    assert [produced, "5", "“one order is delayed”"] == [with_auto[0], *with_auto[2:]]
