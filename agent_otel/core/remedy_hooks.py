"""Where remedies register: the core knows what they do, and none of them.

`agent_otel.integrations.preload` registers what makes them; without it, and without their settings, there are none.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol

from agent_otel import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.tool_invocation import Record
    from agent_otel.core.types import Asked, ModelReader, ToolReader
    from agent_otel.settings import Settings
    from agent_otel.telemetry.setup import Telemetry


class ResultRemedies(Protocol):
    """Remedies that act on tool calls and their results."""

    def finished(self, execution: str) -> None:
        """Forget an execution that has ended."""

    def skipped(self, record: Record, reader: ToolReader, asked: Asked) -> Any:
        """Return what goes on because the handler is not to be asked; LEFT_ALONE when it is."""

    def applied(self, record: Record, reader: ToolReader, read: object, value: Any, asked: Asked) -> Any:
        """Return what goes on: the value itself, or a replacement."""

    async def aapplied(self, record: Record, reader: ToolReader, read: object, value: Any, asked: Asked) -> Any:
        """Return what goes on, without holding up the event loop."""


class RequestRemedies(Protocol):
    """Remedies that rewrite requests to models."""

    def rewrite(self, out: Telemetry, reader: ModelReader, asked: Asked) -> None:
        """Rewrite a request in place."""


make_result_remedies: Callable[[Settings], ResultRemedies] | None = None
make_request_remedies: Callable[[Settings], RequestRemedies] | None = None


@functools.lru_cache(maxsize=1)
def result_remedies() -> ResultRemedies | None:
    """Return the remedies for results that are switched on."""
    chosen = settings.current()
    if make_result_remedies is None or not (chosen.remedies or chosen.limits):
        return None
    return make_result_remedies(chosen)


@functools.lru_cache(maxsize=1)
def request_remedies() -> RequestRemedies | None:
    """Return the remedies for requests that are switched on."""
    chosen = settings.current()
    return make_request_remedies(chosen) if make_request_remedies is not None and chosen.rewrites else None
