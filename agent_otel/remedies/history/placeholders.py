"""Placeholders: answers that frameworks write for calls without a result, because providers require one.

A call with a placeholder is not completed: its arguments may still be needed. The texts are from the packages named
beside them, as of November 2026.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agent_otel.remedies.history.trimmed_line import text_of

_TEXTS: Final = (
    r"\[Tool call (?:was interrupted and did not return a result|could not be executed because its )",  # DeerFlow
    r"\[write_file failed before execution: ",  # DeerFlow
    r"Tool call .{0,200}? with id .{0,100}? (?:did not complete|was cancelled|could not be executed)",  # deepagents
    r"The tool call was interrupted before a result was produced",  # pydantic-ai
    r"(?:Output t|T)ool not (?:executed|used) - a final result",  # pydantic-ai
    r"Tool execution was interrupted by an error|The tool call was denied\.",  # pydantic-ai
    r"Tool execution (?:for .{0,100}? was manually rejected by user|cancelled\.?\s*$)",  # openai-agents
    r"Tool execution was not approved\.",  # openai-agents
    r"User rejected the tool call for |Tool call limit exceeded\. Do not ",  # langchain
    r"Tool was interrupted|This tool call was not executed|Tool cancelled by hook|Tool call cancelled\. ",  # strands
    r"Tool execution cancelled locally; ",  # strands
    r"Tool call limit reached\. Tool call .{0,200}? not executed",  # agno
    r"Tool call was rejected\s*$|Function call was rejected by the user",  # agno
    r"Error: Missing tool result |This tool call is rejected\.",  # google-adk
    r"Tool '.{1,200}?' has reached its (?:maximum )?usage limit ",  # crewai
    r"Tool execution for '.{1,200}?' was rejected by the user\.",  # haystack
    r"Error: Tool call (?:invocation was rejected by user|was cancelled)\.",  # agent-framework
    r"User denied the tool call request|The turn was cancelled before this tool finished\.",  # ag2
    r"This tool call was not completed: ",  # ag2
    r"\{\"error\": \"(?:limit_reached|tool_denied)\", ",  # a limit and the policy of this package
    r"\[System: Tool execution skipped/interrupted by user",  # litellm
)
_PLACEHOLDER: Final = re.compile("|".join(_TEXTS), re.DOTALL)
_LONGEST: Final = 1024


def is_placeholder(content: Any) -> bool:
    """Return True when a result's content is a framework's placeholder."""
    text = text_of(content)
    return text is not None and len(text) <= _LONGEST and _PLACEHOLDER.match(text) is not None
