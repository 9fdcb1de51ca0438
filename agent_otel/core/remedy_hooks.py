"""Registration of remedies, by which the core calls them without importing them.

`agent_otel.integrations.preload` registers the factories. Without these, or with all settings off, no remedy acts.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from agent_otel import semconv, settings
from agent_otel._internal import errors
from agent_otel.core.execution_context import outermost
from agent_otel.core.types import LEFT_ALONE, ToolDeniedError
from agent_otel.settings import checks as setting_checks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.types import Invocation, ModelReader, RequestPart, Slot, ToolReader
    from agent_otel.settings import Settings
    from agent_otel.telemetry.setup import Telemetry


class ResultRemedies(Protocol):
    """Remedies that act on tool calls and their results."""

    def finished(self, execution: str) -> None:
        """Forget an execution that has ended."""

    def skipped(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Any:
        """Return the replacement result when a limit or the policy skips the handler, else LEFT_ALONE.

        Raises:
            ToolDeniedError: the policy denies a call whose result cannot be replaced.
        """

    async def askipped(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Any:
        """Do the same as `skipped` without blocking the event loop."""

    def take_turn(self, record: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
        """Wait for a slot where calls queue; ``enclosing`` is the running call whose handler makes this one."""

    async def atake_turn(self, record: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
        """Do the same as `take_turn` without blocking the event loop."""

    def applied(
        self, record: ToolInvocation, reader: ToolReader, read: object, value: Any, invocation: Invocation
    ) -> Any:
        """Return the value to hand on: the handler's own, or a replacement."""

    async def aapplied(
        self, record: ToolInvocation, reader: ToolReader, read: object, value: Any, invocation: Invocation
    ) -> Any:
        """Do the same as `applied` without blocking the event loop."""


class RequestRemedies(Protocol):
    """Remedies that rewrite requests to models."""

    def completed(self, arguments: object) -> None:
        """Take note of the arguments of a tool call that has ended."""

    def rewrite(self, out: Telemetry, reader: ModelReader, invocation: Invocation) -> None:
        """Rewrite a request in place."""

    def last_note(self, results: Sequence[object]) -> str | None:
        """Return the note in the last request of a run, when one of these results is above a limit."""


class Dialogue(Protocol):
    """An exchange with a model about one request: a tool of a remedy is offered, and its calls are answered."""

    def continues(self, response: Any) -> bool:
        """Answer the calls in a response; return True when the request is to be sent again."""

    async def acontinues(self, response: Any) -> bool:
        """Do the same as `continues` without blocking the event loop."""

    def passing(self, item: Any) -> list[Any]:
        """Take an item of a stream; return the items to hand on."""

    def held(self) -> list[Any]:
        """Return the items that are left to hand on, at the end of the last stream."""


class Dialogues(Protocol):
    """Remedy that offers a tool of its own to models."""

    def begin(self, reader: ModelReader, invocation: Invocation) -> Dialogue | None:
        """Offer the tool in a request; return None where the request has no use for it."""

    def unnamed(self, adapter: str, text: str) -> str:
        """Return a result's text without the tool's name; warn once that the adapter's layer cannot offer the tool."""

    def left_out(self, adapter: str, parts: Iterable[RequestPart]) -> None:
        """Warn once when a request that the adapter's layer sends names the tool and does not offer it."""


#: A response as plain data, or the items of its stream.
Response: TypeAlias = tuple[Any, list[Any] | None]


class SummaryVisit(Protocol):
    """A model request that needs a summary before it is sent."""

    def run(self, send: Callable[[Invocation], Response]) -> None:
        """Make the summary with a function that sends a request of the remedy; nothing is raised."""

    async def arun(self, send: Callable[[Invocation], Awaitable[Response]]) -> None:
        """Do the same as `run` without blocking the event loop."""


class Summaries(Protocol):
    """Remedy that summarises the old messages of long requests."""

    def begin(self, reader: ModelReader, invocation: Invocation) -> SummaryVisit | None:
        """Put an earlier summary into a request; return the visit that makes a new one, or None."""


#: Part and id of the messages that a layer above the SDKs is about to send, for wire formats without message ids.
message_ids: ContextVar[tuple[tuple[str, str | None], ...]] = ContextVar("agent_otel_message_ids", default=())

#: The number of last messages in the next request that a dialogue has added: they are no turn of the program.
added_messages: ContextVar[int] = ContextVar("agent_otel_added_messages", default=0)

make_result_remedies: Callable[[Settings], ResultRemedies] | None = None
make_request_remedies: Callable[[Settings], RequestRemedies] | None = None
make_dialogues: Callable[[Settings], Dialogues] | None = None
make_summaries: Callable[[Settings], Summaries] | None = None


