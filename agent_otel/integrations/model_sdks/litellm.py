"""LiteLLM, which speaks to many providers, to some of them through OpenAI's SDK.

What leaves is read at ``Logging.pre_call``, which every provider's code calls before HTTP with OpenAI's shapes. It does
not surround the request, so that the public functions are entered, too: they know in the end whether an SDK has been
seen inside of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import attributes, fields, is_dict, is_named, listed, reworded, text
from agent_otel.core import handler
from agent_otel.core.cost.usage import read as read_usage
from agent_otel.core.types import (
    AskedCall,
    Exchange,
    Invocation,
    ModelReader,
    ModelRequest,
    Replacement,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations import wrap
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.model_sdks.stainless import asks, ends, plain_model
from agent_otel.integrations.readers import call_at, inject_into, raises_within, replace_by_text
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.integrations.request_bodies import ChatFunction, chat, is_forced, responses
from agent_otel.messages.fields import is_continued

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_otel.core.cost.usage import Usage


_FIRST = "1.106"
_LOOPS = {"looping": "run_tool_loop", "looping_async": "arun_tool_loop"}

LOOP = Site(Candidate("litellm.harness.handlers.tool_loop_handler", function="_execute_tool"), minimum="1.106")
LOOPS = (
    Site(Candidate("litellm.tool_loop", **_LOOPS), minimum=_FIRST),
    Site(Candidate("litellm", **_LOOPS), minimum=_FIRST),  # imported before the switch is on
    LOOP,
)

ENTRY = Integration(
    "litellm",
    minimum="1.70",
    tested="1.106",
    uncovered="requests of its proxy, in another process; tools of its other harnesses (Claude Code, Codex); code "
    "that it sends to a sandbox",
    sites=(
        Candidate("litellm.litellm_core_utils.litellm_logging", announced="Logging.pre_call"),
        # The calls that contain these requests.
        Candidate("litellm", completing="completion acompletion", responding="responses aresponses"),
        *LOOPS,
    ),
)

_CHATS = ("completion", "acompletion")
_RESPONSES = ("responses", "aresponses")
_CHAT = ChatFunction(place=1)


def _announced(invocation: Invocation) -> None:
    given = invocation.arg(0, "input")
    body = invocation.arg(3, "additional_args", {}).get("complete_input_dict")
    kind = text(fields(invocation.instance).get("call_type"))
    if kind in _CHATS and issubclass(type(given), list):
        tools = fields(body).get("tools")
        model = fields(invocation.instance).get("model")
        parts = chat({"messages": given, "tools": listed(tools)})
        handler.model_announced(ModelRequest(parts, model=model, must_call=is_forced(fields(body).get("tool_choice"))))
    elif kind in _RESPONSES:
        handler.model_announced(responses({**(fields(body) if is_dict(body) else {}), "input": given}))


def _usage(response: Any) -> Usage | None:
    """Return the usage of a whole response, which is an undeclared field of it."""
    return read_usage(getattr(response, "usage", None))


def _rewrite_input(invocation: Invocation, view: Callable[..., Any]) -> None:
    named = {**invocation.kwargs, **fields(invocation.kwargs.get("extra_body"))}
    items = invocation.arg(0, "input")
    if type(items) is list:
        invocation.put(0, "input", view(items, kept=is_continued({**named, "input": items})))


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    """Reword the results in a request without functions of the program that read on."""
    items = invocation.arg(0, "input")
    names = [text(fields(tool).get("name")) for tool in listed(invocation.kwargs.get("tools"))]
    if type(items) is list and "get_tool_result" not in names:
        invocation.put(0, "input", reworded(items, reword))


def _asks(response: Any) -> Sequence[AskedCall] | None:
    """Return the calls that a response, or a chunk of a stream, asks for; a chunk has no attributes for its fields."""
    if not is_named(response, "ModelResponseStream"):
        return asks(response)
    deltas = [choice.delta for choice in response.choices]
    calls = [call for delta in deltas for call in getattr(delta, "tool_calls", None) or ()]
    asked = [AskedCall(call.function.name or "", call.function.arguments, call.id, call.index) for call in calls]
    return asked if deltas else None


def _passes(chunk: Any) -> bool:
    """Return true for a chunk with neither calls nor tokens, which are an undeclared field of it."""
    extra = getattr(chunk, "__pydantic_extra__", None)
    return type(extra) is dict and "usage" not in extra and "usage" not in attributes(chunk) and not _asks(chunk)


announced = Hook(_announced)
responding = ModelReader(
    lambda _: ModelRequest(()),
    *(_usage, asks),
    outermost=True,
    rewrite=_rewrite_input,
    exchange=Exchange(lambda _: None, _CHAT.put, reword=_reword),  # a request to the Responses API is not sent again
)
_stream, _watch = wrap.streams("CustomStreamWrapper", "MeasuredStream")
# An SDK below sends the same request, and finds nothing left to change and no tool to add.
exchange = _CHAT.exchange(plain_model)._replace(stream=_stream, replaced=wrap.OtherItems)
completing = _CHAT.reader(
    lambda _: ModelRequest(()), _usage, _asks, _watch, ends, outermost=True, exchange=exchange, passes=_passes
)

# LiteLLM's loop, ``run_tool_loop``. It gets a function of the program that makes each call and returns the message of
# the tool.


def _replace_message(message: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
    kept = {"role": "tool", "tool_call_id": invocation.arg(0, "tool_call").id, **fields(message)}
    return {**kept, "content": replacement.text}


def _arguments(invocation: Invocation) -> dict[str, Any]:
    """Return the model's arguments; none where they are no JSON object."""
    try:
        arguments = json.loads(text(invocation.arg(0, "tool_call").function.arguments) or "")
    except ours(ValueError):
        return {}
    return arguments if is_dict(arguments) else {}


def _inject_asked(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into a copy of the call, which stays in the messages as it is."""
    asked = invocation.arg(0, "tool_call").model_copy(deep=True)
    asked.function.arguments = json.dumps({**_arguments(invocation), **values}, ensure_ascii=False)
    invocation.put(0, "tool_call", asked)


_asked = ToolReader(
    call_at(0, "tool_call", "function.name", "function.arguments", "id"),
    lambda message: ToolResult(fields(message).get("content", "")),
    replace=_replace_message,
    parameters=lambda invocation: tuple(_arguments(invocation)),
    inject=_inject_asked,
)


def _around(reader: ToolReader) -> Hook:
    """Return a hook that measures the function which makes the calls of a loop."""

    def before(invocation: Invocation) -> None:
        execute = invocation.kwargs.get("execute_tool")
        if callable(execute):
            invocation.kwargs = {**invocation.kwargs, "execute_tool": wrap.around(execute, reader)}

    return Hook(before)


looping = _around(_asked)
looping_async = _around(_asked._replace(is_awaited=True))

# LiteLLM's harness ``TOOL_LOOP``, which calls functions of the program. It makes a text of what they return or raise.


function = ToolReader(
    lambda invocation: ToolCall(invocation.arg(0, "tool").name, invocation.arg(1, "arguments")),
    ToolResult,
    is_refusal=raises_within("litellm", "ValidationError"),
    replace=replace_by_text,
    parameters=lambda invocation: tuple(fields(invocation.arg(0, "tool").args_model.model_fields)),
    inject=inject_into(1, "arguments"),
)
