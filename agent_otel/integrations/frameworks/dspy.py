"""DSPy: tools, the runs of its agents, and the requests of its language models.

Produced is read at ``Tool.__call__`` and ``Tool.acall``, which know no call's id. The tool by which an agent gives its
final answer is the framework's own, and no tool call. A module that is a tool may be an agent, whose calls are its own;
the calls of an agent that a plain function runs are part of the function's call. An agent writes the text of a tool's
exception after the call has ended: a remedy's text waits for that, and the exception stays as it is. DSPy sends
requests with its own HTTP engine or with an SDK; above both they pass ``BaseLM``. An answer from DSPy's cache is no
request.
"""

from __future__ import annotations

import sys
import traceback
from contextvars import ContextVar
from types import FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_named, listed, reworded, text, traceback_of
from agent_otel.core.types import (
    NOT_HERE,
    PRODUCED,
    AgentRun,
    Exchange,
    ModelReader,
    ModelRequest,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.frameworks.dspy_native_calls import CALLS
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.model_sdks.openai import chat
from agent_otel.integrations.reader_functions import inject_by_name, raises_within
from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_otel.core.types import Invocation, Replacement

_LAST = "frameworks.dspy_last_request"
ENTRY = Integration(
    "dspy",
    distribution="dspy",
    minimum="3.4",
    tested="3.4.1",
    uncovered="ids of an agent's calls; the calls of an agent that a plain function runs (they are part of the "
    "function's call); the functions that the code of a `CodeAct` calls, of which its sandbox has copies",
    sites=(
        Candidate("dspy.adapters.types.tool", Wrap("Tool.__call__", "tool"), Wrap("Tool.acall", "tool")),
        CALLS,
        Candidate(
            "dspy.predict.react",
            Wrap("ReAct.forward", "agent_run"),
            Wrap("ReAct.aforward", "agent_run"),
            Wrap("format_error_for_lm", "formatting"),
        ),
        Candidate(
            "dspy.predict.react_v2",
            Wrap("ReActV2.forward", "agent_run"),
            Wrap("ReActV2.aforward", "agent_run"),
            Wrap("format_error_for_lm", "formatting"),
        ),
        # Agents that write code.
        Candidate("dspy.predict.rlm", Wrap("RLM.forward", "agent_run"), Wrap("RLM.aforward", "agent_run")),
        Candidate("dspy.predict.code_act", Wrap("CodeAct.forward", "agent_run")),
        Candidate("dspy.clients.base_lm", Wrap("BaseLM.__call__", "request"), Wrap("BaseLM.acall", "request")),
        Candidate("dspy.clients.execution", Wrap("_cached", "cached")),
        Site(
            Candidate(
                "dspy.predict.react",
                Wrap("ReAct._call_with_potential_trajectory_truncation", "step"),
                Wrap("ReAct._async_call_with_potential_trajectory_truncation", "step"),
            ),
            adapter=_LAST,
        ),
        Site(
            Candidate("dspy.predict.predict", Wrap("Predict.__call__", "predict"), Wrap("Predict.acall", "predict")),
            adapter=_LAST,
        ),
    ),
)

_AGENTS = ("ReAct", "ReActV2")
_AGENTS_MODULES = "dspy.predict.react"
_READS_ON = "get_tool_result"
#: The number of a traceback's frames that agents show the model.
_FRAMES = 5

# The exception that an agent is about to make a text of, and the text of a remedy in its place.
_instead: ContextVar[tuple[BaseException, str] | None] = ContextVar("agent_otel_dspy_instead", default=None)


def _module(names: dict[str, Any]) -> str:
    return text(names.get("__name__")) or ""


def _call(invocation: Invocation) -> ToolCall | None:
    tool = invocation.instance
    if type(tool.func) is FunctionType and _module(tool.func.__globals__).startswith(_AGENTS_MODULES):
        return None
    return ToolCall(tool.name, invocation.kwargs, is_agent=is_named(tool.func, "Module"))


def _is_ours(frame: FrameType) -> bool:
    return _module(frame.f_globals).startswith("agent_otel.")


def _outside(step: TracebackType | None) -> TracebackType | None:
    """Return the first step of a traceback that is in no function of this package."""
    while step is not None and _is_ours(step.tb_frame):
        step = step.tb_next
    return step


def _cut(step: TracebackType | None) -> None:
    """Take this package's frames out of a traceback, except for the first frame."""
    while step is not None:
        step.tb_next = _outside(step.tb_next)
        step = step.tb_next


def _told(error: BaseException) -> str | None:
    """Return the text that an agent is about to make of an exception; None where no agent has called the tool."""
    first = traceback_of(error)
    frame = None if first is None else first.tb_frame
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if not issubclass(type(error), Exception) or frame is None:
        return None
    if not _module(frame.f_globals).startswith(_AGENTS_MODULES):
        return None
    _cut(first)
    seen = TracebackType(_outside(first), frame, frame.f_lasti, frame.f_lineno)
    return "\n" + "".join(traceback.format_exception(type(error), error, seen, limit=_FRAMES)).strip()


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Return a replacement for what a tool returns to an agent; a program that calls it computes with the result."""
    raised = sys.exc_info()[1]
    if raised is not None and value is raised:
        _instead.set((raised, replacement.text))
        return value
    return replacement.text if _is_in_agent() else NOT_HERE


def _callers() -> Any:
    return listed(sys.modules["dspy.dsp.utils.settings"].settings.caller_modules)


def _is_in_agent() -> bool:
    return any(is_named(module, *_AGENTS) for module in _callers())


def _parameters(invocation: Invocation) -> Iterable[str]:
    return tuple(fields(invocation.instance.args))


tool = ToolReader(
    PRODUCED,
    _call,
    ToolResult,
    is_refusal=raises_within("dspy", "ValueError", "TypeError"),
    failure_text=_told,
    replace=_replace,
    parameters=_parameters,
    inject=inject_by_name,
    also_timed_by=("opentelemetry.instrumentation.genai.dspy:DSPyInstrumentor",),
)
agent_run = RunReader(lambda _: AgentRun())


def _request(invocation: Invocation) -> ModelRequest | None:
    """Read a request of messages in OpenAI's form, or of a text; a request of DSPy's own class is left out."""
    prompt = invocation.arg(0, "prompt")
    messages = listed(invocation.kwargs.get("messages"))
    if not messages and text(prompt) is None:
        return None
    body = {"messages": messages or [{"role": "user", "content": prompt}], "tools": invocation.kwargs.get("tools")}
    model = text(getattr(invocation.instance, "model", None))
    return ModelRequest(chat(body), model=model, ends_at_limit=_is_in_agent())


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    """Reword results for an agent without the tool that reads on: its tools stand in texts, and none can be added."""
    if any(_READS_ON in fields(getattr(module, "tools", None)) for module in _callers()):
        return
    if "messages" in invocation.kwargs:
        invocation.kwargs = {**invocation.kwargs, "messages": reworded(invocation.kwargs["messages"], reword)}
    prompt = text(invocation.arg(0, "prompt"))
    if prompt is not None:
        invocation.put(0, "prompt", reword(prompt))


def _nothing(*_: Any) -> None:
    return None


request = ModelReader(_request, outermost=True, exchange=Exchange(_nothing, _nothing, reword=_reword))


def _after_cached(_: Invocation, value: Any, __: BaseException | None) -> None:
    if value is not None:
        handler.model_answered()


cached = Hook(lambda _: True, _after_cached)


def _before_formatting(invocation: Invocation) -> None:
    """Take this package's frames out of a traceback; or pass a remedy's text on, which is formatted as it is."""
    error = invocation.arg(0, "error")
    known = _instead.get()
    if known is not None:
        _instead.set(None)
        if known[0] is error:
            invocation.args, invocation.kwargs = (known[1],), {}
            return
    _cut(traceback_of(error))


formatting = Hook(_before_formatting)
