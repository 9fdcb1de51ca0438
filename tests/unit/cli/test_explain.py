"""``agent-otel explain`` on states, conversations and histories, with figures by hand, and on damaged files."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.explain import formats
from tests.rows import each_row
from tests.unit.cli.running import run

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = 31 * 2_000 + 2  # bytes of a result as JSON: rows of 30 bytes, of which one is escaped


def result(turn: int) -> str:
    """Return the result of a turn: 60,000 bytes."""
    return "".join(f"row {number:05d} of page {turn} of orders\n" for number in range(2_000))


def module(turn: int) -> str:
    """Return the content of a file: 23,000 bytes."""
    return "".join(f"line {number:05d} of module {turn}\n" for number in range(1_000))


def chat(turns: int) -> list[dict[str, Any]]:
    """Return a conversation with a search in each turn; every second one writes a file beside it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Which orders are late?"}]
    for turn in range(turns):
        calls: list[tuple[str, Any, str]] = [("search_orders", {"page": turn}, result(turn))]
        if turn % 2:
            calls.append(("write_file", {"path": "late.py", "content": module(turn)}, "written"))
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"call_{turn}_{name}",
                        "type": "function",
                        "function": {"name": name, "arguments": json.dumps(arguments)},
                    }
                    for name, arguments, _ in calls
                ],
            }
        )
        messages += [
            {"role": "tool", "tool_call_id": f"call_{turn}_{name}", "content": result} for name, _, result in calls
        ]
    return messages


def explained(path: Path | str, *options: str) -> Any:
    """Return the explanation of a file."""
    ran = run("explain", path, "--json", *options)
    assert (0, "") == (ran.code, ran.err)
    return json.loads(ran.out)


def written(folder: Path, value: object) -> Path:
    """Return a file with a value as compact JSON."""
    path = folder / "payload.json"
    path.write_text(json.dumps(value, separators=(",", ":")))
    return path


def rooms(found: Any) -> dict[str, tuple[int, int | None]]:
    """Return the room and the turns left by runtime."""
    return {room["runtime"]: (room["left_bytes"], room["turns_left"]) for room in found["rooms"]}


def savings(found: Any) -> dict[str, int]:
    """Return the saved bytes by remedy."""
    return {saving["remedy"]: saving["bytes"] for saving in found["savings"]}


def test_a_state_by_path_tool_and_duplicate(tmp_path: Path) -> None:
    private = "for the user interface alone, not for the model. " * 100
    state = {"messages": chat(8), "last_result": result(7), "table_state": private}
    path = written(tmp_path, state)
    found = explained(path)
    total = path.stat().st_size
    assert ("JSON", total, 8) == (found["kind"], found["payload_bytes"], len(found["turns"]))
    breakdown = found["breakdown"]
    assert WRITTEN * 8 + 9 * 4 + 4 * 8 + 24 == breakdown["paths"]["messages[].content"]
    assert {"search_orders": WRITTEN * 9, "write_file": 9 * 4} == breakdown["tools"]
    assert [("messages[].content", "last_result", WRITTEN)] == [tuple(one.values()) for one in breakdown["duplicates"]]
    assert {"table_state": len(private) + 2} == breakdown["unread"]["paths"]
    assert breakdown["exact"]


def test_the_turns_their_sizes_and_the_room_left(tmp_path: Path) -> None:
    path = written(tmp_path, chat(8))
    found = explained(path)
    total = path.stat().st_size
    assert [3, 3, 2, 3, 2, 3, 2, 3] == [turn["messages"] for turn in found["turns"]]
    parts = [{(part["kind"], part["tool"]): part["bytes"] for part in turn["parts"]} for turn in found["turns"]]
    assert [True, False] * 4 == [("result", "write_file") not in each for each in parts]
    assert total == found["sizes"][-1]
    assert sorted(found["sizes"]) == found["sizes"]
    left = rooms(found)
    assert 2 * 1024 * 1024 - total == left["dapr"][0]
    # The last five turns brought 2 * 62 KB and 3 * 88 KB; there is room for 19 of them, or 18 of the largest.
    assert left["dapr"][1] in (18, 19)


