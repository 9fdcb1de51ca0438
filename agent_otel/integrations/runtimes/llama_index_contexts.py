"""LlamaIndex: contexts of workflows that a program saves and restores.

``Context.to_dict`` returns all that a workflow carries, and ``from_dict`` begins with it. The framework stores nothing
itself: the bytes are those of the dictionary as JSON. The entry is in ``frameworks/llama_index.py``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import is_named, text
from agent_otel.integrations import stores
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import HISTORY, STATE

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

CONTEXTS = Site(
    Candidate("workflows.context.context", Wrap("Context.to_dict", "saved"), Wrap("Context.from_dict", "restored")),
    adapter="runtimes.llama_index_contexts",
)


def name_of(workflow: Any) -> str | None:
    """Return the name of an agent, or of the first one of several; None for a workflow of the program's own."""
    if is_named(workflow, "BaseWorkflowAgent", "AgentWorkflow"):
        return text(getattr(workflow, "root_agent", None)) or text(getattr(workflow, "name", None))
    return None


def _saved(invocation: Invocation, saved: Any, error: BaseException | None) -> None:
    if error is None:
        face = invocation.instance._face
        _report(face._workflow, STATE, saved)


def _restored(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    if error is None:
        _report(invocation.arg(0, "workflow"), HISTORY, invocation.arg(1, "data"))


def _report(workflow: Any, direction: str, value: Any) -> None:
    try:
        size = len(json.dumps(value))
    except (TypeError, ValueError):
        return  # a serializer of the program's own, which makes no JSON
    name = name_of(workflow) or type(workflow).__name__
    stores.report("llama-index", None, direction, size, value, agent=name)


saved = Hook(after=_saved)
restored = Hook(after=_restored)
