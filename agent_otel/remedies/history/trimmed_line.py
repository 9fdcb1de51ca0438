"""The line that replaces an old result: its size, tool, status, beginning and references.

The first request of a process may bring megabytes of new texts. So each text is searched for references in few passes:
`str.find` for rare words, and one pattern for all paths.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.measure.preview import preview
from agent_otel.measure.size import block_text, json_size, text_bytes
from agent_otel.messages.fields import changed, fields, is_list
from agent_otel.semconv import TRIMMED

if TYPE_CHECKING:
    from collections.abc import Iterator


MOST_PLACES: Final = 16
"""URLs and paths: a listing has thousands, and its first ones say what it lists. There are twice as many ids."""

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
_PATH: Final = r"(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]+)+|[\w.@+-]+(?:/[\w.@+-]+)+\.[a-zA-Z]\w{0,7}"
# Match from one slash to the next: the blank or sign before its word, then a path or the text up to the next blank. A
# URL's path is a part of the URL. A word of 600 or more characters is not a path. Every text matches to its end.
_TO_BLANK: Final = r"[^ \n\t\"'<>]{0,298}(?=[ \n\t\"'<>])"
_SLASH: Final = re.compile(
    r"(?:[^/]*[^\w.@+~/-]|(?<![\w.@+~/-]))"
    rf"(?:(?<!:)(?![\w.@+~/-]{{600}})(?![\w.@+~-]*//)({_PATH})|[\w.@+~-]*/(?:{_TO_BLANK})?)"
    rf"|[^/]*/(?:(?=/){_TO_BLANK})?|[^/]+"
)
_REST: Final = re.compile(r"[^ \n\t\"'<>]{0,600}[ \n\t\"'<>]?")


def is_claim(reference: str) -> bool:
    """Return True for the reference of a claim check. Only a claim check resolves to the whole result."""
    return reference.startswith("claim:")


def is_reference(key: str) -> bool:
    """Return True if the value of the key is a reference."""
    plain = key.replace("_", "").lower()
    return plain.endswith(_KEYS) and plain not in ("href", "prefs", "xref")


def is_named(said: str) -> bool:
    """Return True if a key and its value, as ``key=value``, are a reference."""
    return "claim:" not in said and _NAMED.fullmatch(said) is not None


def in_text(text: str, pattern: re.Pattern[str] | None, places: int = MOST_PLACES) -> list[str]:
    """Return the references in a text and the matches of ``pattern``, ordered by kind."""
    found = _ids(text, 2 * places)
    if pattern is not None:
        found += [hit[0] for hit in islice(pattern.finditer(text), 2 * places) if hit[0]]
    if "/" in text:
        found += islice(_urls(text), places)
        end = _REST.match(text, text.rfind("/") + 1)  # no path follows, so the search ends here
        hits = _SLASH.finditer(text, 0, end.end() if end is not None else len(text))
        found += [path.rstrip(".") for path in (hit[1] for hit in islice(hits, 4 * places)) if path]
    return found


def _ids(text: str, most: int) -> list[str]:
    named: set[int] = set()
    written: list[re.Match[str]] = []
    for stem in _STEMS:
        _collect(text, stem, most, named, written)
    found = [said for said in (_named(text, start) for start in sorted(named)) if said is not None]
    for hit in sorted(written, key=re.Match.start):
        found += _written(text, hit, most)
    return found


def _every(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def _collect(text: str, stem: str, most: int, named: set[int], written: list[re.Match[str]]) -> None:
    """Add the positions of a stem's named references and the matches of its written ids, at most ``most`` of each."""
    naming, writing = _STEMS[stem], _WRITTEN.get(stem)
    names = end = 0
    writes = 0 if writing is not None else most
    for at in _every(text, stem):
        if names >= most and writes >= most:
            return
        begins = not at or not text[at - 1].isalpha()
        if (begins or stem != "ref") and names < most and naming.match(text, at) is not None:
            named.add(_word_start(text, at, 24, "_"))
            names += 1
        if writing is not None and begins and at >= end and writes < most:
            hit = writing.match(text, at)
            if hit is not None:
                written.append(hit)
                writes, end = writes + 1, hit.end()


