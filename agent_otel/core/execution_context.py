"""The execution of a call, a request or a stored result: `resolve` is the only place that decides it."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel._internal.object_kinds import plain_text
from agent_otel.core import tool_names
from agent_otel.core.execution_state import Totals
from agent_otel.core.executions import executions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.trace import Span, SpanContext

    from agent_otel.core.types import McpCall, Step
    from agent_otel.telemetry.setup import Telemetry


#: A text as a plain ``str``; None for a value whose type is no text.
text_or_none = plain_text
#: Characters of a label's value; more are left out.
LONGEST_LABEL = 256
#: Characters; a longer id is replaced by its digest, because a client may choose an id of any length.
LONGEST_ID = 128


def short(text: str) -> str:
    """Return an id as it is stored and shown: above 128 characters, its SHA-256 digest."""
    if len(text) <= LONGEST_ID:
        return text
    import hashlib  # noqa: PLC0415 - nothing that starts up needs it

    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def id_or_none(value: object) -> str | None:
    """Return an id as `short` does; None for a value whose type is no text."""
    text = text_or_none(value)
    return text if text is None else short(text)


class Identity(NamedTuple):
    """An execution as the program named it."""

    id: str
    workflow: str | None = None
    agent: str | None = None
    #: Values of the labels that AGENT_OTEL_LABELS names.
    labels: dict[str, str] | None = None


def identity(
    execution: object, workflow: object = None, agent: object = None, given: Mapping[str, str] | None = None
) -> Identity:
    """Return an execution with what the program gave; what has no text is left out, and nothing is raised."""
    labels = None if given is None else _labels(given) or {}
    return Identity(short(_shown(execution) or ""), text_or_none(workflow), text_or_none(agent), labels)


@errors.guarded("execution.id")
def _shown(value: object) -> str:
    return str(value)


@errors.guarded("execution.labels")
def _labels(given: Mapping[str, object]) -> dict[str, str]:
    """Return labels as texts; one whose value is None is as if it were not given."""
    found = {_shown(name): _shown(value) for name, value in given.items() if value is not None}
    return {name: value[:LONGEST_LABEL] for name, value in found.items() if name and value is not None}


#: The execution of what has no other id: while the test kit records, that of the test; else None.
default: str | None = None

#: The execution named by ``agent_otel.execution``.
explicit: ContextVar[Identity | None] = ContextVar("agent_otel_execution", default=None)


class Carrier:
    """A running step of a durable runtime, with the execution id that the runtime gave it.

    An interrupt may end a step before it removes itself from the context. Its visit has then been deleted, and code
    that runs later in this context does not belong to the step.
    """

    def __init__(
        self, execution: str | None, visit: object = None, attempt: int = 1, workflow: str | None = None
    ) -> None:
        self.execution = execution
        self.workflow = workflow
        self.attempt = attempt
        #: Number of equal calls by their digest, where retried calls are answered from the store.
        self.calls: dict[str, int] | None = None
        self.is_over = visit is None
        #: True after the first model request of the step.
        self.has_requested = False
        self.let_go: Callable[[], None] | None = None
        #: Returns the visit of the step, or None when it has been deleted.
        self.visit: Callable[[], object] = (lambda: None) if visit is None else weakref.ref(visit)


#: The step of a durable runtime that runs in this context.
runtime: ContextVar[Carrier | None] = ContextVar("agent_otel_runtime_execution", default=None)


#: Functions of adapters that return the id of the durable workflow whose own code runs here, outside of its steps.
workflows: list[Callable[[], str | None]] = []


class Run:
    """An outermost run of an agent: one execution.

    ``conversation`` is the framework's thread or session, which has many runs. ``workflow`` is set where no agent runs,
    but a workflow of several. Code that outlives the run in a copy of its context, such as a background task, does not
    belong to it.
    """

    def __init__(
        self, run_id: str, agent: str | None, conversation: str | None, visit: object, workflow: str | None = None
    ) -> None:
        self.id = run_id
        self.workflow = workflow
        self.agent = agent
        self.conversation = conversation
        self.is_over = False
        self.let_go: Callable[[], None] | None = None
        self.totals = Totals()
        #: The parent of all spans, in a run without a span: its first span.
        self.root: SpanContext | None = None
        #: Returns the visit of the run, or None when it has been deleted.
        self.visit: Callable[[], object] = weakref.ref(visit)

    @property
    def key(self) -> str:
        """The id of what the requests and payloads of this run continue: the conversation, else the run itself."""
        return self.conversation or self.id


#: The outermost run of an agent in this context.
outermost: ContextVar[Run | None] = ContextVar("agent_otel_run", default=None)
#: The run of the hand-written loop that has sent the last request in this context.
loop: ContextVar[Run | None] = ContextVar("agent_otel_loop", default=None)


def open_run() -> Run | None:
    """Return the outermost run in this context; a run that an interrupt ended is detached and not returned."""
    run = outermost.get()
    if run is None or (not run.is_over and run.visit() is not None):
        return run
    outermost.set(None)
    if not run.is_over and run.let_go is not None:
        run.let_go()
    return None


def outside_of_runs(session: Any) -> Any:
    """Return a framework's session, None within a run: there the requests of a model continue the run's state."""
    return session if open_run() is None else None


def current_run() -> Run | None:
    """Return the run that is the execution of this context: the outermost run, else the loop's.

    Return None without one, and where the program named an execution or a durable runtime runs one.
    """
    if (outermost.get() is None and loop.get() is None) or named() is not None:
        return None
    return open_run() or loop_here()


def loop_here() -> Run | None:
    """Return the run of the loop in this context; None for one that was forgotten."""
    run = loop.get()
    return None if run is None or run.visit() is None else run


def running_step() -> Carrier | None:
    """Return the step that runs in this context; a step that an interrupt ended is detached and not returned."""
    running = runtime.get()
    if running is None or running.is_over or running.visit() is not None:
        return running
    runtime.set(None)
    if running.let_go is not None:
        running.let_go()
    return None


def current_step() -> Step | None:
    """Return the step of a durable runtime that runs in this context, as its visit has it."""
    running = running_step()
    return None if running is None else getattr(running.visit(), "step", None)


def carrier() -> str | None:
    """Return the execution id that the durable runtime gave the running step, or the workflow whose own code runs."""
    running = running_step()
    if running is not None and running.execution is not None:
        return running.execution
    return next(filter(None, (workflow() for workflow in workflows)), None)


def agent_of(framework: str | None) -> str | None:
    """Return the agent of a call or a request: the framework's own, else the one that the program named."""
    if framework:
        return framework
    identity = explicit.get()
    return identity.agent if identity is not None else None


