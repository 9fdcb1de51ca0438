"""Tools that yield artifacts: the model gets an acknowledgement at once, and reads artifacts while the tool goes on."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import errors, signatures
from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.artifact_streams import ArtifactStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

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
    """Make a generator function, sync or async, a tool that answers with the ids of what it yields.

    Each artifact is stored as a result of its own. The call returns when the first is stored; the function goes on in a
    thread, or a task of the event loop. `get_tool_result` reads an artifact, and names the next action after its last
    page. An exception before the first artifact is raised; of a later one the answers have the text. Without a claim
    check the call returns a list of all artifacts.
    """
    name = getattr(function, "__name__", "tool")
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def answer_async(*args: Any, **kwargs: Any) -> Any:
            artifacts = function(*args, **kwargs)
            check = policy.current()
            if check is None:
                errors.warn_once("streamed artifacts", _NO_STORE)
                return [each async for each in artifacts]
            stream = ArtifactStream(check, name)
            if not is_in_asyncio():
                await _run_async(artifacts, stream, None)
                return _acknowledged(stream)
            begun = asyncio.Event()
            task = asyncio.create_task(_run_async(artifacts, stream, begun))
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)
            await begun.wait()
            return _acknowledged(stream)

        return _described(answer_async)

    @functools.wraps(function)
    def answer(*args: Any, **kwargs: Any) -> Any:
        artifacts = function(*args, **kwargs)
        check = policy.current()
        if check is None:
            errors.warn_once("streamed artifacts", _NO_STORE)
            return list(artifacts)
        stream = ArtifactStream(check, name)
        # The execution, which owns the artifacts, is a variable of the context.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(_run, artifacts, stream), name="artifacts", daemon=True).start()
        stream.has_begun.wait()
        return _acknowledged(stream)

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


def _acknowledged(stream: ArtifactStream) -> dict[str, Any]:
    """Return the answer to the call; raises what the function raised before its first artifact."""
    if stream.is_empty and stream.error is not None:
        raise stream.error
    return stream.acknowledgement()


def _described(answer: Any) -> Callable[..., Any]:
    """Replace what a framework reads of the generator function: its return type and its description."""
    returns = dict[str, Any]
    answer.__signature__ = signatures.signature_of(answer).replace(return_annotation=returns)
    answer.__annotations__ = {**signatures.annotations_of(answer), "return": returns}
    answer.__doc__ = f"{inspect.getdoc(answer) or ''}\n\n{_ADVICE}".strip()
    described: Callable[..., Any] = answer
    return described
