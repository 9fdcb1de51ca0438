"""The line of each old result, made once in a process: every request of a run holds the same results again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.measure.size import block_text, text_bytes
from agent_otel.messages.fields import is_list
from agent_otel.remedies.history.placeholders import is_placeholder
from agent_otel.remedies.history.text_references import is_reference
from agent_otel.remedies.history.trimmed_line import is_line, line, weight

if TYPE_CHECKING:
    from collections.abc import Hashable

    from agent_otel.remedies.history.trimmed_line import LineForm
    from agent_otel.remedies.history.turns import Result

_MOST_LINES: Final = 4096
_MOST_BLOCKS: Final = 16
_PLAIN_FIELDS: Final = 2  # type and text

_lines: dict[Hashable, Trimmed | None] = {}


class Trimmed(NamedTuple):
    """The line in the place of a result, and the UTF-8 bytes that it removes."""

    line: str
    removed_bytes: int


_NOT_MADE: Final = Trimmed("", 0)


def trimmed(result: Result, form: LineForm) -> Trimmed | None:
    """Return the line of a result; None for one that stays unchanged.

    The line of a result of texts is remembered by the hashes of the texts, which Python keeps with a text. Neither the
    texts nor the messages are kept.
    """
    content = result.answered.content
    texts = _texts(content)
    if texts is None:
        return _trimmed(content, result, form)
    key = (*map(hash, texts), *map(len, texts), result.name, result.answered.failed, form)
    made = _lines.get(key, _NOT_MADE)
    if made is _NOT_MADE:
        # A text alone has the line of the block or the mapping around it, and is read in less time.
        made = _trimmed(texts[0] if len(texts) == 1 else content, result, form)
        if len(_lines) >= _MOST_LINES:
            _lines.clear()
        _lines[key] = made
    return made


def _trimmed(content: Any, result: Result, form: LineForm) -> Trimmed | None:
    heavy = weight(content)
    if heavy.characters <= form.characters or is_line(content) or is_placeholder(content):
        return None
    made = line(content, heavy, result.name, said=result.answered.failed, form=form)
    removed_bytes = heavy.bytes - text_bytes(made)
    return Trimmed(made, removed_bytes) if removed_bytes > 0 else None


def _texts(content: Any) -> tuple[str, ...] | None:
    """Return the texts of a content that is nothing but texts: one, plain blocks, or the only value of a mapping."""
    if type(content) is str:
        return (content,)
    if type(content) is dict:
        if len(content) != 1:
            return None
        [(key, text)] = content.items()
        return (text,) if type(text) is str and type(key) is str and not is_reference(key) else None
    if not is_list(content) or len(content) > _MOST_BLOCKS:
        return None
    texts = []
    for block in content:
        # A block with other fields may name references in them.
        is_plain = type(block) is dict and len(block) <= _PLAIN_FIELDS
        text = block if type(block) is str else block_text(block) if is_plain else None
        if text is None:
            return None
        texts.append(text)
    return tuple(texts)
