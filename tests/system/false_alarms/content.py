"""Results of tools from which nothing is missing, though many of them speak of what is cut, as agents read them daily.

Everything is made from a seed, so that a loop's two hundred results are the same in every process and every run.
"""

from __future__ import annotations

import base64
import json
import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CALLS: Final = 200

#: Characters that results have, in turn, at least; some are much longer, see below.
_SIZES: Final = (0, 40, 700, 1_500, 2_600, 300, 5_500, 90, 11_000, 3_200, 1_100)

#: Numbers of the results that are exactly so many characters long, ASCII alone: just as long as somebody's cap.
EXACT: Final = {
    11: 10_000, 31: 16_000, 51: 20_000, 71: 25_000, 91: 30_000, 111: 32_768, 131: 50_000, 151: 65_536, 171: 8_192,
}  # fmt: skip
#: Numbers of the results that are long.
LONG: Final = {45: 60_000, 83: 120_000, 141: 300_000}
#: Numbers of the results that are nothing.
EMPTY: Final = (5, 99, 160)

_TEXT: Final = (
    "the query returns every row of a table that the planner has read since its last restart while another session "
    "waits for its lock and the index grows so that readers see what writers have left behind them until it is "
    "vacuumed by a worker whose limits are set in the configuration of this cluster or its parent"
)
_WORDS: Final = tuple(_TEXT.split())

# What programs leave behind when they cut, as a text that quotes it has it.
NOTICES: Final = (
    "... [truncated]",
    "...[truncated]",
    "… [truncated]",
    "... [12,345 characters truncated] ...",
    "... [204 lines omitted] ...",
    "…8123 tokens truncated…",
    "[Content truncated]",
    "[OUTPUT TRUNCATED - exceeded 25000 token limit]",
    "[... 14000 characters truncated ...]",
    "... Output truncated at 30000 bytes",
    "[Old tool result content cleared]",
    "Output too large (58.6KB). Full output saved to: /tmp/out.txt",
    "<response clipped><NOTE>Only part of the file is shown.</NOTE>",
)


