"""LangChain and LangGraph.

Produced is read at ``BaseTool.run`` and ``arun``, which every tool passes (a sync tool called from async code goes
through ``run`` only). Handed back is read at LangGraph's ``ToolNode._run_one`` and ``_arun_one``, which stand outside
of middleware and error conversion. LangChain has made the text by then, so that nothing is serialised twice.

The entry of LangGraph is in ``runtimes/langgraph.py``.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import weakref
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from agent_otel._internal.errors import suppressed
from agent_otel._internal.object_kinds import (
    field_at,
    fields,
    identity,
    is_dict,
    is_named,
    is_text,
    modules_of,
    number,
    text,
)
from agent_otel._internal.signatures import signature_of
from agent_otel.core import handler as observer
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Hook, Injecting, after
from agent_otel.integrations.readers import raises, raises_within
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import TOOL_ERROR
from agent_otel.settings.kinds import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.trace import Span


_CHAT_MODELS = "langchain_core.language_models.chat_models"
_CHAT = {
    "generated": "BaseChatModel._generate_with_cache BaseChatModel._agenerate_with_cache",
    "streamed": "BaseChatModel.stream BaseChatModel.astream",
}
_CACHED = {"answered": "BaseChatModel._convert_cached_generations"}

ENTRY = Integration(
    "langchain",
    distribution="langchain-core",
    minimum="0.3",
    tested="0.3.0, 0.3.79 and 1.7",
    uncovered="a tool's function that the program calls itself (`tool.func`); the name of a tool that middleware runs "
    "instead of the called one",
    sites=(
        Candidate(
            "langchain_core.tools.base",
            run="BaseTool.run BaseTool.arun",
            parsing="BaseTool._parse_input",
            swallowed="_handle_tool_error _handle_validation_error",
        ),
        # get_child is what a tool calls first when all handlers have heard of its start.
        Site(
            Candidate(
                "langchain_core.callbacks.manager",
                started="CallbackManagerForToolRun.get_child AsyncCallbackManagerForToolRun.get_child",
                ending="CallbackManagerForToolRun.on_tool_end AsyncCallbackManagerForToolRun.on_tool_end",
                failing="CallbackManagerForToolRun.on_tool_error AsyncCallbackManagerForToolRun.on_tool_error",
            ),
            beside=(
                "langfuse.langchain.CallbackHandler",
                "openinference.instrumentation.langchain",
                "opentelemetry.instrumentation.genai.langchain",
                "opentelemetry.instrumentation.langchain",
            ),
        ),
        Site(
            Candidate(  # 1.x has a generator of events besides
                _CHAT_MODELS, events="BaseChatModel._iter_v2_events BaseChatModel._aiter_v2_events", **_CACHED, **_CHAT
            ),
            Candidate(_CHAT_MODELS, **_CACHED, **_CHAT),  # the last of 0.3
            Candidate(_CHAT_MODELS, **_CHAT),  # here an answer out of LangChain's cache counts as a request, too
            adapter="model_sdks.langchain",
        ),
    ),
)

__all__ = ["parsing"]

# Emits gen_ai.execute_tool.duration for LangChain tools.
_ALSO_TIMED_BY = ("opentelemetry.instrumentation.genai.langchain:LangChainInstrumentor",)


def _run_call(invocation: Invocation) -> ToolCall:
    named = invocation.kwargs
    thread_id = identity(field_at(named.get("config"), "configurable", "thread_id"))
    arguments = invocation.arg(0, "tool_input")
    return ToolCall(invocation.instance.name, arguments, named.get("tool_call_id"), None, thread_id)


def _node_call(invocation: Invocation) -> ToolCall:
    call = invocation.arg(0, "call")
    # The third argument was the config until langgraph-prebuilt 0.7 and is a ToolRuntime, which has it, since.
    third = invocation.arg(2, "tool_runtime", invocation.kwargs.get("config"))
    config = third if is_dict(third) else getattr(third, "config", None)
    agent, thread_id = field_at(config, "metadata", "lc_agent_name"), field_at(config, "configurable", "thread_id")
    above = _offloads_above(invocation.instance) if "deepagents" in sys.modules else 0
    return ToolCall(call["name"], call["args"], call["id"], agent, identity(thread_id), offloads_above=above)


#: Deep Agents store a result above so many tokens themselves.
_TOKEN_CHARACTERS = 4
#: Values that a chain of middleware is searched for: each middleware has about five.
_MOST_VALUES = 400


# By the node, whose middleware does not change.
_of_nodes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _offloads_above(node: Any) -> int:
    """Return the limit of the middleware that is chained around the calls of a ``ToolNode``."""
    if node not in _of_nodes:
        owners = _owners(fields(node).get("_wrap_tool_call"))
        limits = [number(fields(owner).get("_tool_token_limit_before_evict")) for owner in owners]
        _of_nodes[node] = _TOKEN_CHARACTERS * min(filter(None, limits), default=0)
    return _of_nodes[node]


def _owners(chain: Any) -> Iterator[Any]:
    """Yield the objects whose methods a chain of functions calls; the chain keeps them in closures."""
    pending, seen = [chain], set[int]()
    while pending and len(seen) < _MOST_VALUES:
        function = pending.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        if type(function) is MethodType:
            yield function.__self__
        elif type(function) is FunctionType:
            for cell in function.__closure__ or ():
                with suppressed(ValueError):  # an empty cell
                    pending.append(cell.cell_contents)


def read_result(output: Any, *, is_error_raised: bool = False) -> ToolResult:
    """Read a tool's output: a ToolMessage, a Command or list that carries some, or a bare value.

    A model reads the message of a Command, and none of its other updates. With ``is_error_raised`` an error status
    means that an exception was converted.
    """
    message = None if type(output) is str else _tool_message(output)
    if message is None:
        return ToolResult(output)
    known = fields(message)
    artifact = known.get("artifact")
    if is_named(output, "Command"):
        channels = fields(fields(output).get("update"))
        artifact = {name: value for name, value in channels.items() if name != "messages"} or artifact
    if text(known.get("status")) != "error":
        return ToolResult(known.get("content"), artifact)
    return ToolResult(known.get("content"), artifact, TOOL_ERROR, raised=is_error_raised)


def _replace(output: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into what ``BaseTool.run`` returns: a text, a ToolMessage, or what holds one.

    An object that the program gets because it has called the tool itself stays what it is.
    """
    if output is None:
        return _answered(replacement, invocation)
    if type(output) is str:
        return replacement.text
    if is_named(output, "ToolMessage"):
        status = "error" if replacement.is_error else output.status
        return output.model_copy(update={"content": replacement.text, "status": status})
    if is_named(output, "Command") and is_dict(output.update):
        messages = _replace_first(output.update.get("messages"), replacement, invocation)
        return dataclasses.replace(output, update={**output.update, "messages": messages})
    return _replace_first(output, replacement, invocation) if type(output) is list else LEFT_ALONE


