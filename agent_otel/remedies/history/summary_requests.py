"""The tokens of a request for a summary: they count in the limit of the execution, and in the budget of a minute.

Where model requests wait, a request for a summary waits like them, as long as its caller does.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from typing import TYPE_CHECKING, NamedTuple

from agent_otel._internal import errors
from agent_otel.core import backpressure, model_tokens
from agent_otel.remedies.limits import tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from typing import Any

    from agent_otel.core.execution_state import Totals
    from agent_otel.core.remedy_hooks import Response
    from agent_otel.core.usage import Usage


class Account(NamedTuple):
    """Whose tokens the requests for a summary are: the model's, and those of the totals of an execution.

    ``usage`` reads the tokens of a response, or of an item of its stream.
    """

    model: str | None
    totals: Totals | None
    usage: Callable[[Any], Usage | None] | None

    def send(self, text: str, send: Callable[[], Response], seconds: float) -> Response:
        """Send a request with this text; block until it may be sent. Raises TimeoutError where that is later."""
        with self._counted(text) as waiting:
            if waiting is not None:
                waiting.block(seconds)
            response = send()
            self._answered(waiting, text, response)
            return response

    async def asend(self, text: str, send: Callable[[], Awaitable[Response]], seconds: float) -> Response:
        """Do the same as `send` without blocking the event loop."""
        with self._counted(text) as waiting:
            if waiting is not None:
                await waiting.suspend(seconds)
            response = await send()
            self._answered(waiting, text, response)
            return response

    @contextlib.contextmanager
    def _counted(self, text: str) -> Iterator[backpressure.Waiting | None]:
        """Take the tokens of a request; give them back when it fails."""
        acting = backpressure.backpressure()
        if acting is None:
            yield None
            return
        waiting = acting.apart(self.model, tokens(text))
        token = backpressure.sending.set(weakref.ref(waiting))
        is_answered = False
        try:
            yield waiting
            is_answered = True
        finally:
            backpressure.sending.reset(token)
            error = sys.exc_info()[1]
            if not is_answered and error is not None:
                waiting.reservation.failed(error)

    def _answered(self, waiting: backpressure.Waiting | None, text: str, response: Response) -> None:
        used = errors.guarded("remedies.summarize")(self._used)(response) or tokens(text)
        if waiting is not None:
            waiting.reservation.used(used)
        model_tokens.spent_apart(self.totals, used)

    def _used(self, response: Response) -> int:
        """Return the tokens of a request and its response, 0 where the provider reports none."""
        whole, items = response
        found: Usage | None = None
        for item in (whole,) if items is None else items:
            usage = None if self.usage is None else self.usage(item)
            if usage is not None:
                found = usage if found is None else found.joined(usage)
        return 0 if found is None else found.input + found.output
