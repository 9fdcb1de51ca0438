"""References in one text: claim checks, ids, URLs and paths.

The first request of a process may bring megabytes of texts that it has not had before, so each of them is searched with
few passes: `str.rfind` for words that are rare, which takes a third to a half of the time of `str.find` before Python
3.14, and one pattern for all paths.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_PLACES: Final = 16
"""URLs and paths: a listing has thousands, and its first ones say what it lists. There are twice as many ids."""

_FEW: Final = 8
_LONGEST_CLAIM: Final = 512
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SHORTEST: Final = len("ref=1")
_CAPITAL: Final = re.compile("R(?:ef|EF)")
_STEMS: Final = {
    stem: re.compile(stem + rest)
    for stem, rest in (
        ("claim:", r"(?://|v\d)"),
        ("ref", r"(?<![a-zA-Z]ref)(?:s|erence)?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),  # no href, nor prefer
        ("Ref", r"(?:s|erence)?(?:_?[iI][dD])?(?:\\?\"|')?\s{0,2}[:=]"),
        ("REF", r"S?(?:_?ID)?(?:\\?\"|')?\s{0,2}[:=-]"),
        ("rtifact", r"s?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),
        ("ayload", r"_?[iI]d(?:\\?\"|')?\s{0,2}[:=]"),
    )
}
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
    for stem in ("ref", "Ref", "REF")
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
_URL_SIGNS: Final = frozenset("+.-")
_PATH: Final = r"(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]+)+|[\w.@+-]+(?:/[\w.@+-]+)+\.[a-zA-Z]\w{0,7}"
# From one slash to the next: the blank or sign before its word, and a path, or what stands up to the next blank. A
# URL's path is a part of it, and so long a word is no path. Each text matches to its end, whatever it holds.
_TO_BLANK: Final = r"[^ \n\t\"'<>]{0,298}(?=[ \n\t\"'<>])"
_SLASH: Final = re.compile(
    r"(?:[^/]*[^\w.@+~/-]|(?<![\w.@+~/-]))"
    rf"(?:(?<!:)(?![\w.@+~/-]{{600}})(?![\w.@+~-]*//)({_PATH})|[\w.@+~-]*/(?:{_TO_BLANK})?)"
    rf"|[^/]*/(?:(?=/){_TO_BLANK})?|[^/]+"
)
_REST: Final = re.compile(r"[^ \n\t\"'<>]{0,600}[ \n\t\"'<>]?")


def is_claim(reference: str) -> bool:
    """Return True for the reference of a claim check, which alone resolves to the whole result."""
    return reference.startswith("claim:")


def is_reference(key: str) -> bool:
    """Return True for a key whose value is a reference."""
    plain = key.replace("_", "").lower()
    return plain.endswith(_KEYS) and plain not in ("href", "prefs", "xref")


def is_named(said: str) -> bool:
    """Return True for a key and its value, as ``key=value``, that are a reference."""
    return "claim:" not in said and _NAMED.fullmatch(said) is not None


def in_text(text: str, pattern: re.Pattern[str] | None, places: int = MOST_PLACES) -> list[str]:
    """Return the references in a text and the matches of ``pattern``, in the order of their kinds."""
    if len(text) < _SHORTEST:
        return []
    slashes = _few(text, "/")
    found = _ids(text, 2 * places, slashes)
    if pattern is not None:
        found += [hit[0] for hit in islice(pattern.finditer(text), 2 * places) if hit[0]]
    if slashes != []:
        url = _first_url(text, slashes)
        if url >= 0:
            found += _urls(text, places, url)
        found += _paths(text, places)
    return found


def _ids(text: str, most: int, slashes: list[int] | None) -> list[str]:
    named: set[int] = set()
    written: list[re.Match[str]] = []
    for stem in _stems(text, slashes):
        _collect(text, stem, most, named, written)
    found = [] if not named else [said for said in (_named(text, start) for start in sorted(named)) if said is not None]
    for hit in sorted(written, key=re.Match.start) if written else ():
        found += _written(text, hit, most)
    return found


def _stems(text: str, slashes: list[int] | None) -> Iterator[str]:
    """Yield the stems that a text may have. To look for a letter costs a tenth of looking for a word."""
    if "f" in text:
        yield "ref"
        yield "rtifact"
    if "R" in text:
        few = _few(text, "R")
        yield from set(_CAPITAL.findall(text)) if few is None else {text[at : at + 3] for at in few} & _WRITTEN.keys()
    if "y" in text:
        yield "ayload"
    # A claim check's key is a path, so that one is looked for before each of a few slashes.
    if slashes is None or any("claim:" in text[max(at - _LONGEST_CLAIM, 0) : at] for at in slashes):
        yield "claim:"


def _few(text: str, letter: str) -> list[int] | None:
    """Return the places of a letter; None for more than a few."""
    places: list[int] = []
    at = text.find(letter)
    while at >= 0:
        if len(places) == _FEW:
            return None
        places.append(at)
        at = text.find(letter, at + 1)
    return places


def _places(text: str, word: str) -> Iterable[int]:
    """Return the places of a word, for which a text is searched from its end as long as they are few."""
    places: list[int] = []
    at = text.rfind(word)
    while at >= 0:
        if len(places) == _FEW:
            return _every(text, word)
        places.append(at)
        at = text.rfind(word, 0, at)
    places.reverse()
    return places


def _every(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def _collect(text: str, stem: str, most: int, named: set[int], written: list[re.Match[str]]) -> None:
    """Add the beginnings of what is named behind a stem, and what is written behind it, at most so many of each."""
    places = _places(text, stem)
    if not places:
        return
    naming, writing = _STEMS[stem], _WRITTEN.get(stem)
    names = end = 0
    writes = 0 if writing is not None else most
    for at in places:
        if names >= most and writes >= most:
            return
        begins = not at or text[at - 1] not in _LETTERS
        if (begins or stem != "ref") and names < most and naming.match(text, at) is not None:
            named.add(_word(text, at))
            names += 1
        if writing is not None and begins and at >= end and writes < most:
            hit = writing.match(text, at)
            if hit is not None:
                written.append(hit)
                writes, end = writes + 1, hit.end()


def _named(text: str, start: int) -> str | None:
    """Return the reference that begins at a place of a text."""
    first = text[start]
    claim = _CLAIM.match(text, start) if first == "c" else None
    if claim is not None:
        return claim[0].rstrip(".:")
    ticket = _TICKET.match(text, start) if first == "R" else None
    if ticket is not None:
        return ticket[0]
    named = _NAMED.match(text, start)
    # Prose may contain a colon, too: "ref: see below".
    if named is not None and is_reference(named["key"]) and "claim:" not in named[0]:
        value = named["value"].rstrip(".:")
        if named["quoted"] or named["is"] == "=" or any(map(str.isdigit, value)):
            return f"{named['key']}={value}"
    return None


def _written(text: str, hit: re.Match[str], most: int) -> Iterator[str]:
    """Return an id as the text writes it, and the others of its list."""
    value = hit["value"].rstrip(".:")
    if "claim:" in value:
        return
    key = text[hit.start() : hit.start("is")].replace(" ", "_")
    yield f"{key}{hit['is']}{value}" if hit["is"] in ("-", "#") else f"{key}={value}"
    if "[" in hit["is"]:
        following = _NEXT.match(text, hit.end())
        for _ in range(most):
            if following is None:
                return
            yield f"{key}={following['value'].rstrip('.:')}"
            following = _NEXT.match(text, following.end())


def _urls(text: str, places: int, at: int) -> Iterator[str]:
    for _ in range(places):
        if at < 0:
            return
        url = _URL.match(text, _start(text, at))
        if url is not None and not is_claim(url[0]):
            yield url[0].rstrip(".:!?")
        at = text.find("://", url.end() if url is not None else at + 3)


def _first_url(text: str, slashes: list[int] | None) -> int:
    """Return the place of the first ``://``; -1 without one."""
    if slashes is None:
        return next(iter(_places(text, "://")), -1)
    return next((at - 1 for at in slashes if at and text[at - 1 : at + 2] == "://"), -1)


def _start(text: str, at: int) -> int:
    earliest = max(at - 80, 0)
    if text.endswith("https", earliest, at):
        at -= len("https")
    while at > earliest and (text[at - 1].isalnum() or text[at - 1] in _URL_SIGNS):
        at -= 1
    return at


def _paths(text: str, places: int) -> list[str]:
    end = _REST.match(text, text.rfind("/") + 1)  # behind it is no path, and nothing is searched in vain
    hits = _SLASH.finditer(text, 0, end.end() if end is not None else len(text))
    return [path.rstrip(".") for path in (hit[1] for hit in islice(hits, 4 * places)) if path]


def _word(text: str, at: int) -> int:
    earliest = max(at - 24, 0)
    while at > earliest and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at -= 1
    return at
