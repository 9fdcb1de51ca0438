"""Types that adapters exchange with the core: tool calls, results, model requests, steps, payloads and readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from agent_otel.core.cost.usage import Usage

    #: A payload as a runtime's serializer returned it.
    Serialised: TypeAlias = str | bytes | bytearray | memoryview

#: The stages of a result: as the handler returned it, and as the framework keeps it after middleware and conversion.
PRODUCED: Final = "produced"
HANDED_BACK: Final = "handed_back"


class Invocation:
    """A call of a wrapped function: its instance, its positional and its keyword arguments.

    ``state`` is the value that the ``before`` of a hook has returned for its ``after``, or a value that a reader keeps.
    """

    def __init__(self, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], state: Any = None) -> None:
        self.instance = instance
        self.args = args
        self.kwargs = kwargs
        self.state = state

    def arg(self, position: int, name: str, default: Any = None) -> Any:
        """Return the argument of a parameter: the one given by this name or at this position, else the default."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if position < len(self.args) else default

    def put(self, position: int, name: str, value: Any) -> None:
        """Replace the argument of a parameter, for the function that is about to be called."""
        if position < len(self.args):
            self.args = (*self.args[:position], value, *self.args[position + 1 :])
        else:
            self.kwargs = {**self.kwargs, name: value}


class McpCall(NamedTuple):
    """A call over the Model Context Protocol: the session's id, the transport, and the server's own name."""

    session: str | None = None
    transport: str | None = None
    server: str | None = None


class ToolCall(NamedTuple):
    """A tool call that a framework is about to make.

    ``execution`` is the framework's thread or session. ``call_id`` is the id that the model gave the call.
    ``is_agent`` is true when another agent answers the call; tool calls inside it then belong to that agent. ``host``
    is the name of the MCP client that a server of the program answers, ``announced`` the number of characters up to
    which the tool's definition asks that client to pass a result on. ``mcp`` is set for a call over that protocol.
    ``offloads_above`` are the bytes above which the framework stores a result itself, 0 where it does not.
    ``is_quoted`` is true where the result is in another message than the one with the id that the model gave the call.
    """

    name: str
    arguments: object = None
    call_id: str | None = None
    agent: str | None = None
    execution: str | None = None
    type: str = "function"
    is_agent: bool = False
    host: str | None = None
    announced: int | None = None
    mcp: McpCall | None = None
    offloads_above: int = 0
    is_quoted: bool = False


class AskedCall(NamedTuple):
    """A call that a response asks for, or a piece of one; pieces of one ``place`` are one call.

    ``arguments`` are an object or its JSON; those of pieces are joined. ``id`` is None where the provider gives none.
    """

    name: str
    arguments: object = None
    id: str | None = None
    place: object = None


#: A response after which the program sends the request again, with no call to run.
PAUSED: Final = (AskedCall(""),)


class ToolResult(NamedTuple):
    """A result as a framework hands it on.

    ``value`` becomes the text that the model reads. ``structured`` is a second copy or artifact that travels beside
    it. ``error_type`` is set when the framework flags an error instead of raising. ``raised`` is true when the handler
    raised; ``value`` is then the framework's text about the exception and not a result. ``is_refused`` is true when the
    framework has not called the handler because the arguments are invalid.
    """

    value: object
    structured: object = None
    error_type: str | None = None
    raised: bool = False
    is_refused: bool = False


class Claim(NamedTuple):
    """A stored result: its reference, its size, the bytes of it that the model got, and a preview of at most 4 KiB."""

    reference: str
    size_bytes: int
    shown_bytes: int
    preview: str


class Replacement(NamedTuple):
    """The value that a remedy puts in place of a result: the text for the model, and the same as a JSON object.

    When ``is_error`` is true, the adapter marks the replacement as an error in the framework's own way. ``is_data`` is
    true when the tool itself returned the object. ``claim`` is set for a stored result, and no model reads it.
    """

    text: str
    data: dict[str, Any]
    is_error: bool = False
    is_data: bool = False
    claim: Claim | None = None


