"""``agent-otel explain`` on conversations as each provider and LangChain write them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from tests.rows import each_row
from tests.unit.cli.running import run
from tests.unit.cli.test_explain import chat, event, explained, payloads, result, savings, written

if TYPE_CHECKING:
    from pathlib import Path

TURNS = 8
BYTES = 60_000
WRITTEN = 62_200  # with the escapes of JSON, which Gemini's responses have, and the message around it


def anthropic() -> list[Any]:
    """Return messages with blocks."""
    messages: list[Any] = [{"role": "user", "content": "Which orders are late?"}]
    for turn in range(TURNS):
        use = {"type": "tool_use", "id": f"toolu_{turn}", "name": "search_orders", "input": {"page": turn}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]})
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": result(turn)}
        messages.append({"role": "user", "content": [answer]})
    return messages


def gemini() -> list[Any]:
    """Return contents with parts."""
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Which orders are late?"}]}]
    for turn in range(TURNS):
        contents.append(
            {"role": "model", "parts": [{"functionCall": {"name": "search_orders", "args": {"page": turn}}}]}
        )
        answer = {"name": "search_orders", "response": {"result": result(turn)}}
        contents.append({"role": "user", "parts": [{"functionResponse": answer}]})
    return contents


def responses() -> list[Any]:
    """Return items of OpenAI's Responses."""
    items: list[Any] = [{"role": "user", "content": "Which orders are late?"}]
    for turn in range(TURNS):
        call = {"type": "function_call", "call_id": f"call_{turn}", "name": "search_orders", "arguments": "{}"}
        items += [call, {"type": "function_call_output", "call_id": f"call_{turn}", "output": result(turn)}]
    return items


def langchain() -> list[Any]:
    """Return messages as ``messages_to_dict`` writes them."""
    messages: list[Any] = [{"type": "human", "data": {"content": "Which orders are late?", "type": "human"}}]
    for turn in range(TURNS):
        call = {"name": "search_orders", "args": {"page": turn}, "id": f"call_{turn}", "type": "tool_call"}
        messages.append({"type": "ai", "data": {"content": "", "tool_calls": [call], "type": "ai"}})
        answer = {"content": result(turn), "tool_call_id": f"call_{turn}", "name": "search_orders", "type": "tool"}
        messages.append({"type": "tool", "data": answer})
    return messages


def openhands() -> list[Any]:
    """Return the events of a trajectory, as OpenHands downloads them."""
    events: list[Any] = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Which orders are late?"}}
    ]
    for turn in range(TURNS):
        about = {"function_name": "search_orders", "tool_call_id": f"call_{turn}"}
        asked = {"id": 2 * turn + 1, "source": "agent", "action": "run", "args": {"command": f"late {turn}"}}
        events += [
            {**asked, "tool_call_metadata": about},
            {
                "id": 2 * turn + 2,
                "cause": 2 * turn + 1,
                "source": "agent",
                "observation": "run",
                "content": result(turn),
                "extras": {"exit_code": 0},
                "tool_call_metadata": about,
            },
        ]
    return events


def swe_agent() -> dict[str, Any]:
    """Return a trajectory file of SWE-agent with the messages in its history."""
    history: list[Any] = [{"role": "system", "content": "Be kind.", "agent": "main", "message_type": "system_prompt"}]
    for turn in range(TURNS):
        call = {"id": f"call_{turn}", "type": "function", "function": {"name": "search_orders", "arguments": "{}"}}
        history += [
            {"role": "assistant", "content": "I look.", "message_type": "action", "tool_calls": [call]},
            {
                "role": "tool",
                "message_type": "observation",
                "tool_call_ids": [f"call_{turn}"],
                "content": [{"type": "text", "text": result(turn)}],
            },
        ]
    return {"trajectory": [{"action": "look", "observation": "none", "state": {}}], "history": history, "info": {}}


def langsmith() -> dict[str, Any]:
    """Return a run with messages as LangChain's constructors."""

    def made(kind: str, **kwargs: Any) -> dict[str, Any]:
        path = ["langchain", "schema", "messages", kind]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}

    messages = [made("HumanMessage", content="Which orders are late?")]
    for turn in range(TURNS):
        call = {"name": "search_orders", "args": {"page": turn}, "id": f"call_{turn}", "type": "tool_call"}
        messages += [
            made("AIMessage", content="", tool_calls=[call]),
            made("ToolMessage", content=result(turn), tool_call_id=f"call_{turn}", name="search_orders"),
        ]
    return {"id": "run", "run_type": "llm", "inputs": {"messages": [messages]}, "outputs": {"generations": [[]]}}


def langfuse() -> dict[str, Any]:
    """Return a trace with a generation for each request; the last one has the whole conversation."""
    messages = chat(TURNS)
    generations = [
        {"id": str(end), "type": "GENERATION", "input": messages[:end], "output": messages[end]} for end in (1, 3)
    ]
    last = {"id": "last", "type": "GENERATION", "input": messages, "output": {"role": "assistant", "content": "Done."}}
    return {"trace": {"id": "t", "observations": [*generations, last]}}


