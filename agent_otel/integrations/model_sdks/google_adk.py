"""Google's Agent Development Kit: add the agent and session to the request that the provider's SDK sends.

The entry is in ``frameworks/google_adk.py``.
"""

from __future__ import annotations

from agent_otel.core.types import Invocation, ModelReader, ModelRequest


def _request(invocation: Invocation) -> ModelRequest:
    context = invocation.arg(0, "invocation_context")
    return ModelRequest((), agent=context.agent.name, execution=context.session.id)


request = ModelReader(_request, outermost=True)