def names(agent: str | None = None, workflow: str | None = None, own: Run | None = None) -> tuple[str, str]:
    """Return the agent and the workflow of the run in this context: all of its series and spans have these two.

    The names that the program gave come first, then those of the durable runtime and of the outermost run, then the
    given ones, of a call, a request or a payload. If only one of the two has a name, both have it, as in the run of a
    durable workflow. ``own`` is the run of a call that is made elsewhere than its request was.
    """
    identity, step, run = explicit.get(), runtime.get(), outermost.get()
    run = loop.get() if run is None else open_run() or loop.get()
    run = run or own
    if run is not None:
        run.agent = agent = run.agent or agent
        workflow = run.workflow or workflow
    if step is not None or workflows:
        state = executions.known(carrier() or "")
        durable = (None if step is None else step.workflow) or (None if state is None else state.workflow)
        if durable:  # its payloads know no other name
            agent = workflow = durable
    if identity is not None:
        agent, workflow = identity.agent or agent, identity.workflow or workflow
    return agent or workflow or "", workflow or agent or ""


def sub_agent(acting: str | None, out: Telemetry) -> str | None:
    """Return the agent that acts if it is another one than the run's, whose name all spans have."""
    return acting if acting and acting != out.agent else None


def named() -> str | None:
    """Return the id of the execution that the program named, else the durable runtime's."""
    identity = explicit.get()
    return carrier() if identity is None else identity.id