FORMATS = {
    "OpenHands": openhands(),
    "SWE-agent": swe_agent(),
    "LangSmith": langsmith(),
    "chat completions": {"messages": chat(TURNS)},
    "Anthropic": {"model": "claude", "messages": anthropic()},
    "Gemini": {"contents": gemini()},
    "Responses": {"input": responses()},
    "LangChain": {"channel_values": {"messages": langchain()}},
    "a list": anthropic(),
    "text in text": json.dumps({"messages": anthropic()}),
}


def test_a_trace_is_explained_by_its_longest_request(tmp_path: Path) -> None:
    found = explained(written(tmp_path, langfuse()))
    assert TURNS == len(found["turns"])
    assert {"search_orders", "write_file"} == {
        part["tool"] for turn in found["turns"] for part in turn["parts"] if part["tool"]
    }


def test_the_instructions_of_a_model_request_are_read(tmp_path: Path) -> None:
    said = "Answer with the numbers of the orders alone, and never with their prices. " * 200
    request = {"model": "m", "system_instructions": said, "tools": [{"name": "search"}], "input": chat(2)}
    found = explained(written(tmp_path, {"input": request, "kept": said[::-1]}))
    assert {"kept"} == set(found["breakdown"]["unread"]["paths"])


@pytest.mark.parametrize("size", [20, 2_000])
def test_what_is_a_model_request_in_a_history_is_read(tmp_path: Path, size: int) -> None:
    """Rules, instructions and definitions of tools as histories of agents have them; ``size`` is in lines."""
    rules, more, said = ("\n".join(f"{name} {n} of the shop holds" for n in range(size)) for name in ("A", "B", "C"))
    tools = [{"type": "function", "function": {"name": "search", "description": more}}]
    message = {"parts": [{"content": "Which?", "part_kind": "user-prompt"}], "instructions": rules, "kind": "request"}
    parameters = {"function_tools": [{"name": "search", "description": more}]}
    rows: list[tuple[list[Any], set[str]]] = [
        ([rules, chat(2), tools], set()),  # a loop's own activity
        ([rules, {"n": 1}], {"data"}),  # the arguments of a tool
        ([{"system_instructions": rules, "input": chat(2), "tools": tools, "kept": said}], {"data.kept"}),
        ([{"messages": [message], "model_request_parameters": parameters, "deps": {"kept": said}}], {"data.deps.kept"}),
    ]
    for given, unread in rows:
        arguments = {"payloads": [payloads(each)["payloads"][0] for each in given]}
        scheduled = event(2, "ActivityTaskScheduled", activityType={"name": "a"}, input=arguments)
        started = event(1, "ActivityTaskScheduled", activityType={"name": "b"}, input=payloads(chat(1)))
        found = explained(written(tmp_path, {"events": [started, scheduled]}))["breakdown"]["unread"]["paths"]
        assert unread == {path.partition("payloads[].")[2] for path in found}


def test_cuts_repeats_and_missing_halves_have_their_turns(tmp_path: Path) -> None:
    messages: list[Any] = [{"role": "user", "content": "Which orders are late?"}]
    texts = ["row 1 of many\n[truncated: 9,000 more characters]", *["nothing was found here"] * 3, "a row of the table"]
    for turn, text in enumerate(texts):
        arguments = json.dumps({"page": min(turn, 3)})
        call = {"id": f"call_{turn}", "type": "function", "function": {"name": "search", "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{turn}" if turn != 1 else "call_x", "content": text})
    found = explained(written(tmp_path, messages))
    shown = [(number, *each) for number, turn in enumerate(found["turns"], 1) for each in turn["incidents"]]
    assert [
        (1, "is truncated (marker)", "search"),
        (2, "has no call: providers refuse the request (result_without_call)", ""),
        (2, "has no result: providers refuse the request (call_without_result)", "search"),
        (5, "has the arguments of turn 4", "search"),
    ] == shown
    ran = run("explain", tmp_path / "payload.json")
    assert "has the arguments of turn 4" in ran.out
    assert "  0 %" not in ran.out


TOO_LONG = "Error code: 400 - {'error': {'message': 'Shorten it', 'code': 'context_length_exceeded'}}"
UNPAIRED = "An assistant message with 'tool_calls' must be followed by tool messages"
LARGE = "Error code: 413 - {'type': 'error', 'error': {'type': 'request_too_large', 'message': 'Send less'}}"


