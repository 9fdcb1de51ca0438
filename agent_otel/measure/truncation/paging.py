"""Detect pages: results that name a further part of the answer in the words of APIs. A few microseconds at any size.

Of a text, expressions read the first 256 and the last 320 characters. Items are counted only beside a total: a short
text is parsed, in a longer one the first key of an item occurs at least once in each.
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
from agent_otel.measure.truncation.notices import is_own_key

if TYPE_CHECKING:
    from collections.abc import Iterator


#: Returned for a result that is whole, and for a page. A number of items is never negative.
WHOLE: Final = 0
PAGE: Final = -1

_HEAD: Final = 256
PAGE_TAIL: Final = 320
#: Characters of a text that is parsed, and of one in which items are counted; in a longer one it is unknown.
_PARSED: Final = 16 * 1024
_COUNTED: Final = 256 * 1024
_LONGEST_ARGUMENTS: Final = 4 * 1024
_DEEPEST: Final = 4
_MOST_KEYS: Final = 16

#: A value that is not empty refers to the next page.
CURSORS: Final = (
    *("next_cursor", "nextCursor", "next_page_token", "nextPageToken", "next_page", "nextPage", "next", "next_token"),
    *("nextToken", "NextToken", "next_link", "nextLink", "@odata.nextLink", "next_url", "nextUrl", "next_page_url"),
    *("nextPageUrl", "NextMarker", "NextContinuationToken", "LastEvaluatedKey"),
)
#: True when there is more, and false when there is not, whatever a total may mean.
_FLAGS: Final = (
    *("has_more", "hasMore", "has_next", "hasNext", "has_next_page", "hasNextPage"),
    *("is_truncated", "isTruncated", "IsTruncated"),
)
#: True when a search found only a part in time; false whatever page it is.
_PARTIAL: Final = "incomplete_results"
_TOTALS: Final = (
    *("total", "total_count", "totalCount", "totalResults", "total_results", "totalItems", "total_items", "totalHits"),
    "numFound",
)
#: Beside an unqualified ``total`` these make it a sum of money.
_MONEY: Final = pattern("price|currenc|amount|tax|cost", re.IGNORECASE)
_FURTHER: Final = pattern("remain|left|more|next|after", re.IGNORECASE)
#: Keys under which responses keep their pages, their links and their headers.
AROUND: Final = (
    *("pageInfo", "page_info", "pagination", "paging", "meta", "metadata", "response_metadata", "links", "_links"),
    *("headers", "data", "result", "response", "body", "structuredContent"),
)
#: Items before a page, in its arguments or its answer; pages before it; and items of a page.
_OFFSETS: Final = ("offset", "skip", "start", "start_index", "startIndex", "startAt", "from")
_PAGES: Final = ("page", "page_number", "pageNumber")
_SIZES: Final = ("per_page", "perPage", "page_size", "pageSize", "limit", "size", "first", "maxResults", "top")
_LINKS: Final = ("Link", "link")
#: Keys with which an answer reports whether it is whole.
SELF_DESCRIBING: Final = frozenset((*CURSORS, *_FLAGS, *_TOTALS))
_WORDS: Final = frozenset((*CURSORS, *_FLAGS, *_TOTALS, *AROUND, *_LINKS, _PARTIAL))
PAGING: Final = (
    *("cursor", "page", "page_token", "pageToken", "offset", "start", "start_index", "startIndex", "skip", "after"),
    *("from", "start_line", "line_start", "begin", "since", "next_token", "nextToken", "NextToken"),
)

#: A text is a page only if it begins with one of these, or has this among its last characters.
PAGE_ENDING: Final = '"next'
PAGE_OPENINGS: Final = ("{", "HTTP/", "link:", "Link:")
_STEMS: Final = ("next", "Next", "ore", "otal", "incomplete", "runcated", "numFound", "LastEval")
_CURSOR: Final = pattern(rf'"(?:{"|".join(map(re.escape, CURSORS))})"\s*:\s*(?:"[^"]|[1-9]|{{\s*")', re.IGNORECASE)
_FLAG: Final = pattern(rf'"(?:{"|".join(_FLAGS)})"\s*:\s*(true|false)\b')
_NUMBER: Final = pattern(r'"(\w{1,32})"\s*:\s*([0-9]{1,10})\s*[,}]')
_IS_PARTIAL: Final = pattern(rf'"{_PARTIAL}"\s*:\s*true\b')
#: The name of a cursor that may be another thing, before a value that is no address.
_STEP: Final = pattern(r'"next"\s*:(?!\s*"(?:https?:|[/?]))', re.IGNORECASE)
_LINK: Final = pattern(r"""\brel=\\?["']?next\b""")
_ITEMS: Final = pattern(r'\[\s*(?:\{\s*("[^"\\]{1,64}")\s*:|(\]))')