def _named(text: str, start: int) -> str | None:
    """Return the reference that begins at a position of a text."""
    first = text[start]
    claim = _CLAIM.match(text, start) if first == "c" else None
    if claim is not None:
        return claim[0].rstrip(".:")
    ticket = _TICKET.match(text, start) if first == "R" else None
    if ticket is not None:
        return ticket[0]
    named = _NAMED.match(text, start)
    # Prose may contain a colon too: "ref: see below".
    if named is not None and is_reference(named["key"]) and "claim:" not in named[0]:
        value, is_id = named["value"].rstrip(".:"), named["key"].lower().endswith(("id", "ids"))
        if named["quoted"] or named["is"] == "=" or is_id or any(map(str.isdigit, value)):
            return f"{named['key']}={value}"
    return None


def _written(text: str, hit: re.Match[str], most: int) -> Iterator[str]:
    """Yield an id as the text writes it, then the next ids of its list."""
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


def _urls(text: str) -> Iterator[str]:
    end = 0
    for at in _every(text, "://"):
        url = _URL.match(text, _word_start(text, at, 80, "+.-")) if at >= end else None
        if url is not None:
            end = url.end()
            if not is_claim(url[0]):
                yield url[0].rstrip(".:!?")


def _word_start(text: str, at: int, longest: int, signs: str) -> int:
    """Return the start of the word that ends at a position. A word has letters, digits and ``signs``."""
    earliest = max(at - longest, 0)
    while at > earliest and (text[at - 1].isalnum() or text[at - 1] in signs):
        at -= 1
    return at


HEAD_CHARACTERS: Final = 150
"""Characters of a result's beginning that its line keeps."""

REFERENCE_CHARACTERS: Final = 600
"""Characters of references in a line; claim checks are kept beyond them."""

#: Characters reserved for a URL or path: 16 fit into the default limit.
_PLACE_CHARACTERS: Final = 37
_MOST_NAME: Final = 64
_MOST_NODES: Final = 200  # nodes of a structured result that are measured: 0.1 ms
_TRIMMED: Final = re.compile(r"\[trimmed \d+\+? bytes\] [^\n]*")
_NOT: Final = r"(?<!no )(?<!not )(?<!non-)(?<!zero )(?<!without )(?<!\b0 )(?<!un)"
_NOTHING: Final = r"(?![\w-]{0,12}[\"']?\s{0,2}[:=]\s{0,2}(?:[\"']?(?:0\b|null|none|false|\[\]|\{\})|\"\"|''))"
_STATUS: Final = r"status(?<=\bstatus)[_ ]?(?:code)?[\"']?"
# The patterns of an error and of success. The key is a word that each match contains.
_SIGNS: Final = {
    word: (re.compile(error), re.compile(success))
    for word, error, success in (
        (
            "http",
            r"http(?<=\bhttp)(?:/[\d.]{1,3})?[ \w]{0,20}[\"']?[:= ]{0,3}[\"']?[45]\d\d\b",
            r"http(?<=\bhttp)(?:/[\d.]{1,3})? 2\d\d\b",
        ),
        (
            "status",
            _STATUS + r"(?:\s{0,2}[:=]\s{0,2}|\s)[\"']?[45]\d\d\b",
            _STATUS + r"\s{0,2}[:=]\s{0,2}[\"']?(?:2\d\d|ok)\b",
        ),
        (
            "success",
            r"success[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:false|no)\b",
            r"success(?<!unsuccess)(?<!not success)(?<!no success)(?<!without success)(?:ful|fully|_)?\b",
        ),
        ("ok", r"ok[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:false|no)\b", r"ok(?<=[\"']ok)[\"']\s{0,2}:\s{0,2}true\b"),
    )
}
_REASON: Final = re.compile(
    r"[45](?<![\d.,][45])\d\d (?:bad request|unauthorized|forbidden|not found|conflict|gone|too many requests"
    r"|unprocessable|internal server error|bad gateway|service unavailable|gateway time)"
)
_WORD_OF_ERROR: Final = re.compile(_NOT + r"(?<![a-z])(?:error|failed|failure)(?:s?\b|_)" + _NOTHING)
_FAILED: Final = re.compile(
    r"\s{0,9}(?:[\w.]{0,60}(?:Error|Exception)\s?[:(]|(?:ERROR|FAILED|[Ee]rror|[Ff]ailed)\s?[:(]"
    r"|Traceback \(most recent|An error occurred|Error (?:executing|invoking|calling|running) "
    r"|\{\s{0,9}\"(?:error\"\s{0,2}:\s{0,2}(?!null|false|\"\"|\{\}|\[\]|\s)|is_?[eE]rror\"\s{0,2}:\s{0,2}true"
    r"|(?:success|ok)\"\s{0,2}:\s{0,2}false|status\"\s{0,2}:\s{0,2}\"(?:error|fail)))"
)


