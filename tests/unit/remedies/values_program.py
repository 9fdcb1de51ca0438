"""Passes every value of a list through every door, and prints the cost for the caller's thread as JSON.

Run it as ``python -m tests.unit.remedies.values_program [--times]`` with the remedies in the environment. A cost is the
number of lines that the package executed in the caller's thread, or with ``--times`` milliseconds of this thread.
"""

from __future__ import annotations

import array
import dataclasses
import decimal
import fractions
import functools
import gc
import json
import sys
import threading
import time
import types
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pydantic
import yaml

import agent_otel
from agent_otel.measure.size import size
from tests.unit.measure import hostile

if TYPE_CHECKING:
    from collections.abc import Callable

ANCHORS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
MAPPINGS = "a0: &a0 {l: x, r: x}\n" + "".join(f"a{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}\n" for n in range(1, 40))
ran: list[str] = []


def slow(name: str) -> Callable[..., Any]:
    """Return a method that must not be called."""

    def method(*_: object, **__: object) -> Any:
        ran.append(name)
        raise RuntimeError(name)

    return method


def made(base: type, *args: Any) -> Any:
    """Return an instance of a class of the program. Its methods must not be called."""
    names = "__len__ __iter__ __eq__ __repr__ __str__ __bool__ __getitem__ __contains__ keys items values __getattr__"
    return type("Made", (base,), {name: slow(f"{base.__name__}.{name}") for name in names.split()})(*args)


def nested(levels: int, wrap: Callable[[Any], Any], innermost: Any = "x") -> Any:
    """Return a value in a container in a container ..."""
    value = innermost
    for _ in range(levels):
        value = wrap(value)
    return value


@dataclasses.dataclass
class Node:
    """Declared fields."""

    inner: Any
    other: Any = None


