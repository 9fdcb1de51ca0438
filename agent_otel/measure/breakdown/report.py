"""The breakdown of a payload: bytes by JSON path, by tool and by call, and texts that occur twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_otel._internal.errors import ours
from agent_otel.measure.breakdown.accumulator import Tally
from agent_otel.measure.breakdown.json_reader import MALFORMED, STEPS, Reader, Window, chunks_of
from agent_otel.measure.breakdown.paths import OTHER, largest
from agent_otel.measure.breakdown.unread import Unread
from agent_otel.measure.json_pieces import pieces
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.measure.breakdown.unread import Held, UnreadBytes


_MOST_PATHS: Final = 256
_MOST_DUPLICATES: Final = 32
STEPS_OF_OBJECTS: Final = 50_000  # steps of the walk over a live object: 12.8 MB of texts, at most 50 ms
_HEAD: Final = 4096  # characters that show whether the serialiser writes blanks after its punctuation


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Bytes that occur at one path and again at another. The smaller copy of each pair counts."""

    path: str
    other_path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The composition of a payload, in UTF-8 bytes as written. Dictionaries and tuples start with the largest.

    ``paths`` has the leaves. Their sizes include the quotes and escapes of texts. Keys and punctuation are the rest of
    ``total_bytes``. A list index is ``[]``. A key that is data is ``*``. A payload that is a single value is ``$``. If
    there are more than 256 paths, the smallest are summed as ``_other``.

    ``tools`` counts each occurrence of a result. A result that occurs twice counts twice. ``calls`` counts only the
    largest copy of each result.

    ``unread`` has the bytes that no model request contained. It is None if they are unknown.

    If the breakdown is not ``exact``, a part was not read or not kept. If an object has a key twice, only one value
    counts. Beyond 8 Ki characters of a text, only 128 of each 1,024 characters are compared.
    """

    total_bytes: int
    paths: dict[str, int]
    largest_path: str
    largest_path_bytes: int
    tools: dict[str, int]
    unattributed_bytes: int
    calls: dict[str, int]
    duplicates: tuple[Duplicate, ...]
    duplicate_bytes: int
    exact: bool
    unread: UnreadBytes | None = None


def breakdown_text(
    data: bytes | bytearray | memoryview | str,
    tool_of: Callable[[str], str | None],
    is_tool: Callable[[str], bool] = bool,
    held: Held | None = None,
) -> Breakdown | None:
    """Return the composition of a serialised payload, or None if it is not JSON.

    The payload may also be JSON that contains JSON in a string, a list of such arguments, or several JSON texts in a
    row. Cut-off JSON is analysed up to the cut. ``tool_of`` returns the tool of a call id. ``is_tool`` returns True if
    a name in the payload is the name of a tool. ``held`` has the contents of model requests. The analysis needs less
    than 1 MB in addition to the payload. Other threads run meanwhile. No text makes it raise.
    """
    if isinstance(data, memoryview):
        data = data.cast("B")
    total = text_bytes(data) if isinstance(data, str) else len(data)
    return breakdown_chunks(chunks_of(data), total, tool_of, is_tool=is_tool, held=held)


def breakdown_chunks(  # noqa: PLR0913 - the parameters of breakdown_text, and the steps
    chunks: Iterator[str],
    total: int,
    tool_of: Callable[[str], str | None],
    *,
    is_tool: Callable[[str], bool] = bool,
    held: Held | None = None,
    steps: int = STEPS,
) -> Breakdown | None:
    """Return the composition of a text in chunks. It has ``total`` bytes. Read it in at most so many ``steps``."""
    window = Window(chunks)
    if not window.peek():
        return None
    gap = 1 if '": ' in window.text[:_HEAD] else 0
    tally = Tally(tool_of, is_tool, gap, Unread(held) if held is not None else None)
    reason = Reader(window, tally, steps=steps).read(tally.root)
    read = window.read()
    if reason is not None and (not tally.paths.sizes(1) or (reason is MALFORMED and read * 2 <= total)):
        return None
    return _breakdown(tally, total, whole=reason is None and read == total)


def breakdown_object(
    value: object, tool_of: Callable[[str], str | None], is_tool: Callable[[str], bool] = bool, held: Held | None = None
) -> Breakdown | None:
    """Return the composition of a live object as compact UTF-8 JSON.

    If the object is large, analyse only its beginning (not ``exact``). A value without JSON counts as the name of its
    type. No code of the value runs.
    """
    cut = []

    def chunks() -> Iterator[str]:
        try:
            yield from pieces(value, STEPS_OF_OBJECTS, is_read=True)
        except ours(RuntimeError, ValueError) as error:  # too large, or another thread has changed it
            cut.append(error)

    tally = Tally(tool_of, is_tool, unread=Unread(held) if held is not None else None)
    window = Window(chunks())
    reason = Reader(window, tally, 0).read(tally.root)
    return _breakdown(tally, window.read(), whole=reason is None and not cut) if window.read() else None


def _breakdown(tally: Tally, total: int, *, whole: bool) -> Breakdown:
    paths = tally.paths.sizes(_MOST_PATHS)
    largest_path = next((path for path in paths if path != OTHER), "")
    tools = tally.results.tools(tally.copies.groups)
    for one, other, size in tally.results.pairs():
        tally.copies.same(one.place.path, other.place.path, size)
    unread = tally.unread.totals(tally.results.scopes()) if tally.unread is not None else None
    duplicates = sorted(tally.copies.found.items(), key=lambda item: -item[1])
    return Breakdown(
        total_bytes=total,
        paths=paths,
        largest_path=largest_path,
        largest_path_bytes=paths.get(largest_path, 0),
        tools=tools,
        unattributed_bytes=max(0, total - sum(tools.values())),
        calls=tally.results.calls(),
        duplicates=tuple(Duplicate(one, other, size) for (one, other), size in duplicates[:_MOST_DUPLICATES]),
        duplicate_bytes=sum(size for _, size in duplicates),
        exact=whole and tally.complete and tally.copies.complete and tally.results.complete,
        unread=unread._replace(paths=largest(unread.paths, _MOST_PATHS)) if unread is not None else None,
    )