def owner_here() -> str | None:
    """Return the owner of results that are stored in this context: the execution, or the run's conversation."""
    run = None if named() is not None else open_run() or loop_here()
    return named() if run is None else run.key


def conversation(own: Run | None = None) -> str | None:
    """Return the conversation where the framework names none: the execution that the program named, else the run's."""
    identity = explicit.get()
    if identity is not None:
        return identity.id
    run = own or current_run()
    return None if run is None else run.conversation


def describe(  # noqa: PLR0913, PLR0917 - what is known of a call
    attributes: dict[str, Any],
    tool: str,
    framework: str | None,
    turn: int,
    over_mcp: McpCall | None = None,
    own: Run | None = None,
) -> None:
    """Add the tool's description, the conversation with its turn, and the step of a durable runtime.

    ``framework`` is the framework's thread or session, ``own`` the call's run.
    """
    description = tool_names.descriptions.get(tool)
    if description is not None:
        attributes[semconv.TOOL_DESCRIPTION] = description
    if over_mcp is not None:
        attributes.update(mcp_attributes(over_mcp))
    thread = framework or (conversation(own) if explicit.get() or own or outermost.get() or loop.get() else None)
    if thread:
        attributes[semconv.CONVERSATION_ID] = thread
    if turn:
        attributes[semconv.TURN] = turn
    step = None if runtime.get() is None else running_step()
    if step is not None and step.execution:
        attributes[semconv.EXECUTION_ID] = step.execution
    if step is not None and step.attempt > 1:
        attributes[semconv.ACTIVITY_ATTEMPT] = step.attempt


def run_attributes(
    operation: str, execution_id: str, labels: Mapping[str, str], conversation: str | None = None
) -> dict[str, Any]:
    """Return the attributes of the span around a run."""
    found = {semconv.OPERATION_NAME: operation, semconv.EXECUTION_ID: execution_id, **labels}
    if conversation is not None:
        found[semconv.CONVERSATION_ID] = conversation
    return found


def mcp_attributes(call: McpCall) -> dict[str, Any]:
    """Return the attributes of a call over the Model Context Protocol."""
    attributes = {semconv.MCP_METHOD_NAME: semconv.MCP_METHOD}
    if call.session:
        attributes[semconv.MCP_SESSION_ID] = short(call.session)
    if call.transport is not None:
        attributes[semconv.NETWORK_TRANSPORT] = call.transport
    if call.server is not None:
        attributes[semconv.MCP_SERVER_NAME] = short(call.server)
    return attributes


def resolve(
    framework: str | None,
    span: Span | None,
    owner: Callable[[], str | None] | None = None,
    earlier: Callable[[], str | None] | None = None,
) -> str | None:
    """Return the key of the state that a call or a request continues; None where there is no id.

    The order is: the execution that the program named, the durable runtime's, the one that made the newest results of a
    model request (``owner``), the framework's thread or session, the outermost run's, the run itself, the one that made
    ``earlier`` results, the loop of a call, the trace of the current ``span``, and the ``default``. A state outlives a
    run in a thread: the next run continues it.
    """
    identity = explicit.get()
    if identity is not None:
        return identity.id
    found = carrier() if workflows or runtime.get() is not None else None
    if found is None and owner is not None:
        found = owner()
    if found is None:
        found = framework
    if found is None and outermost.get() is not None:
        run = open_run()
        found = None if run is None else run.key
    if found is None and earlier is not None:
        found = earlier()
    if found is None and owner is None and loop.get() is not None:
        run = loop_here()
        found = None if run is None else run.key
    if found is None and span is not None:
        context = span.get_span_context()
        found = format(context.trace_id, "032x") if context.is_valid else None
    return default if found is None else found
