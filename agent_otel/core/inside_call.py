"""Functions of tools that the body of a running tool calls: they are part of that call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.execution_context import mcp_attributes
from agent_otel.core.types import LEFT_ALONE

if TYPE_CHECKING:
    from typing_extensions import Self

    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.types import Invocation, ToolCall


class Inside:
    """A wrapped function that the body of a running tool calls; it is no tool call, and its value is not the result."""

    __slots__ = ("goes_on", "record")

    def __init__(self, record: ToolInvocation, call: ToolCall) -> None:
        self.record = record
        self.goes_on = False  # for the signature of Visit: this is entered as often as one likes
        if call.mcp is not None and record.span is not None:
            record.span.span.set_attributes(mcp_attributes(call.mcp))

    def __enter__(self) -> Self:
        self.record.depth += 1
        return self

    def returned(self, value: Any) -> None:
        """Ignore the value: it is not the result of the running tool."""

    def skipped(self, invocation: Invocation) -> Any:  # noqa: ARG002 - the signature of Visit
        """Return LEFT_ALONE: limits and the policy apply to the running tool call, not to a part of it."""
        return LEFT_ALONE

    def take_turn(self) -> None:
        """Do nothing: the running tool call has its slot."""

    async def atake_turn(self) -> None:
        """Do nothing."""

    async def askipped(self, invocation: Invocation) -> Any:  # noqa: ARG002 - the signature of Visit
        """Return LEFT_ALONE."""
        return LEFT_ALONE

    def remedied(self, value: Any, invocation: Invocation) -> Any:  # noqa: ARG002 - the signature of Visit
        """Return the value unchanged: the tool's own code reads it."""
        return value

    async def aremedied(self, value: Any, invocation: Invocation) -> Any:  # noqa: ARG002 - the signature of Visit
        """Return the value unchanged."""
        return value

    def raised(self, error: Exception, invocation: Invocation) -> None:
        """Ignore an exception: the tool's own code may handle it."""

    async def araised(self, error: Exception, invocation: Invocation) -> None:
        """Ignore an exception."""

    def __exit__(self, *_: object) -> None:
        self.record.depth -= 1
