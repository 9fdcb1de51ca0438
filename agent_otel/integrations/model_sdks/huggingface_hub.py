"""Hugging Face's InferenceClient: chat completions, sync, async and streamed, with OpenAI's shapes as dictionaries."""

from __future__ import annotations

import json

from agent_otel._internal.object_kinds import given, text
from agent_otel.core.types import Invocation, ModelRequest
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.request_bodies import ChatFunction, chat
from agent_otel.integrations.wrap import steps_of, watched
from agent_otel.messages.openai import must_call

ENTRY = Integration(
    "huggingface-hub",
    distribution="huggingface_hub",
    minimum="0.30",
    tested="2.4, InferenceClient",
    uncovered="`text_generation` and the client's other tasks",
    sites=(
        Candidate("huggingface_hub.inference._client", request="InferenceClient.chat_completion"),
        Candidate("huggingface_hub.inference._generated._async_client", request="AsyncInferenceClient.chat_completion"),
    ),
)

_CHAT = ChatFunction(place=0)


def _request(invocation: Invocation) -> ModelRequest:
    body = {"messages": _CHAT.messages(invocation), "tools": invocation.kwargs.get("tools")}
    model = given(text(invocation.kwargs.get("model")), text(getattr(invocation.instance, "model", None)))
    return ModelRequest(chat(body), model=model, must_call=must_call(invocation.kwargs))


# The SDK's classes are dictionaries.
exchange = _CHAT.exchange(lambda value: json.loads(json.dumps(value)))._replace(stream=steps_of)
request = _CHAT.reader(_request, stainless.usage, stainless.asks, watched, stainless.ends, exchange=exchange)
