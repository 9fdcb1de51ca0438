"""DSPy: tools, the runs of its agents, and the requests of its language models.

Produced is read at ``Tool.__call__`` and ``Tool.acall``. Neither gets the call's id. An agent gives its final answer
with the framework's own tool, which is not recorded as a tool call. If a tool is a DSPy module, it may be an agent, and
its tool calls are recorded separately. If a plain function runs an agent, the agent's calls are part of the function's
call. An agent writes the text of a tool's exception after the call has ended. A remedy's text waits until then, and the
exception stays unchanged. DSPy sends requests with its own HTTP engine or with an SDK. In both cases the
requests pass through ``BaseLM`` first. An answer from DSPy's cache does not count as a request.
"""

from __future__ import annotations

import sys
import traceback
from contextvars import ContextVar
from types import FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import signatures
from agent_otel._internal.errors import guarded
from agent_otel._internal.failures import traceback_of
from agent_otel._internal.object_kinds import fields, is_dict, is_empty, is_named, listed, reworded, text
from agent_otel.core import handler, remedy_hooks
from agent_otel.core.types import (
    NOT_HERE,
    AgentRun,
    Exchange,
    Invocation,
    ModelReader,
    ModelRequest,
    Replacement,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.hooks import Door, Hook, on_return
from agent_otel.integrations.model_sdks.stainless import asks
from agent_otel.integrations.readers import cause_behind, inject_by_name, nothing, raises_within
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.request_bodies import chat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ENTRY = Integration(
    "dspy",
    minimum="3.4",
    tested="3.4.1",
    uncovered="ids of an agent's calls; calls of an agent inside a plain function (part of the function's call); "
    "functions in the sandbox of a `CodeAct`",
    sites=(
        Candidate("dspy.adapters.types.tool", tool="Tool.__call__ Tool.acall"),
        Candidate("dspy.adapters.types.tool", execute="ToolCalls.ToolCall.execute"),
        Candidate("dspy.predict.react", agent_run="ReAct.forward ReAct.aforward", formatting="format_error_for_lm"),
        Candidate(
            "dspy.predict.react_v2", agent_run="ReActV2.forward ReActV2.aforward", formatting="format_error_for_lm"
        ),
        # Agents that write code.
        Candidate("dspy.predict.rlm", agent_run="RLM.forward RLM.aforward"),
        Candidate("dspy.predict.code_act", agent_run="CodeAct.forward"),
        Candidate("dspy.clients.base_lm", request="BaseLM.__call__ BaseLM.acall"),
        Candidate("dspy.clients.execution", cached="_cached"),
        Candidate(
            "dspy.predict.react",
            step="ReAct._call_with_potential_trajectory_truncation "
            "ReAct._async_call_with_potential_trajectory_truncation",
        ),
        Candidate("dspy.predict.predict", predict="Predict.__call__ Predict.acall"),
    ),
)

_AGENTS = ("ReAct", "ReActV2")
_AGENTS_MODULES = "dspy.predict.react"
_READS_ON = "get_tool_result"
#: The number of a traceback's frames that agents show the model.
_FRAMES = 5

# The exception that an agent is about to format as text, and the remedy's text that replaces it.
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


def _caller(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame outside this package's modules."""
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _outside(step: TracebackType | None) -> TracebackType | None:
    """Return the first step of a traceback outside this package's functions."""
    while step is not None and _is_ours(step.tb_frame):
        step = step.tb_next
    return step


def _cut(step: TracebackType | None) -> None:
    """Remove this package's frames from a traceback, except for the first frame."""
    while step is not None:
        step.tb_next = _outside(step.tb_next)
        step = step.tb_next


def _told(error: BaseException) -> str | None:
    """Return the text that an agent will write for an exception, or None if no agent has called the tool."""
    first = traceback_of(error)
    frame = None if first is None else _caller(first.tb_frame)
    if not issubclass(type(error), Exception) or frame is None:
        return None
    if not _module(frame.f_globals).startswith(_AGENTS_MODULES):
        return None
    _cut(first)
    seen = TracebackType(_outside(first), frame, frame.f_lasti, frame.f_lineno)
    return "\n" + "".join(traceback.format_exception(type(error), error, seen, limit=_FRAMES)).strip()


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Return a replacement for a tool's result to an agent. A program that calls the tool computes with the result."""
    raised = sys.exc_info()[1]
    if raised is not None and value is raised:
        _instead.set((raised, replacement.text))
        return value
    return replacement.text if _is_in_agent() else NOT_HERE


def _callers() -> Any:
    return listed(sys.modules["dspy.dsp.utils.settings"].settings.caller_modules)


def _is_in_agent() -> bool:
    return any(is_named(module, *_AGENTS) for module in _callers())


tool = ToolReader(
    _call,
    ToolResult,
    is_refusal=raises_within("dspy", "ValueError", "TypeError"),
    failure_text=_told,
    replace=_replace,
    parameters=lambda invocation: tuple(fields(invocation.instance.args)),
    inject=inject_by_name,
    also_timed_by=("opentelemetry.instrumentation.genai.dspy:DSPyInstrumentor",),
)
agent_run = RunReader(lambda _: AgentRun())


def _request(invocation: Invocation) -> ModelRequest | None:
    """Read a request with messages in OpenAI's form, or with a text. Skip a request of DSPy's own class."""
    prompt = invocation.arg(0, "prompt")
    messages = listed(invocation.kwargs.get("messages"))
    if not messages and text(prompt) is None:
        return None
    body = {"messages": messages or [{"role": "user", "content": prompt}], "tools": invocation.kwargs.get("tools")}
    model = text(getattr(invocation.instance, "model", None))
    return ModelRequest(chat(body), model=model, ends_at_limit=_is_in_agent())


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    """Reword results if the agent lacks the tool that reads on. None can be added: its tools are listed in texts."""
    if any(_READS_ON in fields(getattr(module, "tools", None)) for module in _callers()):
        return
    if "messages" in invocation.kwargs:
        invocation.kwargs = {**invocation.kwargs, "messages": reworded(invocation.kwargs["messages"], reword)}
    prompt = text(invocation.arg(0, "prompt"))
    if prompt is not None:
        invocation.put(0, "prompt", reword(prompt))


request = ModelReader(
    _request,
    asks=lambda outputs: asks({"choices": [{"message": output} for output in listed(outputs)]}),
    outermost=True,
    exchange=Exchange(nothing, nothing, reword=_reword),
)


@on_return
def cached(_: Invocation, value: Any) -> None:
    if value is not None:
        handler.model_answered()


@Hook
def formatting(invocation: Invocation) -> None:
    """Remove this package's frames from a traceback, or pass on a remedy's text. The text is formatted unchanged."""
    error = invocation.arg(0, "error")
    known = _instead.get()
    if known is not None:
        _instead.set(None)
        if known[0] is error:
            invocation.args, invocation.kwargs = (known[1],), {}
            return
    _cut(traceback_of(error))


_INPUTS: Final = {"history", "tools"}
_SUBMIT: Final = {"tool_choice": {"type": "function", "function": {"name": "submit"}}, "reasoning_effort": None}

# At a limit of tool calls, DSPy's agents continue with the request that they end with anyway. ``ReAct`` asks for the
# answer in a separate request after its loop. ``ReActV2`` sends the same request as before. The request asks for a call
# of the tool ``submit``, and now offers no other tool.


class _Finished:
    """A module that ends the loop of ``ReAct``. It replaces the module that asks a model for the next step."""

    def __call__(self, **_: Any) -> Any:
        return sys.modules["dspy"].Prediction(next_thought="", next_tool_name="finish", next_tool_args={})

    async def acall(self, **_: Any) -> Any:
        """Return the same."""
        return self()


@Hook
def step(invocation: Invocation) -> None:
    """End the loop if its last tool call was above a limit."""
    trajectory = fields(invocation.arg(1, "trajectory"))
    if not trajectory or invocation.arg(0, "module") is not invocation.instance.react:
        return
    if remedy_hooks.last_note([trajectory[next(reversed(trajectory))]]) is not None:
        invocation.put(0, "module", _Finished())


@Hook
def predict(invocation: Invocation) -> None:
    """Offer only the tool for the answer if the newest results say that a call was above a limit.

    If the program passes an input in addition to the history, a new question begins.
    """
    given = invocation.kwargs
    if given.keys() != _INPUTS:
        return
    note = remedy_hooks.last_note([text(value) for value in _results(given["history"])])
    tools = [tool for tool in listed(given["tools"]) if text(tool.name) == "submit"]
    if note is None or not tools:
        return
    signature = invocation.instance.signature
    told = signature.with_instructions(f"{signature.instructions}\n\n{note}")
    invocation.kwargs = {**given, "tools": tools, "signature": told, "config": _SUBMIT}


def _results(history: Any) -> Iterator[Any]:
    """Return the results of the last event of a history."""
    events = listed(history.messages) if is_named(history, "History") else ()
    calls = fields(events[-1]).get("tool_calls") if events else None
    for result in listed(getattr(getattr(calls, "tool_call_results", None), "tool_call_results", ())):
        yield result.value


# A program executes DSPy's native tool calls with ``call.execute()``. The function runs without its tool. If the
# program passes no functions, the framework takes the function from the caller's variables. With this package, the
# caller is one of the package's frames. So this module finds the function and passes it on.


def _function(invocation: Invocation) -> Any:
    """Return the function that the call is about to run, or None if there is none."""
    name, functions = text(invocation.instance.name) or "", invocation.arg(0, "functions")
    if is_dict(functions):
        return fields(functions).get(name)
    if functions is not None:
        tools = map(fields, listed(functions))
        return next((tool.get("func") for tool in tools if text(tool.get("name")) == name), None)
    frame = _caller(sys._getframe())
    if frame is None:
        return None
    found = frame.f_locals.get(name)
    return frame.f_globals.get(name) if is_empty(found) else found


@guarded("dspy.function")
def _pass_on(invocation: Invocation) -> None:
    """Pass on one of the caller's functions, or an empty dictionary if no function has that name."""
    if invocation.arg(0, "functions") is None:
        function = _function(invocation)
        invocation.put(0, "functions", {} if function is None else {text(invocation.instance.name): function})


def _native_call(invocation: Invocation) -> ToolCall | None:
    asked = invocation.instance
    return None if _function(invocation) is None else ToolCall(asked.name, asked.args, text(asked.id))


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Add arguments after the model's arguments."""
    name, function = text(invocation.instance.name), _function(invocation)
    invocation.put(0, "functions", {name: lambda **arguments: function(**{**arguments, **values})})


_cause = cause_behind("RuntimeError")  # the framework raises it from the function's own exception
_executed = ToolReader(
    _native_call,
    ToolResult,
    is_refusal=raises_within("dspy", "TypeError", cause=_cause),
    cause=_cause,
    replace=lambda *_: NOT_HERE,
    parameters=lambda invocation: signatures.parameter_names(_function(invocation)),
    inject=_inject,
)


@Door
def execute(invocation: Invocation) -> handler.Visit | handler.Unrecorded | None:
    _pass_on(invocation)
    return handler.enter_tool(_executed, invocation)
