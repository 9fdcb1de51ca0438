"""Amazon Bedrock AgentCore Runtime: what an agent's process is invoked with, and what it answers.

The service posts the payload of ``InvokeAgentRuntime`` to the process, and returns its answer. Both are read where the
SDK's application has handled the request: the bytes of its body and of the response. A response that is streamed is
read when its stream has ended.

At the caller both are read in botocore's client: the body that it sends, and the answer while the program reads it. The
workflow there is the runtime of the ARN, so that no payload counts twice for one workflow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from agent_otel._internal import errors
from agent_otel._internal.object_kinds import fields, text
from agent_otel.core import step_handler
from agent_otel.core.types import Invocation, Payload, Step
from agent_otel.integrations import payloads
from agent_otel.integrations.hooks import after
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import INPUT, OUTPUT, STATE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ENTRY = Integration(
    "bedrock-agentcore",
    minimum="1.25",
    tested="1.25, its application over HTTP",
    uncovered="WebSockets; callers of `InvokeAgentRuntime` and `CreateEvent` other than boto3; reads of events and "
    "records of memory",
    sites=(Candidate("bedrock_agentcore.runtime.app", invoked="BedrockAgentCoreApp._handle_invocation"),),
)

_RUNTIME = "agentcore"
_INVOKE = "InvokeAgentRuntime"
_SESSION = "x-amzn-bedrock-agentcore-runtime-session-id"


async def _counted(chunks: Any, step: Step) -> AsyncIterator[Any]:
    """Yield the chunks of a streamed response, and report their bytes when it ends."""
    size = 0
    try:
        async for chunk in chunks:
            with errors.reported("agentcore.read"):
                size += payloads.bytes_of(chunk)
            yield chunk
    finally:
        if size:
            step_handler.payload(step, Payload(OUTPUT, size))


@after
def invoked(invocation: Invocation, response: Any, _: BaseException | None) -> None:
    application, request = invocation.instance, invocation.arg(0, "request")
    entrypoint = fields(application.handlers).get("main")
    name, session = text(getattr(entrypoint, "__name__", None)), text(request.headers.get(_SESSION))
    step = Step(_RUNTIME, workflow=name, execution=session)
    for direction, data in ((INPUT, fields(request).get("_body")), (OUTPUT, fields(response).get("body"))):
        if type(data) is bytes and data:
            step_handler.payload(step, Payload(direction, len(data), data))
    chunks = fields(response).get("body_iterator")
    if hasattr(type(chunks), "__anext__"):
        response.body_iterator = _counted(chunks, step)


class _Read:
    """The raw stream of an answer, which the program reads or closes; it is reported when the last part was read."""

    def __init__(self, stream: Any, step: Step) -> None:
        self._stream = stream
        self._step = step
        self._bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @errors.guarded("agentcore.read")
    def _add(self, size: int, *, is_last: bool) -> None:
        self._bytes += size
        if is_last and self._bytes:
            sent, self._bytes = self._bytes, 0
            step_handler.payload(self._step, Payload(OUTPUT, sent))

    def read(self, amount: int | None = None, *args: Any, **kwargs: Any) -> bytes:
        data: bytes = self._stream.read(amount, *args, **kwargs)
        self._add(len(data), is_last=amount is None or (amount != 0 and not data))
        return data

    def readinto(self, buffer: Any) -> int:
        size: int = self._stream.readinto(buffer)
        self._add(size, is_last=size == 0 and len(buffer) > 0)
        return size

    def readlines(self) -> list[bytes]:
        lines: list[bytes] = self._stream.readlines()
        self._add(sum(map(len, lines)), is_last=True)
        return lines

    def close(self) -> None:
        self._add(0, is_last=True)
        self._stream.close()


@after
def called(invocation: Invocation, answered: Any, _: BaseException | None) -> None:
    operation = invocation.arg(0, "operation_model")
    if operation.service_model.service_name != "bedrock-agentcore":
        return
    if operation.name == _INVOKE:
        _read_invocation(fields(invocation.arg(1, "request_dict")), answered)
    elif operation.name == "CreateEvent":
        created(fields(invocation.arg(1, "request_dict")), answered)


def _read_invocation(request: dict[str, Any], answered: Any) -> None:
    sessions = (value for name, value in fields(request.get("headers")).items() if name.lower() == _SESSION)
    # The runtime's id is the last part of the ARN in ``/runtimes/{ARN}/invocations``.
    arn, is_found, _ = unquote(text(request.get("url_path")) or "").rpartition("/invocations")
    runtime = arn.rpartition("/")[2] if is_found else None
    step = Step(_RUNTIME, workflow=runtime, execution=text(next(sessions, None)))
    body = request.get("body")
    if type(body) is bytes and body:
        step_handler.payload(step, Payload(INPUT, len(body), body))
    if type(answered) is not tuple:
        return
    http, parsed = answered
    stream: Any = fields(parsed).get("response")
    if hasattr(stream, "_raw_stream"):
        stream._raw_stream = _Read(stream._raw_stream, step)
    elif http.content:
        step_handler.payload(step, Payload(OUTPUT, len(http.content), http.content))


#: The SDKs write the ids before the payload.
_MAX_IDS = 2_000
#: The field with the session, any other text, and the brackets around fields.
_TOKENS = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"|"(?:[^"\\]|\\.)*"|[][{}]')
_DEPTHS = {b"{": 1, b"[": 1, b"]": -1, b"}": -1}
_REFUSED = 300

# Amazon Bedrock AgentCore Memory: the events that a program adds to a session. botocore's client sends them, whatever
# calls it: the SDK's clients, the session manager for Strands, boto3 itself. The bytes are those of the body of
# ``CreateEvent``. In a method of another store they are that store's: all that a node writes is one event of
# LangGraph's saver, and a checkpoint is one too, or several: above 10 MB, or 100 channels.


def created(request: dict[str, Any], answered: Any) -> None:
    """Report an event that botocore has sent; one that the service has not taken is none."""
    body = request.get("body")
    http = answered[0] if type(answered) is tuple else None
    if type(body) is not bytes or http is None or http.status_code >= _REFUSED:
        return
    saving = payloads.open_saving.get()
    if saving is not None:
        saving.items = [(sum(size for size, _ in saving.items) + len(body), _RUNTIME)]
        return
    transfer = payloads.open_transfer.get()
    if transfer is not None and not transfer.is_read:
        payloads.add(body)
        return
    # The part of ``/memories/{id}/events``.
    memory = (text(request.get("url_path")) or "").rpartition("/events")[0].rpartition("/memories/")[2] or None
    payloads.report(_RUNTIME, _session(body), STATE, len(body), None, is_appended=True, agent=memory)


def _session(body: bytes) -> str | None:
    """Return the session that a body names; what is stored in it may have fields of the same name."""
    depth = 0
    for token in _TOKENS.finditer(body, 0, _MAX_IDS):
        if depth == 1 and token[1] is not None:
            return token[1].decode("utf-8", "replace")
        depth += _DEPTHS.get(token[0], 0)
    return None
