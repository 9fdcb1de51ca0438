"""An exception is ours when the guarded code or what it called has raised it, in whatever way."""

from __future__ import annotations

import asyncio
import functools
import json
import queue
import signal
import struct
import sys
import zlib
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

from agent_otel._internal import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator


class BareError(Exception):
    """An exception without arguments."""


class DescribedError(Exception):
    """An exception with a reason that it gives itself."""

    def __init__(self) -> None:
        super().__init__("reason")


class _Hostile:
    def __iter__(self) -> Iterator[int]:
        raise BareError

    def __bool__(self) -> bool:
        raise BareError

    def __hash__(self) -> int:
        raise BareError


def _raise(error: BaseException | type[BaseException]) -> None:
    raise error


def _asserts() -> None:
    assert not sys.path


def _waits() -> None:
    waited = True
    for _ in range(5):
        while waited:
            waited = _Hostile()  # type: ignore[assignment]


def _paused() -> Generator[int, None, None]:
    yield 1


def _thrown(error: BaseException) -> None:
    paused = _paused()
    next(paused)
    paused.throw(error)


def _shows(*_: object) -> None:
    raise BareError


def _deep(depth: int = 0) -> int:
    return _deep(depth + 1)


async def _awaits(error: BaseException) -> None:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_exception, error)
    await future


OURS: tuple[Callable[[], object], ...] = (
    lambda: _raise(BareError),
    lambda: _raise(DescribedError()),
    lambda: _raise(TimeoutError),
    lambda: int("x"),
    lambda: dict[str, int]()["a"],
    lambda: list[int]().pop(),
    lambda: json.loads("{"),
    lambda: zlib.decompress(b"x"),
    lambda: struct.unpack("i", b""),
    lambda: queue.SimpleQueue[int]().get_nowait(),
    lambda: list(_Hostile()),
    lambda: not _Hostile(),
    lambda: {_Hostile(): 1},
    lambda: [each for each in [_Hostile()] if each],
    _waits,
    lambda: _thrown(ValueError("x")),
    lambda: _paused().throw(BareError()),
    lambda: _shows(sys._getframe(), 1),
    lambda: functools.partial(_shows, "text")(sys._getframe()),
    lambda: asyncio.run(_awaits(BareError())),
    lambda: asyncio.run(asyncio.wait_for(asyncio.sleep(5), 0.001)),
    lambda: pydantic.TypeAdapter(int).validate_python("x"),
    "\ud800".encode,
    _asserts,
    _deep,
)


def test_failures_of_guarded_code_are_ours() -> None:
    for fail in OURS:
        with errors.suppressed(Exception):
            fail()
            pytest.fail(f"{fail} raises nothing")


def _deleting(signum: int, frame: object) -> None:
    del signum, frame
    raise BareError


def test_exceptions_of_signal_handlers_are_foreign() -> None:
    def _uninstalled(*_: object) -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        _raise(BareError)

    before = signal.getsignal(signal.SIGUSR1)
    try:
        for handler in (lambda *_: _raise(BareError), _deleting, _uninstalled):
            signal.signal(signal.SIGUSR1, handler)
            with pytest.raises(BareError), errors.suppressed(BareError):
                signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_block_reports_what_is_ours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(errors, "handler", said.append)

    def interrupt(*_: Any) -> None:
        raise BareError

    with errors.reported("here"):
        raise BareError
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(BareError), errors.reported("there"):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert said == ["here"]


def test_a_closing_call_is_made_after_an_exception_only() -> None:
    calls: list[str] = []
    with errors.finishing(calls.append, "whole"):
        pass
    with pytest.raises(BareError), errors.finishing(calls.append, "raised"):
        raise BareError
    freed = errors.finishing(calls.append, "freed")
    del freed
    assert calls == ["raised", "freed"]
