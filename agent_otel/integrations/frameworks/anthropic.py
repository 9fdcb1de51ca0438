"""The tool runner of Anthropic's SDK, whose function for one tool call has had two forms.

Since 1.12 at the latest there is ``_run_tool``, which returns the block that the model is sent, and for the members
of a toolset its ``tool_result``; both run within the SDK's own span. Before that all calls
of a turn are made in one function, so that there it is the tools' own ``call`` that is wrapped, of each class that a
runner is given; it gets the model's input, and by that very object it is known which call this is.

The runner turns exceptions into text for the model; which exception it was is read on the way to that text. Before
1.12 there is no such way: the text is made here once more, and what a remedy puts in its place is put into the blocks
of the message that the runner has just made of the turn.

The entry is in ``model_sdks/anthropic.py``.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import cause_of, fields, listed, text
from agent_otel.core.types import NOT_HERE, PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Family, Hook, Within
from agent_otel.integrations.reader_functions import inject_into, raises_within
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class _Turn:
    """A turn whose calls one function makes: which object is the input of which call, by id(), and replacements."""

    asked: dict[int, str] = field(default_factory=dict)
    replaced: dict[str, Replacement] = field(default_factory=dict)


_turn: Within[_Turn] = Within("agent_otel_anthropic_turn")


def _use_call(invocation: Invocation) -> ToolCall:
    block = invocation.arg(1, "tool_use")
    return ToolCall(block.name, block.input, block.id)


def _member_call(invocation: Invocation) -> ToolCall:
    """Read the call of a toolset's member."""
    block = invocation.arg(0, "tool_use")
    return ToolCall(block.name, block.input, block.id)


def result_of(sent: Any) -> ToolResult:
    """Read a block with a result, as the model is sent it."""
    known = fields(sent)
    content = known.get("content")
    if known.get("is_error") is True:
        return ToolResult(content, error_type=TOOL_ERROR, raised=True)
    return ToolResult("" if content is None else content)


def _replace(block: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
    """Put a replacement into the block that the model is sent; a skipped call has none."""
    if block is None:
        block = {"type": "tool_result", "tool_use_id": invocation.arg(1, "tool_use").id}
    return _replaced(block, replacement)


def _replace_member(block: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
    """Do the same for a toolset's member, whose block names its toolset."""
    if block is None:
        use = invocation.arg(0, "tool_use")
        block = {"type": "tool_result", "tool_use_id": use.id, "toolset_name": use.toolset_name}
    return _replaced(block, replacement)


def _replaced(block: dict[str, Any], replacement: Replacement) -> dict[str, Any]:
    flag = {"is_error": True} if replacement.is_error else {}
    return {**block, "content": replacement.text, **flag}


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put arguments into a copy of the model's block, which stays in the history as it is."""
    block = invocation.arg(1, "tool_use")
    invocation.put(1, "tool_use", block.model_copy(update={"input": {**fields(block.input), **values}}))
    return True


def _call_id(invocation: Invocation) -> str | None:
    """Return the id of a call of the turn, None where the program itself calls the tool; it holds for one call only."""
    turn = _turn.get()
    if turn is not None and invocation.state is None:
        invocation.state = turn.asked.pop(id(invocation.arg(0, "input")), None)
    return text(invocation.state)


def _plain_call(invocation: Invocation) -> ToolCall:
    return ToolCall(invocation.instance.name, invocation.arg(0, "input"), _call_id(invocation))


def _told(error: BaseException) -> Any:
    """Return what the runner makes of an exception for the model; None outside of a turn, and for what ends the run."""
    if _turn.get() is None or not issubclass(type(error), Exception):
        return None
    kinds = getattr(sys.modules.get("anthropic.lib.tools._beta_functions"), "ToolError", ())
    with contextlib.suppress(Exception):  # an exception that has no text ends the run
        return error.content if issubclass(type(error), kinds) else repr(error)  # type: ignore[attr-defined]
    return None


def _replace_later(_: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Note a replacement for the turn's message; it is also the result of a tool that has not raised."""
    turn, call_id = _turn.get(), _call_id(invocation)
    if turn is None or call_id is None:
        return NOT_HERE
    turn.replaced[call_id] = replacement
    return replacement.text


_is_refusal = raises_within("anthropic", "ValidationError", cause=cause_of)
run_tool = ToolReader(
    PRODUCED,
    _use_call,
    result_of,
    is_refusal=_is_refusal,
    replace=_replace,
    inject=_inject,
)
member = ToolReader(PRODUCED, _member_call, result_of, replace=_replace_member)
_call = ToolReader(
    PRODUCED,
    _plain_call,
    ToolResult,
    is_refusal=_is_refusal,
    failure_text=_told,
    replace=_replace_later,
    inject=inject_into(0, "input"),
)


def _swallowed(invocation: Invocation) -> None:
    handler.handler_raised(invocation.arg(0, "exc"), run_tool)


def _take_note(_: Invocation, content: Any, error: BaseException | None) -> None:
    blocks = [] if error is not None else listed(content)
    asked = {id(block.input): block.id for block in blocks if text(block.type) == "tool_use"}
    turn = _turn.get()
    if turn is not None:
        turn.asked.update(asked)


def _put(invocation: Invocation, message: Any, _: BaseException | None) -> None:
    """Put the turn's replacements into its message; it is None where there were no calls."""
    content: Any = fields(message).get("content")
    for place, block in enumerate(listed(content)):
        call_id = text(fields(block).get("tool_use_id")) or ""
        replacement = invocation.state.replaced.get(call_id)
        if replacement is not None:
            content[place] = _replaced(block, replacement)


def _methods(runner: Any) -> Iterator[tuple[type, str, ToolReader]]:
    for tool in runner._tools_by_name.values():
        yield type(tool), "call", _call


swallowed = Hook(_swallowed)
asked = Hook(after=_take_note)
turn = Hook(lambda _: _Turn(), _put, _turn)
tools = Family(_methods)
