"""API for programs without a framework: `tool`, `tool_call`, `execution`, `payload` and `flush`.

While ``AGENT_OTEL`` is off, all of them do nothing but test a flag.
"""

from __future__ import annotations

import functools
import inspect
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from agent_otel._internal import env, errors, fork, signatures
from agent_otel.core import execution_context
from agent_otel.core.types import Invocation, Step, ToolCall, ToolDeniedError, ToolReader, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from agent_otel.core.execution_context import Identity
    from agent_otel.core.handler import Unrecorded, Visit
    from agent_otel.core.run_visit import NamedExecution
    from agent_otel.core.types import Claim, Replacement

_F = TypeVar("_F", bound="Callable[..., Any]")
_V = TypeVar("_V")


def _replace(value: Any, replacement: Replacement, _: Invocation, *, is_text: bool = True) -> Any:
    """Return the replacement's text for a text, or for no value of a function that may return one, else its data."""
    is_text = isinstance(value, str) or (value is None and is_text and not replacement.is_data)
    return replacement.text if is_text else replacement.data


def _given_names(invocation: Invocation) -> Iterable[str]:
    """Return the names of the call's arguments, in place of the tool's parameters, which are not available here."""
    arguments = invocation.instance.arguments
    return list(map(str, arguments)) if isinstance(arguments, dict) else ()


_READER = ToolReader(
    lambda invocation: invocation.instance,
    ToolResult,
    replace=_replace,
    parameters=_given_names,
    inject=lambda invocation, values: setattr(invocation, "kwargs", values),
)


@overload
def tool(function: _F) -> _F: ...
@overload
def tool(*, name: str | None = None, agent: str | None = None) -> Callable[[_F], _F]: ...
def tool(function: _F | None = None, *, name: str | None = None, agent: str | None = None) -> _F | Callable[[_F], _F]:
    """Measure each call of a function as a tool call.

    The function may be sync or async, a function or a generator; a generator's items are measured one by one and never
    collected. The function keeps its signature, its result and its exceptions. ``name`` is the tool's name, by
    default the function's. ``agent`` is the agent that calls it. If `agent_otel.execution` names another agent, the
    labels have that agent, and the span has this one as ``agent_otel.sub_agent``.
    """

    def decorate(target: Any) -> Any:
        if isinstance(target, staticmethod | classmethod):
            return type(target)(decorate(target.__func__))
        parameters = signatures.parameter_names(target)
        bound = 1 if parameters[:1] in (("self",), ("cls",)) else 0
        names = parameters[bound:]
        # What is given beyond the other positional parameters is in the one with the star.
        place = signatures.star_at(target) - bound
        tool_name = str(name or getattr(target, "__name__", type(target).__name__))
        if inspect.iscoroutinefunction(type(target).__call__):
            target = target.__call__

        def read_call(invocation: Invocation) -> ToolCall:
            args = invocation.args[bound:] if invocation.instance is None else invocation.args
            given = dict(zip(names, args[:place]))  # noqa: B905 - fewer than names
            if len(args) > place:
                given[names[place]] = args[place:]
            if invocation.kwargs:
                # ``**kwargs`` may have the name of a positional parameter.
                given = {**given, **invocation.kwargs, **given}
            return ToolCall(tool_name, given, None, agent)

        replace = functools.partial(_replace, is_text=_may_return_text(target))
        inject = functools.partial(_inject, target)
        reader = ToolReader(read_call, ToolResult, replace=replace, parameters=lambda _: names, inject=inject)
        return _around(target, reader)

    return decorate if function is None else decorate(function)