class Remedied(NamedTuple):
    """A replaced result: the replacement, the truncation reason, UTF-8 bytes, and the reference of a stored result."""

    replacement: Replacement
    reason: str
    bytes: int
    ref: str | None = None
    error_type: str | None = None


class LimitReached(NamedTuple):
    """A limit that the execution has reached: its name, as in ``semconv``, and its maximum."""

    limit: str
    maximum: int


class Denial(NamedTuple):
    """A denied call: the kind of rule that denies it, the policy's mode, and the argument that the rule is about.

    In the mode ``monitor`` the call runs, and this reports what ``enforce`` would deny.
    """

    rule: str
    mode: str
    argument: str | None = None


class ToolDeniedError(Exception):
    """Raised in place of the handler of a denied call, where no answer can take the place of its result."""


class Slot(Protocol):
    """A slot among parallel calls."""

    def release(self) -> None:
        """Give the slot to the next call; do nothing the second time."""


#: Returned by ``ToolReader.replace`` where a replacement cannot be put back, such as under a declared output schema.
LEFT_ALONE: Final = object()
#: Returned by ``ToolReader.replace`` where the program's own code gets the result, and not a model.
NOT_HERE: Final = object()


class ToolReader(NamedTuple):
    """Functions that read one wrapped function of a tool call.

    ``call`` returns None when the function call is not a tool call. ``result`` returns None while the handler has not
    returned. ``awaits`` is the reader of the inner function that an outer function calls. ``opened_by`` names an
    integration with hooks that mark the start of the handler more exactly. If applied, they open the span.
    ``is_control_flow`` is true for exceptions that are not errors, ``is_refusal`` for one that refuses the arguments.
    ``also_timed_by`` (the inner reader's) names instrumentors or histograms, ``module:name``, that emit the duration.
    ``events`` is true for a generator of events; the last readable one is the result. ``failure_text`` returns an
    exception's text for the model or None, ``cause`` the tool's own exception.

    ``replace`` is set where a remedy may act. It puts the replacement back and gets the returned value (None for a
    skipped handler, the exception that ``failure_text`` reads), the replacement and the call. ``is_alone`` is true
    where only an outer function is wrapped. ``is_awaited``: the function is a sync one that returns a coroutine.
    ``is_relayed``: in the code of a durable workflow it has an activity, which is read, call the handler.
    ``validated`` returns the model's arguments as the framework converts them for the handler, and may raise.
    ``parameters`` returns the names of a tool's parameters. ``inject`` puts arguments into the ``args`` and ``kwargs``
    of the invocation, changes no object of the framework, and returns False where it cannot. ``answer`` returns a
    denied call's answer, or an awaitable of it, where ``replace`` has none.
    """

    call: Callable[[Invocation], ToolCall | None]
    result: Callable[[Any], ToolResult | None]
    awaits: ToolReader | None = None
    station: str = PRODUCED
    opened_by: str | None = None
    is_control_flow: Callable[[BaseException], bool] | None = None
    is_refusal: Callable[[BaseException], bool] | None = None
    also_timed_by: tuple[str, ...] = ()
    events: bool = False
    failure_text: Callable[[BaseException], object] | None = None
    cause: Callable[[BaseException], BaseException] | None = None
    replace: Callable[[Any, Replacement, Invocation], Any] | None = None
    parameters: Callable[[Invocation], Iterable[str]] | None = None
    inject: Callable[[Invocation, dict[str, Any]], bool | None] | None = None
    answer: Callable[[Replacement, Invocation], Any] | None = None
    is_alone: bool = False
    is_awaited: bool = False
    is_relayed: bool = False
    validated: Callable[[Invocation], object] | None = None


class RequestPart(NamedTuple):
    """A part of a model request; readers yield the parts in the order of the request.

    ``part`` is one of ``semconv.REQUEST_PARTS``. ``value`` holds the text: a ``str``, or the provider's content blocks.
    A call's arguments and its result have the ``call_id``, or the tool's ``name`` where the provider has no call ids.
    ``failed``: the provider's format flags a result as an error. ``wrapped`` is the value inside an object that the
    provider requires, which the tool may have returned. ``message_id`` is the id that a framework gives a message.
    """

    part: str
    value: object
    call_id: str | None = None
    name: str | None = None
    message_id: str | None = None
    wrapped: object = None
    failed: bool = False