class _Denying:
    """In place of remedies that could not be made while a dispatch policy is set: no call runs without a decision."""

    def finished(self, execution: str) -> None:
        """Do nothing."""

    def skipped(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Any:  # noqa: ARG002
        """Deny the call."""
        raise ToolDeniedError(f'{{"error": "{semconv.TOOL_DENIED}", "rule": "{semconv.RULE_UNREADABLE}"}}')

    async def askipped(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Any:
        """Deny the call."""
        return self.skipped(record, reader, invocation)

    def take_turn(self, record: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
        """Do not wait."""

    async def atake_turn(self, record: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
        """Do not wait."""

    def applied(  # the signature of remedies
        self,
        record: ToolInvocation,  # noqa: ARG002
        reader: ToolReader,  # noqa: ARG002
        read: object,  # noqa: ARG002
        value: Any,
        invocation: Invocation,  # noqa: ARG002
    ) -> Any:
        """Return the value itself."""
        return value

    async def aapplied(
        self, record: ToolInvocation, reader: ToolReader, read: object, value: Any, invocation: Invocation
    ) -> Any:
        """Return the value itself."""
        return self.applied(record, reader, read, value, invocation)


@functools.lru_cache(maxsize=1)
def result_remedies() -> ResultRemedies | None:
    """Return the remedies and limits for results; None when all are off."""
    chosen = settings.current()
    is_on = chosen.remedies or chosen.limits or chosen.dispatch_waits or chosen.tool_policy
    if make_result_remedies is None or not is_on:
        return None
    try:
        return make_result_remedies(chosen)
    except Exception:
        errors.report_error("remedies")
        return _Denying() if chosen.tool_policy else None


def skips_calls() -> bool:
    """Return true when a limit, the policy or an earlier attempt may answer a call in place of its handler."""
    chosen = settings.current()
    return bool(chosen.limits or chosen.tool_policy or chosen.answer_retries)


@functools.lru_cache(maxsize=1)
def request_remedies() -> RequestRemedies | None:
    """Return the remedies for requests; None when all are off."""
    chosen = settings.current()
    return make_request_remedies(chosen) if make_request_remedies is not None and chosen.rewrites else None


def cannot_rewrite(
    adapter: str, *, has_views: bool = False, has_summaries: bool = False, ends_runs: bool = False
) -> None:
    """Warn once that no remedy rewrites the requests of a layer in use; ``adapter`` is the module of its adapter.

    With ``has_views`` their history is rewritten, but they keep their tools. With ``has_summaries`` long ones are
    summarised. With ``ends_runs`` the adapter ends runs at a limit itself.
    """
    chosen = settings.current()
    if chosen.summarize_above_tokens and not has_summaries:
        setting_checks.cannot_summarize(adapter)
    if chosen.views and not has_views:
        setting_checks.cannot_act(chosen, setting_checks.ON_REQUESTS, adapter)
    if chosen.limits and not ends_runs:
        setting_checks.cannot_finish(chosen, adapter)


def shown(tool: str) -> None:
    """Warn once that remedies do not act on a tool's calls, which only the requests of the program's own loop show."""
    if outermost.get() is None and tool != semconv.GET_TOOL_RESULT and not added_messages.get():
        setting_checks.cannot_act_around(settings.current(), tool)


def last_note(results: Sequence[object]) -> str | None:
    """Return the note in the last request of a run, when one of these results is above a limit."""
    remedies = request_remedies()
    return None if remedies is None else remedies.last_note(results)


def keeps_earlier_turns() -> None:
    """Warn once that the views rewrite no turns that the provider keeps."""
    chosen = settings.current()
    if chosen.views:
        setting_checks.cannot_rewrite_earlier(chosen)


@functools.lru_cache(maxsize=1)
def dialogues() -> Dialogues | None:
    """Return the remedy that offers a tool to models; None when it is off."""
    chosen = settings.current()
    has_store = chosen.claim_check or chosen.summarize_above_tokens
    if make_dialogues is None or not (has_store and chosen.claim_check_tool):
        return None
    return make_dialogues(chosen)


def cannot_offer(adapter: str, parts: Iterable[RequestPart]) -> None:
    """Warn once when a request names the tool of a remedy, and its layer, which cannot offer it, does not either."""
    acting = dialogues()
    if acting is not None:
        acting.left_out(adapter, parts)


def unnamed(adapter: str, text: str) -> str:
    """Return a result's text for a model that is not offered the tool of a remedy; ``adapter`` is its module."""
    acting = dialogues()
    return text if acting is None else acting.unnamed(adapter, text)


@functools.lru_cache(maxsize=1)
def summaries() -> Summaries | None:
    """Return the remedy that summarises long requests; None when it is off."""
    chosen = settings.current()
    return make_summaries(chosen) if make_summaries is not None and chosen.summarize_above_tokens else None


def skipped(record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Any:
    """Return the replacement result when a limit or the policy skips the handler of a call, else LEFT_ALONE.

    Raises ToolDeniedError where the policy denies a call whose result cannot be replaced.
    """
    try:
        acting = result_remedies()
        if acting is not None:
            return acting.skipped(record, reader, invocation)
    except ToolDeniedError:
        raise
    except Exception:
        errors.report_error("tool_call.limit")
    return LEFT_ALONE


async def askipped(record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Any:
    """Do the same as `skipped` without blocking the event loop."""
    try:
        acting = result_remedies()
        if acting is not None:
            return await acting.askipped(record, reader, invocation)
    except ToolDeniedError:
        raise
    except Exception:
        errors.report_error("tool_call.limit")
    return LEFT_ALONE


def take_turn(record: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
    """Wait for a slot where parallel calls queue; return None when the call runs without one."""
    try:
        acting = result_remedies()
        if acting is not None:
            return acting.take_turn(record, enclosing)
    except Exception:
        errors.report_error("tool_call.queue")
    return None


async def atake_turn(record: ToolInvocation, enclosing: ToolInvocation | None) -> Slot | None:
    """Do the same as `take_turn` without blocking the event loop."""
    try:
        acting = result_remedies()
        if acting is not None:
            return await acting.atake_turn(record, enclosing)
    except Exception:
        errors.report_error("tool_call.queue")
    return None


def announce_messages(messages: Iterable[tuple[str, str | None]]) -> None:
    """Keep part and id of the messages of a request for the SDK that sends it, when duplicates are to be removed."""
    if settings.current().deduplicate_history:
        message_ids.set(tuple(messages))


def completed(record: ToolInvocation) -> None:
    """Report a tool call that has ended, with its arguments, to the remedy that removes them from later requests."""
    remedies = request_remedies()
    if remedies is not None:
        remedies.completed(record.call.arguments)
