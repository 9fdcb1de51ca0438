"""Detect the pages that servers and proxies send in place of a body that was too large for them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from agent_otel._internal.patterns import pattern

SOURCE: Final = "HTTP 413"

LONGEST: Final = 1024
"""Characters of the longest page. Longer ones are documentation."""

STARTS: Final = frozenset("<4HECR{")

_PHRASE: Final = r"(?:Request Entity|Payload|Content) Too Large"
_PAGE: Final = pattern(
    rf"(?:<!DOCTYPE[^>]*>\s*)?<html[^>]*>\s*<head>\s*<title>\s*413 {_PHRASE}\s*</title>.*|"
    rf"(?:HTTP(?:/[\d.]+)? |Error: )?413:? {_PHRASE}\.?|"
    rf"413 Client Error: {_PHRASE} for url: \S+|"
    rf"Client error '413 {_PHRASE}' for url '[^']*'(?:\nFor more information check: \S+)?|"
    r"Request failed with status code 413\.?|"
    rf"{_PHRASE}\s+FUNCTION_(?:PAYLOAD|RESPONSE_PAYLOAD)_TOO_LARGE\b.*",
    re.DOTALL,
)
_MESSAGE: Final = pattern(rf"Request Too Long|{_PHRASE}|Response payload size exceeded maximum allowed payload size .*")
_MESSAGES: Final = ("message", "errorMessage", "error", "title")
_CODES: Final = ("statusCode", "status_code", "status", "code")
_STEMS: Final = ("413", "Too L", "TooLarge")
_TOO_LARGE: Final = 413
_LONGEST_PHRASE: Final = 128
_MOST_ALONE: Final = 2  # keys of an answer without a status


def is_page(text: str) -> bool:
    """Return True if a short text is such a page, the exception of an HTTP client about it, or such an object."""
    if text[0] != "{":
        return _PAGE.fullmatch(text.rstrip()) is not None
    if not any(stem in text for stem in _STEMS):
        return False
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return type(answer) is dict and is_answer(answer)


def is_answer(known: dict[str, Any]) -> bool:
    """Return True if an object is such an answer: the phrase alone, or beside the status."""
    for name in _MESSAGES:
        message = known.get(name)
        if type(message) is str and len(message) <= _LONGEST_PHRASE and _MESSAGE.fullmatch(message):
            return len(known) <= _MOST_ALONE or any(type(c) is int and c == _TOO_LARGE for c in map(known.get, _CODES))
    return False
