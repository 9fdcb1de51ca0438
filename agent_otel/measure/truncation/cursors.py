"""Values by which a page names the next one: in the result that has them, and in the arguments of a later call.

The later call may be another tool's, such as ``get_page``. A value is recognised where it is long, or where the
argument has a name of paging; a short one elsewhere may be anything.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.errors import attempt
from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import fields
from agent_otel.measure.size import block_text
from agent_otel.measure.truncation.paging import AROUND, CURSORS, PAGING, named

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDS: Final = 1024
_DEEPEST: Final = 4
_MOST: Final = 8
_LEAST_CHARACTERS: Final = 6
_LONGEST: Final = 2048
#: The last two are GraphQL's, beside a flag that there is more.
_NAMES: Final = (*CURSORS, "endCursor", "end_cursor")
_KEYS: Final = "|".join(map(re.escape, _NAMES))
_CURSOR: Final = pattern(rf'"(?:{_KEYS})"\s*:\s*(?:\{{\s*"href"\s*:\s*)?("(?:[^"\\]|\\.)+"|[1-9][0-9]*)', re.IGNORECASE)
_LINK: Final = pattern(r"""<([^<>\s]+)>\s*;\s*rel=\\?["']?next\b""")


def cursors(value: Any) -> list[str]:
    """Return the values of a page for the next one, as texts; at most 8. Never runs code of a value."""
    kind = type(value)
    if kind is dict:
        return list(islice(_of_object(fields(value), 0), _MOST))
    text = value if kind is str else None
    if kind is list and len(value) == 1:
        text = value[0] if type(value[0]) is str else block_text(value[0])
    if text is None:
        return []
    ends = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"
    written = [_read(found) for found in islice(_CURSOR.findall(ends), _MOST)]
    return [*filter(None, written), *islice(_LINK.findall(ends), _MOST)]


def next_page(arguments: Any) -> list[str]:
    """Return the values of a call's arguments that may be those of a page before."""
    known = [(name, value) for name, value in named(arguments).items() if type(value) is str or type(value) is int]
    return [
        str(value)
        for name, value in known
        if name in PAGING or name in _NAMES or (type(value) is str and _LEAST_CHARACTERS <= len(value) <= _LONGEST)
    ]


def _read(written: str) -> str:
    """Return a text or a number of JSON as a text; nothing for a text that is no JSON."""
    return str(attempt(json.loads, written, default=""))


def _of_object(known: dict[str, Any], depth: int) -> Iterator[str]:
    for name in _NAMES:
        value = known.get(name)
        value = fields(value).get("href") if type(value) is dict else value
        if (type(value) is str or type(value) is int) and value:
            yield str(value)
    for name in ("Link", "link"):
        link = known.get(name)
        if type(link) is str:
            yield from _LINK.findall(link[:_LONGEST])
    if depth < _DEEPEST:
        inner = [known.get(name) for name in AROUND]
        if type(known.get("data")) is dict:  # of GraphQL, with fields of any name
            inner += islice(fields(known["data"]).values(), _MOST)
        for each in inner:
            if type(each) is dict:
                yield from _of_object(fields(each), depth + 1)
