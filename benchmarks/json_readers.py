"""The reader of payloads beside a prototype on ``msgspec.Raw``: same results, CPU, memory, and waits of other threads.

``python -m benchmarks.json_readers [rounds]`` from the root of the repository, in an environment that has the package,
msgspec and rich (``scripts/benchmark json_readers``). The runs of the two are interleaved. CPU is the median; of the
calls and the waits it is the least of the rounds, because a busy machine makes a thread wait as well.

The reader / the prototype, on two cores, with 15 ms as the budget of another thread's wait:

| payload | CPU, ms | memory, MB | longest C call, ms | wait of another thread, ms |
| agent state of 2 MiB | 6.3 / 9.2 | 0.3 / 0.2 | 0.1 / 1.0 | 5 / 8 |
| the same, JSON in a string | 27 / 52 | 0.4 / 8.9 | 0.2 / 4.0 | 5 / 9 |
| rows, 20 MB | 479 / 827 | 0.3 / 12.8 | 0.6 / 27 | 14 / 30 |
| cut off, NaN, several texts | as whole ones | | | no result |
"""

from __future__ import annotations

import codecs
import functools
import json
import re
import statistics
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from agent_otel.measure.breakdown.json_reader import PLAIN, WINDOW, Form, _quote_ascii, decode
from agent_otel.measure.breakdown.paths import HEAD
from agent_otel.measure.breakdown.report import Tally, _breakdown, breakdown_text
from benchmarks import budgets, clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from agent_otel.measure.breakdown.report import Breakdown

MIB: Final = 1024 * 1024
_PIECE: Final = 8 * 1024
_BATCH: Final = 32 * 1024
_SHORT: Final = 256
_NESTED: Final = re.compile(rb'\s*"?(?:\{\s*\\*["}]|\[\s*\\*["{\[\]])')
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
_RAW_DECODE: Final = json.JSONDecoder.raw_decode.__code__


class RawReader:
    """The prototype: each container is split into the texts of its members by one C call, and the small ones decoded.

    It hands values to the same `Tally`. What it lacks beside `json_reader.Reader`: JSON that was cut off, several texts
    after another, NaN and Infinity, characters that are not UTF-8, a bound on what one call does.
    """

    def __init__(self, tally: Tally, form: Form, encoded: int = 2) -> None:
        self._tally = tally
        self._form = form
        self._encoded = encoded

    def read(self, data: bytes) -> None:
        """Read a payload."""
        self._value(memoryview(data), self._tally.root, depth=0)

    def _written(self, view: memoryview) -> int:
        return self._form.written(str(view, "utf-8")) if self._form.around else len(view)

    def _small(self, view: memoryview | bytes) -> Any:
        self._tally.form = self._form
        return decode(str(view, "utf-8"))[0]

    def _value(self, view: memoryview, spot: Any, depth: int) -> Any:
        """Read one value; return it, or its fields where it was opened."""
        first = bytes(view[:1])
        if first == b'"' and depth <= 1 and self._encoded and _NESTED.match(_text_head(view)):
            inner = RawReader(self._tally, self._form, self._encoded - 1)
            text = _text(view)
            inner._form = Form(_form_of(text.isascii()).quote, (self._form.quote, *self._form.around))
            inner._value(memoryview(text.strip().encode()), spot, 0)
            return None
        if first == b'"' and len(view) > _SHORT:
            self._tally.text(spot, _pieces(view), lambda: self._written(view))
            return None
        if len(view) <= _PIECE or first not in (b"{", b"["):
            value = self._small(view)
            self._tally.values(spot, [value])
            return value
        if first == b"[":
            self._list(_elements(view), self._tally.element(spot), depth)
            return None
        fields = self._tally.fields(spot)
        self._object(_members(view), spot, fields, depth)
        self._tally.close(fields)
        return fields

    def _object(self, members: dict[str, Any], spot: Any, fields: Any, depth: int) -> None:
        row: list[bytes] = []
        for key, raw in members.items():
            view = memoryview(raw)
            if len(view) <= _SHORT:
                row.append(b"%s:%s" % (json.dumps(key).encode(), view))
                continue
            self._row(row, spot, fields)
            member = self._tally.member(spot, fields, key, str(view[:HEAD], "utf-8", "ignore"))
            value = self._value(view, member, depth + 1)
            self._tally.after(member, fields, key, value, self._written(view))
        self._row(row, spot, fields)

    def _row(self, row: list[bytes], spot: Any, fields: Any) -> None:
        if row:
            self._tally.members(spot, fields, self._small(b"{%s}" % b",".join(row)))
            row.clear()

    def _list(self, elements: list[Any], spot: Any, depth: int) -> None:
        row: list[memoryview] = []
        held = 0
        for raw in elements:
            view = memoryview(raw)
            is_short = len(view) <= _PIECE and not (depth == 0 and bytes(view[:1]) == b'"')
            if held and (held > _BATCH or not is_short):
                self._tally.values(spot, self._small(b"[%s]" % b",".join(row)))
                row, held = [], 0
            if is_short:
                row.append(view)
                held += len(view)
            else:
                self._value(view, spot, depth + 1)
        if row:
            self._tally.values(spot, self._small(b"[%s]" % b",".join(row)))


def _text_head(view: memoryview) -> bytes:
    return bytes(view[1:HEAD]).replace(b'\\"', b'"')


def _form_of(is_ascii: bool) -> Form:  # noqa: FBT001 - the answer of str.isascii
    return Form(_quote_ascii) if is_ascii else PLAIN


def _pieces(view: memoryview) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    for start in range(1, len(view) - 1, WINDOW):
        yield decoder.decode(view[start : min(start + WINDOW, len(view) - 1)])


