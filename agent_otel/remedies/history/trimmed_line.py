"""The line that replaces an old result: its size, its tool, its status, and the references to its stored copy."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.measure.size import block_text, json_size, text_bytes
from agent_otel.messages.fields import changed, fields, is_list
from agent_otel.semconv import TRIMMED

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_CHARACTERS: Final = 150
SHORTEST_LINE: Final = 60
"""Minimum characters of a line: its fixed parts, and some of the tool's name."""

_LEAST_NAME: Final = 8
_MOST_NODES: Final = 200  # nodes of a structured result that are measured: 0.1 ms

_WINDOW: Final = 1024  # characters at both ends of a result that are searched for references
_MOST_HITS: Final = 32
_SHORTEST: Final = len("ref=1")
_STEMS: Final = {
    stem: re.compile(stem + rest)
    for stem, rest in (
        ("claim:", r"(?://|v\d)"),
        ("ref", r"(?<![a-zA-Z]ref)(?:s|erence)?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),  # no href, nor prefer
        ("Ref", r"(?:s|erence)?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),
        ("rtifact", r"s?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),
        ("ayload", r"_?[iI]d(?:\\?\"|')?\s{0,2}[:=]"),
    )
}
_KEYS: Final = ("ref", "refid", "refs", "reference", "referenceid", "artifact", "artifacts", "artifactid", "payloadid")
_CLAIM: Final = re.compile(r"claim:(?://|v\d{1,3}:)[^\s\"'`<>()\[\]{},;\\]{1,500}")
_TRIMMED: Final = re.compile(r"\[trimmed \d+\+? bytes\] [^\n]{0,700}")
_NAMED: Final = re.compile(
    r"(?P<key>\w{3,40})(?P<quoted>\\?\"|')?\s{0,2}(?P<is>[:=])\s{0,2}"
    r"(?:\[?\s{0,9}\{\s{0,9}\\?\"id\\?\"\s{0,2}:\s{0,2})?"  # an artifact is an object with an id
    r"(?:\\?\"|')?(?P<value>[\w./:#@+~-]{1,120})"
)
_FAILED: Final = re.compile(
    r"\s{0,9}(?:[\w.]{0,60}(?:Error|Exception)\s?[:(]|(?:ERROR|FAILED|[Ee]rror|[Ff]ailed)\s?[:(]"
    r"|Traceback \(most recent|An error occurred|Error (?:executing|invoking|calling|running) "
    r"|\{\s{0,9}\"(?:error\"\s{0,2}:\s{0,2}(?!null|false|\"\"|\{\}|\[\]|\s)|is_?[eE]rror\"\s{0,2}:\s{0,2}true"
    r"|(?:success|ok)\"\s{0,2}:\s{0,2}false|status\"\s{0,2}:\s{0,2}\"(?:error|fail)))"
)


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
    """Return the weight of a block; None for an image, a document, or another block without text."""
    text = block if type(block) is str else block_text(block)
    if text is not None:
        return Weight(len(text), text_bytes(text))
    inner = fields(block)
    return _structured(inner["json"]) if inner.keys() == {"json"} else None


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
    return {"text": line} if block_text(block) is None else changed(block, {("text",): line})


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
    return block_text(content) if only is None else only


def has_failed(content: Any, said: bool | None) -> bool:  # noqa: FBT001 - what the message says of itself
    """Return True for an error: by the message's flag, else by the usual beginnings of error texts."""
    if said is not None:
        return said
    text = text_of(content)
    return text is not None and _FAILED.match(text) is not None


def line(content: Any, weight: Weight, tool: str | None, *, failed: bool, characters: int) -> str:
    """Return the line for a result, of at most ``characters``; a reference that does not fit is left out as a whole.

    Claim-check references are never left out, because only they resolve to the result. When such a reference alone
    exceeds the limit, the line has no tool name and is longer than the limit.
    """
    begin = f"{TRIMMED}{weight.bytes}{'' if weight.exact else '+'} bytes] "
    status = "error" if failed else "success"
    name = _printable((tool or "")[:characters]).replace(" ", "_")
    left = characters - len(begin) - len(status)
    kept = ""
    for reference in sorted(references(content), key=_is_other):
        least = min(len(name), _LEAST_NAME) if _is_other(reference) or kept else 0
        if len(kept) + len(reference) + 2 <= left - least or not (kept or _is_other(reference)):
            kept += f" {reference}"
    left -= len(kept)
    if len(name) + 1 > left:
        name = name[: max(left - 2, 0)] + "…" if left > 3 else ""  # noqa: PLR2004 - a letter, the dots and a blank
    return f"{begin}{name} {status}{kept}" if name else f"{begin}{status}{kept}"


def _printable(name: str) -> str:
    return name if name.isprintable() else "".join(letter if letter.isprintable() else " " for letter in name)


def _is_other(reference: str) -> bool:
    """Return True for a reference other than a claim check's; claim checks are sorted first."""
    return not reference.startswith("claim:")


def is_line(content: Any) -> bool:
    """Return True for a result that is trimmed already."""
    text = text_of(content)
    if text is None or not text.startswith(TRIMMED):
        return False
    return len(text) == weight(content).characters and _TRIMMED.fullmatch(text) is not None


def references(content: Any) -> list[str]:
    """Return the references to data stored elsewhere, in their order, without duplicates.

    References are claim checks (``claim:v2:…``, ``claim://…``) and the values of keys such as ``ref``, ``ref_id``,
    ``resultRef``, ``artifact_id`` and ``full_payload_id``. Of a text, only 1,024 characters at both ends are searched.
    """
    return list(dict.fromkeys(_references(content)))


def _references(content: Any, depth: int = 4) -> Iterator[str]:
    if type(content) is str:
        yield from _in_text(content)
    elif depth and is_list(content):
        for value in content[:_MOST_NODES]:
            yield from _references(value, depth - 1)
    elif depth:
        known = fields(content)
        for key in list(known)[:_MOST_NODES]:
            value = known[key]
            if type(key) is str and _is_reference(key):
                value = known[key].get("id") if type(known[key]) is dict else known[key]
                said = f"{key}={value}" if type(value) is str or type(value) is int else ""
                if "claim:" not in said and _NAMED.fullmatch(said):
                    yield said
                    continue
            yield from _references(known[key], depth - 1)


def _in_text(text: str) -> Iterator[str]:
    if len(text) < _SHORTEST:
        return
    ends = text if len(text) <= 2 * _WINDOW else f"{text[:_WINDOW]}\n{text[-_WINDOW:]}"
    # A search for a stem costs a tenth of its pattern's search, and most results have no stem.
    stems = [pattern for stem, pattern in _STEMS.items() if stem in ends]
    hits = {_word(ends, hit.start()) for stem in stems for hit in islice(stem.finditer(ends), _MOST_HITS)}
    for start in sorted(hits):
        claim = _CLAIM.match(ends, start)
        if claim is not None:
            yield claim[0].rstrip(".:")
            continue
        named = _NAMED.match(ends, start)
        # Prose may contain a colon, too: "ref: see below".
        if named is not None and _is_reference(named["key"]) and "claim:" not in named[0]:
            value = named["value"].rstrip(".:")
            if named["quoted"] or named["is"] == "=" or any(map(str.isdigit, value)):
                yield f"{named['key']}={value}"


def _word(text: str, at: int) -> int:
    earliest = max(at - 24, 0)
    while at > earliest and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at -= 1
    return at


def _is_reference(key: str) -> bool:
    plain = key.replace("_", "").lower()
    return plain.endswith(_KEYS) and plain not in ("href", "prefs", "xref")
