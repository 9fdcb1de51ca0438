"""What an adapter says about its framework: how to read a call, a result, a request. The nouns of the boundaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The inner station: what the handler really returned.
PRODUCED: Final = "produced"
#: The outer station: what the framework kept of it, after its middleware and error conversion.
HANDED_BACK: Final = "handed_back"


class Call(NamedTuple):
    """One tool call as a framework is about to make it.

    ``execution`` is the framework's thread, session or run id; ``call_id`` the id the model gave the call.
    """

    name: str
    arguments: object = None
    call_id: str | None = None
    agent: str | None = None
    execution: str | None = None
    type: str = "function"


class Result(NamedTuple):
    """One result as a framework hands it on.

    ``value`` is what becomes the text the model reads; ``structured`` a second copy or artifact that travels beside
    it. ``error_type`` is set when the framework flags an error instead of raising; ``raised`` says that the handler
    raised, so that ``value`` is the framework's text about it and not a result.
    """

    value: object
    structured: object = None
    error_type: str | None = None
    raised: bool = False


@dataclass(frozen=True, slots=True)
class ToolReader:
    """How to read one wrapped function: its call (None when it is not a tool call) and its result.

    ``result`` says None where the framework has not asked the handler, or not had its answer, yet. ``awaits`` is the
    reader of the inner function that an outer one leads to. ``opened_by`` names the integration whose hooks, where they
    are applied, say more exactly when the handler starts and the span is to be opened. ``is_control_flow`` tells
    exceptions that are no errors. ``also_timed_by`` names instrumentors (``module:Class``) that emit the duration.
    """

    station: str
    call: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Call | None]
    result: Callable[[Any], Result | None]
    awaits: ToolReader | None = None
    opened_by: str | None = None
    is_control_flow: Callable[[BaseException], bool] | None = None
    also_timed_by: tuple[str, ...] = ()


class Part(NamedTuple):
    """One part of a model request: which of the catalogue's parts it belongs to and what carries its text."""

    part: str
    value: object


@dataclass(frozen=True, slots=True)
class Before:
    """A function of ours that runs before a wrapped one and sees its arguments."""

    run: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class After:
    """A function of ours that runs after a wrapped one, not a coroutine function, has returned."""

    run: Callable[[Any], None]