def _inject(target: Callable[..., Any], invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put injected arguments into a call; return false when the function has no such parameter."""
    parameters = list(signatures.signature_of(target).parameters.values())
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    positions = {
        parameter.name: position if parameter.kind is not parameter.KEYWORD_ONLY else len(invocation.args)
        for position, parameter in enumerate(parameters)
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    for name, value in values.items():
        if name not in positions and not takes_any:
            return False
        invocation.put(positions.get(name, len(invocation.args)), name, value)
    return True


def _may_return_text(target: Callable[..., Any]) -> bool:
    """Return true unless a function's annotation excludes that it returns a text."""
    returns = signatures.annotations_of(target).get("return", str)
    returns = getattr(returns, "__forward_arg__", returns)
    said = returns if isinstance(returns, str) else getattr(returns, "__name__", str(returns))
    name = said.partition("[")[0].partition("|")[0].strip().rpartition(".")[2]
    return name in {"str", "Any", "object", "Optional", "Union", "AnyStr"}


def _around(target: Callable[..., Any], reader: ToolReader) -> Any:
    """Return a wrapper of the function's kind that measures it: a plain function, but a proxy for a generator."""
    wrapper: Any = None
    if inspect.iscoroutinefunction(target):

        @functools.wraps(target)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            nonlocal wrapper
            if not env.active:
                return await (_unmeasured(target, None, args, kwargs) if env.refusals else target(*args, **kwargs))
            if wrapper is None:
                wrapper = _wrapper(reader, target)
            return await wrapper(target, None, args, kwargs)

        return call_async

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal wrapper
        if not env.active:
            return _unmeasured(target, None, args, kwargs) if env.refusals else target(*args, **kwargs)
        if wrapper is None:
            wrapper = _wrapper(reader, target)
        return wrapper(target, None, args, kwargs)

    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        from agent_otel.integrations.wrap import Proxy  # noqa: PLC0415 - only here is a proxy needed

        return Proxy(target, call)
    return call


#: The answer in place of a call on which the policy cannot decide.
_UNDECIDED = '{"error": "tool_denied", "rule": "unreadable"}'


@functools.lru_cache(maxsize=1)
def _core() -> Any:
    """Return the modules that measure, or None; they are not loaded while the switch is off."""
    try:
        from agent_otel._internal.object_kinds import declare  # noqa: PLC0415
        from agent_otel.core import handler, run_visit, step_handler  # noqa: PLC0415
        from agent_otel.integrations import preload, wrap  # noqa: PLC0415
    except errors.ours(Exception):  # installed without its dependencies
        errors.report_error("handwritten.load")
        return None
    preload.load()
    return SimpleNamespace(declare=declare, observer=handler, payloads=step_handler, wrapping=wrap, runs=run_visit)


def _wrapper(reader: ToolReader, target: Callable[..., Any]) -> Any:
    core = _core()
    if core is None:
        return _unmeasured
    core.declare(signatures.parameter_names(target))  # fields, which paths may show
    return core.wrapping.wrapper_for(reader, target)


def _unmeasured(target: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if (answer := _undecided()) is not None:
        raise ToolDeniedError(answer)
    return target(*args, **kwargs)


def _undecided() -> str | None:
    """Return the answer where no call may run: a policy is set, and the core that would decide cannot be loaded."""
    is_missing = env.active and _core() is None and os.environ.get("AGENT_OTEL_TOOL_POLICY")
    return _UNDECIDED if env.refusals or is_missing else None


class tool_call:  # noqa: N801 - reads as a function: with agent_otel.tool_call(...)
    """Measure one tool call of a hand-written loop.

    ``with agent_otel.tool_call(name, arguments) as call: call.result(run(arguments))``. An exception that leaves the
    block is recorded as the call's failure and propagates.
    """

    def __init__(
        self, name: str, arguments: object = None, *, call_id: str | None = None, agent: str | None = None
    ) -> None:
        self._call = ToolCall(name, arguments, call_id=call_id, agent=agent)
        self._visit: Visit | Unrecorded | None = None
        #: The reference, the sizes and a preview of the result, when the claim check has stored it; for a state's
        #: record of the call, such as ``agent_otel.remedies.LeanRecord``.
        self.claim: Claim | None = None

    def __enter__(self) -> Self:
        if env.active and (core := _core()) is not None:
            self._invocation = Invocation(self._call, (), {})
            self._visit = core.observer.enter_tool(_READER, self._invocation)
        if self._visit is not None:
            self._undo = errors.finishing(self._visit.close)
            with errors.finishing(self._visit.close):
                self._visit.__enter__()
        return self

    def refused(self) -> str | None:
        """Return the text for the model when a limit or the dispatch policy skips this call, else None.

        ``result = call.refused() or call.result(run(call.arguments))``. Limits and the policy have no effect on a loop
        that does not call this method.
        """
        if self._visit is None:
            return _undecided()
        self._visit.take_turn()
        answer = self._visit.skipped(self._invocation)
        return answer if isinstance(answer, str) else None

    async def arefused(self) -> str | None:
        """Do the same as `refused` without blocking the event loop while the call waits or the policy runs."""
        if self._visit is None:
            return _undecided()
        await self._visit.atake_turn()
        answer = await self._visit.askipped(self._invocation)
        return answer if isinstance(answer, str) else None

    @property
    def arguments(self) -> Any:
        """Return the arguments for the handler: the model's, with the ones that the dispatch policy injects.

        Read it after `refused`. Without injected arguments it is the object that the loop passed.
        """
        given: Any = self._call.arguments
        if self._visit is None or not self._invocation.kwargs:
            return given
        import json  # noqa: PLC0415 - only for injected arguments

        read = json.loads(given.strip() or "{}") if isinstance(given, str) else given
        return {**(read or {}), **self._invocation.kwargs}

    def result(self, value: _V) -> _V:
        """Measure the handler's return value, and return it, so that ``result`` can enclose the call.

        If a remedy replaces the value, return the replacement: a text for a text, a dictionary for any other value.
        """
        return value if self._visit is None else self._kept(self._visit.remedied(value, self._invocation))

    async def aresult(self, value: _V) -> _V:
        """Do the same as `result` without blocking the event loop while a remedy stores the value."""
        return value if self._visit is None else self._kept(await self._visit.aremedied(value, self._invocation))

    def _kept(self, value: _V) -> _V:
        visit: Any = self._visit
        remedied = visit.record.remedied if visit.is_outermost else None
        self.claim = None if remedied is None else remedied.replacement.claim
        return value

    def error(self, error: Exception) -> None:
        """Record an exception that the loop handles itself."""
        core = _core() if self._visit is not None else None
        if core is not None:
            errors.guarded("tool_call.error")(core.observer.handler_raised)(error, _READER)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._visit is not None:
            with self._undo:
                self._visit.__exit__(kind, error, traceback)
            self._visit = None


class execution:  # noqa: N801 - reads as a function: with agent_otel.execution(...)
    """Name the execution of all calls inside the block; it overrides the ids of runtimes, frameworks and traces.

    Spans have the ``id``. Spans and metrics have ``workflow``, ``agent`` and the ``labels`` that AGENT_OTEL_LABELS
    names. A block also has the labels of the blocks around it. If no span is open, the block opens one,
    ``invoke_workflow``, so that the execution is one trace. When the block ends, the execution's number of tool calls
    and bytes are recorded.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the word of its users
        *,
        workflow: str | None = None,
        agent: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._identity = execution_context.identity(id, workflow, agent, labels)
        self._visit: NamedExecution | None = None

    def __enter__(self) -> Self:
        around = self._around = execution_context.explicit.get()
        if around is not None and around.labels is not None:
            labels = {**around.labels, **(self._identity.labels or {})}
            self._identity = self._identity._replace(labels=labels)
        if env.active and (core := _core()) is not None:
            self._visit = core.runs.NamedExecution(self._identity)
        self._undo = errors.finishing(_leave, around, self._identity, self._visit)
        with errors.finishing(_leave, around, self._identity, self._visit):
            execution_context.explicit.set(self._identity)
            if self._visit is not None:
                self._visit.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._undo:
            _leave(self._around, self._identity, None)
            if self._visit is not None:
                self._visit.finish(error)


def _leave(around: Identity | None, identity: Identity, visit: NamedExecution | None) -> None:
    """Leave the context of an execution, unless another one is current; with a visit, close that as well."""
    if execution_context.explicit.get() is identity:
        execution_context.explicit.set(around)
    if visit is not None:
        visit.close()


def payload(  # noqa: PLR0913 - the fields of a payload
    data_or_object: object,
    *,
    runtime: str,
    direction: str,
    workflow: str | None = None,
    activity: str | None = None,
    execution: str | None = None,
) -> None:
    """Measure a payload that a runtime without an integration carries.

    ``data_or_object`` is the serialised payload (bytes or text, measured in bytes), or the object, measured as compact
    JSON. ``direction`` is ``input``, ``output``, ``state``, ``history`` or ``message``. ``execution`` is the id of the
    run, default: the id of ``agent_otel.execution``. The cap of a runtime that is not in ``agent_otel.payload_caps()``
    comes from ``AGENT_OTEL_CAPS``. Raises nothing.
    """
    if env.active and (core := _core()) is not None:
        named = execution_context.explicit.get()
        if named is not None:
            execution, workflow = execution or named.id, workflow or named.workflow
        core.payloads.object_carried(Step(runtime, activity, workflow, execution), direction, data_or_object)


def flush(seconds: float = 5.0) -> bool:
    """Export the recorded telemetry, and return False when that takes longer than ``seconds``.

    For platforms that suspend or kill a process without notice, such as AWS Lambda between two events; elsewhere the
    end of the process flushes. Providers that the program has set are flushed too. Raises nothing.
    """
    if not env.active or _core() is None:
        return True
    from agent_otel.core import flushing  # noqa: PLC0415 - few programs flush

    return errors.guarded("flush")(flushing.flush)(seconds) is True


def load() -> None:
    """Load the measuring modules, unless the switch is off, so that the first call imports nothing."""
    if env.active:
        with fork.loading:
            _core()
    else:
        env.without_policy(env.OFF_HERE)


load()
