"""Anthropic's SDK: messages and their beta, sync, async, streamed, parsed and raw, on every platform of its clients.

Read at ``request`` of the base clients, which every call style passes exactly once, before HTTP. Up to 1.0 the body is
plain data there; since then it is what the program gave, models of the SDK's own among it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel._internal.errors import suppressed
from agent_otel._internal.failures import cause_of
from agent_otel._internal.object_kinds import attributes, fields, listed, text
from agent_otel.core import handler
from agent_otel.core.types import NOT_HERE, Invocation, Replacement, RequestPart, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Family, Hook, Within
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.model_sdks.stainless import base_client, delay, refused
from agent_otel.integrations.readers import call_at, delivering, inject_into, raises_within
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.integrations.request_bodies import form_at
from agent_otel.messages.anthropic import result_block
from agent_otel.messages.fields import RESULT_ID
from agent_otel.semconv import TOOL_ERROR, TOOL_RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


__all__ = ["ENTRY", "delay", "refused", "request", "result_of"]

_RUNNER = "anthropic.lib.tools._beta_session_runner"
SESSIONS = (
    Site(Candidate(_RUNNER, session_tool="SessionToolRunner._call_tool", failing="tool_error_content"), minimum="2.11"),
    Site(Candidate("anthropic.resources.beta.sessions.events", sent="Events.send AsyncEvents.send"), minimum="2.11"),
)

ENTRY = Integration(
    "anthropic",
    minimum="0.72",
    tested="0.125 and 2.11",
    uncovered="batches; the old text completions; the provider's side of managed agents' sessions",
    sites=(
        base_client("anthropic"),
        Site(
            Candidate(  # 1.12 and later
                "anthropic.lib.tools._beta_runner",
                run_tool="BaseSyncToolRunner._run_tool BaseAsyncToolRunner._run_tool",
                swallowed="tool_error_content",
            ),
            Candidate(
                "anthropic.lib.tools._beta_runner",
                tools="BaseToolRunner.__init__",
                asked="BaseSyncToolRunner._get_last_assistant_message_content "
                "BaseAsyncToolRunner._get_last_assistant_message_content",
                turn="BaseSyncToolRunner._generate_tool_call_response BaseAsyncToolRunner._generate_tool_call_response",
            ),
        ),
        Site(
            Candidate(  # inside the SDK's own span
                "anthropic.lib.tools._toolsets._runnable",
                member="BetaRunnableToolset.tool_result BetaAsyncRunnableToolset.tool_result",
            ),
            minimum="1.12",
        ),
        *SESSIONS,
    ),
)


def _passes(item: Any) -> bool:
    """Return true for an event with a piece of a text, which most are."""
    known = attributes(item)
    is_piece = text(known.get("type")) == "content_block_delta"
    return is_piece and text(attributes(known.get("delta")).get("type")) != "input_json_delta"


request = stainless.reader(lambda options: form_at(options.url), passes=_passes, opens_with_usage=True)

# The tool runner of Anthropic's SDK, whose function for one tool call has had two forms. Since 1.12 at the latest
# there is ``_run_tool``, which returns the block that the model is sent, and for the members of a toolset its
# ``tool_result``; both run within the SDK's own span. Before that all calls of a turn are made in one function, so
# that there it is the tools' own ``call`` that is wrapped, of each class that a runner is given; it gets the model's
# input, and by that very object it is known which call this is. The runner turns exceptions into text for the model;
# which exception it was is read on the way to that text. Before 1.12 there is no such way: the text is made here once
# more, and what a remedy puts in its place is put into the blocks of the message that the runner has just made of the
# turn.


class _Turn(NamedTuple):
    """A turn whose calls one function makes: which object is the input of which call, by id(), and replacements."""

    asked: dict[int, str]
    replaced: dict[str, Replacement]


_turn: Within[_Turn] = Within("agent_otel_anthropic_turn")


def result_of(sent: Any) -> ToolResult:
    """Read a block with a result, as the model is sent it."""
    known = fields(sent)
    content = known.get("content")
    if known.get("is_error") is True:
        return ToolResult(content, error_type=TOOL_ERROR, raised=True)
    return ToolResult("" if content is None else content)


def _replaced(block: dict[str, Any], replacement: Replacement) -> dict[str, Any]:
    """Put a replacement into the block that the model is sent."""
    flag = {"is_error": True} if replacement.is_error else {}
    return {**block, "content": replacement.text, **flag}


def _replacing(place: int, *names: str) -> Callable[[Any, Replacement, Invocation], dict[str, Any]]:
    """Return a function that replaces a block. A skipped call gets a new block with these attributes of the call."""

    def replace(block: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
        use = invocation.arg(place, "tool_use")
        made = block or result_block(use.id, "", **{name: getattr(use, name) for name in names})
        return _replaced(made, replacement)

    return replace


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into a copy of the model's block, which stays in the history as it is."""
    block = invocation.arg(1, "tool_use")
    invocation.put(1, "tool_use", block.model_copy(update={"input": {**fields(block.input), **values}}))


