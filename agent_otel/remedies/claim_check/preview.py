"""Truncation of a text to a number of bytes: between rows, elements or lines, never inside a character."""

from __future__ import annotations

import re
from typing import Final

#: A string, up to the text's end if it is truncated, or a character between values.
_MARK: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[,\[\]{}]', re.DOTALL)
#: The same in Python's writing, whose strings have quotation marks of either kind.
_PYTHON: Final = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?\Z)|" + _MARK.pattern, re.DOTALL)
_OPENING: Final = re.compile(r"[\[{]\s*['\"\[{0-9]")
#: The beginning of JSON, and not of a log's ``[2026-11-22 10:00] started`` or a page's ``[link](...)``.
_DOCUMENT: Final = re.compile(
    r"""\s*[\[{]\s*(?:['"\[{}]|\]\s*$|-?\d[\d.eE+-]*\s*(?:,|\]\s*$)|(?:true|false|null)\b)""", re.MULTILINE
)
#: Between the fields of a table's row.
_DELIMITERS: Final = (",", ";", "\t")
#: A quoted field of CSV, with its last quotation mark if the text has it.
_QUOTED: Final = re.compile(r'(?:\A|[,;\t\n])"(?:[^"]+|"")*("?)')
#: The first tag of a document of XML or HTML, behind its declarations.
_MARKUP: Final = re.compile(r"\s*<(?:[?!a-zA-Z_])")
#: A comment, raw text, or a tag: whether it closes, its name, and whether it is empty. Behind the name stands another
#: character than those of a name, or a tag without its end would take minutes.
_TAG: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(/?)([a-zA-Z_][^\s<>/]*)(?:[\s/][^<>]*?)??(/?)>", re.DOTALL
)
#: Elements, one inside of the other, that are distinguished.
_DEEPEST: Final = 64
#: The beginning of an item of YAML or of a list.
_ITEM: Final = re.compile(r"^( *)- ", re.MULTILINE)
#: Boundaries in the first eighth are ignored: they would lose more than a value that is split.
_LATEST: Final = 8


def head(text: str, limit_bytes: int) -> str:
    """Return the beginning of a text, at most ``limit_bytes`` UTF-8 bytes.

    JSON, XML and HTML end after a whole element, and not inside a row: a row without its last field reads like another
    row. Lines end after a whole line, rows of CSV behind their quoted fields, items of YAML and paragraphs where the
    next begins, other text between two characters. The boundary is
    searched in the last seven eighths of the limit. Where a single element takes more than that, the search goes on
    among the elements inside of it; without any boundary, the text ends at the limit.
    """
    encoded = text[:limit_bytes].encode("utf-8", "replace")
    if len(encoded) <= limit_bytes and len(text) <= limit_bytes:
        return text
    kept = encoded[:limit_bytes].decode("utf-8", "ignore")
    earliest = max(len(kept) // _LATEST, 1)
    end = _element_end(kept, earliest) if _DOCUMENT.match(kept) else -1
    if end < earliest and _MARKUP.match(kept):
        end = _markup_end(kept, earliest)
    if end < earliest:
        end = _line_end(kept, earliest)
    if end < earliest:  # a document behind a sentence, in one line
        opening = _OPENING.search(kept)
        end = -1 if opening is None else _element_end(kept, earliest, opening.start())
    return kept[:end] if end >= earliest else kept


def _line_end(kept: str, earliest: int) -> int:
    """Return the end of the last line; of a table, of the last one that does not end inside of a quoted field."""
    last = kept.rfind("\n") + 1
    first = kept[: kept.find("\n") + 1]
    if '"' not in kept or not any(each in first for each in _DELIMITERS):
        block = _block_end(kept, last)
        return last if block < 0 else block
    begins = next((match.start() for match in _QUOTED.finditer(kept, 0, last) if not match[1]), None)
    end = last if begins is None else kept.rfind("\n", 0, begins + 1) + 1
    return end if end >= earliest else last


def _block_end(kept: str, last: int) -> int:
    """Return the end of the last whole item or paragraph, where little stands behind it; -1 without."""
    latest = last - last // _LATEST
    items = list(_ITEM.finditer(kept, latest, last))
    outermost = min((len(item[1]) for item in items), default=0)
    item = max((item.start() for item in items if len(item[1]) == outermost), default=-1)
    paragraph = kept.rfind("\n\n", latest, last)
    return max(item, paragraph + 2 if paragraph >= 0 else -1)


def _markup_end(kept: str, earliest: int) -> int:
    """Return the end of the last element of the outermost one that has one from ``earliest`` on; -1 without.

    Tags that a page leaves open end with the element around them.
    """
    names: list[str] = []
    ends = [-1] * (_DEEPEST + 1)
    for tag in _TAG.finditer(kept):
        closes, name, is_empty = tag.groups()
        if name is None:
            continue
        if closes and name in names:
            while names.pop() != name:
                pass
        elif not (closes or is_empty):
            if len(names) < _DEEPEST:
                names.append(name)
            continue
        elif closes:
            continue
        ends[len(names)] = tag.end()
    return next((end for end in ends if end >= earliest), -1)


def _element_end(kept: str, earliest: int, start: int = 0) -> int:
    """Return the end of the last element of the outermost container that has one from ``earliest`` on; -1 without."""
    opening = kept[start : start + 3]
    mark = _PYTHON if "'" in opening else _MARK
    depth, ends = 0, [-1]
    for match in mark.finditer(kept, start):
        part = match[0]
        if part in "[{":
            depth += 1
            if depth == len(ends):
                ends.append(-1)
        elif part in "]}":
            depth = max(depth - 1, 0)
            ends[depth] = match.end()
        elif part == ",":
            ends[depth] = match.start()
    return next((end for end in ends if end >= earliest), -1)