def test_what_each_remedy_saves_is_found_by_running_it(tmp_path: Path) -> None:
    found = savings(explained(written(tmp_path, chat(8))))
    # Eight results of 60,000 bytes, of which the model gets at most 32 KiB, between two lines of the table.
    assert 8 * (60_000 - 32_768) <= found["claim check"] <= 8 * (60_000 - 32_768 + 30)
    # Of eight turns the last two stay whole, and five of the others become lines together, with 150 characters each.
    assert 5 * (60_000 - 250) <= found["trimming"] <= 5 * (60_000 - 150)
    # Four calls that write a file, with a mark in the place of its content: 1,000 lines of 23 bytes.
    assert 4 * 22_900 <= found["argument compaction"] <= 4 * 23_000


def test_the_terminal_names_the_tool_and_the_path(tmp_path: Path) -> None:
    ran = run("explain", written(tmp_path, {"messages": chat(8), "copy": result(7)}))
    assert 0 == ran.code
    for text in ("messages[]", "search_orders", "messages[].content = copy", "room left", "AGENT_OTEL_CLAIM_CHECK"):
        assert text in ran.out


def event(number: int, kind: str, **attributes: Any) -> dict[str, Any]:
    """Return an event of a history as Temporal writes it."""
    name = f"{kind[0].lower()}{kind[1:]}EventAttributes"
    return {"eventId": str(number), "eventType": kind, name: attributes}


def payloads(value: Any) -> dict[str, Any]:
    """Return a value as Temporal's payloads: base64 of JSON."""
    metadata: dict[str, Any] = {"encoding": b64encode(b"json/plain").decode()}
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return {"payloads": [{"metadata": metadata, "data": b64encode(data).decode()}]}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_temporal_history_is_decoded(tmp_path: Path, indent: int | None) -> None:
    states = [{"messages": chat(turn), "note": "für alle"} for turn in range(1, 9)]
    events = [
        event(number, "ActivityTaskScheduled", activityType={"name": "run_turn"}, input=payloads(state))
        for number, state in enumerate(states, 1)
    ]
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"events": events}, indent=indent))
    found = explained(path)
    sizes = [len(json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode()) for state in states]
    assert "Temporal history" == found["kind"]
    assert [{"name": "run_turn", "boundary": "activity_input", "bytes": size} for size in sizes] == found["steps"]
    assert sizes == found["sizes"]
    assert 8 == len(found["turns"])
    history = sum(sizes) + 150 * 8  # and its events
    assert {
        "activity_input": 2 * 1024 * 1024 - sizes[-1],
        "message": 4 * 1024 * 1024 - sizes[-1],
        "history": 50 * 1024 * 1024 - history,
        "history, events": 51_200 - 8,
    } == {room["boundary"]: room["left_bytes"] for room in found["rooms"]}
    assert ["activity_input", "history"] == [room["boundary"] for room in found["rooms"]][:2]  # the nearest first
    left = {room["boundary"]: room["turns_left"] for room in found["rooms"]}
    # Each state has 75 KB more than the one before: the ninth has 670 KB, and 28 more of them fill 50 MiB.
    growth = (sizes[-1] - sizes[1]) / 6
    turns = next(n for n in range(99) if history + sum(sizes[-1] + growth * k for k in range(1, n + 2)) > 52_428_800)
    assert turns - 1 <= left["history"] <= turns + 1
    path_of_content = "events[].activityTaskScheduledEventAttributes.input.payloads[].data.messages[].content"
    assert path_of_content == found["breakdown"]["largest_path"]
    assert sum(range(1, 9)) * WRITTEN == found["breakdown"]["tools"]["search_orders"]


