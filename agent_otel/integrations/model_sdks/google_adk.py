"""Google's Agent Development Kit: add the agent and session to the request that the provider's SDK sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.types import ModelReader, ModelRequest

if TYPE_CHECKING:
    from collections.abc import Mapping


def _request(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelRequest:
    context = kwargs["invocation_context"] if "invocation_context" in kwargs else args[0]
    return ModelRequest((), agent=context.agent.name, execution=context.session.id)


request = ModelReader(_request, outermost=True)