def by_raw(data: bytes) -> Breakdown | None:
    """Break a payload down by the prototype; None for what msgspec does not decode."""
    tally = Tally(budgets.nobody, bool, gap=1 if b'": ' in data[:4096] else 0)
    try:
        RawReader(tally, _form_of(data.isascii())).read(data.strip())
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError):
        return None
    return _breakdown(tally, len(data), str, whole=True)


def by_reader(data: bytes) -> Breakdown | None:
    """Break a payload down as the package does."""
    return breakdown_text(data, budgets.nobody)


def state(results: int, length: int) -> dict[str, Any]:
    """Return an agent's state with each result cut for the model and whole for its user interface."""
    messages: list[Any] = [{"role": "system", "content": "Look."}]
    calls = []
    for number in range(results):
        text = "".join(f"{each:07} " for each in range(number * 100_000, number * 100_000 + length // 8))
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "search", "arguments": '{"q":1}'}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": text[:32_768] + " [truncated]"},
        ]
        calls.append({"id": f"call_{number}", "name": "search", "args": {"q": 1}, "result": text})
    return {"messages": messages, "accumulatedToolCalls": calls, "turn": 5}


def rows(count: int) -> list[dict[str, Any]]:
    """Return rows as APIs answer."""
    return [
        {"number": n, "title": f"change {n}", "state": "open", "draft": False, "score": n / 7} for n in range(count)
    ]


def payloads() -> dict[str, bytes]:
    """Return payloads in the forms of durable runtimes, whole and damaged."""
    agent = state(19, 80_000)
    answer = {"role": "tool", "tool_call_id": "c", "content": json.dumps(rows(4_000))}
    both = {"messages": [answer], "calls": [{"id": "c", "name": "list_pulls", "result": rows(4_000)}]}
    beyond = {"漢字": [f"漢字 {n} größe" * 40 for n in range(3_000)]}
    found: dict[str, Any] = {
        "agent state, 2 MiB": agent,
        "many results, 2 MiB": state(60, 20_000),
        "rows in a result, 2 MiB": {"result": rows(28_000)},
        "a result as text and as object": both,
        "task arguments (Celery)": [[agent, "investigate"], {}, {"callbacks": None, "chain": None}],
        "memoised steps (Inngest)": {
            "steps": {f"step{n}": {"data": rows(500)} for n in range(40)},
            "ctx": {"run_id": "r"},
        },
        "JSON in a string (durabletask)": json.dumps(agent),
        "arguments encoded singly (Dapr)": [json.dumps(state(4, 80_000)), json.dumps({"q": 1})],
        "one text of 2 MiB": {"result": "x" * (2 * MIB)},
        "texts beyond ASCII": beyond,
        "agent state, 16 MiB": state(150, 80_000),
        "rows in a result, 16 MiB": {"result": rows(210_000)},
    }
    made = {
        name: json.dumps(value, ensure_ascii=name != "texts beyond ASCII").encode() for name, value in found.items()
    }
    whole = made["agent state, 2 MiB"]
    made["cut off at 1 MiB"] = whole[:MIB]
    made["one payload after another"] = whole + b"\n" + whole
    made["bytes that are not UTF-8"] = whole.replace(b"0000", b"\xff000", 50)
    made["NaN"] = b'{"score": NaN, ' + whole[1:]
    return made


def same(one: Breakdown | None, other: Breakdown | None) -> str:
    """Return where two breakdowns differ: of paths, tools, calls and duplicates."""
    if one is None or other is None:
        return "no result" if one is not other else "-"
    kinds = ("paths", "tools", "calls", "duplicates")
    return ", ".join(kind for kind in kinds if getattr(one, kind) != getattr(other, kind)) or "equal"


def peak(read: Callable[[bytes], object], data: bytes) -> float:
    """Return the megabytes that reading takes beside the payload."""
    tracemalloc.start()
    read(data)
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest / 1e6


def longest_call(read: Callable[[bytes], object], data: bytes) -> float:
    """Return the CPU milliseconds of the longest call into C, during which no other thread runs."""
    begun, longest, is_leaf = 0.0, 0.0, False

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal begun, longest, is_leaf
        now = time.thread_time()
        if is_leaf and event in {"c_return", "c_exception", "return"}:
            longest = max(longest, now - begun)
        # The scanner behind the standard library's `raw_decode` is an object, whose calls are not reported.
        is_leaf = event == "c_call" or (event == "call" and frame.f_code is _RAW_DECODE)
        begun = time.thread_time()

    sys.setprofile(note)
    try:
        read(data)
    finally:
        sys.setprofile(None)
    return longest * 1000


def main() -> int:
    """Compare the two readers payload by payload, and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    readers = (by_reader, by_raw)
    table = Table("payload", "MB", "results", "CPU, ms", "peak, MB", "longest C call, ms", "longest wait, ms")
    for name, data in payloads().items():
        results = same(*(read(data) for read in readers))
        times: list[list[float]] = [[], []]
        waits: list[list[float]] = [[], []]
        for _ in range(rounds):
            for place, read in enumerate(readers):
                clock.pin()
                started = time.thread_time()
                read(data)
                times[place].append((time.thread_time() - started) * 1000)
                waits[place].append(clock.longest_wait(functools.partial(read, data)))
        table.add_row(
            name,
            f"{len(data) / 1e6:.1f}",
            results,
            " / ".join(f"{statistics.median(each):.1f}" for each in times),
            " / ".join(f"{peak(read, data):.2f}" for read in readers),
            " / ".join(f"{min(longest_call(read, data) for _ in range(3)):.1f}" for read in readers),
            " / ".join(f"{min(each):.1f}" for each in waits),
        )
    Console(width=150).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
