"""Functions of the program that Mistral's voice agents call; the entry is in ``model_sdks/mistral.py``.

Produced is read where a handler is invoked. It gets the model's arguments as JSON and returns a text. The id of the
call does not reach the program.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import is_dict, properties, text
from agent_otel.core.types import PRODUCED, Invocation, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.reader_functions import raises_within, replace_by_text
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

VOICE = Site(
    Candidate("mistralai.extra.voice_agents.tools", Wrap("FunctionHandler.invoke", "invoke")),
    minimum="3.3",
    adapter="frameworks.mistral_voice",
)


def _call(invocation: Invocation) -> ToolCall:
    return ToolCall(invocation.instance.name, text(invocation.arg(0, "raw_arguments")) or {})


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    given = text(invocation.arg(0, "raw_arguments"))
    arguments = json.loads(given) if given else {}
    if not is_dict(arguments):
        return False
    invocation.put(0, "raw_arguments", json.dumps({**arguments, **values}, ensure_ascii=False))
    return True


def _parameters(invocation: Invocation) -> Iterable[str]:
    return properties(invocation.instance.parameters)


invoke = ToolReader(
    PRODUCED,
    _call,
    ToolResult,
    is_refusal=raises_within("mistralai", "ValidationError"),
    replace=replace_by_text,
    parameters=_parameters,
    inject=_inject,
)