def is_page(value: Any, arguments: Any = None) -> bool:
    """Return True if a result names a further page, or a total that it does not reach.

    ``arguments`` are those of the call, with the place of a later page. Never runs code of a value.
    """
    return further(value, arguments) != WHOLE


def further(value: Any, arguments: Any = None) -> int:
    """Return ``PAGE`` for a page, or the number of items where a total is larger and names no page, else ``WHOLE``."""
    if type(value) is dict:
        return _page_of(fields(value), arguments, 0) or WHOLE
    text = _only_text(value)
    if text is None:
        return WHOLE
    end = text[-PAGE_TAIL:]
    if text.startswith(PAGE_OPENINGS):
        return _page_in(text, end, arguments)
    return (_placed(text, end, arguments) or WHOLE) if PAGE_ENDING in end and _CURSOR.search(end) else WHOLE


def _only_text(value: Any) -> str | None:
    """Return a text, or the text of a list with one block, such as an MCP result; None for other values."""
    if type(value) is list and len(value) == 1:
        value = value[0] if type(value[0]) is str else block_text(value[0])
    return value if type(value) is str else None


def asks_for_a_page(arguments: Any) -> bool:
    """Return True if the arguments request a later page: a non-empty key such as ``cursor`` or ``offset``."""
    return any(map(_is_filled, map(named(arguments).get, PAGING)))


def named(arguments: Any) -> dict[str, Any]:
    """Return arguments by their names, also of a short JSON text; none of anything else."""
    if type(arguments) is str and len(arguments) <= _LONGEST_ARGUMENTS:
        arguments = attempt(json.loads, arguments)
    return fields(arguments) if type(arguments) is dict else {}


def _page_of(known: dict[str, Any], arguments: Any, depth: int) -> int | None:
    """Return what `further` does, None for an object that has no such key."""
    if known.keys().isdisjoint(_WORDS):
        return None
    if any(map(_is_filled, map(known.get, CURSORS))):
        return PAGE
    flags = [flag for flag in map(known.get, _FLAGS) if type(flag) is bool]
    if flags or known.get(_PARTIAL) is True:
        return PAGE if any(flags) or known.get(_PARTIAL) is True else WHOLE
    for name in _LINKS:
        link = known.get(name)
        if type(link) is str and _LINK.search(link[: 8 * _HEAD]):
            return PAGE
    if depth < _DEEPEST:
        for each in _around(known):
            found = _page_of(each, arguments, depth + 1)
            if found is not None:
                return found
    lists = [len(each) for each in islice(known.values(), _MOST_KEYS) if type(each) is list]
    has_one = len(lists) == 1 and known.get("truncated") is not False
    return (_below_total(lists[0], known, arguments) or None) if has_one else None


