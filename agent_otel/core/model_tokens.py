"""Tokens of the model requests of an execution: those of its last request, their sums, and the bytes of one token."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from agent_otel._internal import fork
from agent_otel.core import execution_context
from agent_otel.core.execution_state import Tokens
from agent_otel.core.executions import executions
from agent_otel.core.tool_visit import running

if TYPE_CHECKING:
    from agent_otel.core.execution_state import Conversation, ExecutionState
    from agent_otel.core.types import ModelRequest
    from agent_otel.core.usage import Usage
    from agent_otel.telemetry.setup import Telemetry

#: Bytes of a token before any response has shown it.
USUAL_BYTES: Final = 4.0

_lock = threading.Lock()


def _renew() -> None:
    global _lock  # noqa: PLW0603 - a forked child needs one that no thread of its parent holds
    _lock = threading.Lock()


fork.after_fork(_renew)


class SentRequest:
    """A request that was sent, until its response shows its tokens."""

    __slots__ = ("bytes", "conversation", "execution", "is_inside", "model", "run")

    def __init__(
        self,
        request: ModelRequest,
        request_bytes: int,
        execution: ExecutionState | None,
        conversation: Conversation | None,
    ) -> None:
        run = execution_context.current_run()
        self.model = request.model
        self.bytes = request_bytes
        self.execution = execution
        self.conversation = conversation
        self.run = None if run is None else run.totals
        #: True for a request of an agent inside a tool.
        self.is_inside = running() is not None

    def responded(self, out: Telemetry, usage: Usage) -> None:
        """Add the tokens of the response to the conversation, the execution and the run."""
        if usage.cached:
            out.metrics.cached(usage.cached)
        state = self.execution
        with _lock:
            totals = state if self.run is None else self.run
            if totals is not None:
                totals.tokens = totals.tokens or Tokens()
                totals.tokens.add(usage)
            if self.conversation is not None and usage.input:
                self.conversation.input_tokens, self.conversation.bytes = usage.input, self.bytes
            if state is not None and usage.input:
                state.last_requests = {**(state.last_requests or {}), self.is_inside: (usage.input, self.bytes)}


def input_tokens(execution_id: str | None) -> int | None:
    """Return the input tokens of the last request of an execution; None before a response has shown them.

    Inside a running tool, this is the last request of the agents inside tools, else that of the agent itself.
    """
    last = _last(execution_id)
    return None if last is None else last[0]


def bytes_per_token(execution_id: str | None) -> float:
    """Return the bytes of a token in the last request of an execution; 4 before a response has shown them."""
    last = _last(execution_id)
    return USUAL_BYTES if last is None or not last[1] else last[1] / last[0]


def _last(execution_id: str | None) -> tuple[int, int] | None:
    """Return the input tokens and the bytes of the last request."""
    state = None if execution_id is None else executions.known(execution_id)
    if state is None or not state.last_requests:
        return None
    return state.last_requests.get(running() is not None)
