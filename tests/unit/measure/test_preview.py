"""What is kept of a text to find it again by."""

from __future__ import annotations

import pytest

from agent_otel.measure.preview import ends


@pytest.mark.parametrize(
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
