"""The model that summarises: the agent's own client and model, or the program's function, each within a time limit."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_otel._internal.daemon_pool import Workers, is_in_asyncio
from agent_otel.core import switches
from agent_otel.messages.exchange import FORMATS
from agent_otel.messages.fields import fields
from agent_otel.messages.prompts import PROMPTING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Future

    from agent_otel.core.remedy_hooks import Response
    from agent_otel.core.types import Invocation

    #: A function of the program: of a text, the summary.
    Summarizer = Callable[[str], str | Awaitable[str]]

_T = TypeVar("_T")

_workers: Final = Workers("summarize", 8)

_given: Summarizer | None = None


def use_summarizer(summarize: Summarizer | None) -> None:
    """Set the function that summarises for ``AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS``; None restores the agent's own model.

    The function takes a piece of a transcript and returns a shorter text. It may be a coroutine function. Its model
    requests are not measured. It runs in another thread where the agent's request is sync.
    """
    global _given  # noqa: PLW0603 - one per process, as the settings are
    _given = summarize


class Asking:
    """A way to ask for the summary of a text, within the time that is left."""

    def __init__(self, form: str, request: Callable[[str], Invocation], seconds: float) -> None:
        self._form = form
        self._request = request
        self._until = time.monotonic() + seconds

    def asks(self, send: Callable[[Invocation], Response]) -> Callable[[str], Awaitable[str]]:
        """Return the function for a sync request; awaiting it blocks and never suspends."""

        async def ask(text: str) -> str:
            own = _given
            if own is not None:
                return await _now(_workers.submit(_muted(lambda: _called(own, text))), self._left())
            response = await _now(_workers.submit(_muted(lambda: send(self._request(text)))), self._left())
            return self._answer(response)

        return ask

    def aasks(self, send: Callable[[Invocation], Awaitable[Response]]) -> Callable[[str], Awaitable[str]]:
        """Return the function for an async request."""

        async def ask(text: str) -> str:
            own = _given
            if own is None:
                return self._answer(await _within(send(self._request(text)), self._left()))
            if inspect.iscoroutinefunction(own):
                return await _within(own(text), self._left())
            if not is_in_asyncio():
                return _called(own, text)
            return await _within(asyncio.wrap_future(_workers.submit(_muted(lambda: _called(own, text)))), self._left())

        return ask

    def _left(self) -> float:
        return max(self._until - time.monotonic(), 0.0)

    def _answer(self, response: Response) -> str:
        whole, items = response
        plain: Mapping[str, Any] = FORMATS[self._form].folded(items) if items is not None else fields(whole)
        return PROMPTING[self._form].answer(plain)


def _muted(call: Callable[[], _T]) -> Callable[[], _T]:
    """Return a function for a thread, which runs in a context of its own: nothing of it is measured."""

    def run() -> _T:
        switches.muted.set(True)
        return call()

    return run


async def _now(job: Future[_T], seconds: float) -> _T:
    """Wait for a job of a thread, in this one."""
    try:
        return job.result(seconds)
    finally:
        job.cancel()


async def _within(awaitable: Awaitable[_T], seconds: float) -> _T:
    """Wait for a result of the event loop; other loops than asyncio's have no time limit here."""
    token = switches.muted.set(True)
    try:
        return await (asyncio.wait_for(awaitable, seconds) if is_in_asyncio() else awaitable)
    finally:
        switches.muted.reset(token)


def _called(own: Summarizer, text: str) -> str:
    made = own(text)
    return asyncio.run(_awaited(made)) if inspect.isawaitable(made) else str(made)


async def _awaited(made: Awaitable[str]) -> str:
    return await made
