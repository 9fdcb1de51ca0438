"""A request that was sent, until its response shows its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import trace

from agent_otel import semconv, settings
from agent_otel.core import execution_context
from agent_otel.core.tool_visit import running
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.core.execution_state import Conversation, ExecutionState
    from agent_otel.core.offered_tools import ToolSet
    from agent_otel.core.shares import Shares
    from agent_otel.core.types import ModelRequest
    from agent_otel.telemetry.setup import Telemetry


class Reservation(Protocol):
    """Tokens that are set aside for a model request until its response or its failure."""

    def used(self, tokens: int) -> None:
        """Replace the estimate by the tokens of the response."""

    def failed(self, error: BaseException) -> None:
        """Free the tokens of a failed request; ``error`` may give a time to wait."""

    def attempt_refused(self, refused: Any) -> None:
        """Take note of a response or an exception after which the SDK sends the request again."""

    def delay(self, seconds: float) -> float:
        """Return the seconds before another attempt: those given, or more where the provider demands it."""


class SentRequest:
    """A request that was sent: its model, its bytes by part and tool, and to whom its tokens belong."""

    __slots__ = (
        "answered_by",
        "bytes",
        "conversation",
        "execution",
        "has_failed",
        "is_inside",
        "model",
        "removed",
        "reservation",
        "run",
        "shares",
        "span",
        "tools",
    )

    def __init__(
        self,
        request: ModelRequest,
        request_bytes: int,
        shares: Shares,
        execution: ExecutionState | None,
        conversation: Conversation | None,
    ) -> None:
        run = execution_context.current_run()
        self.model = request.model
        #: The model that its response names.
        self.answered_by: str | None = None
        self.bytes = request_bytes
        self.shares = shares
        self.execution = execution
        self.conversation = conversation
        self.run = None if run is None else run.totals
        self.span = trace.get_current_span()
        #: True for a request of an agent inside a tool.
        self.is_inside = running() is not None
        #: The tokens that backpressure has set aside for the request, where it is on.
        self.reservation: Reservation | None = None
        #: True when its provider or the way to it failed.
        self.has_failed = False
        #: The tools that it offers.
        self.tools: ToolSet | None = None
        #: Bytes by remedy that it lacks.
        self.removed: Mapping[str, int] = shares.removed

    def savable(self) -> Mapping[str, int]:
        """Return the bytes by remedy that it would lack if the remedy were on."""
        return self.shares.savable.by_remedy(settings.current())

    def show(self, out: Telemetry) -> None:
        """Show on the span around the request its tools, and what it holds twice."""
        if not self.span.is_recording():
            return
        found: dict[str, Any] = {} if self.tools is None else self.tools.attributes(out)
        if self.shares.texts.duplicate_bytes:
            found[semconv.CONTEXT_DUPLICATE_BYTES] = self.shares.texts.duplicate_bytes
        if found:
            put_on_any(self.span, found)
