"""What frameworks answer for a call that never had a result, so that a provider takes the history.

A call that is answered like this is not completed: its arguments may be needed still. Read in the packages that are
named beside each text, November 2026.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agent_otel.remedies.history.trimmed_line import text_of

_TEXTS: Final = (
    r"Tool call .{0,200}? with id .{0,100}? (?:did not complete|was cancelled|could not be executed)",  # deepagents
    r"The tool call was interrupted before a result was produced",  # pydantic-ai
    r"(?:Output t|T)ool not (?:executed|used) - a final result",  # pydantic-ai
    r"Tool execution was interrupted by an error",  # pydantic-ai
    r"Tool execution for .{0,100}? was manually rejected by user",  # openai-agents
    r"User rejected the tool call for ",  # langchain
    r"Tool was interrupted|This tool call was not executed",  # strands
    r"Tool call limit reached\. Tool call .{0,200}? not executed",  # agno
    r"Error: Missing tool result ",  # google-adk
    r"\[System: Tool execution skipped/interrupted by user",  # litellm
)
_PLACEHOLDER: Final = re.compile("|".join(_TEXTS), re.DOTALL)
_LONGEST: Final = 1024


def is_placeholder(content: Any) -> bool:
    """Whether a result's content is what a framework writes in the place of one."""
    text = text_of(content)
    return text is not None and len(text) <= _LONGEST and _PLACEHOLDER.match(text) is not None