class ModelRequest(NamedTuple):
    """A model request as it is sent.

    ``agent`` is the agent's name, ``execution`` the framework's thread, session or run id. True are ``continued`` when
    the provider keeps the earlier turns, ``must_call`` when the model may only call tools, ``doubled`` when a message
    is in it twice and the parts do not show it, ``ends_at_limit`` when the adapter ends the run at a limit itself.
    """

    parts: Iterable[RequestPart]
    continued: bool = False
    agent: str | None = None
    execution: str | None = None
    doubled: bool = False
    model: str | None = None
    must_call: bool = False
    ends_at_limit: bool = False
    answers: int = 1  # of one response


class AgentRun(NamedTuple):
    """A run of an agent, or of a ``workflow`` of several; ``traces`` is true when another span for it is opened.

    ``resumes`` is the id of the paused run, or of its conversation, that this one carries on.
    """

    agent: str | None = None
    conversation: str | None = None
    traces: bool = False
    workflow: str | None = None
    resumes: str | None = None


class RunReader(NamedTuple):
    """Functions that read one wrapped function that runs an agent, to its end or step by step.

    ``run`` returns None when the call runs no agent. ``goes_on`` returns the task that continues the run when the
    function has returned, or None; ``watch`` puts the visit around the steps of a returned stream, or returns false.
    ``pauses`` returns a true value for a result or item after which the run waits to be resumed; a text is the id that
    the `AgentRun` which resumes it has. ``also_traced_by`` names
    instrumentors (``module:name``) that open a span for it. ``is_cancelled_at_end``: the framework cancels it there.
    """

    run: Callable[[Invocation], AgentRun | None]
    goes_on: Callable[[Any], Any] | None = None
    pauses: Callable[[Any], object] | None = None
    also_traced_by: tuple[str, ...] = ()
    is_cancelled_at_end: bool = False
    watch: Callable[[Any, ResponseVisit], bool] | None = None


class ResponseVisit(Protocol):
    """The visit of a model request, around each step of the stream that answers it, or a body that is read later."""

    def step(self) -> AbstractContextManager[object]:
        """Return the context manager around the stream's next step."""

    def item(self, value: Any) -> None:
        """Read an item of the stream."""

    def returned(self, value: Any) -> None:
        """Read a whole response."""

    def abandon(self) -> None:
        """End the visit when the consumer abandons the stream."""


class Exchange(NamedTuple):
    """Functions that send a request again, with the answer to a call in its response.

    ``body`` returns the name of a format in `agent_otel.messages` and the body, as a dictionary; None for a
    request that cannot be sent again. ``put`` replaces the body. ``plain`` returns a response, or an item of a stream,
    as JSON has it. ``stream`` returns the object that holds the generator of a streamed response, or an awaitable of
    it, and None for a whole response; ``generator`` is the attribute that has it, empty where it is the object itself.
    ``replaced`` returns a stream with other items, where it has no such attribute. ``changed`` returns an item of a
    stream with other values, after the ``earlier`` items. ``reword`` applies a function to the results' texts in a
    request that cannot get another tool. ``apart`` returns a call of the same function that sends another body, to
    another model where that is given; the program's own stays as it is.
    """

    body: Callable[[Invocation], tuple[str, dict[str, Any]] | None]
    put: Callable[[Invocation, dict[str, Any]], None]
    plain: Callable[[Any], Any] = lambda value: value
    stream: Callable[[Any], Any] | None = None
    generator: str = ""
    changed: Callable[[Any, Mapping[str, Any], Sequence[Any]], Any] = lambda item, *_: item
    replaced: Callable[[Any, Any], Any] | None = None
    reword: Callable[[Invocation, Callable[[str], str]], None] | None = None
    apart: Callable[[Invocation, dict[str, Any], str], Invocation] | None = None


