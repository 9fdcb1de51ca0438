"""What is kept of a text to find it again by."""

from __future__ import annotations

from agent_otel.measure.preview import StreamEnds, ends
from tests.rows import each_row


@each_row(
    ("expected", "value", "count"),
    [
        (("ab", "gh"), "abcdefgh", 2),
        (("abcd", "efgh"), "abcdefgh", 4),
        (None, "abcdefgh", 5),
        (None, "abcdefgh", 0),
        (("ab", "gh"), "\n abcdefgh\r\n", 2),  # as it stands where somebody has stripped it
        (("a", "h"), "   abcdefgh   ", 2),
        (None, " " * 9, 2),
        (None, ["abcdefgh"], 2),
    ],
)
def test_ends(expected: tuple[str, str] | None, value: object, count: int) -> None:
    assert expected == ends(value, count)


@each_row("count", [0, 1, 2, 4, 5])
@each_row(
    "pieces",
    [["abcdefgh"], ["abc", "", "d", "efgh"], [*"abcdefgh"], ["\n ab", "cdef", "gh\r\n"], [" " * 5, " " * 4], []],
)
def test_the_ends_of_a_stream_are_those_of_the_whole(pieces: list[str], count: int) -> None:
    found = StreamEnds(count)
    for piece in pieces:
        found.add(piece)
    assert found.found() == ends("".join(pieces), count)


def test_a_stream_with_an_object_is_no_text() -> None:
    found = StreamEnds(2)
    for piece in ("abcdefgh", {"a": 1}, "abcdefgh"):
        found.add(piece)
    assert found.found() is None
