"""Amazon Bedrock AgentCore Runtime: what an agent's process is invoked with, and what it answers.

The service posts the payload of ``InvokeAgentRuntime`` to the process, and returns its answer. Both are read where the
SDK's application has handled the request: the bytes of its body and of the response. A response that is streamed is
read when its stream has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.core import handler, step_handler
from agent_otel.core.plain import fields, is_text, text
from agent_otel.core.types import Payload, Step
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap
from agent_otel.semconv import INPUT, OUTPUT

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

ENTRY = Integration(
    "bedrock-agentcore",
    distribution="bedrock-agentcore",
    minimum="1.25",
    tested="1.25, its application, called over HTTP as the service calls it",
    uncovered="WebSockets; the payload at the caller of `InvokeAgentRuntime`; memory",
    sites=(Candidate("bedrock_agentcore.runtime.app", Wrap("BedrockAgentCoreApp._handle_invocation", "invoked")),),
)

_RUNTIME = "agentcore"
_SESSION = "x-amzn-bedrock-agentcore-runtime-session-id"


class _Counted:
    """The chunks of a streamed response, which are reported as one payload when the stream ends."""

    def __init__(self, chunks: Any, step: Step) -> None:
        self._chunks = chunks
        self._step = step
        self._bytes = 0

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        has_ended = True  # with an error, or because the caller has gone
        try:
            chunk = await self._chunks.__anext__()
            has_ended = False
        finally:
            if has_ended:
                self._report()
        self._add(chunk)
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunks, name)

    @errors.guarded("agentcore.chunk")
    def _add(self, chunk: Any) -> None:
        self._bytes += handler.text_bytes(chunk) if is_text(chunk) else len(chunk)

    @errors.guarded("agentcore.stream")
    def _report(self) -> None:
        sent, self._bytes = self._bytes, 0
        if sent:
            step_handler.payload(self._step, Payload(OUTPUT, sent))


def _invoked(invocation: Invocation, response: Any, _: BaseException | None) -> None:
    application, request = invocation.instance, invocation.arg(0, "request")
    entrypoint = fields(application.handlers).get("main")
    name, session = text(getattr(entrypoint, "__name__", None)), text(request.headers.get(_SESSION))
    step = Step(_RUNTIME, workflow=name, execution=session)
    for direction, data in ((INPUT, fields(request).get("_body")), (OUTPUT, fields(response).get("body"))):
        if type(data) is bytes and data:
            step_handler.payload(step, Payload(direction, len(data), data))
    chunks = fields(response).get("body_iterator")
    if hasattr(type(chunks), "__anext__"):
        response.body_iterator = _Counted(chunks, step)


invoked = Hook(after=_invoked)
