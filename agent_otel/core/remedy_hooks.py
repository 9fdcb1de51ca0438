"""Registration of remedies. The core calls them without importing them.

`agent_otel.integrations.preload` registers the factories. Without these, or with all settings off, no remedy acts.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_otel import semconv, settings
from agent_otel._internal import errors
from agent_otel._internal.daemon_pool import run_now
from agent_otel.core.execution_context import outermost
from agent_otel.core.switches import added_messages
from agent_otel.core.types import LEFT_ALONE, ToolDeniedError
from agent_otel.settings import without_effect

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Iterable, Sequence

    from agent_otel.core.tool_invocation import Dispatch
    from agent_otel.core.types import Invocation, ToolReader
    from agent_otel.settings import Settings


#: A response as plain data, or the items of its stream.
Response: TypeAlias = tuple[Any, list[Any] | None]


#: Part and id of the messages that a layer above the SDKs is about to send, for wire formats without message ids.
message_ids: ContextVar[tuple[tuple[str, str | None], ...]] = ContextVar("agent_otel_message_ids", default=())

#: The request that this task or thread is sending; its ``reservation`` are the tokens that are set aside for it.
sending: ContextVar[weakref.ref[Any] | None] = ContextVar("agent_otel_sending", default=None)

_UNDECIDED = object()

#: Makes the remedies for results. The functions below call their methods of the same names.
make_result_remedies: Callable[[Settings], Any] | None = None
make_request_remedies: Callable[[Settings], Any] | None = None
make_dialogues: Callable[[Settings], Any] | None = None
make_summaries: Callable[[Settings], Any] | None = None
make_model_boundary: Callable[[], Any] | None = None
make_backpressure: Callable[[], Any] | None = None


@functools.lru_cache(maxsize=1)
def result_remedies() -> Any:
    """Return the remedies and limits for results; None when all are off."""
    chosen = settings.current()
    is_on = chosen.remedies or chosen.limits or chosen.dispatch_waits or chosen.tool_policy
    if make_result_remedies is None or not is_on:
        return None
    return errors.guarded("remedies")(make_result_remedies)(chosen)


@functools.lru_cache(maxsize=1)
def skips_calls() -> bool:
    """Return true when a limit, the policy or an earlier attempt may answer a call in place of its handler."""
    chosen = settings.current()
    return bool(chosen.limits or chosen.tool_policy or chosen.answer_retries)


@functools.lru_cache(maxsize=1)
def request_remedies() -> Any:
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
        without_effect("summaries", adapter=adapter)
    if chosen.views and not has_views:
        without_effect("views", chosen, adapter=adapter)
    if chosen.limits and not ends_runs:
        without_effect("last request", chosen, adapter=adapter)


def shown(tool: str, whole_bytes: int) -> None:
    """Warn once that remedies do not act on a tool's calls, which only the requests of the program's own loop show.

    Those that act on a request have left a result of ``whole_bytes`` whole, -1 where they have replaced it.
    """
    if outermost.get() is None and tool != semconv.GET_TOOL_RESULT and not added_messages.get():
        chosen = settings.current()
        without_effect("handlers", chosen, tool=tool)
        if type(chosen.result_ceiling_bytes) is int and 0 < chosen.result_ceiling_bytes < whole_bytes:
            without_effect("ceiling", tool=tool)


@functools.lru_cache(maxsize=1)
def model_boundary() -> Any:
    """Return the remedies for results that no adapter has had, which act on requests; None when they are off."""
    chosen = settings.current()
    is_on = chosen.result_ceiling_bytes is not None or chosen.claim_check
    return make_model_boundary() if make_model_boundary is not None and is_on else None


def last_note(results: Sequence[object]) -> str | None:
    """Return the note in the last request of a run, when one of these results is above a limit."""
    remedies = request_remedies()
    return None if remedies is None else remedies.last_note(results)


@functools.lru_cache(maxsize=1)
def dialogues() -> Any:
    """Return the remedy that offers a tool to models; None when it is off."""
    chosen = settings.current()
    has_store = chosen.claim_check or chosen.summarize_above_tokens
    if make_dialogues is None or not (has_store and chosen.claim_check_tool):
        return None
    return make_dialogues(chosen)


def unnamed(adapter: str, text: str) -> str:
    """Return a result's text for a model that is not offered the tool of a remedy; ``adapter`` is its module."""
    acting = dialogues()
    return text if acting is None else acting.unnamed(adapter, text)


@functools.lru_cache(maxsize=1)
def summaries() -> Any:
    """Return the remedy that summarises long requests; None when it is off."""
    chosen = settings.current()
    return make_summaries(chosen) if make_summaries is not None and chosen.summarize_above_tokens else None


def act(where: str, default: Any, method: str, *args: Any) -> Any:
    """Do the same as `aact`, and block where the remedy waits."""
    acting = result_remedies()
    if acting is None or (method == "applied" and acting.passes_by(*args[:2])):
        return default
    return run_now(aact(where, default, method, *args, blocks=True))


async def aact(where: str, default: Any, method: str, *args: object, blocks: bool = False) -> Any:
    """Call a method of the remedies for results; return the default without them, and where they fail."""
    try:
        acting = result_remedies()
        return default if acting is None else await getattr(acting, method)(*args, blocks=blocks)
    except ToolDeniedError:
        raise
    except errors.ours(Exception):
        errors.report_error(where)
        return default


def skipped(call: Dispatch, reader: ToolReader, invocation: Invocation) -> Any:
    """Return the answer in place of the handler's result when the policy or a limit skips a call, else LEFT_ALONE.

    Raises:
        ToolDeniedError: the policy denies the call and its result cannot be replaced, or no decision could be made.
    """
    return _decided(call, act("tool_call.limit", _UNDECIDED, "skipped", call, reader, invocation))


async def askipped(call: Dispatch, reader: ToolReader, invocation: Invocation) -> Any:
    """Do the same as `skipped` without blocking the event loop."""
    return _decided(call, await aact("tool_call.limit", _UNDECIDED, "skipped", call, reader, invocation))


def _decided(call: Dispatch, put: Any) -> Any:
    """Return the answer of a call; deny the call if the policy could not decide."""
    if put is not _UNDECIDED:
        return put
    if settings.current().tool_policy and not call.is_gated:
        raise ToolDeniedError(f'{{"error": "{semconv.TOOL_DENIED}", "rule": "{semconv.RULE_UNREADABLE}"}}')
    return LEFT_ALONE


def announce_messages(messages: Iterable[tuple[str, str | None]]) -> None:
    """Keep part and id of the messages of a request for the SDK that sends it, when duplicates are to be removed."""
    if settings.current().deduplicate_history:
        message_ids.set(tuple(messages))


@functools.lru_cache(maxsize=1)
def backpressure() -> Any:
    """Return the remedy that lets model requests wait; None when it is off."""
    return None if make_backpressure is None or settings.current().tokens_per_minute is None else make_backpressure()


@errors.guarded("model_request.retry")
def attempt_refused(refused: Any) -> None:
    """Report a response, or an exception, after which an SDK may send the running request again."""
    reservation = _reservation()
    if reservation is not None:
        reservation.attempt_refused(refused)


def retry_delay(seconds: float) -> float:
    """Return the seconds before an SDK sends the running request again: its own, or more after refusals."""
    with errors.reported("model_request.retry"):
        reservation = _reservation()
        return seconds if reservation is None else reservation.delay(seconds)
    return seconds


def _reservation() -> Any:
    reference = sending.get()
    return getattr(None if reference is None else reference(), "reservation", None)