def refusals() -> list[tuple[Any, list[tuple[int, str]]]]:
    """Return exports with refused requests, and the turns and reasons of these."""
    events: list[Any] = []
    for turn in (1, 2):
        given = payloads({"messages": chat(turn)})
        events.append(event(len(events) + 1, "ActivityTaskScheduled", activityType={"name": "ask"}, input=given))
        cause = {"message": LARGE, "applicationFailureInfo": {"type": "APIStatusError"}}
        failure = {"message": TOO_LONG} if turn == 1 else {"message": "Activity task failed", "cause": cause}
        events.append(event(len(events) + 1, "ActivityTaskFailed", failure=failure))
    failed = {"run_type": "llm", "inputs": {"messages": [chat(3)]}, "outputs": None, "error": f"Bad({TOO_LONG!r})"}
    observation = {"type": "GENERATION", "input": chat(2), "level": "ERROR", "statusMessage": UNPAIRED}
    state = {"agent_state": "error", "reason": "litellm.ContextWindowExceededError: too much"}
    ended = {"id": 99, "observation": "agent_state_changed", "content": "", "extras": state}
    of_tools = {"error": "413 Request Entity Too Large", "detail": "String should have at most 5 characters"}
    return [
        ({"events": events}, [(1, "refused: context"), (2, "refused: too_large")]),
        ({"run_type": "chain", "child_runs": [{**failed, "error": None}, failed]}, [(3, "refused: context")]),
        ({"observations": [observation]}, [(2, "refused: call_without_result")]),
        ([*openhands()[:7], ended], [(3, "refused: context")]),
        ({"history": chat(3), "info": {"exit_status": "exit_context"}}, [(3, "refused: context")]),
        ({"messages": chat(2), "runs": [{"run_type": "tool", "error": TOO_LONG}], "pages": [of_tools]}, []),
    ]


def test_refused_requests_have_their_turns(tmp_path: Path) -> None:
    for value, expected in refusals():
        found = explained(written(tmp_path, value))
        turns = enumerate(found["turns"], 1)
        shown = [(number, *each) for number, turn in turns for each in turn["incidents"]]
        assert [(number, what, "") for number, what in expected] == shown
    only = explained(written(tmp_path, {"response": {"status_code": 400, "body": {"error": {"message": TOO_LONG}}}}))
    assert ["A model request was refused: context."] == only["notes"]


def test_a_session_of_openai_s_agents_sdk(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TEXT)"
        )
        rows = [("small", {"role": "user", "content": "hello"}), *(("large", item) for item in responses())]
        database.executemany(
            "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)",
            [(session, json.dumps(item)) for session, item in rows],
        )
    found = explained(path)
    assert ("session of OpenAI's Agents SDK", ["Session large."], TURNS) == (
        *(found["kind"], found["notes"]),
        len(found["turns"]),
    )
    assert {"search_orders"} == set(found["breakdown"]["tools"])
    assert 1 == len(explained(path, "--thread", "small")["turns"])
    assert f"Error: {path} has no session none\n" == run("explain", path, "--thread", "none").err


def test_a_thread_is_summed_over_its_checkpoints(tmp_path: Path) -> None:
    """Each checkpoint has 20,000 bytes more than the one before, and the same documents."""
    path = tmp_path / "checkpoints.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
        database.execute("CREATE TABLE writes (thread_id, value)")
        database.execute("INSERT INTO writes VALUES ('t', ?)", (b"w" * 5_000,))
        for number in range(1, 4):
            state = {"channel_values": {"documents": "d" * 30_000, "text": "x" * 20_000 * number}}
            text = json.dumps(state).encode()
            database.execute("INSERT INTO checkpoints VALUES ('t', '', ?, 'json', ?)", (str(number), text))
    sizes = [len(text) - 60_000 + 20_000 * number for number in range(1, 4)]
    _, stored, equal = explained(path)["notes"]
    total = sum(sizes) + 5_000
    assert stored.startswith(f"The store has {total:,} bytes of it, {total / sizes[-1]:,.1f} times the last checkpoint")
    after = next(n for n in range(99_999) if total + sum(sizes[-1] + 20_000 * k for k in range(1, n + 1)) >= 10_000_000)
    assert f"10 MB after {after} more, 100 MB after " in stored
    assert "The checkpoint before it has the same channel_values.documents (30,002 bytes)." == equal
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert f"Error: {path} is in use: copy it, and explain the copy\n" == run("explain", path).err


@each_row("value", FORMATS.values(), ids=FORMATS)
def test_turns_tools_and_savings(tmp_path: Path, value: Any) -> None:
    found = explained(written(tmp_path, value))
    assert TURNS == len(found["turns"])
    results = [part for turn in found["turns"] for part in turn["parts"] if part["kind"] == "result"]
    of_tool = [part["bytes"] for part in results if part["tool"] == "search_orders"]
    assert TURNS == len(of_tool)
    assert all(BYTES <= size <= WRITTEN for size in of_tool)
    saved = savings(found)
    assert TURNS * (BYTES - 32_768) <= saved["claim check"] <= TURNS * (WRITTEN - 32_768)
    # The last two of eight turns stay whole, and five earlier ones become lines together.
    assert 5 * (BYTES - 400) <= saved["trimming"] <= 5 * WRITTEN
    assert TURNS == len(found["sizes"])
