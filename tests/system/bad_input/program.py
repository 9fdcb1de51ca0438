"""A program with hostile tools, written without a thought for who watches it; prints what its agent would see.

Run with and without AGENT_OTEL, it must print the same.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import agent_otel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator


class Hostile:
    """Raises whatever is asked of it."""

    def __str__(self) -> str:
        raise RuntimeError("str")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"getattr {name}")


def self_containing() -> list[Any]:
    """A list that contains itself."""
    loop: list[Any] = ["x"]
    loop.append(loop)
    return loop


def shared_dag() -> list[Any]:
    """A billion leaves in thirty lists."""
    node: list[Any] = ["leaf"]
    for _ in range(30):
        node = [node, node]
    return node


def deep() -> list[Any]:
    """A hundred thousand lists in each other."""
    node: list[Any] = []
    for _ in range(100_000):
        node = [node]
    return node


RESULTS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "text": lambda: "plain",
    "hundred_megabytes": lambda: "x" * 100_000_000,
    "self_containing": self_containing,
    "shared_dag": shared_dag,
    "deep": deep,
    "surrogates": lambda: "\ud800 alone \udfff",
    "hostile": Hostile,
    "hostile_inside": lambda: {"a": [Hostile()]},
    "generator": lambda: (number for number in range(3)),
    "huge_int": lambda: 10**5000,
    "bytes": lambda: b"\xff\xfe",
}


@agent_otel.tool
def give(what: Any, *, make: Any = None) -> Any:
    """Return something nasty."""
    return RESULTS[what]() if make is None else make


@agent_otel.tool
def fail(error: BaseException) -> None:
    """Raise what is asked for."""
    raise error


@agent_otel.tool
def count(n: Any) -> Generator[str, str | None, None]:
    """Yield lines."""
    for number in range(n):
        got = yield f"line {number}\n"
        if got:
            yield f"got {got}\n"


@agent_otel.tool
async def acount(n: int) -> AsyncGenerator[str, None]:
    """Yield lines."""
    for number in range(n):
        yield f"line {number}\n"


@agent_otel.tool
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


def describe(value: Any) -> str:
    """What can be said of a value without calling into it."""
    kind = type(value)
    if kind in (str, bytes):
        return f"{kind.__name__} {len(value)}"
    if kind is int:
        return f"int {hash(value)}"
    return f"generator {list(value)}" if kind.__name__ == "generator" else kind.__name__


def results() -> Iterator[tuple[str, str]]:
    """Results: the very object that the function returned."""
    for name in RESULTS:
        yield f"result {name}", describe(give(name))
    for name in ("self_containing", "hostile", "generator"):
        value = RESULTS[name]()
        yield f"same object {name}", str(give("none", make=value) is value)


def arguments() -> Iterator[tuple[str, str]]:
    """Arguments that cannot be serialised."""
    for name in ("hostile", "self_containing", "shared_dag", "deep", "generator", "surrogates", "huge_int"):
        value = RESULTS[name]()
        yield f"argument {name}", str(give("none", make=value) is value)
    yield "argument keys", describe(give("none", make={1: "a", "b": 2, (1, 2): None, None: 3}))


def errors() -> Iterator[tuple[str, str]]:
    """Exceptions: the very object that was raised."""

    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("str of an exception")

    for error in (ValueError("v"), OddError(), KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()):
        try:
            fail(error)
        except BaseException as raised:  # noqa: PERF203 - five of them
            yield f"raised {type(error).__name__}", str(raised is error and raised.__cause__ is None)


def generators() -> Iterator[tuple[str, str]]:
    """Generators keep their protocol."""
    yield "all", repr(list(count(3)))
    lines = count(5)
    yield "sent", repr([next(lines), lines.send("x"), next(lines)])
    lines.close()
    yield "closed", repr(list(lines))
    thrown = count(2)
    next(thrown)
    try:
        thrown.throw(ValueError("in"))
    except ValueError as error:
        yield "thrown", repr(error)
    dropped = count(9)
    next(dropped)
    del dropped
    yield "bad call", _outcome(lambda: count("three"))


def _outcome(call: Callable[[], Any]) -> str:
    try:
        return repr(list(call()))
    except Exception as error:
        return repr(error)


async def asynchronous() -> list[tuple[str, str]]:
    """Async generators, parallel calls, cancellation and a timeout."""
    lines = [line async for line in acount(3)]
    started = acount(3)
    first = await started.__anext__()
    await started.aclose()
    gathered = await asyncio.gather(*(wait(0.001) for _ in range(20)))
    task = asyncio.create_task(wait(30))
    await asyncio.sleep(0.01)
    task.cancel()
    try:
        await task
        cancelled = "no"
    except asyncio.CancelledError:
        cancelled = "yes"
    return [("async", repr(lines)), ("first", first), ("gather", str(gathered.count("waited"))), ("cancel", cancelled)]


def main() -> None:
    """Run everything and print one JSON object."""
    seen = dict([*results(), *arguments(), *errors(), *generators(), *asyncio.run(asynchronous())])
    print(json.dumps(seen, indent=0))


if __name__ == "__main__":
    main()
