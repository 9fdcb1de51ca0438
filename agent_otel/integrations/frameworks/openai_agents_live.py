"""Realtime sessions of OpenAI's Agents SDK, which invoke tools under a name of their own and send plain outputs.

The entry is in ``openai_agents.py``.
"""

from __future__ import annotations

from typing import Any

from agent_otel.core.types import LEFT_ALONE, Invocation, Replacement
from agent_otel.integrations.frameworks import openai_agents


def _replace(_: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a replacement for an output; what a tool declares as its output must be that."""
    declared = getattr(invocation.kwargs["function_tool"], "output_json_schema", None)
    return replacement.text if declared is None else LEFT_ALONE


invoke = openai_agents.invoke._replace(replace=_replace)