def produce(seed: str, number: int) -> Any:
    """Return the result with this number, of 200: text, or an object that is no text."""
    # Nobody's secret, and the same everywhere.
    some = random.Random(f"{seed}/{number}")  # noqa: S311
    if number in EMPTY:
        return ""
    if number in EXACT:
        return exactly(some, EXACT[number])
    if number % 10 == 7:
        return OBJECTS[number // 10 % len(OBJECTS)](some, _SIZES[number % len(_SIZES)] // 4)
    make = TEXTS[(number * 7 + len(seed)) % len(TEXTS)]
    return make(some, LONG.get(number, _SIZES[number % len(_SIZES)]))


def exactly(some: random.Random, length: int) -> str:
    """Return sentences of so many characters in all, the last one whole."""
    text = prose(some, length - 400)
    last = " ".join(some.choice(_WORDS) for _ in range(200))
    room = length - len(text) - len(" Done: .")
    return f"{text} Done: {last[:room].rstrip().ljust(room, 'e')}."


def _sentence(some: random.Random) -> str:
    return f"{' '.join(some.choice(_WORDS) for _ in range(some.randint(4, 18)))}.".capitalize()


def _until(size: int, parts: Iterator[str], glue: str = "\n") -> str:
    found: list[str] = []
    length = 0
    while length < size or not found:
        found.append(next(parts))
        length += len(found[-1]) + len(glue)
    return glue.join(found)


def _repeated(make: Callable[[random.Random], str], some: random.Random) -> Iterator[str]:
    while True:
        yield make(some)


def prose(some: random.Random, size: int) -> str:
    """Sentences."""
    return _until(size, _repeated(_sentence, some), " ")


def paragraphs(some: random.Random, size: int) -> str:
    """Paragraphs with Windows' line ends."""
    return _until(size, (prose(some, 300) for _ in iter(int, 1)), "\r\n\r\n") + "\r\n"


def ends_openly(some: random.Random, size: int) -> str:
    """Text that its author has left open."""
    end = ("…", "...", " [...]", " […]", " etc...", " (more)", "\n...", "\n[...]", " to be continued ...", " more ⟶")
    return prose(some, size).removesuffix(".") + some.choice(end)


def about_truncation(some: random.Random, size: int) -> str:
    """Documentation of limits, its examples in quotes of all kinds, or in the middle of a sentence."""

    def said(some: random.Random) -> str:
        notice = some.choice(NOTICES)
        return some.choice(
            (
                f"Where a result exceeds the limit, `{notice}` is appended and the rest is omitted.",
                f'The model then sees "{notice}" in its place.',
                f"It used to say \u2018{notice}\u2019, and \u201c{notice}\u201d before that.",
                f"We saw {notice} at the end of each file, which it did not do before.",
                f"Results are truncated, clipped or elided when too large. {_sentence(some)}",
                f"* `{notice}`: {_sentence(some)}",
                f"> {notice}",
                f"    {notice}",
            )
        )

    body = _until(size, (some.choice((said, _sentence))(some) for _ in iter(int, 1)), some.choice(("\n", "\n\n")))
    close = (f"It ends in `{some.choice(NOTICES)}`.", "See truncate() …", "The rest is omitted here.", _sentence(some))
    return f"# Truncation\n\n{body}\n\n{some.choice(close)}\n"


def limits(some: random.Random, size: int) -> str:
    """A README about the limits of coding agents: a table, and an example in a fence."""
    rows = "\n".join(f"| {_sentence(some)} | {1000 * row:,} | `{n}` |" for row, n in enumerate(NOTICES))
    table = f"| Tool | Limit | What it leaves |\n| --- | --- | --- |\n{rows}"
    fence = some.choice(("```", "~~~"))
    example = f"{fence}text\nfirst line\n{some.choice(NOTICES)}\nlast line\n{fence}"
    parts = [table, prose(some, size), example]
    some.shuffle(parts)
    end = some.choice(("", "\n\nSet `MAX_MCP_OUTPUT_TOKENS` to change it.", "\n"))
    return "# Output limits of Claude Code\n\n" + "\n\n".join(parts) + end


def source(some: random.Random, size: int) -> str:
    """A program that cuts, with what it leaves behind as literals."""

    def function(some: random.Random) -> str:
        name, notice, quote = some.choice(_WORDS), some.choice(NOTICES), some.choice("\"'")
        cut = f"    return text[:most] + {quote}{notice}{quote}\n"
        both = f"    return text[:half] + f{quote}\\n{notice}\\n{quote} + text[-half:]\n"
        return some.choice(
            (
                f"def cut_{name}(text: str, most: int) -> str:\n    if len(text) <= most:\n        return text\n{cut}",
                f"def cut_{name}(text, most):\n    half = most // 2\n{both}",
                f"MARKER_{name.upper()} = {quote}\\n\\n{notice}{quote}  # {_sentence(some)}\n",
                f"{name.upper()} = {quote * 3}\\\nfirst\n{notice}\nlast\n{quote * 3}\n",
                f"# {notice}\n{name} = {len(name)}\n",
                f"def {name}(rows):\n    return {{'rows': rows[:50], 'truncated': len(rows) > 50}}\n",
            )
        )

    return "from __future__ import annotations\n\n" + _until(size, _repeated(function, some), "\n\n")


def script(some: random.Random, size: int) -> str:
    """The same in JavaScript."""

    def function(some: random.Random) -> str:
        name, notice = some.choice(_WORDS), some.choice(NOTICES)
        return some.choice(
            (
                f'function {name}(rows) {{\n  return {{"rows": rows, "truncated": true}};\n}}\n',
                f"const {name} = (s) => s.slice(0, 50) + `{notice}`;\n",
                "  log(`${s.slice(0, 9)}...[truncated ${s.length - 9} chars]`)\n",
                f"// {notice}\nexport const {name} = {{ truncated: true }};\n",
                '  return s + "\\n... [output truncated]";\n',
            )
        )

    return _until(size, _repeated(function, some), "\n")


def diff(some: random.Random, size: int) -> str:
    """A change that adds notices."""

    def hunk(some: random.Random) -> str:
        notice, number = some.choice(NOTICES), some.randint(1, 900)
        return (
            f"@@ -{number},4 +{number},6 @@ def render(text):\n     half = most // 2\n"
            f'-    return text[:most]\n+    cut = text[:most]\n+    return cut + "{notice}"\n'
            f"+{notice}\n-{notice}\n {_sentence(some)}"
        )

    return f"diff --git a/cut.py b/cut.py\n--- a/cut.py\n+++ b/cut.py\n{_until(size, _repeated(hunk, some))}\n"


def log(some: random.Random, size: int) -> str:
    """A server's log, bodies shortened by whoever wrote it, and Java's stack traces."""

    def line(some: random.Random) -> str:
        at = f"[2026-11-{some.randint(1, 30):02} 10:{some.randint(0, 59):02}:07] INFO"
        return some.choice(
            (
                f"{at} {_sentence(some)}",
                f'{at} POST /v1/search 200 body="{_sentence(some)}... [truncated]" ms={some.randint(1, 99)}',
                f"{at} POST /v1/search 200 {_sentence(some)}...[truncated 120 chars] ms={some.randint(1, 99)}",
                f"{at} failed\njava.lang.IllegalStateException: {_word(some)}\n\tat a.b.C.d(C.java:12)\n\t... 12 more",
                f"{at} Caused by: E: {_sentence(some)}\n\tat a.b.C.d(C.java:12)\n\t... 34 common frames omitted",
            )
        )

    return _until(size, _repeated(line, some)) + some.choice(("", "\n"))


def tests(some: random.Random, size: int) -> str:
    """What a test run prints: pytest shortens the comparison, not the output."""
    cases = _until(size, (f"tests/test_{w}.py::test_{w} PASSED" for w in _repeated(_word, some)))
    return (
        f"{cases}\nE       AssertionError: assert [1, 2, 3, ...] == [1, 2, 4, ...]\n"
        "E         ...Full output truncated (23 lines hidden), use '-vv' to show\n"
        f"FAILED tests/test_a.py::test_b - AssertionError: assert 'aaa...aaa' == ...\n1 failed in 0.{len(cases)}s"
    )


def _word(some: random.Random) -> str:
    return some.choice(_WORDS)


def _row(some: random.Random) -> dict[str, Any]:
    return {"id": some.randint(1, 9_999), "name": _sentence(some), "tags": [_word(some), None], "ok": True, "p": 1.5}


def _rows(some: random.Random, size: int) -> list[dict[str, Any]]:
    return [_row(some) for _ in range(max(1, size // 130))]


def json_list(some: random.Random, size: int) -> str:
    """A JSON array, compact or over many lines."""
    return json.dumps(_rows(some, size), indent=some.choice((None, 1, 2)))


def json_object(some: random.Random, size: int) -> str:
    """A JSON object with what it is about in front or at the end."""
    found = {"rows": _rows(some, size), "total": size, "truncated": False, "took": "3 ms"}
    return json.dumps(found, indent=some.choice((None, 2)), ensure_ascii=some.random() < 0.5)


def json_with_notices(some: random.Random, size: int) -> str:
    """JSON whose texts quote notices, the last one at its very end, and tables that were truncated, as SQL has it."""
    rows = [{"title": _sentence(some), "note": f"{_sentence(some)}{some.choice(NOTICES)}"} for _ in range(size // 130)]
    tables = [{"table": _word(some), "truncated": True, "rows": 0}, {"table": _word(some), "truncated": False}]
    found = {"tables": tables, "rows": rows, "last": f"{_sentence(some)}\n{some.choice(NOTICES)}"}
    if some.random() < 0.5:
        found = {"rows": rows, "jobs": tables[::-1], "by": {"truncated": True}}
    return json.dumps(found, indent=some.choice((None, 2)))


def page(some: random.Random, size: int) -> str:
    """A page of results, and where the next one begins: in it, or in words behind it."""
    cursor = base64.b64encode(_sentence(some).encode()).decode()
    rows = {"items": _rows(some, size)}
    return some.choice(
        (
            json.dumps({**rows, "next_cursor": cursor, "has_more": True, "total": 5_120}),
            json.dumps(rows) + f"\nnext_cursor: {cursor}",
            json.dumps(rows, indent=2) + f"\n\n50 of 5120 items. Next page: {cursor}",
            _until(size, _repeated(_sentence, some)) + f"\n\nPage 1 of 7. To go on, pass cursor={cursor!r} ...",
        )
    )


def lines(some: random.Random, size: int) -> str:
    """JSON objects, one a line, short or long; no line end after the last one."""
    wide = some.choice((1, 30))
    return _until(size, (json.dumps({"n": 1, "rows": _rows(some, 130 * wide)}) for _ in iter(int, 1)))


def half_a_line(some: random.Random, size: int) -> str:
    """The same of a file that is being written: the program has not come further yet."""
    return f"{lines(some, size)}\n" + json.dumps(_row(some))[: some.randint(20, 60)]


def table(some: random.Random, size: int) -> str:
    """A table whose last column is only shown as far as it fits."""
    rows = _until(size, (f"| {_word(some):12} | {_sentence(some)[:30]}[...] |" for _ in iter(int, 1)))
    return f"| name | text |\n| --- | --- |\n{rows}"


def csv(some: random.Random, size: int) -> str:
    """Values with commas between them, texts in quotes."""
    return _until(
        size, (f'{some.randint(1, 99)},"{_sentence(some)}... [truncated]",{_word(some)}' for _ in iter(int, 1))
    )


def xml(some: random.Random, size: int) -> str:
    """A feed whose descriptions are abstracts."""
    items = _until(
        size,
        (
            f"<item><title>{_word(some)}</title><description>{_sentence(some)}... [truncated]</description></item>"
            for _ in iter(int, 1)
        ),
    )
    return f'<?xml version="1.0"?>\n<rss><channel>\n{items}\n</channel></rss>\n'


def representation(some: random.Random, size: int) -> str:
    """What Python prints of objects."""
    rows = _rows(some, size)
    array = "array([[0.1, 0.2, ..., 0.3],\n       [0.4, 0.5, ..., 0.6]])"
    return some.choice((repr(rows), str({"rows": rows, "more": "... [truncated]"}), f"[{rows[0]}, ...]", array))


def files(some: random.Random, size: int) -> str:
    """A listing that counts what it does not name."""
    named = _until(size, (f"M  src/{_word(some)}/{_word(some)}.py" for _ in iter(int, 1)))
    return f"{named}\n{some.choice(('and 5 more files', '(5 more)', '+5 …'))}"


def fenced(some: random.Random, size: int) -> str:
    """Markdown with a fence that nobody closed."""
    return f"## Steps\n\n```python\nprint('a')\n```\n\n{prose(some, size)}\n\n```sh\ntruncate --size 0 log.txt\n"


def base64_text(some: random.Random, size: int) -> str:
    """Bytes."""
    return base64.b64encode(some.randbytes(size * 3 // 4 + 1)).decode()


def other_scripts(some: random.Random, size: int) -> str:
    """Text of two to four bytes a character."""
    words = ("größe", "数据被截断了。", "データは省略", "обрезано…", "👩‍👩‍👧", "é", "القطع", "“… ”")
    return _until(size, (some.choice(words) for _ in iter(int, 1)), " ") + some.choice(("…", "。", " 🙂", " 👩‍👧"))


def settings(some: random.Random, size: int) -> str:
    """JSON with comments, as editors keep it."""
    rows = _until(size, (f'  "{_word(some)}.limit": {some.randint(1, 99)}, // truncated beyond' for _ in iter(int, 1)))
    return f"{{\n  // Output is truncated beyond these.\n{rows}\n  // end"


def thread(some: random.Random, size: int) -> str:
    """People who talk of a tool that cuts."""

    def said(some: random.Random) -> str:
        notice = some.choice(NOTICES)
        return some.choice(
            (
                f"@{_word(some)}: my output says {notice} since the update, why?",
                f"> {notice}\n\nThat is the limit. {_sentence(some)}",
                f"@{_word(some)}: {_sentence(some)}",
                f"- [ ] do not write {notice} into files",
            )
        )

    return _until(size, _repeated(said, some), "\n\n") + f"\n\n@{_word(some)}: thanks ..."


TEXTS: Final[tuple[Callable[[random.Random, int], str], ...]] = (
    prose, paragraphs, ends_openly, about_truncation, limits, source, script, diff, log, tests, json_list, json_object,
    json_with_notices, page, lines, half_a_line, table, csv, xml, representation, files, fenced, base64_text,
    other_scripts, settings, thread,
)  # fmt: skip


def plain_object(some: random.Random, size: int) -> dict[str, Any]:
    """Rows as an object."""
    return {"rows": _rows(some, size), "total": size, "truncated": False}


def page_object(some: random.Random, size: int) -> dict[str, Any]:
    """A page."""
    return {"items": _rows(some, size), "next_cursor": _word(some), "has_more": True}


def file_object(some: random.Random, size: int) -> dict[str, Any]:
    """A file, which is longer in JSON than in other forms: it has many quotes, line ends and other scripts."""
    quoted = "".join(f'<a href="{_word(some)}" title="größe">…</a>\n' for _ in range(size // 30 + 1))
    return {"path": "src/cut.py", "content": quoted + source(some, size), "previous": None}


def notices_object(some: random.Random, size: int) -> dict[str, Any]:
    """Texts that quote notices, and flags that are not the result's own."""
    tables = [{"table": _word(some), "truncated": True}]
    return {"notes": [f"{_sentence(some)}{notice}" for notice in NOTICES] * (size // 500 + 1), "tables": tables}


OBJECTS: Final[tuple[Callable[[random.Random, int], dict[str, Any]], ...]] = (
    plain_object, page_object, file_object, notices_object,
)  # fmt: skip