def _around(known: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects in which an answer may name its pages."""
    data = known.get("data")  # of GraphQL, with fields of any name
    inner = (*map(known.get, AROUND), *(_within(data, 2) if type(data) is dict else ()))
    return [fields(each) for each in inner if type(each) is dict]


def _within(value: Any, levels: int) -> list[Any]:
    """Return the objects in an object, level by level."""
    inner = [each for each in islice(fields(value).values(), _MOST_KEYS) if type(each) is dict]
    return inner + [deeper for each in inner for deeper in _within(each, levels - 1)] if levels else []


def _page_in(text: str, end: str, arguments: Any) -> int:
    """Return what `further` does of a text, mostly JSON; ``end`` is its end."""
    ends = f"{text[:_HEAD]}\n{end}" if len(text) > _HEAD + PAGE_TAIL else text
    if not any(stem in ends for stem in _STEMS):
        return WHOLE
    if _LINK.search(ends):
        return PAGE
    if _CURSOR.search(ends) and (placed := _placed(text, ends, arguments)) is not None:
        return placed
    flags = _FLAG.findall(ends)
    if flags or _IS_PARTIAL.search(ends):
        return PAGE if "true" in flags or not flags else WHOLE
    return _counted_page(text, ends, arguments)


def _placed(text: str, ends: str, arguments: Any) -> int | None:
    """Return what `further` does of a text with a cursor in its ``ends``; None where that is none, in a long text.

    ``next`` is also a package of npm and the next step of a workflow: unless it is an address, its place decides.
    """
    if any(_STEP.match(ends, hit.start()) is None for hit in _CURSOR.finditer(ends)):
        return PAGE
    if len(text) <= _PARSED and text[0] in "{[":
        value = attempt(json.loads, text)
        if value is not None:
            return (_page_of(fields(value), arguments, 0) or WHOLE) if type(value) is dict else WHOLE
    hits = (*_STEP.finditer(text, 0, _HEAD), *_STEP.finditer(text, max(len(text) - PAGE_TAIL, 0)))
    return PAGE if any(is_own_key(text, *hit.span()) for hit in hits) else None


def _counted_page(text: str, ends: str, arguments: Any) -> int:
    """Return what `further` does of JSON with a total that its items do not reach."""
    if len(text) <= _PARSED:
        return _page_of(fields(attempt(json.loads, text, default={})), arguments, 0) or WHOLE
    items = _ITEMS.search(ends)
    if items is None or len(text) > _COUNTED or '"truncated"' in ends:
        return WHOLE
    known = {name: int(number) for name, number in _NUMBER.findall(ends)}
    if _MONEY.search(ends):
        known.pop("total", None)
    return _below_total(text.count(items[1]) if items[1] else 0, known, arguments)


def _below_total(items: int, known: dict[str, Any], arguments: Any) -> int:
    """Return what `further` does of so many items beside a total; where a size or a place is named, it is a page."""
    name = next((name for name in _TOTALS if type(known.get(name)) is int), None)
    if name is None or known[name] <= items:
        return WHOLE
    if name == "total" and (any(map(_MONEY.search, islice(known, _MOST_KEYS))) or _is_sum(known)):
        return WHOLE
    asked = named(arguments)
    offset, page, size = (
        next((each for name in names for each in (known.get(name), asked.get(name)) if type(each) is int), None)
        for names in (_OFFSETS, _PAGES, _SIZES)
    )
    if offset is None and page is None and size is None:
        return WHOLE if asks_for_a_page(arguments) else items or PAGE
    if offset is not None:
        is_more = offset + items < int(known[name])
    elif page is not None and page > 1:
        is_more = size is not None and (page - 1) * size + items < int(known[name])
    else:
        is_more = page is not None or not asks_for_a_page(arguments)
    return PAGE if is_more else WHOLE


def _is_sum(known: dict[str, Any]) -> bool:
    """Return True for a total that is the sum of the other numbers: of tests that passed and failed, for example.

    Not so where one of them is the number of further items.
    """
    places = ("total", *_OFFSETS, *_PAGES, *_SIZES)
    parts = {name: each for name, each in islice(known.items(), _MOST_KEYS) if type(each) is int and name not in places}
    return len(parts) > 1 and sum(parts.values()) == known["total"] and not any(map(_FURTHER.search, parts))


def _is_filled(value: Any) -> bool:
    """Return the truth of a plain value; that of any other object is its own code, which may run a query."""
    kind = type(value)
    # Compared by identity, because a class may have a metaclass that compares.
    is_plain = kind is str or kind is int or kind is float or kind is bool or kind is dict or kind is list
    return is_plain and bool(value)


# Cursors: a page names the next one by a value, in the result and in the arguments of a later call. The later call may
# be another tool's, such as ``get_page``. A value is recognised if it is long, or if the argument has a name of paging.
# A short value may be anything.

_ENDS: Final = 1024
_MOST: Final = 8
_LEAST_CHARACTERS: Final = 6
_LONGEST: Final = 2048
#: The last two are GraphQL's, beside a flag that there is more.
_NAMES: Final = (*CURSORS, "endCursor", "end_cursor")
_KEYS: Final = "|".join(map(re.escape, _NAMES))
_CURSOR_VALUE: Final = pattern(
    rf'"(?:{_KEYS})"\s*:\s*(?:\{{\s*"href"\s*:\s*)?("(?:[^"\\]|\\.)+"|[1-9][0-9]*)', re.IGNORECASE
)
_NEXT_LINK: Final = pattern(r"""<([^<>\s]+)>\s*;\s*rel=\\?["']?next\b""")


def cursors(value: Any) -> list[str]:
    """Return the values of a page for the next one, as texts; at most 8. Never runs code of a value."""
    if type(value) is dict:
        return list(islice(dict.fromkeys(_of_object(fields(value), 0)), _MOST))
    text = _only_text(value)
    if text is None:
        return []
    ends = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"
    written = [str(attempt(json.loads, found, default="")) for found in islice(_CURSOR_VALUE.findall(ends), _MOST)]
    return [*filter(None, written), *islice(_NEXT_LINK.findall(ends), _MOST)]


def next_page(arguments: Any) -> list[str]:
    """Return the values of a call's arguments that may come from a page before."""
    known = [(name, value) for name, value in named(arguments).items() if type(value) is str or type(value) is int]
    return [
        str(value)
        for name, value in known
        if name in PAGING or name in _NAMES or (type(value) is str and _LEAST_CHARACTERS <= len(value) <= _LONGEST)
    ]


def _of_object(known: dict[str, Any], depth: int) -> Iterator[str]:
    for name in _NAMES:
        value = known.get(name)
        value = fields(value).get("href") if type(value) is dict else value
        if (type(value) is str or type(value) is int) and value:
            yield str(value)
    for link in map(known.get, _LINKS):
        if type(link) is str:
            yield from _NEXT_LINK.findall(link[:_LONGEST])
    if depth < _DEEPEST:
        for each in _around(known):
            yield from _of_object(each, depth + 1)