def test_the_room_of_results_is_that_of_the_largest(tmp_path: Path) -> None:
    """A result is not carried on: a small one behind it says nothing of the room."""
    events = [event(1, "WorkflowExecutionStarted", input=payloads({"a": 1}))]
    for size in (1_000, 2_000_000, 1_000):
        events += [
            event(len(events) + 1, "ActivityTaskScheduled", activityType={"name": "fetch"}, input=payloads(size)),
            event(len(events) + 2, "ActivityTaskCompleted", result=payloads("x" * size)),
        ]
    found = explained(written(tmp_path, {"events": events}))
    (room,) = (room for room in found["rooms"] if room["boundary"] == "activity_output")
    # The largest is 2,000,002 bytes as JSON.
    assert ("temporal", "activity_output", 2_097_152, 97_150) == (
        *(room["runtime"], room["boundary"], room["cap_bytes"]),
        room["left_bytes"],
    )


BAD = {
    "nothing": (b"", "is empty"),
    "blanks": (b" \n\t ", "is empty"),
    "text": (b"hello, world", "is not JSON: it begins with 'h'"),
    "binary": (b"\x7fELF\0\0\0\1" * 100, "is a binary file: neither JSON nor a LangGraph SQLite file"),
    "gzip": (b"\x1f\x8b\x08\0" * 100, "is compressed: unpack it first"),
    "utf-16": ("[1]".encode("utf-16"), "is UTF-16: convert it to UTF-8"),
    "a brace": (b"{]", "is not JSON"),
    "no database": (b"SQLite format 3\0" + b"\1" * 5000, "is no LangGraph SQLite file"),
}


