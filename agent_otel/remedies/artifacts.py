"""Results in parts: tools that yield artifacts, and summaries with a reference instead of a large result."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_otel._internal import errors, signatures
from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import class_of, elements, is_dict, is_empty, plain_text, shape_of
from agent_otel.core.captured_content import hide_in
from agent_otel.core.tool_names import keep
from agent_otel.core.tool_visit import running as running_call
from agent_otel.measure.preview import LONGEST_NAME, preview
from agent_otel.measure.size import Size
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.serialization import size_up_to
from agent_otel.remedies.claim_check.writer import MAX_BYTES, Stored

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable

    from agent_otel.remedies.claim_check.policy import ClaimCheck


MOST_ARTIFACTS: Final = 1000
"""Artifacts of one call; a tool that yields more is closed."""

_MOST_REFERENCES: Final = 10_000
#: Ids that one answer lists; the model gets the others with the next answers.
_MOST_LISTED: Final = 50

#: The stream of each artifact, and the artifact's place in it. A lost entry costs the next action of an answer.
_streams: dict[str, tuple[ArtifactStream, int]] = {}


class ArtifactStream:
    """The artifacts of one call: ``streaming`` until the tool has ended, then ``complete`` or ``failed``."""

    def __init__(self, check: ClaimCheck, tool: str) -> None:
        self._check = check
        self._tool = tool
        #: It may end before the tool does.
        self._call = running_call()
        self.ids: list[str] = []
        self._lost = 0
        self._status = "streaming"
        self._failure = ""
        #: The exception of a tool that has yielded nothing.
        self._error: BaseException | None = None
        self.has_begun = threading.Event()

    def add(self, artifact: object) -> bool:
        """Store an artifact; False when the tool has to be closed."""
        number = len(self.ids) + self._lost + 1
        outcome = self._check.keep(artifact, self._tool, "artifact", self._call)
        if isinstance(outcome, Stored):
            ref = str(outcome.reference)
            keep(_streams, ref, (self, len(self.ids)), _MOST_REFERENCES)
            self.ids.append(ref)
        else:
            self._lost += 1
        self.has_begun.set()
        return number < MOST_ARTIFACTS

    def end(self, error: BaseException | None = None) -> None:
        """Record that the tool has ended, or raised; the first of several calls counts."""
        if self._status == "streaming":
            if error is not None:
                # Keep its text without injected values: the exception itself holds the tool's variables.
                if self._call is not None and self._call.injected:
                    hide_in(error, self._call.injected)
                try:
                    self._failure = f"{type(error).__name__}: {error}"
                except ours(Exception):  # its own code
                    self._failure = type(error).__name__
                self._error = None if self.ids or self._lost else error
            self._status = "complete" if error is None else "failed"
        self._call = None  # the stream stays for its references, and the call holds the arguments
        self.has_begun.set()

    def acknowledgement(self) -> dict[str, Any]:
        """Return the answer to the call; raises what the function raised before its first artifact."""
        if self._error is not None and not (self.ids or self._lost):
            raise self._error
        return {"tool": self._tool, **self.state(-1, None)}

    def state(self, place: int, ref: str | None) -> dict[str, Any]:
        """Return what follows after the artifact in this place."""
        # The status is read first: a stream that is complete has all its artifacts.
        state: dict[str, Any] = {"status": self._status}
        ids = self.ids[place + 1 : place + 1 + _MOST_LISTED]
        state["artifact_ids"] = ids
        if self._lost:
            state["artifacts_lost"] = self._lost
        if state["status"] == "failed":
            state["error"] = self._failure
        following = ids[0] if ids else ref if state["status"] == "streaming" else None
        state["next_action"] = None if following is None else next_action(following)
        return state


def next_action(ref: str, **arguments: str) -> dict[str, Any]:
    """Return the call that reads an artifact."""
    return {"tool": policy.GET_TOOL_RESULT, "arguments": {"ref": ref, **arguments}}


def following(ref: str) -> dict[str, Any] | None:
    """Return what follows after an artifact; None for a result that is no artifact of this process."""
    found = _streams.get(ref)
    return None if found is None else found[0].state(found[1], ref)


_ADVICE: Final = (
    "Answers at once with `artifact_ids`, while it goes on. Read one with the call in `next_action`; each answer names "
    "the next. `status` is `streaming` until there are no more."
)
_NO_STORE: Final = (
    "agent_otel.remedies.streamed_artifacts: AGENT_OTEL_CLAIM_CHECK names no store, so that a tool's artifacts go to "
    "the model in one result."
)

#: The tasks that run asynchronous tools; the event loop itself has only weak references.
_tasks: set[asyncio.Task[None]] = set()


def streamed_artifacts(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a tool of a generator function, sync or async: it answers with the ids of the yielded artifacts.

    Each artifact is stored as a separate result. The call returns when the first is stored; the function continues in a
    thread, or a task of the event loop. ``get_tool_result`` reads an artifact, and names the next action after its last
    page. An exception before the first artifact is raised; later ones are in the answers. Without a claim check the
    call returns a list of all artifacts.
    """
    name = getattr(function, "__name__", "tool")

    def stream_of() -> ArtifactStream | None:
        check = policy.current()
        if check is None:
            errors.warn_once("streamed artifacts", _NO_STORE)
        return None if check is None else ArtifactStream(check, name)

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def answer_async(*args: Any, **kwargs: Any) -> Any:
            artifacts, stream = function(*args, **kwargs), stream_of()
            if stream is None:
                return [each async for each in artifacts]
            if not is_in_asyncio():
                await _run_async(artifacts, stream, None)
                return stream.acknowledgement()
            begun = asyncio.Event()
            task = asyncio.create_task(_run_async(artifacts, stream, begun))
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)
            await begun.wait()
            return stream.acknowledgement()

        return _described(answer_async)

    @functools.wraps(function)
    def answer(*args: Any, **kwargs: Any) -> Any:
        artifacts, stream = function(*args, **kwargs), stream_of()
        if stream is None:
            return list(artifacts)
        # The execution, which owns the artifacts, is a variable of the context.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(_run, artifacts, stream), name="artifacts", daemon=True).start()
        stream.has_begun.wait()
        return stream.acknowledgement()

    return _described(answer)