def _replace_first(messages: Any, replacement: Replacement, invocation: Invocation) -> Any:
    found = _tool_message(messages)
    if found is None:
        return LEFT_ALONE
    return [_replace(found, replacement, invocation) if message is found else message for message in messages]


def _answered(replacement: Replacement, invocation: Invocation) -> Any:
    """Return the replacement for a skipped tool: a message for a call that has an id, else a text."""
    call_id = invocation.kwargs.get("tool_call_id")
    if call_id is None:
        return replacement.text
    message = sys.modules["langchain_core.messages"].ToolMessage
    status = "error" if replacement.is_error else "success"
    return message(replacement.text, name=invocation.instance.name, tool_call_id=call_id, status=status)


def _node_parameters(invocation: Invocation) -> Any:
    tool = invocation.instance.tools_by_name.get(invocation.arg(0, "call")["name"])
    return () if tool is None else tool.args


def _tool_message(output: Any) -> Any:
    """Return the first ToolMessage of an output, which may be one, or a Command or list with one inside.

    The classes alone decide: reading an attribute of a tool's own object would run its code.
    """
    if is_named(output, "ToolMessage"):
        return output
    if is_named(output, "Command"):
        update = fields(output).get("update")
        output = fields(update).get("messages") if is_dict(update) else None
    if type(output) is list:
        return next((item for item in output if is_named(item, "ToolMessage")), None)
    return None