class Thing:
    """Attributes."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Model(pydantic.BaseModel):
    """A validated model that may contain another."""

    inner: Any = None
    other: Any = None


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - as in old programs


def itself(make: Callable[[], Any], put: Callable[[Any, Any], None]) -> Any:
    """Return a value that contains itself."""
    value = make()
    put(value, value)
    return value


def generator() -> Any:
    """Yield rows forever."""
    while True:
        yield "row"


VALUES: dict[str, Callable[[], Any]] = {
    "lists, deep": lambda: nested(100_000, lambda inner: [inner]),
    "dictionaries, deep": lambda: nested(100_000, lambda inner: {"a": inner}),
    "tuples, deep": lambda: nested(100_000, lambda inner: (inner, 1)),
    "containers of all kinds, deep": lambda: nested(20_000, lambda inner: {"a": [(deque([inner]),)]}),
    "data classes, deep": lambda: nested(50_000, Node),
    "attributes, deep": lambda: nested(50_000, lambda inner: Thing(inner=inner)),
    "models, deep": lambda: nested(5_000, lambda inner: Model.model_construct(inner=inner)),
    "YAML lists by anchors, 2**40": lambda: yaml.safe_load(ANCHORS),
    "YAML mappings by anchors, 2**40": lambda: yaml.safe_load(MAPPINGS),
    "lists by aliases, 4**24": lambda: nested(24, lambda inner: [inner] * 4),
    "data classes by aliases, 2**40": lambda: nested(40, lambda inner: Node(inner, inner)),
    "models by aliases, 2**40": lambda: nested(40, lambda inner: Model.model_construct(inner=inner, other=inner)),
    "rows by aliases, 1,000**8": lambda: nested(8, lambda inner: [{"a": inner, "b": [inner]}] * 1_000),
    "sets of tuples by aliases, 2**20": lambda: {nested(20, lambda inner: (inner, inner)), 1},
    "a list in itself": lambda: itself(list, lambda value, inner: value.extend([inner, inner])),
    "a dictionary in itself": lambda: itself(dict, lambda value, inner: value.update(a=inner, b=[inner])),
    "an object in itself": lambda: itself(Thing, lambda value, inner: value.__dict__.update(a=inner, b={"c": inner})),
    "a data class in itself": lambda: itself(
        lambda: Node(0), lambda value, inner: setattr(value, "inner", [inner] * 3)
    ),
    "a graph of 300 that all know each other": lambda: friends(300),
    "10**6 keys": lambda: dict.fromkeys(map(str, range(1_000_000)), 1),
    "10**6 keys that are numbers": lambda: dict.fromkeys(range(1_000_000), "x"),
    "10**5 rows": lambda: [{"id": number, "name": f"row {number}"} for number in range(100_000)],
    "10**5 data classes": lambda: [Node(number) for number in range(100_000)],
    "10**5 models": lambda: [Model.model_construct(inner=number) for number in range(50_000)],
    "one text in 10**5 places": lambda: ["x" * 100_000] * 100_000,
    "100 MB of rows": lambda: [["x" * 1_000_000] for _ in range(100)],
    "an integer of 200,000 digits": lambda: 10**200_000,
    "integers of 4,000 digits": lambda: [10**4_000] * 5_000,
    "decimals and fractions of 100,000 digits": lambda: [
        decimal.Decimal("1" * 100_000),
        fractions.Fraction(10**99_999, 7),
    ],
    "8 MB of NULs": lambda: {"a": "\0" * 8_000_000},
    "8 MB of surrogates": lambda: {"a": "\ud800" * 8_000_000},
    "bytes": lambda: {"a": b"\0" * 20_000_000, "b": [bytearray(20_000_000), memoryview(b"x" * 20_000_000)]},
    "an array": lambda: array.array("d", [0.5]) * 1_000_000,
    "a generator": generator,
    "generators in a list": lambda: [generator(), {"rows": generator()}],
    "iterators": lambda: {"a": iter([1]), "b": map(str, [1]), "c": zip([1], [2], strict=True), "d": enumerate([1])},
    "functions": lambda: [print, generator, functools.partial(print), Thing().__init__, int],  # type: ignore[misc]
    "an iterator of the program's": hostile.Iterator,
    "every class of the program's": lambda: list(hostile.everything().values()),
    "a dictionary of the program's": lambda: made(dict, {"a": 1}),
    "a list of the program's": lambda: made(list, ["a"] * 20_000),
    "a text of the program's": lambda: [made(str, "x" * 50_000)] * 3,
    "a number of the program's": lambda: [made(int, 5)] * 20_000,
    "an exception with deep arguments": lambda: ValueError(nested(50_000, lambda inner: [inner])),
    "named tuples, deep": lambda: nested(50_000, lambda inner: Pair(inner, 1)),
    "a read-only view of shared parts": lambda: types.MappingProxyType({"a": nested(40, lambda inner: [inner, inner])}),
    "a queue of shared parts": lambda: deque([nested(40, lambda inner: deque([inner, inner]))]),
    "a range of 10**9": lambda: range(10**9),
    "views of 10**6 keys": lambda: [dict.fromkeys(range(1_000_000)).keys(), dict.fromkeys(range(1_000_000)).values()],
    "dictionaries of the library": lambda: [
        defaultdict(list, a=nested(40, lambda inner: [inner, inner])),
        OrderedDict(a=1),
        UserDict({"a": nested(40, lambda inner: {"a": inner, "b": inner})}),
    ],
    "dates and paths": lambda: [datetime(2026, 1, 1, tzinfo=timezone.utc), PurePosixPath("/a/b"), Path("/c")] * 20_000,
    "keys that are tuples": lambda: {(number, number): "x" for number in range(50_000)},
}


def friends(count: int) -> list[Thing]:
    """Return objects that each have a list of all objects."""
    found = [Thing() for _ in range(count)]
    for one in found:
        one.__dict__["friends"] = found
    return found


@agent_otel.tool
def give(value: Any = None) -> Any:
    """Return the value under test: the door of a result."""
    return HELD[0] if value is None else "taken"


HELD: list[Any] = [None]


def result() -> Any:
    """Hand a value out of a tool."""
    with agent_otel.execution("run-1"):
        return give()


def summary() -> Any:
    """Summarise a value."""
    with agent_otel.execution("run-1"):
        return agent_otel.remedies.summarize_result(HELD[0], tool="give")


def argument() -> Any:
    """Hand a value into a tool."""
    with agent_otel.execution("run-1"):
        give(HELD[0])
    return HELD[0]


def payload() -> Any:
    """Report a value as a payload that is large enough, for its cap, to be analysed."""
    agent_otel.payload(HELD[0], runtime="own", direction="state", execution="run-1")
    return HELD[0]


def part() -> Any:
    """Read a value as a part of a request to a model."""
    size(HELD[0])
    return HELD[0]


DOORS = {"result": result, "summary": summary, "argument": argument, "payload": payload, "part": part}


def lines(function: Callable[[], Any]) -> tuple[int, Any]:
    """Call a function. Return the number of the package's lines that this thread executed, and the result."""
    count = 0

    def trace(frame: types.FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "call" and "agent_otel" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        found = function()
    finally:
        sys.settrace(None)
    return count, found


def milliseconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """Call a function. Return the time of this thread in milliseconds, and the result."""
    begun = time.thread_time()
    found = function()
    return round(1_000 * (time.thread_time() - begun), 1), found


def main() -> None:
    """Print a line for each door and value."""
    cost = milliseconds if "--times" in sys.argv else lines
    HELD[0] = "first"
    for enter in DOORS.values():
        enter()
    gc.disable()
    for name, make in VALUES.items():
        HELD[0] = make()
        for door, enter in DOORS.items():
            ran.clear()
            hostile.ran.clear()
            spent, found = cost(enter)
            is_error = type(found) is dict and found.get("error") == "result_too_large"
            is_same = found is HELD[0]
            line = {"value": name, "door": door, "cost": spent, "same": is_same, "withheld": is_error}
            print(json.dumps({**line, "ran": [*ran, *hostile.ran]}), flush=True)


if __name__ == "__main__":
    threading.stack_size(512 * 1024 * 1024)  # some versions of Python free deep values by recursion
    sys.setrecursionlimit(10**6)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
    sys.stdout.flush()
    import os

    os._exit(0)