def _call_id(invocation: Invocation) -> str | None:
    """Return the id of a call of the turn, None where the program itself calls the tool; it holds for one call only."""
    turn = _turn.get()
    if turn is not None and invocation.state is None:
        invocation.state = turn.asked.pop(id(invocation.arg(0, "input")), None)
    return text(invocation.state)


def _told(error: BaseException) -> Any:
    """Return what the runner makes of an exception for the model; None outside of a turn, and for what ends the run."""
    if _turn.get() is None or not issubclass(type(error), Exception):
        return None
    kinds = getattr(sys.modules.get("anthropic.lib.tools._beta_functions"), "ToolError", ())
    with suppressed(Exception):  # an exception that has no text ends the run
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
    call_at(1, "tool_use", "name", "input", "id"),
    result_of,
    is_refusal=_is_refusal,
    replace=_replacing(1),
    inject=_inject,
)
member = ToolReader(call_at(0, "tool_use", "name", "input", "id"), result_of, replace=_replacing(0, "toolset_name"))
_call = ToolReader(
    lambda invocation: ToolCall(invocation.instance.name, invocation.arg(0, "input"), _call_id(invocation)),
    ToolResult,
    is_refusal=_is_refusal,
    failure_text=_told,
    replace=_replace_later,
    inject=inject_into(0, "input"),
)


def _take_note(_: Invocation, content: Any, error: BaseException | None) -> None:
    turn = _turn.get()
    if turn is not None and error is None:
        turn.asked.update({id(block.input): block.id for block in listed(content) if text(block.type) == "tool_use"})


def _put(invocation: Invocation, message: Any, _: BaseException | None) -> None:
    """Put the turn's replacements into its message; it is None where there were no calls."""
    content: Any = fields(message).get("content")
    for place, block in enumerate(listed(content)):
        call_id = text(fields(block).get(RESULT_ID)) or ""
        replacement = invocation.state.replaced.get(call_id)
        if replacement is not None:
            content[place] = _replaced(block, replacement)


swallowed = Hook(lambda invocation: handler.handler_raised(invocation.arg(0, "exc"), run_tool))
asked = Hook(after=_take_note)
turn = Hook(lambda _: _Turn({}, {}), _put, _turn)
tools = Family(lambda runner: ((type(tool), "call", _call) for tool in runner._tools_by_name.values()))

# Sessions of Anthropic's managed agents: the runner of their tools, and the results that a program sends to them. The
# provider has the model and the conversation; the program runs the tools. The runner makes an event of each result,
# and turns exceptions into text in it. A loop of the program's own sends the same events.


def _session_call(invocation: Invocation) -> ToolCall:
    event = invocation.arg(1, "ev")
    return ToolCall(event.name, invocation.arg(2, "input_"), event.id, execution=invocation.instance.session_id)


def _session_replace(_: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return an event with a replacement; a skipped call has none yet."""
    content = [{"type": "text", "text": replacement.text}]
    made = sys.modules[_RUNNER]._build_result_event(invocation.arg(1, "ev"), content, replacement.is_error)
    return made, content


def _results(invocation: Invocation) -> Iterator[RequestPart]:
    """Yield the results among the events of a request."""
    for event in map(fields, listed(invocation.kwargs.get("events"))):
        call_id = text(event.get(f"custom_{RESULT_ID}")) or text(event.get(RESULT_ID))
        if (text(event.get("type")) or "").endswith("tool_result") and call_id is not None:
            yield RequestPart(TOOL_RESULTS, event.get("content"), call_id)


session_tool = ToolReader(
    _session_call,
    lambda answer: result_of(answer[0]),  # the event; the second value is for the SDK's span
    replace=_session_replace,
    inject=inject_into(2, "input_"),
)
failing = Hook(lambda invocation: handler.handler_raised(invocation.arg(0, "exc"), session_tool))
sent = delivering(_results)
