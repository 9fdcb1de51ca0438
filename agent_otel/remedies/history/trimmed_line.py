"""The line that replaces an old result: its size, its tool, its status, its beginning, and its references."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.measure.preview import preview
from agent_otel.measure.size import block_text, json_size, text_bytes
from agent_otel.messages.fields import changed, fields, is_list
from agent_otel.remedies.history.text_references import MOST_PLACES, in_text, is_claim, is_named, is_reference
from agent_otel.semconv import TRIMMED

if TYPE_CHECKING:
    from collections.abc import Iterator


HEAD_CHARACTERS: Final = 150
"""Characters of a result's beginning that its line keeps."""

REFERENCE_CHARACTERS: Final = 600
"""Characters of references in a line; claim checks are kept beyond them."""

#: Characters of a URL or path: 16 in the default room.
_PLACE_CHARACTERS: Final = 37
_MOST_NAME: Final = 64
_MOST_NODES: Final = 200  # nodes of a structured result that are measured: 0.1 ms
_TRIMMED: Final = re.compile(r"\[trimmed \d+\+? bytes\] [^\n]*")
_NOT: Final = r"(?<!no )(?<!not )(?<!non-)(?<!zero )(?<!without )(?<!\b0 )(?<!un)"
_NOTHING: Final = r"(?![\w-]{0,12}[\"']?\s{0,2}[:=]\s{0,2}(?:[\"']?(?:0\b|null|none|false|\[\]|\{\})|\"\"|''))"
_STATUS: Final = r"status(?<=\bstatus)[_ ]?(?:code)?[\"']?"
# By a word that each match has: the patterns of an error, and of success.
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
        (
            "ok",
            r"ok[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:false|no)\b",
            r"ok(?<=[\"']ok)[\"']\s{0,2}:\s{0,2}true\b",
        ),
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
    """The parts of a line: characters of the beginning and of references, and a pattern of the program's own."""

    characters: int = HEAD_CHARACTERS
    reference_characters: int = REFERENCE_CHARACTERS
    pattern: re.Pattern[str] | None = None

    @property
    def places(self) -> int:
        """The number of URLs and paths that are searched for: those that fit, and at least the first 16."""
        return max(self.reference_characters // _PLACE_CHARACTERS, MOST_PLACES)


DEFAULT_FORM: Final = LineForm()


class Weight(NamedTuple):
    """Characters and UTF-8 bytes of a result's text for the model; a lower bound if not exact."""

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
    """Return the text of an object with one key; None for any other object."""
    if not issubclass(type(content), dict) or len(known := fields(content)) != 1:
        return None
    [inner] = known.values()
    return inner if type(inner) is str else None


def _block(block: Any) -> Weight | None:
    """Return the weight of a block; None for an image, a file, or another block without text."""
    text = block if type(block) is str else block_text(block)
    value = _value(block) if text is None else text
    if type(value) is str:
        return Weight(len(value), text_bytes(value))
    return None if value is None else _structured(value)


def _value(block: Any) -> Any:
    """Return the value of a block of Bedrock's JSON or of a document of Cohere's; None for any other block."""
    known = fields(block)
    if known.keys() == {"json"}:
        return known["json"]
    return fields(known.get("document")).get("data") if known.get("type") == "document" else None


def _structured(value: Any) -> Weight:
    size = json_size(value, _MOST_NODES)
    return Weight(size.bytes, size.bytes, size.exact)


def replaced(content: Any, line: str) -> Any:
    """Return the content with one text in the place of all its texts; other blocks stay."""
    if type(content) is str:
        return line
    if not is_list(content):
        known = fields(content)
        return {next(iter(known)) if len(known) == 1 else "result": line}
    if len(content) == 1:
        blocks = [_with_text(content[0], line)]
        return blocks if type(content) is list else tuple(blocks)
    texts = [place for place, block in enumerate(content) if _block(block) is not None]
    # A block's ``cache_control`` sets the end of a provider's cache, so that a block with it has to remain.
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
        for block in content:
            text = text_of(block)
            if text is not None:
                return text
        return None
    only = _only(content)
    text = block_text(content) if only is None else only
    value = _value(content) if text is None else text
    return value if type(value) is str else None


def has_failed(content: Any, said: bool | None) -> bool:  # noqa: FBT001 - what the message says of itself
    """Return True for an error: by the message's flag, else by the usual beginnings of error texts."""
    if said is not None:
        return said
    text = text_of(content)
    return text is not None and _FAILED.match(text) is not None


def status_of(head: str, said: bool | None) -> str | None:  # noqa: FBT001 - what the message says of itself
    """Return ``error`` or ``success`` for a result by its flag and its beginning, or None when neither shows it.

    Frameworks set a flag for success when a tool has not raised. It does not hide an HTTP status of 4xx or 5xx, and
    with a word of an error beside it the status is unknown.
    """
    if said:
        return "error"
    plain = head.lower()
    # A search for a word costs a tenth of the pattern's.
    signs = [patterns for word, patterns in _SIGNS.items() if word in plain]
    if _REASON.search(plain) or _FAILED.match(head) or (signs and any(error.search(plain) for error, _ in signs)):
        return "error"
    if ("error" in plain or "fail" in plain) and _WORD_OF_ERROR.search(plain):
        return None if said is False else "error"
    if said is False:
        return "success"
    return "success" if signs and any(success.search(plain) for _, success in signs) else None


def line(
    content: Any,
    weight: Weight,
    tool: str | None,
    *,
    said: bool | None,
    form: LineForm = DEFAULT_FORM,
) -> str:
    """Return the line for a result: its size, its tool, its status, its beginning and its references.

    References come after the beginning. One that does not fit is left out as a whole; claim checks always stay, because
    only they resolve to the result.
    """
    text, characters = text_of(content), form.characters
    head = preview(_structure(content), 4 * characters) if text is None else text
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


def _structure(content: Any) -> Any:
    """Return the value of the first structured block of a content, or the content itself."""
    values = map(_value, content) if is_list(content) else ()
    return next((value for value in values if value is not None), content)


def _printable(text: str) -> str:
    """Return a text on one line, with single blanks."""
    one = " ".join(text.split())
    return one if one.isprintable() else "".join(letter if letter.isprintable() else " " for letter in one)


def is_line(content: Any) -> bool:
    """Return True for a result that is trimmed already."""
    text = text_of(content)
    if text is None or not text.startswith(TRIMMED):
        return False
    return len(text) == weight(content).characters and _TRIMMED.fullmatch(text) is not None


_MOST_TEXTS: Final = 4096

_found: dict[tuple[int, int, re.Pattern[str] | None, int], tuple[str, ...]] = {}

# References in a result to data that is stored elsewhere: claim checks, ids, URLs and paths.


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
