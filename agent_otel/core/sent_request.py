"""A request that was sent, until its response shows its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import trace

from agent_otel.core import execution_context
from agent_otel.core.tool_visit import running

if TYPE_CHECKING:
    from agent_otel.core.execution_state import Conversation, ExecutionState, Shares
    from agent_otel.core.types import ModelRequest


class SentRequest:
    """A request that was sent: its model, its bytes by part and tool, and to whom its tokens belong."""

    __slots__ = ("bytes", "conversation", "execution", "has_failed", "is_inside", "model", "run", "shares", "span")

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
        self.bytes = request_bytes
        self.shares = shares
        self.execution = execution
        self.conversation = conversation
        self.run = None if run is None else run.totals
        self.span = trace.get_current_span()
        #: True for a request of an agent inside a tool.
        self.is_inside = running() is not None
        #: True when its provider or the way to it failed.
        self.has_failed = False