class LineForm(NamedTuple):
    """The parts of a line: characters of the beginning and of references, and the program's pattern."""

    characters: int = HEAD_CHARACTERS
    reference_characters: int = REFERENCE_CHARACTERS
    pattern: re.Pattern[str] | None = None

    @property
    def places(self) -> int:
        """The number of URLs and paths to search for: as many as fit, but at least the first 16."""
        return max(self.reference_characters // _PLACE_CHARACTERS, MOST_PLACES)


DEFAULT_FORM: Final = LineForm()


class Weight(NamedTuple):
    """Characters and UTF-8 bytes of a result's text for the model. If not exact, they are a lower bound."""

    characters: int
    bytes: int
    exact: bool = True


def weight(content: Any) -> Weight:
    """Measure a result's content: a text, the text and JSON blocks of a list, or a structured value as JSON."""
    if type(content) is str:
        return Weight(len(content), text_bytes(content))
    if is_list(content):
        weights = [found for found in map(_block, content) if found is not None]
        exact = all(found.exact for found in weights)
        return Weight(sum(found.characters for found in weights), sum(found.bytes for found in weights), exact)
    if not issubclass(type(content), dict):
        return Weight(0, 0)
    inner = _only(content)
    return Weight(len(inner), text_bytes(inner)) if inner is not None else _structured(content)


def _only(content: Any) -> str | None:
    """Return the text of an object with one key. Return None for any other object."""
    if not issubclass(type(content), dict) or len(known := fields(content)) != 1:
        return None
    [inner] = known.values()
    return inner if type(inner) is str else None


def _block(block: Any) -> Weight | None:
    """Return the weight of a block. Return None for an image, a file, or another block without text."""
    text = block if type(block) is str else block_text(block)
    value = _value(block) if text is None else text
    if type(value) is str:
        return Weight(len(value), text_bytes(value))
    return None if value is None else _structured(value)


def _value(block: Any) -> Any:
    """Return the value of a JSON block of Bedrock or a document of Cohere. Return None for any other block."""
    known = fields(block)
    if known.keys() == {"json"}:
        return known["json"]
    return fields(known.get("document")).get("data") if known.get("type") == "document" else None


def _structured(value: Any) -> Weight:
    size = json_size(value, _MOST_NODES)
    return Weight(size.bytes, size.bytes, size.exact)


def replaced(content: Any, line: str) -> Any:
    """Return the content with one text instead of all its texts. Keep other blocks."""
    if type(content) is str:
        return line
    if not is_list(content):
        known = fields(content)
        return {next(iter(known)) if len(known) == 1 else "result": line}
    texts = [place for place, block in enumerate(content) if len(content) == 1 or _block(block) is not None]
    # A block's ``cache_control`` sets the end of a provider's cache. So a block with it has to remain.
    kept = next((place for place in texts if "cache_control" in fields(content[place])), texts[0])
    blocks = [
        _with_text(block, line) if place == kept else block
        for place, block in enumerate(content)
        if place == kept or place not in texts
    ]
    return blocks if type(content) is list else tuple(blocks)


def _with_text(block: Any, line: str) -> Any:
    if type(block) is str:
        return line
    if block_text(block) is not None:
        return changed(block, {("text",): line})
    return {"type": "text", "text": line} if "type" in fields(block) else {"text": line}


def text_of(content: Any) -> str | None:
    """Return the first text of a content."""
    if type(content) is str:
        return content
    if is_list(content):
        return next((text for text in map(text_of, content) if text is not None), None)
    only = _only(content)
    text = block_text(content) if only is None else only
    value = _value(content) if text is None else text
    return value if type(value) is str else None


def has_failed(content: Any, said: bool | None) -> bool:  # noqa: FBT001 - the message's flag
    """Return True for an error. Use the message's flag, else the usual beginnings of error texts."""
    if said is not None:
        return said
    text = text_of(content)
    return text is not None and _FAILED.match(text) is not None


def status_of(head: str, said: bool | None) -> str | None:  # noqa: FBT001 - the message's flag
    """Return ``error`` or ``success`` from a result's flag and beginning, or None if neither shows it."""
    if said:
        return "error"
    plain = head.lower()
    # A search for a word costs a tenth of a search for its pattern.
    signs = [patterns for word, patterns in _SIGNS.items() if word in plain]
    if _REASON.search(plain) or _FAILED.match(head) or (signs and any(error.search(plain) for error, _ in signs)):
        return "error"
    if ("error" in plain or "fail" in plain) and _WORD_OF_ERROR.search(plain):
        return None if said is False else "error"
    if said is False:
        return "success"
    return "success" if signs and any(success.search(plain) for _, success in signs) else None


def line(content: Any, weight: Weight, tool: str | None, *, said: bool | None, form: LineForm = DEFAULT_FORM) -> str:
    """Return the line for a result. Drop references that do not fit, except claim checks."""
    head, characters = text_of(content), form.characters
    if head is None:  # the first structured block, or the content itself
        values = map(_value, content) if is_list(content) else ()
        head = preview(next((value for value in values if value is not None), content), 4 * characters)
    status = status_of(head[:HEAD_CHARACTERS], said)
    shown = _printable(head[:characters].strip())
    name = _printable((tool or "")[:_MOST_NAME]).replace(" ", "_")
    begin = " ".join(filter(None, (name, status)))
    kept, left = [], form.reference_characters
    for reference in references(content, form.pattern, form.places):
        if is_claim(reference):
            kept.append(reference)
        elif len(reference) < left and reference not in shown:
            kept.append(reference)
            left -= len(reference) + 1
    body = f"{begin}: {shown}" if begin and shown else begin or shown
    more = "…" if shown and len(head) > characters else ""
    return " ".join((f"{TRIMMED}{weight.bytes}{'' if weight.exact else '+'} bytes] {body}{more}", *kept))


def _printable(text: str) -> str:
    """Return a text on one line, with single blanks."""
    one = " ".join(text.split())
    return one if one.isprintable() else "".join(letter if letter.isprintable() else " " for letter in one)


def is_line(content: Any) -> bool:
    """Return True if a result is already trimmed."""
    text = text_of(content)
    if text is None or not text.startswith(TRIMMED):
        return False
    return len(text) == weight(content).characters and _TRIMMED.fullmatch(text) is not None


_MOST_TEXTS: Final = 4096

_found: dict[tuple[int, int, re.Pattern[str] | None, int], tuple[str, ...]] = {}


def references(content: Any, pattern: re.Pattern[str] | None = None, places: int = MOST_PLACES) -> list[str]:
    """Return the references to data stored elsewhere, in order and without duplicates. Claims hide their paths."""
    is_text = type(content) is str
    hits = in_text(content, pattern, places) if is_text else _references(content, pattern, places)
    found = list(dict.fromkeys(hits))
    claims = [reference for reference in found if "claim:" in reference and is_claim(reference)]
    if not claims:
        return found
    # The path inside a claim check is not a separate reference.
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
                ids = [each.get("id") if type(each) is dict else each for each in values[: 2 * places]]
                said = [f"{key}={each}" if type(each) in (str, int) else "" for each in ids]
                named = [each if is_named(each) else None for each in said]
                yield from filter(None, named)
                if all(named) and len(named) == len(values):
                    continue
            yield from _references(value, pattern, places, depth - 1)


def _of_text(text: str, pattern: re.Pattern[str] | None, places: int) -> tuple[str, ...]:
    """Return the references of a text. Cache them by the text's hash, because each request repeats the text."""
    key = (hash(text), len(text), pattern, places)
    found = _found.get(key)
    if found is None:
        if len(_found) >= _MOST_TEXTS:
            _found.clear()
        found = _found[key] = tuple(in_text(text, pattern, places))
    return found