def _run(artifacts: Generator[object, None, None], stream: ArtifactStream) -> None:
    """Store what the function yields, until it ends."""
    try:
        for artifact in artifacts:
            if not stream.add(artifact):
                artifacts.close()
                break
    except errors.ours(Exception) as error:
        stream.end(error)
    finally:
        stream.end()


async def _run_async(
    artifacts: AsyncGenerator[object, None], stream: ArtifactStream, begun: asyncio.Event | None
) -> None:
    """Store what the function yields, until it ends; the store is never written on the event loop."""
    try:
        async for artifact in artifacts:
            goes_on = stream.add(artifact) if begun is None else await asyncio.to_thread(stream.add, artifact)
            if begun is not None:
                begun.set()
            if not goes_on:
                await artifacts.aclose()
                break
    except errors.ours(Exception, asyncio.CancelledError) as error:
        stream.end(error)
        if isinstance(error, asyncio.CancelledError):  # the event loop ends
            raise
    finally:
        stream.end()
        if begun is not None:
            begun.set()


def _described(answer: Any) -> Callable[..., Any]:
    """Replace what a framework reads of the generator function: its return type and its description."""
    returns = dict[str, Any]
    answer.__signature__ = signatures.signature_of(answer).replace(return_annotation=returns)
    answer.__annotations__ = {**signatures.annotations_of(answer), "return": returns}
    answer.__doc__ = f"{inspect.getdoc(answer) or ''}\n\n{_ADVICE}".strip()
    described: Callable[..., Any] = answer
    return described


_S = TypeVar("_S", bound="Callable[[Any], dict[str, Any]]")

FIRST_FAILURES: Final = 3
_MOST_KEYS: Final = 20
_MOST_LEVELS: Final = 8
_MOST_ROWS: Final = 10_000
_SHOWN_CHARACTERS: Final = 200
_FAILED: Final = frozenset({"error", "errors", "failed", "failure", "fail", "timeout", "cancelled"})
_SUCCEEDED: Final = frozenset({"ok", "success", "succeeded", "successful", "passed", "pass", "completed", "done"})
_STATES: Final = ("status", "state", "outcome", "conclusion", "result")

