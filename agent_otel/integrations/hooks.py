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


class _Running(Generic[_State]):
    """A hooked call while it runs; the frame of its wrapper holds the only reference."""

    __slots__ = ("__weakref__", "before", "state")

    def __init__(self, state: _State, before: weakref.ref[_Running[_State]] | None) -> None:
        self.state = state
        self.before = before


class Within(Generic[_State]):
    """A variable of a context that holds the state of a hooked call while the call runs.

    A signal handler may raise at any moment and end a call without its ``after``. The variable refers weakly to the
    call, so that nothing is left of one that has ended in this way.
    """

    def __init__(self, name: str) -> None:
        self._call: ContextVar[weakref.ref[_Running[_State]] | None] = ContextVar(name, default=None)

    def get(self) -> _State | None:
        """Return the state of the call that runs in this context; None without one."""
        call = self._call.get()
        running = None if call is None else call()
        return None if running is None else running.state

    def running(self, state: _State) -> _Running[_State]:
        """Return a call that has yet to begin, for `enter` and `leave`: an interrupt may come between the two."""
        return _Running(state, self._call.get())

    def enter(self, running: _Running[_State]) -> None:
        """Begin the call."""
        self._call.set(weakref.ref(running))

    def leave(self, running: _Running[_State]) -> None:
        """Restore what ran before; a call may end in another context than it began in, where it does not run."""
        call = self._call.get()
        if call is not None and call() is running:
            self._call.set(running.before)


class Flag:
    """A variable of the core that is true while a hooked call runs."""

    def __init__(self, variable: ContextVar[bool]) -> None:
        self._variable = variable

    def running(self, _: Any) -> bool:
        """Return the value before the call, for `enter` and `leave`."""
        return self._variable.get()

    def enter(self, _: bool) -> None:  # noqa: FBT001 - what `running` returned
        """Set it."""
        self._variable.set(True)

    def leave(self, before: bool) -> None:  # noqa: FBT001 - as in `enter`
        """Restore the value."""
        self._variable.set(before)


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
    return _hooked(hook) if not is_async or (hook.after is None and hook.within is None) else _hooked_async(hook)


def _hooked(hook: Hook) -> Wrapper:
    before = hook.before

    def wrapper(wrapped: Callable[..., Any], *call: Any) -> Any:
        invocation = Invocation(*call)
        if before is not None and not _run_before(before, invocation):
            return wrapped(*invocation.args, **invocation.kwargs)
        visit = _Visit(hook, invocation)
        with errors.finishing(visit.close), visit:
            visit.value = wrapped(*invocation.args, **invocation.kwargs)
            return visit.value

    return wrapper


def _hooked_async(hook: Hook) -> Wrapper:
    async def wrapper(wrapped: Callable[..., Any], *call: Any) -> Any:
        invocation = Invocation(*call)
        if hook.before is not None and not _run_before(hook.before, invocation):
            return await wrapped(*invocation.args, **invocation.kwargs)
        visit = _Visit(hook, invocation)
        with errors.finishing(visit.close), visit:
            visit.value = await wrapped(*invocation.args, **invocation.kwargs)
            return visit.value

    return wrapper


class _Visit:
    """A hooked function while it runs, as a context manager around the user's call."""

    __slots__ = ("_hook", "_invocation", "_running", "value")

    def __init__(self, hook: Hook, invocation: Invocation) -> None:
        self._hook = hook
        self._invocation = invocation
        self._running: Any = None if hook.within is None else hook.within.running(invocation.state)
        self.value: Any = None

    def __enter__(self) -> None:
        if self._hook.within is not None:
            self._hook.within.enter(self._running)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            self.close()
            if self._hook.after is not None:
                self._hook.after(self._invocation, self.value, error)
        except errors.ours(Exception):
            errors.report_error("hook.after")

    def close(self) -> None:
        """Leave the context; safe to repeat."""
        if self._hook.within is not None:
            self._hook.within.leave(self._running)


def _run_before(before: Callable[[Invocation], Any], invocation: Invocation) -> bool:
    """Return true when the call has a state, for which ``after`` runs."""
    try:
        invocation.state = before(invocation)
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
        self._leave()
        self._visit.__exit__(*error)

    def close(self) -> None:
        """Complete an ``__exit__`` that an interrupt has ended."""
        self._leave()
        self._visit.close()

    def _leave(self) -> None:
        """Undo the changes of the visit, at its end."""
