"""LiteLLM, which speaks to many providers, to some of them through OpenAI's SDK.

What leaves is read at ``Logging.pre_call``, which every provider's code calls before HTTP with OpenAI's shapes. It does
not surround the request, so that the public functions are entered, too: they know in the end whether an SDK has been
seen inside of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_dict, listed, text
from agent_otel.core.types import ModelReader, ModelRequest
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.model_sdks.openai import asks, chat, responses
from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

ENTRY = Integration(
    "litellm",
    distribution="litellm",
    minimum="1.70",
    tested="1.106",
    sites=(
        Candidate("litellm.litellm_core_utils.litellm_logging", Wrap("Logging.pre_call", "announced")),
        # The calls that contain these requests.
        Candidate(
            "litellm",
            Wrap("completion", "entered"),
            Wrap("acompletion", "entered"),
            Wrap("responses", "entered"),
            Wrap("aresponses", "entered"),
        ),
    ),
)

_CHATS = ("completion", "acompletion")
_RESPONSES = ("responses", "aresponses")


def _announced(invocation: Invocation) -> None:
    given = invocation.arg(0, "input")
    body = invocation.arg(3, "additional_args", {}).get("complete_input_dict")
    kind = text(fields(invocation.instance).get("call_type"))
    if kind in _CHATS and issubclass(type(given), list):
        tools = fields(body).get("tools")
        handler.model_announced(ModelRequest(chat({"messages": given, "tools": listed(tools)})))
    elif kind in _RESPONSES:
        handler.model_announced(responses({**(fields(body) if is_dict(body) else {}), "input": given}))


def _entered(_: Invocation) -> ModelRequest:
    return ModelRequest(())


announced = Hook(_announced)
entered = ModelReader(_entered, None, asks, outermost=True)