class ModelReader(NamedTuple):
    """Functions that read one wrapped function that sends a model request.

    ``request`` returns None when the call sends no model request. ``usage`` reads the tokens that the provider reports
    in a response, or in an item of a stream; ``adds_usage`` is true when each item has its own share. ``asks`` returns
    the calls that a response, or an item of a stream, asks for: none for an answer, None where it shows neither.
    ``ends`` returns true for an answer's last item, where a consumer may leave. ``watch`` puts a visit around the
    stream of a response, if it is one, and returns the response. ``outermost`` marks a layer above the provider's SDK;
    its request counts only when no SDK reported a request inside it. Where such a layer builds its request later,
    ``request`` returns a request without parts, and the adapter reports the parts through `handler.model_announced`.
    ``rewrite`` applies a function to the list of messages and puts the returned list in its place, as objects of the
    SDK. The function takes ``cached=False`` where the provider keeps no cache of these messages. ``answer_only``
    changes the request so that the model calls no tool and reads a text in its system message. ``hosted`` reads from a
    response, or an item of a stream, the calls of tools that the provider has run, with their results. ``passes`` is
    true for an item with neither tokens nor calls, and not for the last one where a stream ``opens_with_usage``.
    """

    request: Callable[[Invocation], ModelRequest | None]
    usage: Callable[[Any], Usage | None] | None = None
    asks: Callable[[Any], Sequence[AskedCall] | None] | None = None
    watch: Callable[[Any, ResponseVisit], Any] | None = None
    ends: Callable[[Any], bool] | None = None
    outermost: bool = False
    rewrite: Callable[[Invocation, Callable[..., Any]], None] | None = None
    answer_only: Callable[[Invocation, str], None] | None = None
    exchange: Exchange | None = None
    adds_usage: bool = False
    hosted: Callable[[Any], Iterable[tuple[RequestPart, RequestPart]]] | None = None
    passes: Callable[[Any], bool] | None = None
    opens_with_usage: bool = False


class Step(NamedTuple):
    """An activity, step, task or node of a durable runtime, with the runtime's names for it.

    ``runtime`` is a name of ``caps.toml``. ``workflow`` is the workflow's type or name, ``execution`` the id of its
    run. ``variant`` selects the cap where a runtime has several.
    """

    runtime: str
    activity: str | None = None
    workflow: str | None = None
    execution: str | None = None
    attempt: int = 1
    variant: str | None = None


class Payload(NamedTuple):
    """A payload as the runtime serialised it.

    ``direction`` is one of ``semconv``, ``bytes`` the size that the runtime's limit counts. ``data`` is the serialised
    text (str or bytes), ``value`` the live object where that cannot be parsed; both are read only above the warn ratio.
    ``kind`` separates payloads of one direction and activity that are not compared as turns. ``again`` is true for a
    payload measured before (a retry), ``is_appended`` for one added to a stored payload: neither is a new turn.
    """

    direction: str
    bytes: int
    data: Serialised | None = None
    value: object = None
    kind: str = ""
    again: bool = False
    is_appended: bool = False


class StepOutcome(NamedTuple):
    """The end of a step: its output payload, the error, or the runtime's message when it rejected the payload."""

    carried: Payload | None = None
    error_type: str | None = None
    refused: str | None = None


class StepReader(NamedTuple):
    """Functions that read one wrapped function that runs a step.

    ``step`` returns None when there is nothing to record: a replay, or no step. ``carried`` reads the input payload.
    ``outcome`` reads the output from the call and the returned value. ``failed`` reads an exception that leaves the
    function. When ``opened_by_handler`` is true, ``step_started`` opens the span.
    """

    step: Callable[[Invocation], Step | None]
    carried: Callable[[Invocation], Payload | None]
    outcome: Callable[[Invocation, Any], StepOutcome | None]
    failed: Callable[[BaseException], StepOutcome | None] | None = None
    opened_by_handler: bool = False
