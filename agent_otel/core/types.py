"""What an adapter says about its framework: how to read a call, a result, a request. The nouns of the boundaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    #: What a runtime's serializer returned.
    Serialised: TypeAlias = str | bytes | bytearray | memoryview
    #: A call of a wrapped function: instance, arguments, keyword arguments.
    Asked: TypeAlias = tuple[Any, tuple[Any, ...], Mapping[str, Any]]

#: The inner station: what the handler really returned.
PRODUCED: Final = "produced"
#: The outer station: what the framework kept of it, after its middleware and error conversion.
HANDED_BACK: Final = "handed_back"


class Call(NamedTuple):
    """One tool call as a framework is about to make it.

    ``execution`` is the framework's thread, session or run id; ``call_id`` the id the model gave the call. ``is_agent``
    says that another agent answers it, so that what is called meanwhile are calls of that agent's.
    """

    name: str
    arguments: object = None
    call_id: str | None = None
    agent: str | None = None
    execution: str | None = None
    type: str = "function"
    is_agent: bool = False


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


class Replacement(NamedTuple):
    """What a remedy puts in place of a result: the text that the model reads, and the same as a JSON object.

    ``is_error`` says that it is to be marked as an error, in the way that the framework has.
    """

    text: str
    data: dict[str, Any]
    is_error: bool = False


class Remedied(NamedTuple):
    """What goes on in place of a result and its UTF-8 bytes, why, and the reference where the result was stored."""

    replacement: Replacement
    reason: str
    bytes: int
    ref: str | None = None
    error_type: str | None = None


class LimitReached(NamedTuple):
    """A limit that leaves no room for a call: its name, as in ``semconv``, and its maximum."""

    limit: str
    maximum: int


class LimitsInUse(Protocol):
    """The limits that a call counts towards."""

    def leave(self, execution: str, visit: Callable[[], object]) -> None:
        """End the call of this visit."""


#: What ``ToolReader.replace`` says where nothing else can be put back, such as under a declared output schema.
LEFT_ALONE: Final = object()


@dataclass(frozen=True, slots=True)
class ToolReader:
    """How to read one wrapped function: its call (None when it is not a tool call) and its result.

    ``result`` says None where the framework has not asked the handler, or not had its answer, yet. ``awaits`` is the
    reader of the inner function that an outer one leads to. ``opened_by`` names the integration whose hooks, where they
    are applied, say more exactly when the handler starts and the span is to be opened. ``is_control_flow`` tells
    exceptions that are no errors. ``also_timed_by`` names instrumentors and histograms (``module:name``) that emit the
    duration. ``events`` says that the function is a generator of events, of which the last result is the result; the
    items of any other generator make up the result together.

    Where a remedy may act, ``replace`` puts its replacement back: it gets the value returned (None when the handler is
    not to be asked at all), the replacement, and the call (instance, arguments, keyword arguments). ``parameters`` says
    for a call which parameters the tool has, for a hint; ``offloads_above`` from how many bytes up the framework stores
    results itself.
    """

    station: str
    call: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Call | None]
    result: Callable[[Any], Result | None]
    awaits: ToolReader | None = None
    opened_by: str | None = None
    is_control_flow: Callable[[BaseException], bool] | None = None
    also_timed_by: tuple[str, ...] = ()
    events: bool = False
    replace: Callable[[Any, Replacement, Asked], Any] | None = None
    parameters: Callable[[Asked], Iterable[str]] | None = None
    offloads_above: Callable[[], int] | None = None


class Part(NamedTuple):
    """One part of a model request, in the order in which the request has them.

    ``part`` is one of the catalogue's, ``value`` carries its text: a ``str``, or blocks as the provider has them.
    A tool result has the ``call_id`` it answers, or where the provider has no ids, the tool's ``name``.
    ``wrapped`` is the value in the object that the provider wants around it, which may have been the tool's own.
    ``message_id`` is the id that a framework gives a message.
    """

    part: str
    value: object
    call_id: str | None = None
    name: str | None = None
    message_id: str | None = None
    wrapped: object = None


class Request(NamedTuple):
    """One request as it leaves for a model.

    ``continued`` says that the provider keeps the earlier turns, so that they are not sent again. ``agent`` is the
    agent's name and ``execution`` the framework's thread, session or run id, where the place that is wrapped knows.
    ``doubled`` says that the same message stands in it twice, where the parts do not show it.
    """

    parts: Iterable[Part]
    continued: bool = False
    agent: str | None = None
    execution: str | None = None
    doubled: bool = False


@dataclass(frozen=True, slots=True)
class ModelReader:
    """How to read one wrapped function that sends a request to a model.

    ``request`` says None when it is not a request for a model. ``cached_tokens`` reads the response: how many tokens of
    the prompt the provider says it had cached. ``outermost`` marks a layer above the provider's SDK: it counts only
    when no SDK's request has been seen inside of it. Where the layer makes its request somewhere inside, ``request``
    says one without parts, and `observer.model_announced` is told of the parts when they are there. ``rewrite`` puts
    what a function makes of the list of messages in the place of that list, in objects of the SDK's own.
    """

    request: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Request | None]
    cached_tokens: Callable[[Any], int | None] | None = None
    outermost: bool = False
    rewrite: Callable[[Any, tuple[Any, ...], Mapping[str, Any], Callable[[Any], Any]], None] | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """A function of ours that runs before a wrapped one and sees its arguments."""

    run: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], None]


class Step(NamedTuple):
    """One activity, step, task or node of a durable runtime, as the runtime names it.

    ``runtime`` as in ``caps.toml``; ``workflow`` the workflow's type or name; ``execution`` the id of its run;
    ``version`` and ``variant`` pick the cap where a runtime has several.
    """

    runtime: str
    activity: str | None = None
    workflow: str | None = None
    execution: str | None = None
    attempt: int = 1
    version: str | None = None
    variant: str | None = None


class Carried(NamedTuple):
    """One payload as the runtime made it.

    ``direction`` is one of the catalogue's; ``bytes`` what the runtime's own limit counts. ``data`` is the serialised
    text (str or bytes), or the live ``value`` where the bytes cannot be read; they are looked into only above the
    warn ratio and never kept. ``kind`` tells payloads apart that are not turns of the same, where direction and
    activity do not. ``again`` says that this payload has been seen before (a retry), so that it is no further turn.
    """

    direction: str
    bytes: int
    data: Serialised | None = None
    value: object = None
    kind: str = ""
    again: bool = False


class Outcome(NamedTuple):
    """How a step ended: the payload that comes out of it, or the error.

    ``refused`` is the runtime's message when it would not take the payload ``refused_direction``.
    """

    carried: Carried | None = None
    error_type: str | None = None
    refused: str | None = None
    refused_direction: str = "output"


@dataclass(frozen=True, slots=True)
class StepReader:
    """How to read one wrapped function that runs a step.

    ``step`` says None when there is nothing to record: a replay, or not a step. ``carried`` reads the payload that goes
    in, ``outcome`` what has come out: it gets the instance, the arguments and the value returned. ``failed`` reads an
    exception that leaves the function. ``opened_by_handler`` leaves the opening of the span to ``step_started``.
    """

    step: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Step | None]
    carried: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Carried | None]
    outcome: Callable[[Any, tuple[Any, ...], Mapping[str, Any], Any], Outcome | None]
    failed: Callable[[BaseException], Outcome | None] | None = None
    opened_by_handler: bool = False


@dataclass(frozen=True, slots=True)
class Watch:
    """A function of ours that runs when a wrapped one (a coroutine function or not) has returned or raised.

    It gets the instance, the arguments, the keyword arguments, the value and the exception; one of the two is None.
    """

    run: Callable[[Any, tuple[Any, ...], Mapping[str, Any], Any, BaseException | None], None]


@dataclass(frozen=True, slots=True)
class Around:
    """Functions of ours on both sides of a wrapped one (a coroutine function or not).

    ``before`` returns what ``after`` gets first, or None when there is nothing to watch; ``after`` gets then what a
    Watch gets, and runs when the call is cancelled, too.
    """

    before: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Any]
    after: Callable[[Any, Any, tuple[Any, ...], Mapping[str, Any], Any, BaseException | None], None]


@dataclass(frozen=True, slots=True)
class InThread:
    """The wrapped function returns a decorator, and what that decorates is run in a thread of its own.

    It is given the context of where it was decorated, so that a tool that is called there belongs to its agent's run.
    """


@dataclass(frozen=True, slots=True)
class Family:
    """Methods that subclasses override, the program's own as well: they are wrapped once there is an instance.

    The wrapped function is the base class's ``__init__``; ``methods`` says, for an instance that it has made, which
    methods of which classes are to be wrapped, and their readers.
    """

    methods: Callable[[Any], Iterable[tuple[type, str, Around | Watch | ToolReader]]]
