"""Whole results that look cut: the part that rules may be tuned on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tests.accuracy.contents import CONTENTS, LANGUAGES, prose, rows
from tests.accuracy.notices import NOTICES

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

#: How a whole text quotes a notice.
QUOTED: Final[dict[str, Callable[[str], str]]] = {
    "code": lambda notice: f"    return text[:most] + {notice!r}",
    "constant": lambda notice: f"NOTICE = {json.dumps(chr(10) + notice)}  # what is left",
    "template": lambda notice: f"const cut = (text) => text.slice(0, 50) + `{notice}`;",
    "assertion": lambda notice: f'    assert cut("abcdef", 3) == "abc{notice}def"',
    "backticks": lambda notice: f"It leaves `{notice}` there.",
    "list": lambda notice: f"* {notice}",
    "mail": lambda notice: f"> {notice}",
    "change": lambda notice: f"+{notice}",
    "comment": lambda notice: f"# {notice}",
    "table": lambda notice: f"| a tool | {notice} | 3 |",
    "sentence": lambda notice: f"We saw {notice} in all of them.",
    "log": lambda notice: f"[10:30:07] INFO worker {notice} ms=12",
    "grep": lambda notice: f"src/cut.py:12:    suffix = '{notice}'",
    "example": lambda notice: f"For example:\n\n```\nfirst line\n{notice}\nlast line\n```",
    "docstring": lambda notice: f'TEXT = """\\\nfirst line\n{notice}\nlast line\n"""',
    "JSON": lambda notice: json.dumps({"note": f"It says {notice}", "ok": True}),
    "chat": lambda notice: f"user: what does '{notice}' mean?\nassistant: that the tool left something out.",
    "numbered": lambda notice: f'   120\t    suffix = "{notice}"\n   121\t    return text + suffix',
}

#: Lines of whole results that have the words, the numbers or the dots of notices.
_LINES: Final = [
    "The list is truncated when it is longer than the limit; see truncate().",
    "Comments were omitted, and the rest was elided or clipped.",
    "12 of 40 tests failed",
    "3 of 3 rows displayed",
    "Showing 20 of 20 results",
    "Showing rows 1 to 20 of 300",
    "Showing lines 100-150 of 5312",
    "Page 3 of 12",
    "page 1/7, next_cursor: MTIz",
    "20 results per page, 300 in all",
    "(1000 rows)",
    "120 rows in set (0.01 sec)",
    "[5 rows x 3 columns]",
    "... 23 more",
    "\tat com.example.Main.run(Main.java:12)\n\t... 23 more",
    "Caused by: java.io.EOFException: input truncated",
    "error: string literal truncated to 64 characters [-Werror=stringop-truncation]",
    "warning: 12 lines were skipped by the linter",
    "ok 12 - skips 3 lines",
    "Skipping 3 files, 12 more to go...",
    "Uploading 12 of 40 files...",
    "Processing... done.",
    "Done... and now the next one...",
    "and then, well...",
    "wait for it…",
    "[...]",
    "...",
    "(…)",
    "…",
    "$ head -n 20 a.log",
    "20 lines of output",
    "Truncated normal distribution (scipy.stats.truncnorm)",
    "The table was truncated.",
    "TRUNCATE TABLE events CASCADE;",
    "ALTER TABLE a DROP COLUMN truncated;",
    '"truncated": false',
    '"truncated":false,"has_more":true',
    "is_truncated: False",
    "stdout_truncated=False exit_code=0",
    "limit=50 offset=0 total=1200",
    "Maximum output: 30000 characters",
    "The limit of 50 rows was not reached.",
    "Results limited to one per host.",
    "more results may follow",
    "+12 -3",
    "+343 more than last year",
    "(12 more than expected)",
    "5 more files than before",
    "collected 120 items / 12 deselected / 108 selected",
    "12 files omitted from coverage",
    "Omitted: 3, included: 12",
    "Some lines were ellipsized, use -l to show in full.",
    "Hint: Some lines were ellipsized, use -l to show in full.",
    "(some text was removed by the author)",
    "[removed]",
    "[deleted]",
    "[sic]",
    "[1/12] Building",
    "[ 12 of 40] Compiling Main",
    "Everything is shown.",
    "Der Bericht wurde gekürzt, sagt er.",
    "Die Ausgabe ist vollständig: 12 von 12 Zeilen.",
    "Affichage de 12 résultats sur 12",
    "El informe fue truncado por el autor.",
    "他说这段话被截断了。",
    "第 3 页，共 12 页",
    "12 件中 12 件を表示",
    "이 글은 일부가 생략되었다고 한다.",
    "Показано 12 из 12",
    "DEBUG:root:truncated response body (12 bytes)",
    "npm warn deprecated glob@7.2.3: no longer supported",
    "... 12 lines ...",
    "# ... omitted ...",
    "// ... existing code ...",
    "<!-- truncated -->",
    "    ...",
    "/* truncated for readability */",
    "        ... (truncated)",
    "  - [truncated]",
    "see [truncated] below",
    "This page intentionally left blank.",
    "a/very/.../path | 12 +-",
    " .../integrations/frameworks/langchain.py | 120 ++++++++---",
    "HEAD is now at 1a2b3c4 fix: truncated output",
    "1a2b3c4 fix(shell): say how many lines were omitted",
    "* 1a2b3c4 [truncated] is now a reason",
    "2 errors, 12 warnings (3 hidden)",
    "12 hidden modules",
    "[12 unchanged lines]",
]
LINES: Final = [line for line in _LINES if line.strip()]


def documents(chance: random.Random) -> list[tuple[str, str]]:
    """Return whole documents, by kind: articles about cuts, data that has the keys, transcripts, translations."""
    words = "truncated omitted elided clipped the output too large is showing lines rows of results limit more".split()
    found = []
    for number in range(60):
        sentences = (" ".join(chance.choices(words, k=9)).capitalize() + "." for _ in range(12 + number * 3))
        found.append(("article", f"# How tools cut\n\n{' '.join(sentences)}\n"))
        page = rows(chance, 200 + number * 90)
        found.append(("flag", json.dumps({"truncated": False, "rows": page}, indent=chance.choice([None, 2]))))
        found.append(("cursor", json.dumps({"items": page, "next_cursor": f"MTIz{number}", "has_more": True})))
        found.append(("dots", prose(chance, 300 * (number + 1), LANGUAGES[number % 10]) + chance.choice(["..", "…"])))
        nested = {"note": "none was truncated", "parts": [{"truncated": True, "id": 1}], "rows": page}
        found.append(("nested", json.dumps(nested)))
        turns = (f"{who}: {prose(chance, 90)}..." for who in ("user", "assistant") * (number + 2))
        found.append(("chat", "\n\n".join(turns)))
        feed = (f"* {prose(chance, 80)[:70]}... [Read more](https://example.com/{n})" for n in range(number + 3))
        found.append(("feed", "\n".join(feed)))
        found.append(("prose", prose(chance, 250 * (number + 1), LANGUAGES[number % 10])))
    return found


def plain(chance: random.Random, count: int) -> list[tuple[str, str]]:
    """Return contents with nothing in them, of all kinds and sizes."""
    kinds = list(CONTENTS)
    return [
        (f"plain {kinds[n % 12]}", CONTENTS[kinds[n % 12]](chance, chance.randint(50, 40_000))) for n in range(count)
    ]


def quoted(chance: random.Random, count: int) -> list[tuple[str, str]]:
    """Return contents that quote a notice, of each kind of quotation."""
    found = []
    notices = [notice for notice in NOTICES if "only" not in notice.places and "\n" not in notice.template]
    for number in range(count):
        kind = list(QUOTED)[number % len(QUOTED)]
        notice = chance.choice(notices).template.replace("%n", "120").replace("%m", "5312").replace("%p", "/tmp/out")
        found.append((f"quoted {kind}", QUOTED[kind](notice)))
    return found
