"""DSPy: the tools of its agents, runs of ``ReAct``, and the requests of its language models.

Produced is read at ``Tool.__call__`` and ``Tool.acall``, which know no call's id. The tool by which an agent gives its
final answer is the framework's own, and no tool call. A module that is a tool may be an agent, whose calls are its own;
the calls of an agent that a plain function runs are part of the function's call. DSPy sends requests with its own HTTP
engine or with an SDK; above both they pass ``BaseLM``. An answer from DSPy's cache is no request.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_named, is_raised_within, listed, text, traceback_of
from agent_otel.core.types import (
    NOT_HERE,
    PRODUCED,
    AgentRun,
    ModelReader,
    ModelRequest,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.hooks import Hook, inject_by_name
from agent_otel.integrations.model_sdks.openai import chat
from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "dspy",
    distribution="dspy",
    minimum="3.4",
    tested="3.4.1",
    sites=(
        Candidate("dspy.adapters.types.tool", Wrap("Tool.__call__", "tool"), Wrap("Tool.acall", "tool")),
        Candidate(
            "dspy.predict.react",
            Wrap("ReAct.forward", "agent_run"),
            Wrap("ReAct.aforward", "agent_run"),
            Wrap("format_error_for_lm", "formatting"),
        ),
        Candidate("dspy.clients.base_lm", Wrap("BaseLM.__call__", "request"), Wrap("BaseLM.acall", "request")),
        Candidate("dspy.clients.execution", Wrap("_cached", "cached")),
    ),
)

_AGENTS = ("ReAct", "ReActV2")


def _module(names: dict[str, Any]) -> str:
    return text(names.get("__name__")) or ""


def _call(invocation: Invocation) -> ToolCall | None:
    tool = invocation.instance
    if type(tool.func) is FunctionType and _module(tool.func.__globals__).startswith("dspy.predict.react"):
        return None
    return ToolCall(tool.name, invocation.kwargs, is_agent=is_named(tool.func, "Module"))


def _is_refusal(error: BaseException) -> bool:
    return is_named(error, "ValueError", "TypeError") and is_raised_within(error, "dspy")


def _replace(_: Any, replacement: Replacement, __: Invocation) -> Any:
    """Return a replacement for what a tool returns to an agent; a program that calls it computes with the result."""
    callers = listed(sys.modules["dspy.dsp.utils.settings"].settings.caller_modules)
    return replacement.text if any(is_named(module, *_AGENTS) for module in callers) else NOT_HERE


def _parameters(invocation: Invocation) -> Iterable[str]:
    return tuple(fields(invocation.instance.args))


tool = ToolReader(
    PRODUCED, _call, ToolResult, is_refusal=_is_refusal, replace=_replace, parameters=_parameters, inject=inject_by_name
)
agent_run = RunReader(lambda _: AgentRun())


def _request(invocation: Invocation) -> ModelRequest | None:
    """Read a request of messages in OpenAI's form, or of a text; a request of DSPy's own class is left out."""
    prompt = invocation.arg(0, "prompt")
    messages = listed(invocation.kwargs.get("messages"))
    if not messages and text(prompt) is None:
        return None
    body = {"messages": messages or [{"role": "user", "content": prompt}], "tools": invocation.kwargs.get("tools")}
    return ModelRequest(chat(body), model=text(getattr(invocation.instance, "model", None)))


request = ModelReader(_request, outermost=True)


def _after_cached(_: Invocation, value: Any, __: BaseException | None) -> None:
    if value is not None:
        handler.model_answered()


cached = Hook(lambda _: True, _after_cached)


def _before_formatting(invocation: Invocation) -> None:
    """Take this package's frames out of a traceback, of which the model reads the first five."""
    step = traceback_of(invocation.arg(0, "error"))
    while step is not None:
        following = step.tb_next
        while following is not None and _module(following.tb_frame.f_globals).startswith("agent_otel."):
            following = following.tb_next
        step.tb_next = following
        step = following


formatting = Hook(_before_formatting)
