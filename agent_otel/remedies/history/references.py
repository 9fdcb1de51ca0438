"""References in a result to data that is stored elsewhere: claim checks, ids, URLs and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages.fields import fields, is_list
from agent_otel.remedies.history.text_references import MOST_PLACES, in_text, is_claim, is_named, is_reference

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

_MOST_NODES: Final = 200
_MOST_TEXTS: Final = 4096

_found: dict[tuple[int, int, re.Pattern[str] | None, int], tuple[str, ...]] = {}


def references(content: Any, pattern: re.Pattern[str] | None = None, places: int = MOST_PLACES) -> list[str]:
    """Return the references to data stored elsewhere, in their order, without duplicates.

    These are claim checks (``claim:v2:…``, ``claim://…``), the values of keys such as ``ref``, ``ref_id``,
    ``resultRef``, ``artifact_id`` and ``full_payload_id``, ids such as ``REF-1234`` and ``ref no. 8842``, also in
    lists, tables and markup, and the first ``places`` URLs and paths; of each form of an id, twice as many.
    The matches of ``pattern`` come with them. A text is searched as a whole. One inside other content is searched once
    in a process; the line of a text is remembered, so that its references need not be.
    """
    is_text = type(content) is str
    hits = in_text(content, pattern, places) if is_text else _references(content, pattern, places)
    found = list(dict.fromkeys(hits))
    claims = [reference for reference in found if "claim:" in reference and is_claim(reference)]
    if not claims:
        return found
    # The path inside a claim check is no reference of its own.
    return [each for each in found if is_claim(each) or not any(each in claim for claim in claims)]


def _references(content: Any, pattern: re.Pattern[str] | None, places: int, depth: int = 4) -> Iterator[str]:
    if type(content) is str:
        yield from _of_text(content, pattern, places)
    elif depth and is_list(content):
        for value in content[:_MOST_NODES]:
            yield from _references(value, pattern, places, depth - 1)
    elif depth:
        known = fields(content)
        for key in list(known)[:_MOST_NODES]:
            value = known[key]
            if type(key) is str and is_reference(key):
                values = value if is_list(value) else (value,)
                named = [_under(key, each) for each in values[: 2 * places]]
                yield from filter(None, named)
                if all(named) and len(named) == len(values):
                    continue
            yield from _references(value, pattern, places, depth - 1)


def _under(key: str, value: Any) -> str | None:
    """Return the reference that a value is under a key, None when it is none."""
    value = value.get("id") if type(value) is dict else value
    said = f"{key}={value}" if type(value) is str or type(value) is int else ""
    return said if is_named(said) else None


def _of_text(text: str, pattern: re.Pattern[str] | None, places: int) -> tuple[str, ...]:
    """Return the references of a text; remembered by the text's hash, because each request has the text again."""
    key = (hash(text), len(text), pattern, places)
    found = _found.get(key)
    if found is None:
        if len(_found) >= _MOST_TEXTS:
            _found.clear()
        found = _found[key] = tuple(in_text(text, pattern, places))
    return found