_is_control_flow = raises("GraphBubbleUp")  # interrupts, and commands to a parent graph

# Arguments that a policy injects into LangChain's tools, behind the callbacks, which get a call's arguments.


def inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Return true where `_parse` can inject: not here, because callbacks and tracers get these arguments."""
    schema = invocation.instance.args_schema
    has_no_fields = isinstance(schema, type) and not getattr(
        schema, "model_fields", getattr(schema, "__fields__", None)
    )
    return bool(values) and is_dict(invocation.arg(0, "tool_input")) and not has_no_fields


def validated(invocation: Invocation) -> Any:
    """Return the arguments as the tool's schema makes them: with defaults, and by the names of the function."""
    parse = invocation.instance._parse_input
    given = (invocation.arg(0, "tool_input"), invocation.kwargs.get("tool_call_id"))
    made = parse(*given[: len(signature_of(parse).parameters)])
    return dict.fromkeys(list(invocation.instance.args)[:1], made) if is_text(made) else made


run = ToolReader(
    _run_call,
    read_result,
    opened_by="langchain",
    is_control_flow=_is_control_flow,
    is_refusal=raises_within(("langchain_core", "langgraph"), "ValidationError"),
    also_timed_by=_ALSO_TIMED_BY,
    replace=_replace,
    parameters=lambda invocation: invocation.instance.args,
    inject=inject,
    validated=validated,
)
tool_node = ToolReader(
    _node_call,
    functools.partial(read_result, is_error_raised=True),
    run,
    station=HANDED_BACK,
    is_control_flow=_is_control_flow,
    replace=_replace,
    parameters=_node_parameters,
)


swallowed = Hook(lambda invocation: observer.handler_raised(invocation.arg(0, "e"), run))


# LangChain's callbacks, between which another instrumentation's span of the same call is open. The hooks make that
# span current, or hold it where it can be found, so that the numbers can be set on it.


ending = Hook(lambda invocation: observer.span_finishing(read_result, invocation.arg(0, "output")))


failing = Hook(lambda invocation: observer.span_failing(invocation.arg(0, "error"), run))


started = after(lambda invocation, _, __: observer.handler_started(_held_span(invocation.instance)))


def _held_span(manager: Any) -> Span | None:
    """Return the span that a handler holds for a call; it is not current in async calls, OpenInference's never."""
    for handler in manager.handlers:
        modules = list(modules_of(handler))
        if "langfuse.langchain.CallbackHandler" in modules:
            runs = getattr(handler, "_runs", None) or getattr(handler, "runs", {})  # the latter up to 4
            return getattr(runs.get(manager.run_id), "_otel_span", None)
        if "openinference.instrumentation.langchain._tracer" in modules:
            span: Span | None = handler.get_span(manager.run_id)
            return span
    return None


@Injecting
def parsing(wrapped: Any, invocation: Invocation) -> Any:
    """Add the injected arguments to those that the tool's schema checks; texts are hidden from its error messages."""
    values = observer.injected()
    if not values:
        return wrapped(*invocation.args, **invocation.kwargs)
    hidden = {name: Secret(value) if type(value) is str else value for name, value in values.items()}
    invocation.put(0, "tool_input", {**invocation.arg(0, "tool_input"), **hidden})
    parsed = wrapped(*invocation.args, **invocation.kwargs)
    shown = {name: str(parsed[name]) if is_text(parsed[name]) else parsed[name] for name in values if name in parsed}
    return {**parsed, **values, **shown}
