"""Amazon Bedrock AgentCore Runtime: what an agent's process is invoked with, and what it answers.

The service posts the payload of ``InvokeAgentRuntime`` to the process, and returns its answer. Both are read where the
SDK's application has handled the request: the bytes of its body and of the response. Of a response that is streamed
nothing is known there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import step_handler
from agent_otel.core.plain import fields, text
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
    uncovered="streamed responses; WebSockets; the payload at the caller of `InvokeAgentRuntime`; memory",
    sites=(Candidate("bedrock_agentcore.runtime.app", Wrap("BedrockAgentCoreApp._handle_invocation", "invoked")),),
)

_RUNTIME = "agentcore"
_SESSION = "x-amzn-bedrock-agentcore-runtime-session-id"


def _invoked(invocation: Invocation, response: Any, _: BaseException | None) -> None:
    application, request = invocation.instance, invocation.arg(0, "request")
    entrypoint = fields(application.handlers).get("main")
    name, session = text(getattr(entrypoint, "__name__", None)), text(request.headers.get(_SESSION))
    step = Step(_RUNTIME, workflow=name, execution=session)
    for direction, data in ((INPUT, fields(request).get("_body")), (OUTPUT, fields(response).get("body"))):
        if type(data) is bytes and data:
            step_handler.payload(step, Payload(direction, len(data), data))


invoked = Hook(after=_invoked)
