"""Functions that an adapter runs beside a wrapped one: before and after it, or in its place."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from agent_otel._internal import errors
from agent_otel.core.types import Invocation, ToolReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

    from agent_otel.core import handler

    Wrapper = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]

_State = TypeVar("_State")


class Within(Generic[_State]):
    """A variable of a context that holds the state of a hooked call while the call runs.

    A signal handler may raise at any moment and end a call without its ``after``. The variable refers weakly to the
    call, which the frame of its wrapper holds alone, so that nothing is left of one that has ended in this way.
    """

    def __init__(self, name: str) -> None:
        self._visit: ContextVar[weakref.ref[_Visit] | None] = ContextVar(name, default=None)

    def get(self) -> _State | None:
        """Return the state of the call that runs in this context; None without one."""
        reference = self._visit.get()
        visit = None if reference is None else reference()
        return None if visit is None else visit.invocation.state

    def enter(self, visit: _Visit) -> None:
        """Begin the call."""
        visit.around = self._visit.get()
        self._visit.set(weakref.ref(visit))

    def leave(self, visit: _Visit) -> None:
        """Restore what ran before; a call may end in another context than it began in, where it does not run."""
        reference = self._visit.get()
        if reference is not None and reference() is visit:
            self._visit.set(visit.around)


class Flag:
    """A variable of the core that is true while a hooked call runs."""

    def __init__(self, variable: ContextVar[bool]) -> None:
        self._variable = variable

    def enter(self, visit: _Visit) -> None:
        """Set it."""
        visit.around = self._variable.get()
        self._variable.set(True)

    def leave(self, visit: _Visit) -> None:
        """Restore the value."""
        if visit.around is not None:
            self._variable.set(visit.around)


class Hook(NamedTuple):
    """Functions of this package that run before and after a wrapped one, async or not.

    ``before`` gets the call and returns its ``state``, or None to leave the rest out. Alone it may replace arguments.
    ``after`` gets the call, the returned value and the exception; one of the two is None. It also runs when the call
    is cancelled. ``within`` holds the state while the wrapped function runs: functions
    that it calls read there what only this one gets, such as a call's id.
    """

    before: Callable[[Invocation], Any] | None = None
    after: Callable[[Invocation, Any, BaseException | None], None] | None = None
    within: Within[Any] | Flag | None = None


def after(function: Callable[[Invocation, Any, BaseException | None], None]) -> Hook:
    """Return the hook of a function that runs after a wrapped one; nothing runs before."""
    return Hook(after=function)


def on_return(function: Callable[[Invocation, Any], object]) -> Hook:
    """Return the hook of a function that gets what a wrapped one has returned; it does not run after an exception."""

    def after(invocation: Invocation, value: Any, error: BaseException | None) -> None:
        if error is None:
            function(invocation, value)

    return Hook(after=after)


class Door(NamedTuple):
    """A function of this package that enters a wrapped function of a tool call in its own way.

    It returns what `agent_otel.core.tool_visit.enter_tool` returns, or an object with the same methods.
    """

    enter: Callable[[Invocation], Any]


class Passing(NamedTuple):
    """A function of this package that calls a wrapped one and returns its value or another; async if that is async.

    It gets the wrapped function and the call. It raises nothing of its own.
    """

    run: Callable[[Callable[..., Any], Invocation], Any]


class Injecting(Passing):
    """One that passes on the arguments that a policy injects, where callbacks have seen the arguments already.

    It is wrapped only while a policy is set.
    """


class Family(NamedTuple):
    """Methods that subclasses override, the program's subclasses included; they are wrapped at the first instance.

    The wrapped function is the base class's ``__init__``. ``methods`` returns, for a new instance, the classes, the
    names of their methods to wrap, and the readers.
    """

    methods: Callable[[Any], Iterable[tuple[type, str, Hook | ToolReader]]]


def hooked(hook: Hook, *, is_async: bool) -> Wrapper:
    """Return the wrapper that runs a hook; one that runs before alone has run when an async function returns."""

    def wrapper(wrapped: Callable[..., Any], *call: Any) -> Any:
        invocation = Invocation(*call)
        if not _run_before(hook, invocation):
            return wrapped(*invocation.args, **invocation.kwargs)
        visit = _Visit(hook, invocation)
        with errors.finishing(visit.close), visit:
            visit.value = wrapped(*invocation.args, **invocation.kwargs)
            return visit.value

    async def wrapper_async(wrapped: Callable[..., Any], *call: Any) -> Any:
        invocation = Invocation(*call)
        if not _run_before(hook, invocation):
            return await wrapped(*invocation.args, **invocation.kwargs)
        visit = _Visit(hook, invocation)
        with errors.finishing(visit.close), visit:
            visit.value = await wrapped(*invocation.args, **invocation.kwargs)
            return visit.value

    return wrapper_async if is_async and (hook.after is not None or hook.within is not None) else wrapper


class _Visit:
    """A hooked function while it runs, as a context manager around the user's call."""

    __slots__ = ("__weakref__", "_hook", "around", "invocation", "value")

    def __init__(self, hook: Hook, invocation: Invocation) -> None:
        self._hook = hook
        self.invocation = invocation
        #: What the variable had before the call.
        self.around: Any = None
        self.value: Any = None

    def __enter__(self) -> None:
        if self._hook.within is not None:
            self._hook.within.enter(self)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            self.close()
            if self._hook.after is not None:
                self._hook.after(self.invocation, self.value, error)
        except errors.ours(Exception):
            errors.report_error("hook.after")

    def close(self) -> None:
        """Leave the context; safe to repeat."""
        if self._hook.within is not None:
            self._hook.within.leave(self)


def _run_before(hook: Hook, invocation: Invocation) -> bool:
    """Return true when the call has a state, for which ``after`` runs, or needs none."""
    if hook.before is None:
        return True
    try:
        invocation.state = hook.before(invocation)
    except errors.ours(Exception):
        errors.report_error("hook.before")
    return invocation.state is not None


def passing(hook: Passing, *, is_async: bool) -> Wrapper:
    """Return the wrapper that lets a function call the wrapped one."""

    async def wrapper_async(wrapped: Callable[..., Any], *call: Any) -> Any:
        return await hook.run(wrapped, Invocation(*call))

    return wrapper_async if is_async else lambda wrapped, *call: hook.run(wrapped, Invocation(*call))


def revising(revise: Callable[[Invocation, Any], Any]) -> Passing:
    """Let a function change what a wrapped sync one returns; where it raises, the caller gets that value itself."""

    def run(wrapped: Callable[..., Any], invocation: Invocation) -> Any:
        value = wrapped(*invocation.args, **invocation.kwargs)
        try:
            return revise(invocation, value)
        except errors.ours(Exception):
            errors.report_error("hook.revise")
            return value

    return Passing(run)


# --- visits of tool calls ---------------------------------------------------------------------------------------------

# A `Door` may return one of these around the visit that the core has made.


class AroundVisit:
    """A wrapper of a tool call's visit, for a function that returns something other than the result."""

    __slots__ = ("_visit",)

    def __init__(self, visit: handler.Visit | handler.Unrecorded) -> None:
        self._visit: Any = visit

    def __enter__(self) -> Self:
        self._visit.__enter__()
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._visit, name)

    def __exit__(self, *error: object) -> None:
        self._visit.__exit__(*error)
