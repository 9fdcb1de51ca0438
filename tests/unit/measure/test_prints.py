"""Texts are recognised by their passages where they are quoted, and not where they have phrases in common."""

from __future__ import annotations

import base64
import json
import textwrap

from agent_otel.measure.prints import MOST, Found, StreamEnds, hashes_in, prints
from tests.rows import each_row

NAMES = ("Alice", "Bob", "Carla", "Dan", "Eva", "Finn", "Gia")


def document(number: int, lines: int = 100) -> str:
    """Return a text whose lines are like those of another number."""
    return "\n".join(
        f"Order {number}-{line}: {NAMES[line % 7]} bought {line} lamps of type {line * number}" for line in range(lines)
    )


WHOLE = document(3)
CHINESE = "。".join(f"第{number}行写着不同的内容，包括灯" for number in range(300))  # noqa: RUF001 - that is how it is written


@each_row(
    ("quote", "found"),
    [
        (WHOLE, Found(0, len(WHOLE), True, True)),
        (f"Observation: {WHOLE}\nThought:", Found(13, 13 + len(WHOLE), True, True)),
        ("nothing of it is here", None),
    ],
)
def test_where_a_text_is_quoted(quote: str, found: Found | None) -> None:
    known = prints(WHOLE)
    assert known is not None
    assert len(known.hashes) <= MOST
    assert known.find(quote) == found


@each_row(
    ("text", "quote"),
    [
        (WHOLE, WHOLE[:100]),
        (WHOLE, WHOLE[-300:]),
        (WHOLE, textwrap.fill(WHOLE, 50)),
        (WHOLE, json.dumps({"seen": WHOLE})),
        (WHOLE, f"{document(9)}\n{WHOLE[:1000]}\n{document(8)}"),
        (
            json.dumps({"rows": [{"id": n, "name": f"lamp {n}"} for n in range(100)]}),
            '{"rows":[{"id":0,"name":"lamp 0"}',
        ),
        (CHINESE, CHINESE[:200]),
        ("a" * 5_000, "aaaa" * 20),
        (base64.b64encode(bytes(range(256)) * 40).decode(), base64.b64encode(bytes(range(256))).decode()),
    ],
)
def test_quoted(text: str, quote: str) -> None:
    known = prints(text)
    assert known is not None
    assert known.is_quoted(hashes_in([quote]))


@each_row(
    ("text", "other"),
    [
        (WHOLE, "Order lamps of type 3, please. Alice bought some."),
        (WHOLE, "These are the files of the repository. " * 20),
        (CHINESE, "第1行"),
        ("The three lamps are in the store of Berlin", "The three stores are closed"),
    ],
)
def test_not_quoted(text: str, other: str) -> None:
    known = prints(text)
    assert known is not None
    assert not known.is_quoted(hashes_in([other]))


@each_row(
    "text",
    ["", "saved", "ok", "it is", "- - -", "\n" * 9, "one end alone" + " " * 5_000, "-" * 5_000 + "one end alone"],
)
def test_what_has_no_passage(text: str) -> None:
    assert prints(text) is None


@each_row("size", [1, 7, 500, 100_000])
def test_the_prints_of_a_stream_are_those_of_its_ends(size: int) -> None:
    found = StreamEnds()
    for start in range(0, len(WHOLE), size):
        found.add(WHOLE[start : start + size])
    known = found.prints()
    assert known is not None
    assert known.is_quoted(hashes_in([WHOLE[:100]]))
    assert known.is_quoted(hashes_in([WHOLE[-300:]]))
    found.add(b"no text")
    assert found.prints() is None
