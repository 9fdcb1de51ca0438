"""Azure AI Inference: chat completions, sync, async and streamed, with OpenAI's shapes in objects of the SDK's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, is_dict, is_named, listed
from agent_otel.core.remedy_hooks import attempt_refused, backpressure
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.request_bodies import ChatFunction, chat_request
from agent_otel.integrations.wrap import OtherItems, streams

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, ModelRequest

ENTRY = Integration(
    "azure-ai-inference",
    minimum="1.0.0b5",
    tested="1.0.0b9",
    uncovered="embeddings",
    packages=("azure.ai.inference",),
    sites=(
        Candidate("azure.ai.inference._patch", request="ChatCompletionsClient.complete"),
        Candidate("azure.ai.inference.aio._patch", request="ChatCompletionsClient.complete"),
    ),
)


def _plain(value: Any) -> Any:
    """Return the SDK's objects as dictionaries: each has its values in one."""
    if is_named(value, "_MyMutableMapping"):
        value = fields(value).get("_data")
    if type(value) is dict:
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if type(value) is list else value


_CHAT = ChatFunction(plain=_plain)


class _Reporting:
    """A callback of azure-core's pipeline behind each attempt: it reports refusals, and calls the program's own."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __call__(self, response: Any) -> None:
        attempt_refused(getattr(response, "http_response", None))
        if self._own is not None:
            self._own(response)


def _report_attempts(invocation: Invocation) -> None:
    """Add the callback, where the pipeline takes one; that of a call stands in the place of the client's."""
    policy = getattr(getattr(invocation.instance, "_config", None), "custom_hook_policy", None)
    pipeline = getattr(getattr(invocation.instance, "_client", None), "_pipeline", None)
    policies = [getattr(each, "_policy", None) for each in listed(getattr(pipeline, "_impl_policies", None))]
    if not is_named(policy, "CustomHookPolicy") or not any(each is policy for each in policies):
        return
    own = invocation.kwargs.get("raw_response_hook") or getattr(policy, "_response_callback", None)
    if not isinstance(own, _Reporting):
        invocation.kwargs = {**invocation.kwargs, "raw_response_hook": _Reporting(own)}


def _request(invocation: Invocation) -> ModelRequest | None:
    if backpressure() is not None:
        _report_attempts(invocation)
    client, body = fields(invocation.instance), invocation.arg(0, "body")
    if not is_dict(body):
        # The client has defaults of these arguments.
        body = {name: client.get(f"_{name}") for name in ("tools", "tool_choice", "model")}
        body |= {name: value for name, value in invocation.kwargs.items() if value is not None}
    names = ("messages", "tools", "tool_choice", "model")
    return chat_request({name: _plain(fields(body).get(name)) for name in names})


_stream, _watch = streams("BaseStreamingChatCompletions", "MeasuredStream")


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    """Return the body of a request, unless the client adds tools to it."""
    adds = fields(invocation.instance).get("_tools") is not None and invocation.kwargs.get("tools") is None
    return None if adds else _CHAT.body(invocation)


exchange = _CHAT.exchange(_plain)._replace(body=_body, stream=_stream, replaced=OtherItems)
request = _CHAT.reader(_request, watch=_watch, exchange=exchange, **stainless.reads(_plain))
