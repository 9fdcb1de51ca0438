"""A function that sends a request to a model, while it runs: which of the layers that see the request counts it."""

from __future__ import annotations

import weakref
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.core.delivery import take

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from agent_otel.core.types import ModelReader, Part, Request
    from agent_otel.telemetry.setup import Telemetry


class ModelVisit:
    """One wrapped function that sends a request, as a context manager around the user's call or a stream's step.

    A provider's SDK is the last layer before the wire, so that its request is taken as it leaves. A layer above it
    waits until it is left, or until a stream's first item is there: if an SDK has been seen meanwhile, that was the
    same request, and it is lent what only the layer above knows.
    """

    __slots__ = ("__weakref__", "_above", "_out", "_reader", "_request", "_token", "cache_is_told", "seen")

    def __init__(self, out: Telemetry, reader: ModelReader, request: Request) -> None:
        self._out = out
        self._reader = reader
        self._request: Request | None = None
        self._token: Token[weakref.ref[ModelVisit] | None] | None = None
        self.seen = False
        self.cache_is_told = False
        above = self._above = _running()
        if above is not None:
            above.seen = True
            request = above.lend(request)
        if reader.outermost:
            self._request = request._replace(parts=list(request.parts))
        else:
            take(out, request)

    def step(self) -> Self:
        """Return the context manager around a stream's next step."""
        return self

    def __enter__(self) -> Self:
        if self._request is not None:
            self._token = _above.set(weakref.ref(self))
        return self

    def lend(self, request: Request) -> Request:
        """Add to a request seen inside of this visit what only this layer knows: whose it is, and messages' ids."""
        mine = self._request
        if mine is None:
            return request
        return request._replace(
            execution=request.execution or mine.execution,
            agent=request.agent or mine.agent,
            doubled=request.doubled or mine.doubled or _has_doubled_ids(mine.parts),
        )

    def announce(self, request: Request) -> None:
        """Take note of what the layer is about to send; what it announced before, a failed attempt, has left."""
        announced = self.lend(request)._replace(parts=list(request.parts))
        self._settle()
        self._request, self.seen = announced, False

    def returned(self, value: Any) -> None:
        """Read what the response says of the provider's cache, unless a layer nearer to it has read that."""
        try:
            read = self._reader.cached_tokens
            tokens = read(value) if read is not None and not self.cache_is_told else None
            if tokens:
                self._out.metrics.cached(tokens)
                above = self._above
                while above is not None:
                    above.cache_is_told, above = True, above._above  # noqa: SLF001 - of this class
        except Exception:
            errors.report_error("model_request.response")

    def item(self, value: Any) -> None:
        """Nothing is read of a stream's items."""

    def __exit__(self, *_: object) -> None:
        try:
            token, self._token = self._token, None
            if token is not None:
                try:  # noqa: SIM105 - suppress() costs on every call
                    _above.reset(token)
                except ValueError:
                    pass  # the call ends in another context than it began in, which is gone or going
            self._settle()
        except Exception:
            errors.report_error("model_request")

    def abandon(self) -> None:
        """Nobody wants the stream any more; its request has left at its first step, or never."""

    def _settle(self) -> None:
        request, self._request = self._request, None
        if request is not None and not self.seen and request.parts:
            take(self._out, request)


def announced(out: Telemetry, request: Request) -> None:
    """A layer is about to send a request, in the middle of the function that is being visited, if any."""
    above = _running()
    if above is not None:
        above.announce(request)
    else:
        take(out, request)


def answered() -> None:
    """The layer being visited has its answer out of a cache: no request leaves."""
    above = _running()
    if above is not None:
        above.seen = above.cache_is_told = True


def _has_doubled_ids(parts: Iterable[Part]) -> bool:
    """Whether the same message id stands in a request twice, where the layer below does not send the ids."""
    ids = [(part.message_id, part.part) for part in parts if part.message_id is not None]
    return len(ids) > len(set(ids))


def _running() -> ModelVisit | None:
    """Return the visit that this is inside of, unless an interrupt has torn it off."""
    above = _above.get()
    return above() if above is not None else None


_above: ContextVar[weakref.ref[ModelVisit] | None] = ContextVar("agent_otel_model_request", default=None)