_summaries: dict[str, Callable[[Any], dict[str, Any]]] = {}


def result_summary(tool: str) -> Callable[[_S], _S]:
    """Register the function that summarises this tool's results: it takes a result and returns a JSON object."""

    def register(function: _S) -> _S:
        _summaries[tool] = function
        return function

    return register


def summarize_result(value: Any, *, tool: str, artifacts: Iterable[Any] = ()) -> dict[str, Any]:
    """Return a summary of a result, and a reference to the whole in the claim store.

    ``summary`` is the return value of the tool's own function, else shape, counts and the first failures.
    ``full_payload_id`` is the reference, None when the result could not be stored. Each of ``artifacts`` is stored
    separately; ``next_action`` is the call that reads the first. Exceptions of the tool's function propagate.
    """
    summarise = _summaries.get(tool, summary_of)
    check = policy.current()
    ids: list[str] = []
    if check is not None:
        stream = ArtifactStream(check, tool)
        for artifact in artifacts:
            stream.add(artifact)
        stream.end()
        ids = stream.ids
    stored = None if check is None else check.keep(value, tool, "summary")
    whole = str(stored.reference) if isinstance(stored, Stored) else None
    size = Size(stored.size, exact=True) if isinstance(stored, Stored) else size_up_to(value, MAX_BYTES)
    answer = {"summary": summarise(value), "size_bytes": size.bytes, "full_payload_id": whole}
    if not size.exact:
        answer["at_least"] = True
    if ids:
        answer["artifact_ids"] = ids
    if ids or whole:
        answer["next_action"] = next_action(str(ids[0] if ids else whole))
    return answer


def summary_of(value: Any) -> dict[str, Any]:
    """Return shape, counts and the first failures of a value; no code of a value runs."""
    summary: dict[str, Any] = {"shape": _shape(value)}
    members = _first(value, _MOST_KEYS)
    text = plain_text(value)
    if is_dict(value):
        summary["counts"] = {key: _count(each) for key, each in members.items() if _is_listed(each) or is_dict(each)}
    elif _is_listed(value):
        summary["counts"] = {"items": _count(value)}
    elif text is not None:
        summary["counts"] = {"characters": len(text), "lines": text.count("\n") + 1}
    lists = [value] if _is_listed(value) else [each for each in members.values() if _is_listed(each)]
    rows = islice(chain.from_iterable(shape_of(type(each)).read(each) for each in lists), _MOST_ROWS)
    failures = [each for each in rows if _has_failed(each)]
    if failures:
        summary["failures"] = len(failures)
        summary["first_failures"] = [  # without nested values, and with the beginnings of texts
            {
                key: each[:_SHOWN_CHARACTERS] if type(each) is str else each
                for key, each in _first(row, _MOST_KEYS).items()
                if each is None or type(each) in (str, int, float, bool)
            }
            for row in failures[:FIRST_FAILURES]
        ]
    return summary


def _first(value: Any, most: int) -> dict[str, Any]:
    """Return the first members of a dictionary, with keys as text; nothing for any other value."""
    items = islice(dict.items(value), most) if is_dict(value) else ()
    return {key if type(key) is str else preview(key, LONGEST_NAME): each for key, each in items}


def _is_listed(value: Any) -> bool:
    return issubclass(type(value), list | tuple)


def _count(value: Any) -> int:
    return shape_of(type(value)).length(value)


def _shape(value: Any, levels: int = _MOST_LEVELS) -> Any:
    if is_dict(value):
        return {key: class_of(each) for key, each in _first(value, _MOST_KEYS).items()}
    if _is_listed(value) and levels:
        return [_shape(each, levels - 1) for each in elements(shape_of(type(value)), value, 1)]
    return class_of(value)


def _has_failed(row: Any) -> bool:
    """Return True for a row with a state that is a failure, or without a known state and with an error."""
    if type(row) is not dict:
        return False
    states = {state.lower() for name in _STATES if (state := plain_text(row.get(name))) is not None}
    if not states.isdisjoint(_FAILED):
        return True
    return states.isdisjoint(_SUCCEEDED) and not is_empty(row.get("error"))