@each_row(("content", "message"), BAD.values(), ids=BAD)
def test_a_file_that_is_no_payload_is_a_message(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    ran = run("explain", path)
    assert (1, "") == (ran.code, ran.out)
    assert ran.err.startswith(f"Error: {path} {message}")


def test_what_cannot_be_opened_is_a_message(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        ran = run("explain", path)
        assert (1, f"Error: {path} cannot be read: {reason}\n") == (ran.code, ran.err)
    assert 1 == run("explain", "a\0b").code


PARTLY = {
    "truncated": json.dumps({"messages": chat(4)}).encode()[:-40_000],
    "a truncated escape": b'{"messages": [{"role": "user", "content": "' + b"text " * 4000 + b"\\u00",
    "deep": b"[" * 5000 + b"]" * 5000,
    "deep objects": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "invalid UTF-8": b'{"messages": [{"role": "user", "content": "' + b"abc\xff\xfe" * 3000 + b'"}]}',
}


@each_row("content", PARTLY.values(), ids=PARTLY)
def test_a_damaged_file_is_explained_as_far_as_it_goes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.json"
    path.write_bytes(content)
    ran = run("explain", path)
    assert ran.code in (0, 1)
    assert "A part could not be read" in ran.out or "is not JSON" in ran.err
    if ran.code == 0:
        assert f"{len(content):,} bytes" in ran.out


ODD = {
    "a huge number": b"[" + b"9" * 100_000 + b", 1e999999, NaN, -Infinity]",
    "one text": json.dumps("x" * 100_000).encode(),
    "lone surrogates": b'{"messages": [{"role": "user", "content": "' + b"\\ud800 text" * 3000 + b'"}]}',
    "odd messages": b'[{"role": 5, "content": {}}, {"role": "tool", "content": null, "tool_call_id": []}]',
    "a type that is a list": b'[{"type": ["object", "null"], "data": {"a": 1}}]',
    "odd parts": b'[{"parts": 1}, {"parts": [1, null, {"functionCall": 1}]}, {"role": "model", "parts": []}]',
    "lines": b'{"role":"user","content":"a"}\n{"role":"assistant","content":"b"}\n',
    "a mark": b"\xef\xbb\xbf" + b'{"a": 1}',
}


@each_row("content", ODD.values(), ids=ODD)
def test_odd_json_is_explained(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    for options in ((), ("--all",), ("--json",)):
        ran = run("explain", path, *options)
        assert (0, "") == (ran.code, ran.err)


def test_names_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    path, page = tmp_path / "chat.json", tmp_path / "page.html"
    text = json.dumps(chat(2)).replace("search_orders", "sea\\u001b[31mrch\\ud83d")
    path.write_text(text)
    ran = run("explain", path, "--all")
    assert (0, "") == (ran.code, ran.err)
    assert "\x1b" not in ran.out
    assert "sea\ufffd[31mrch\ufffd" in ran.out
    assert run("explain", path, "--html", page).code == 0
    assert "sea" in page.read_text(encoding="utf-8")


def test_a_pipe_and_standard_input(tmp_path: Path) -> None:
    content = written(tmp_path, {"messages": chat(8)}).read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert len(content) == explained(pipe)["payload_bytes"]
    writer.join()
    command = [sys.executable, "-c", "from agent_otel.cli import main; main()", "explain", "-", "--all"]
    env = {**os.environ, "AGENT_OTEL_CAPS": "dapr.payload=16MiB"}
    ran = subprocess.run(command, input=content, capture_output=True, check=True, env=env)
    assert f"-: JSON, {len(content):,} bytes, 8 turns" in ran.stdout.decode()
    assert "16,777,216" in ran.stdout.decode()
    assert b"" == ran.stderr


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    path = written(tmp_path, {f"key_{number}": number for number in range(20_000)})
    command = f'{sys.executable} -c "from agent_otel.cli import main; main()" explain --json {path} | head -c 10'
    ran = subprocess.run(command, shell=True, capture_output=True, check=False)  # noqa: S602 - a pipe of the shell
    assert b"" == ran.stderr


def test_what_has_no_end_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices, a pipe without a writer, a pipe that is silent, and one with too much in it."""
    monkeypatch.setattr(formats, "_SILENT_SECONDS", 0.5)
    monkeypatch.setattr(formats, "_MOST_BYTES", 100_000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/zero", "/dev/urandom", "/dev/null", "/dev/full"):
        assert (1, f"Error: {path} is a device, which may have no end\n") == tuple(run("explain", path))[::2]
    assert f"Error: {pipe} does not end: write it to a file first\n" == run("explain", pipe).err
    with pipe.open("r+b", buffering=0) as writer:
        writer.write(b"[1, 2")
        assert f"Error: {pipe} does not end: write it to a file first\n" == run("explain", pipe).err
    thread = threading.Thread(target=_pour, args=(pipe,))
    thread.start()
    assert f"Error: {pipe} has more than 100,000 bytes: write it to a file first\n" == run("explain", pipe).err
    thread.join()


def _pour(pipe: Path) -> None:
    with contextlib.suppress(BrokenPipeError), pipe.open("wb", buffering=0) as writer:
        while True:
            writer.write(b"[1] " * 1_000)


def test_no_text_of_a_file_reaches_the_terminal_as_a_command(tmp_path: Path) -> None:
    """Colours, titles of windows, and marks that turn the direction of writing."""
    bad = "\x1b[31mred\x1b]0;title\x07\u202e\x9b2J\u2066\r"
    path = tmp_path / f"file{bad}.sqlite"
    for thread, kind in ((bad, "json"), ("t", bad)):
        path.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute(
                "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)",
            )
            text = json.dumps({bad: {bad: "x" * 100}, "messages": chat(2)}, ensure_ascii=False).encode()
            database.execute("INSERT INTO checkpoints VALUES (?, '', '1', ?, ?)", (thread, kind, text))
        ran = run("explain", path, "--all")
        assert "red" in ran.out + ran.err
        assert [] == [sign for sign in ran.out + ran.err if sign != "\n" and not sign.isprintable()]
