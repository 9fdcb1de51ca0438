"""The end of a run that has reached a limit: the request after a call that was not run asks for the answer.

The history alone decides, so that the same history gets the same request in every process: since the user's last
message it holds the answer to a call above a limit. The user's next message ends it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel.messages.fields import fields, is_list
from agent_otel.remedies.history.trimmed_line import text_of
from agent_otel.remedies.history.turns import transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NOTE: Final = (
    "The limit of tool calls for this request is reached. Answer now and directly, with the results above. Do not call "
    "any tool: no further call will be run."
)
"""The text in the system message."""

#: Agents without tool calls write this before the results of a turn, each of which begins a line.
_OBSERVED: Final = "Observation:"
#: The beginning of the answer to a call above a limit.
_ANSWER: Final = re.compile(rf'(\A\s*|\n[ \t]*|{_OBSERVED}\s*)(?=\{{"error":\s*"limit_reached")')
_DEEPEST: Final = 4


def is_due(messages: Sequence[Any], maxima: Mapping[str, int]) -> bool:
    """Return True when a call since the user's last message was above one of the limits, by name and maximum.

    Behind the result that CrewAI has written into the model's message, it asks for the next step as the user.
    """
    is_asked = False
    for message in reversed(messages):
        seen = transcript(message)
        if seen.answered:
            contents = [answered.content for answered in seen.answered]
        elif seen.asked:
            if is_asked:
                return False
            continue
        else:
            contents = [text_of(fields(message).get("content"))]
        if any(maxima.get(answer["limit"]) == answer["maximum"] for each in contents for answer in _answers(each)):
            return not is_asked or _is_written_by_model(message)
        if is_asked:
            return False
        is_asked = seen.by_user and not seen.answered
    return False


def is_observed(message: Any) -> bool:
    """Return True for a message that begins with a result which the agent has written into its text."""
    text = text_of(fields(message).get("content"))
    return text is not None and text.startswith(_OBSERVED) and not transcript(message).answered


def _is_written_by_model(message: Any) -> bool:
    return fields(message).get("role") == "assistant"


def _answers(content: Any, depth: int = _DEEPEST) -> Iterator[Mapping[str, Any]]:
    """Yield the answers to calls above a limit in the content of a result: text, blocks, or an object around them."""
    if type(content) is str:
        # A search for a word from the end costs a hundredth of a pattern's.
        found = _beginning(content) if content.rfind(semconv.LIMIT_REACHED) >= 0 else None
        try:
            content = json.JSONDecoder().raw_decode(content, found)[0] if found is not None else None
        except ValueError:  # another program's text
            return
    known = fields(content)
    if known.get("error") == semconv.LIMIT_REACHED:
        if type(known.get("limit")) is str:
            yield {"limit": known["limit"], "maximum": known.get("maximum")}
    elif depth:
        for inner in content if is_list(content) else known.values():
            if type(inner) is str or is_list(inner) or fields(inner):
                yield from _answers(inner, depth - 1)


def _beginning(text: str) -> int | None:
    """Return the place of the first answer to a call above a limit in a text: its beginning, or a line observed."""
    for found in _ANSWER.finditer(text):
        if not found.start() or _OBSERVED in text[: found.end()]:
            return found.end()
    return None
