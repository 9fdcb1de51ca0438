"""Functions that readers of several adapters share: on exceptions, injected arguments, runs and remembered values."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agent_otel._internal.errors import suppressed
from agent_otel._internal.failures import cause_of, is_raised_within
from agent_otel._internal.object_kinds import fields, is_named, text
from agent_otel.core import handler
from agent_otel.core.types import NOT_HERE, AgentRun, Invocation, Replacement, RequestPart, ToolCall
from agent_otel.integrations.hooks import Hook

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable, Iterable, Iterator
    from contextvars import ContextVar


def raises(*classes: str) -> Callable[[BaseException], bool]:
    """Return a function that returns true for an exception of a class with one of these names."""
    return lambda error: is_named(error, *classes)


def raises_within(
    packages: str | tuple[str, ...],
    *classes: str,
    cause: Callable[[BaseException], BaseException | None] = lambda error: error,
) -> Callable[[BaseException], bool]:
    """Return a function that returns true for an exception of such a class that these packages raise, and no handler.

    With ``cause``, the exception that this function returns for another one is of the class.
    """
    names = (packages,) if isinstance(packages, str) else packages

    def is_theirs(error: BaseException) -> bool:
        own = cause(error)
        return own is not None and is_named(own, *classes) and is_raised_within(own, *names)

    return is_theirs


def cause_behind(
    *classes: str, of: Callable[[BaseException], BaseException | None] = cause_of
) -> Callable[[BaseException], BaseException]:
    """Return a function that returns the cause of an exception of such a class, and any other exception itself."""

    def cause(error: BaseException) -> BaseException:
        own = of(error) if is_named(error, *classes) else None
        return error if own is None else own  # whose truth may be code of its own

    return cause


def message_of(*classes: str) -> Callable[[BaseException], object]:
    """Return a function that returns the message for the model in an exception of such a class; None for others."""
    return lambda error: getattr(error, "message", None) if is_named(error, *classes) else None


def call_at(position: int, name: str, *attributes: str) -> Callable[[Invocation], ToolCall]:
    """Return a function that reads a call from these attributes of an argument: name, arguments, and id if any."""
    values = attrgetter(*attributes)
    return lambda invocation: ToolCall(*values(invocation.arg(position, name)))


def inject_by_name(invocation: Invocation, values: dict[str, Any]) -> None:
    """Add injected arguments to a call whose function takes them by name."""
    invocation.kwargs = {**invocation.kwargs, **values}


def inject_into(position: int, name: str) -> Callable[[Invocation, dict[str, Any]], None]:
    """Return a function that adds injected arguments to a copy of the dictionary that a function takes them in."""

    def inject(invocation: Invocation, values: dict[str, Any]) -> None:
        invocation.put(position, name, {**fields(invocation.arg(position, name)), **values})

    return inject


def replace_by_text(_: Any, replacement: Replacement, __: Invocation) -> str:
    """Return the text of a replacement, for a function that returns a text, or a value of which one is made."""
    return replacement.text


def run_named(
    name: str = "name", conversation: str | None = None, *, traces: bool = False
) -> Callable[[Invocation], AgentRun]:
    """Return a function that reads the run of an agent from its attributes; ``traces``: the framework opens a span."""

    def run(invocation: Invocation) -> AgentRun:
        agent = invocation.instance
        session = None if conversation is None else text(getattr(agent, conversation, None))
        return AgentRun(text(getattr(agent, name, None)), session, traces)

    return run


@contextmanager
def held(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Hold a value in a variable of the context; the block may end in another context than it began in."""
    token = variable.set(value)
    try:
        yield
    finally:
        with suppressed(ValueError):
            variable.reset(token)


def refused_within(package: str, *classes: str) -> Callable[[BaseException], bool]:
    """Return a function that returns true for an exception of this package with a cause of such a class."""
    return lambda error: is_named(cause_of(error), *classes) and is_raised_within(error, package)


def for_agents(replace: Callable[[Any, Replacement, Invocation], Any]) -> Callable[[Any, Replacement, Invocation], Any]:
    """Let a function replace results for agents alone: a program that calls a tool computes with the result."""

    @functools.wraps(replace)
    def replace_for_agents(value: Any, replacement: Replacement, invocation: Invocation) -> Any:
        return replace(value, replacement, invocation) if handler.is_made_by_an_agent() else NOT_HERE

    return replace_for_agents


def delivering(read: Callable[[Invocation], Iterable[RequestPart]]) -> Hook:
    """Return the hook of a function that sends results, which no request repeats; ``read`` returns them."""

    def report(invocation: Invocation, _: Any, error: BaseException | None) -> None:
        for part in read(invocation) if error is None else ():
            handler.result_delivered(part, read.__module__)

    return Hook(after=report)


def nothing(*_: Any) -> None:
    """Read no result, or no input."""


def remember(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Keep a value; above so many the oldest is dropped."""
    kept[key] = value
    if len(kept) > most:
        kept.popitem(last=False)
