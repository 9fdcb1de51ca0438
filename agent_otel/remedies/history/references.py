"""References in a result to data that is stored elsewhere: claim checks, ids, URLs and paths."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages.fields import fields, is_list

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_NODES: Final = 200
_MOST_HITS: Final = 32
_MOST_PLACES: Final = 16
"""URLs and paths: a listing has thousands, and its first ones say what it lists."""

_MOST_TEXTS: Final = 4096
_SHORTEST: Final = len("ref=1")
_CLAIM_STEM: Final = "claim:"
_STEMS: Final = {
    stem: re.compile(stem + rest)
    for stem, rest in (
        (_CLAIM_STEM, r"(?://|v\d)"),
        ("ref", r"(?<![a-zA-Z]ref)(?:s|erence)?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),  # no href, nor prefer
        ("Ref", r"(?:s|erence)?(?:_?[iI][dD])?(?:\\?\"|')?\s{0,2}[:=]"),
        ("REF", r"S?(?:_?ID)?(?:\\?\"|')?\s{0,2}[:=-]"),
        ("rtifact", r"s?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),
        ("ayload", r"_?[iI]d(?:\\?\"|')?\s{0,2}[:=]"),
    )
}
_CASES: Final = ("ref", "Ref", "REF")
_OTHERS: Final = tuple(stem for stem in _STEMS if stem not in (*_CASES, _CLAIM_STEM))
_KEYS: Final = (
    *("ref", "refid", "refids", "refs", "refno", "refnumber", "reference", "references", "referenceid", "referenceids"),
    *("referenceno", "referencenumber", "artifact", "artifacts", "artifactid", "artifactids", "payloadid"),
)
# An id in prose, a table, Markdown, XML or a list: "ref no. 8842", "| ref_id | A-1 |", "ref_ids: [1, 2]", "REF#7".
_WRITTEN: Final = {
    stem: re.compile(
        rf"{stem}(?<![a-zA-Z]{stem})(?:erence|ERENCE)?[sS]?(?:[_ ]?(?:[iI][dD]s?|IDS|[nN]o|NO|[nN]r|[nN]umber|NUMBER))?"
        r"(?P<is>[^\w\n/]{1,8}|[^\w\n/]{0,4} is )(?P<value>[\w./:#@+~-]{0,100}\d[\w./:#@+~-]{0,100})"
    )
    for stem in _CASES
}
_NEXT: Final = re.compile(r"\\?[\"']?\s{0,9},\s{0,9}\\?[\"']?(?P<value>[\w./:#@+~-]{1,120})")
_CLAIM: Final = re.compile(r"claim:(?://|v\d{1,3}:)[^\s\"'`<>()\[\]{},;\\]{1,500}")
_NAMED: Final = re.compile(
    r"(?P<key>\w{3,40})(?P<quoted>\\?\"|')?\s{0,2}(?P<is>[:=])\s{0,2}"
    r"(?:\[?\s{0,9}\{\s{0,9}\\?\"id\\?\"\s{0,2}:\s{0,2})?"  # an artifact is an object with an id
    r"(?:\\?\"|')?(?P<value>[\w./:#@+~-]{1,120})"
)
_TICKET: Final = re.compile(r"REF-\w[\w-]{0,60}")
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]{1,15}://[^\s\"'`<>()\[\]{},;\\|]{1,300}")
_PATH: Final = re.compile(r"(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]+)+|[\w.@+-]+(?:/[\w.@+-]+)+\.[a-zA-Z]\w{0,7}")
_IN_PATH: Final = frozenset("_.@+-~/")

_found: dict[tuple[int, int, re.Pattern[str] | None], tuple[str, ...]] = {}


def is_claim(reference: str) -> bool:
    """Return True for the reference of a claim check, which alone resolves to the whole result."""
    return reference.startswith("claim:")


def references(content: Any, pattern: re.Pattern[str] | None = None) -> list[str]:
    """Return the references to data stored elsewhere, in their order, without duplicates.

    These are claim checks (``claim:v2:…``, ``claim://…``), the values of keys such as ``ref``, ``ref_id``,
    ``resultRef``, ``artifact_id`` and ``full_payload_id``, ids such as ``REF-1234`` and ``ref no. 8842``, also in
    lists, tables and markup, and the first 16 URLs and paths.
    The matches of ``pattern`` come with them. A text is searched as a whole, once in a process.
    """
    found = list(dict.fromkeys(_references(content, pattern)))
    claims = [reference for reference in found if is_claim(reference)]
    # The path inside a claim check is no reference of its own.
    return [each for each in found if is_claim(each) or not any(each in claim for claim in claims)]


def _references(content: Any, pattern: re.Pattern[str] | None, depth: int = 4) -> Iterator[str]:
    if type(content) is str:
        yield from _of_text(content, pattern)
    elif depth and is_list(content):
        for value in content[:_MOST_NODES]:
            yield from _references(value, pattern, depth - 1)
    elif depth:
        known = fields(content)
        for key in list(known)[:_MOST_NODES]:
            value = known[key]
            if type(key) is str and is_reference(key):
                values = value if is_list(value) else (value,)
                named = [_under(key, each) for each in values[:_MOST_HITS]]
                yield from filter(None, named)
                if all(named) and len(named) == len(values):
                    continue
            yield from _references(value, pattern, depth - 1)


def _under(key: str, value: Any) -> str | None:
    """Return the reference that a value is under a key, None when it is none."""
    value = value.get("id") if type(value) is dict else value
    said = f"{key}={value}" if type(value) is str or type(value) is int else ""
    return said if "claim:" not in said and _NAMED.fullmatch(said) else None


def _of_text(text: str, pattern: re.Pattern[str] | None) -> tuple[str, ...]:
    """Return the references of a text; remembered by the text's hash, because each request has the text again."""
    if len(text) < _SHORTEST:
        return ()
    key = (hash(text), len(text), pattern)
    found = _found.get(key)
    if found is None:
        if len(_found) >= _MOST_TEXTS:
            _found.clear()
        found = _found[key] = tuple(_in_text(text, pattern))
    return found


def _in_text(text: str, pattern: re.Pattern[str] | None) -> Iterator[str]:
    stems = _stems(text)
    hits = {_word(text, hit.start()) for stem in stems for hit in islice(_STEMS[stem].finditer(text), _MOST_HITS)}
    for start in sorted(hits):
        claim = _CLAIM.match(text, start)
        if claim is not None:
            yield claim[0].rstrip(".:")
            continue
        ticket = _TICKET.match(text, start)
        if ticket is not None:
            yield ticket[0]
            continue
        named = _NAMED.match(text, start)
        # Prose may contain a colon, too: "ref: see below".
        if named is not None and is_reference(named["key"]) and "claim:" not in named[0]:
            value = named["value"].rstrip(".:")
            if named["quoted"] or named["is"] == "=" or any(map(str.isdigit, value)):
                yield f"{named['key']}={value}"
    loose = [_WRITTEN[stem] for stem in stems if stem in _WRITTEN]
    written = (hit for compiled in loose for hit in islice(compiled.finditer(text), _MOST_HITS))
    for hit in sorted(written, key=re.Match.start):
        yield from _written(text, hit)
    if pattern is not None:
        yield from (hit[0] for hit in islice(pattern.finditer(text), _MOST_HITS) if hit[0])
    if "/" in text:
        yield from _urls(text)
        yield from _paths(text)


def _stems(text: str) -> list[str]:
    """Return the stems that a text has; most have none.

    A search for a stem costs a tenth of its pattern's search, and that for a letter a fortieth of the stem's.
    """
    words = (_CLAIM_STEM, *_OTHERS) if "/" in text else _OTHERS  # a claim check's key is a path
    if "R" not in text:
        words = ("ref", *words)
    # To fold an ASCII text costs a third of the search for a stem; any other, ten times as much.
    elif not text.isascii() or "ref" in text.lower():
        words = (*_CASES, *words)
    return [stem for stem in words if stem in text]


def _written(text: str, hit: re.Match[str]) -> Iterator[str]:
    """Return an id as the text writes it, and the others of its list."""
    value = hit["value"].rstrip(".:")
    if "claim:" in value:
        return
    key = text[hit.start() : hit.start("is")].replace(" ", "_")
    yield f"{key}{hit['is']}{value}" if hit["is"] in ("-", "#") else f"{key}={value}"
    if "[" in hit["is"]:
        following = _NEXT.match(text, hit.end())
        for _ in range(_MOST_HITS):
            if following is None:
                return
            yield f"{key}={following['value'].rstrip('.:')}"
            following = _NEXT.match(text, following.end())


def _urls(text: str) -> Iterator[str]:
    at = text.find("://")
    for _ in range(_MOST_PLACES):
        if at < 0:
            return
        url = _URL.match(text, _start(text, at, frozenset("+.-")))
        if url is not None and not is_claim(url[0]):
            yield url[0].rstrip(".:!?")
        at = text.find("://", url.end() if url is not None else at + 3)


def _paths(text: str) -> Iterator[str]:
    at = text.find("/")
    for _ in range(4 * _MOST_PLACES):
        if at < 0:
            return
        start = _start(text, at, _IN_PATH)
        path = _PATH.match(text, start) if text[start - 1 : start] != ":" and text[at : at + 2] != "//" else None
        if path is not None:
            yield path[0].rstrip(".")
        # A URL's path is a part of it.
        blank = next((place for place in range(at, min(at + 300, len(text))) if text[place] in " \n\t\"'<>"), at + 1)
        at = text.find("/", max(path.end() if path is not None else blank, at + 1))


def _start(text: str, at: int, more: frozenset[str]) -> int:
    earliest = max(at - 80, 0)
    while at > earliest and (text[at - 1].isalnum() or text[at - 1] in more):
        at -= 1
    return at


def _word(text: str, at: int) -> int:
    earliest = max(at - 24, 0)
    while at > earliest and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at -= 1
    return at


def is_reference(key: str) -> bool:
    """Return True for a key whose value is a reference."""
    plain = key.replace("_", "").lower()
    return plain.endswith(_KEYS) and plain not in ("href", "prefs", "xref")
