"""Pipecat, whose handlers of tools report their results to a callback.

Produced is read where the result leaves the function that runs a handler, in a frame for the context of the
conversation. The frame of a handler that raises carries the exception's class and a text for the model.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any, NamedTuple

from agent_otel._internal import errors
from agent_otel._internal.object_kinds import text
from agent_otel.core import handler
from agent_otel.core.types import LEFT_ALONE, Invocation, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import AroundVisit, Door, Passing
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import TOOL_ERROR

ENTRY = Integration(
    "pipecat",
    distribution="pipecat-ai",
    minimum="1.14",
    tested="1.14, pipelines of text frames",
    uncovered="results that a handler reports after it has returned; calls registered with "
    "`cancel_on_interruption=False`: their id and delivery",
    sites=(
        Candidate("pipecat.services.llm_service", call="LLMService._run_function_call"),
        Candidate("pipecat.processors.frame_processor", broadcast="FrameProcessor.broadcast_frame"),
    ),
)


class _Frame(NamedTuple):
    """The fields of a frame with a result; ``error`` is the class and the message of an exception."""

    result: Any
    error: str | None


class _CallVisit(AroundVisit):
    """The visit of a function that runs a handler; a frame that it broadcasts has the result."""

    __slots__ = ("_invocation", "_item", "is_open")

    def __init__(self, visit: handler.Visit | handler.Unrecorded, invocation: Invocation) -> None:
        super().__init__(visit)
        self._invocation = invocation
        self._item = invocation.arg(0, "runner_item")
        self.is_open = True

    async def askipped(self, invocation: Invocation) -> Any:
        """Broadcast the replacement result when a limit skips the handler; else return LEFT_ALONE."""
        skipped = await self._visit.askipped(invocation)
        if skipped is LEFT_ALONE:
            return LEFT_ALONE
        self.is_open, item = False, self._item
        item.settled = True
        frames, broadcast = sys.modules["pipecat.frames.frames"], invocation.instance.broadcast_frame
        call = {"function_name": item.function_name, "tool_call_id": item.tool_call_id, "arguments": item.arguments}
        await broadcast(frames.FunctionCallInProgressFrame, **call, group_id=item.group_id)
        await broadcast(frames.FunctionCallResultFrame, **call, result=skipped.result, run_llm=item.run_llm)
        return None

    async def broadcasting(self, invocation: Invocation) -> None:
        """Read the frame with the last result of this call, and put the replacement of a remedy into it."""
        given = invocation.kwargs
        is_its = given.get("tool_call_id") == self._item.tool_call_id
        if not is_its or getattr(given.get("properties"), "is_final", True) is False:
            return
        self.is_open = False
        frame = _Frame(given["result"], text(given.get("error")))
        if handler.result_remedies() is None:
            self._visit.returned(frame)
            return
        replaced = await self._visit.aremedied(frame, self._invocation)
        if replaced is not frame:
            invocation.kwargs = {**given, "result": replaced.result}

    def returned(self, _: Any) -> None:
        """Read nothing: the function returns nothing."""

    async def aremedied(self, value: Any, _: Invocation) -> Any:
        """Return what the function returns, which is not the result."""
        return value

    def __exit__(self, *error: object) -> None:
        self.is_open = False
        super().__exit__(*error)


# Each handler runs in a task of its own, whose context ends with it.
_running: ContextVar[_CallVisit | None] = ContextVar("agent_otel_pipecat_call", default=None)


def _call(invocation: Invocation) -> ToolCall:
    """Read a call; under the id of an asynchronous one the model gets a notice first, and the result elsewhere."""
    item = invocation.arg(0, "runner_item")
    is_quoted = getattr(item.registry_item, "cancel_on_interruption", True) is False
    return ToolCall(item.function_name, item.arguments, None if is_quoted else item.tool_call_id, is_quoted=is_quoted)


def _result(frame: _Frame) -> ToolResult:
    if frame.error is not None:
        return ToolResult(frame.result, error_type=frame.error.partition(":")[0] or TOOL_ERROR, raised=True)
    return ToolResult("" if frame.result is None else frame.result)


_handler = ToolReader(_call, _result, replace=lambda _, replacement, __: _Frame(replacement.text, None))


@Door
def call(invocation: Invocation) -> _CallVisit | None:
    visit = handler.enter_tool(_handler, invocation)
    if visit is None:
        return None
    running = _CallVisit(visit, invocation)
    _running.set(running)
    return running


@Passing
async def broadcast(wrapped: Any, invocation: Invocation) -> Any:
    running = _running.get()
    if running is not None and running.is_open and "tool_call_id" in invocation.kwargs:
        with errors.reported("tool_call.result"):
            if invocation.arg(0, "frame_cls").__name__ == "FunctionCallResultFrame":
                await running.broadcasting(invocation)
    return await wrapped(*invocation.args, **invocation.kwargs)
