"""Builds the labelled corpus: each case is a result with its label, the same in every run."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.accuracy import aside, whole
from tests.accuracy.contents import CONTENTS, SIZES, encoded, prose, rows
from tests.accuracy.notices import NOTICES, Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHARES: Final = (0.1, 0.2, 1 / 3, 0.5, 0.6, 2 / 3, 0.8, 0.9)
_FOOTERS: Final = (
    "\n[The command completed with exit code 0.]\n[Current working directory: /workspace]\n",
    "\n\nExit code: 0\nWall time: 1.2 seconds\n",
    '\n{"exit_code": 0, "duration_ms": 120}',
    "\n\n## Next steps\nUse a narrower query.\n",
)


class Case(NamedTuple):
    """A result. ``reason`` is None for a whole one; ``tool`` is then the kind of text that looks cut."""

    reason: str | None
    language: str
    tool: str
    place: str
    text: str


def _numbered(text: str) -> str:
    lines = (f"{number:6}\t{line}" for number, line in enumerate(text.split("\n"), 1))
    return "Here's the result of running `cat -n` on /repo/a.py:\n" + "\n".join(lines) + "\n"


def _split(text: str, chance: random.Random, *, at_line: bool) -> tuple[str, str]:
    at = int(len(text) * chance.choice(_SHARES))
    if at_line:
        at = max(text.rfind("\n", 0, at), 0) or at
        return text[:at], text[at:].lstrip("\n")
    return text[:at], text[at:]


#: How a content and a notice become one result, by place.
PLACES: Final[dict[str, Callable[[str, str, random.Random], str]]] = {
    "end": lambda text, notice, chance: f"{text}\n{notice}{chance.choice(['', chr(10)])}",
    "tail": lambda text, notice, _: text[:-7] + notice,
    "front": lambda text, notice, _: f"{notice}\n{text}",
    "footer": lambda text, notice, chance: f"{text}\n{notice}{chance.choice(_FOOTERS)}",
    "split": lambda text, notice, chance: f"\n{notice}\n".join(_split(text, chance, at_line=True)),
    "inline": lambda text, notice, chance: notice.join(_split(text, chance, at_line=False)),
    "numbered": lambda text, notice, chance: _numbered(notice.join(_split(text, chance, at_line=False))),
    "numbered-end": lambda text, notice, _: _numbered(text + notice),
    "leaf": lambda text, notice, _: json.dumps({"id": 7, "text": text[:-7] + notice, "ok": True}, ensure_ascii=False),
    "json-notice": lambda _, notice, chance: f"{json.dumps(rows(chance, 900))}\n\n{notice}",
    "notice-json": lambda _, notice, chance: f"{notice}\n{json.dumps(rows(chance, 900))}",
    "table": lambda _, notice, chance: f"{CONTENTS['table'](chance, 900)}\n| {notice} |",
    "csv": lambda _, notice, chance: f"{CONTENTS['CSV'](chance, 900)}\n{notice},,,",
    "html": lambda text, notice, _: f"<div>{prose(random.Random(len(text)), 900)}</div>\n<p><em>{notice}</em></p>\n",
    "ansi": lambda text, notice, _: f"{text}\n\x1b[33m{notice}\x1b[0m\n",
    "markdown": lambda text, notice, _: f"{text}\n\n*{notice}*\n",
    "xml": lambda text, notice, _: f"<feed>\n{text[:900]}\n<notice>{notice}</notice>\n</feed>",
    "yaml": lambda _, notice, __: "a: 1\nitems:\n- b\n- c\n" * 30 + f"# {notice}\n",
    "base64": lambda _, notice, chance: f"data:image/png;base64,{encoded(chance, 4000)}{notice}",
}


def _notices(notices: list[Notice], seed: str, count: int) -> Iterator[Case]:
    chance = random.Random(seed)
    kinds = list(CONTENTS)
    for number, notice in enumerate(notices):
        places = notice.places.split()
        footer = "footer" in places
        places = [place for place in places if place != "footer"]
        for turn in range(count if places != ["only"] else 1):
            place = places[turn % len(places)]
            kind = kinds[(number + turn) % len(kinds)]
            if kind == "JSON" and place in ("leaf", "end", "tail", "front"):
                kind = "log"
            size = SIZES[(number + 3 * turn) % len(SIZES)]
            is_foreign = notice.language != "en" and turn % 2 == 0
            text = prose(chance, size, notice.language) if is_foreign else CONTENTS[kind](chance, size)
            yield _cut(notice, place, text, chance)
        if footer:
            text = CONTENTS[kinds[number % len(kinds)]](chance, 3_000)
            if places[0] == "end":
                yield _cut(notice, "footer", text, chance)
            else:
                case = _cut(notice, places[0], text, chance)
                yield case._replace(text=case.text + chance.choice(_FOOTERS), place=places[0] + " footer")


def _cut(notice: Notice, place: str, text: str, chance: random.Random) -> Case:
    few, many = chance.randint(12, 900), chance.randint(1_000, 90_000)
    said = notice.template.replace("%n", str(few)).replace("%m", f"{many:,}" if many % 2 else str(many))
    said = said.replace("%p", f"/tmp/out-{few}.txt").replace("%h", text[:900]).replace("%t", text[-900:])
    said = said.replace("%j", json.dumps(text[:900])[1:-1])
    made = said if place == "only" else PLACES[place](text, said, chance)
    return Case(notice.reason, notice.language, notice.tool, place, made)


def _documents_that_stop() -> Iterator[Case]:
    """Yield JSON, and what Python writes of an object, that stops anywhere but behind the closer that it needs."""
    chance = random.Random("documents")
    for number in range(60):
        data = rows(chance, chance.choice(SIZES[1:6]))
        value = data if number % 2 else {"total": len(data), "rows": data}
        text = json.dumps(value, indent=(None, 2)[number % 3 == 0]) if number % 4 else str(value)
        cut = text[: chance.randint(60, len(text) - 2)]
        if cut.rstrip()[-1] not in "]}":
            before = ("", "", "Found many rows:\n")[number % 3] if number % 4 else ""
            yield Case("cut_json", "en", "a document that stops", "tail", before + cut)


def _whole(lines: list[str], seed: str, each: int) -> Iterator[Case]:
    """Yield contents with a line that looks like a notice: at the end, inside, or in front."""
    chance = random.Random(seed)
    kinds = [kind for kind in CONTENTS if kind not in ("JSON", "HTML")]
    for number, line in enumerate(lines):
        for turn in range(each):
            text = CONTENTS[kinds[(number + turn) % len(kinds)]](chance, SIZES[(number + turn) % 5])
            place = ("split", "front", "end")[turn % 3]
            is_end = place == "end" and not line.startswith(("...", "…", "[...", "(…", "    ..."))
            yield Case(
                None, "", line[:32], place, PLACES[place if is_end or place != "end" else "split"](text, line, chance)
            )


@lru_cache(maxsize=1)
def silent() -> list[Case]:
    """Return cuts without a word, at a length or in a character, and whole results that look the same."""
    chance = random.Random("silent")
    kinds = [kind for kind in CONTENTS if kind not in ("JSON", "HTML")]
    caps = (5_000, 8_192, 10_000, 16_000, 20_000, 30_000, 40_000, 50_000, 65_536, 100_000, 131_072)
    lengths = [
        Case("suspected", "en", "a cap", "tail", CONTENTS[kind](chance, cap)[:cap]) for cap in caps for kind in kinds
    ]
    texts = [prose(chance, 3_000, language).encode() for language in ("de", "fr", "ru", "zh", "ja", "ko") * 9]
    ends = [next(at for at in range(2_000, 3_000) if text[at] & 0xC0 == 0x80) for text in texts]
    halves = [text[:end].decode("utf-8", "replace") for text, end in zip(texts, ends, strict=True)]
    decoded = [f"{CONTENTS[kind](chance, 900)}\n{'PK' * 9}\ufffd" for kind in kinds]
    padded = [CONTENTS[kind](chance, 7_000).ljust(8_192)[:8_191] + "\n" for kind in kinds[:4]]
    return [
        *lengths,
        *(Case("suspected", "en", "half a character", "tail", text) for text in halves),
        *(Case(None, "", "decoded bytes", "", text) for text in decoded),
        *(Case(None, "", "a padded record", "", text) for text in padded),
    ]


@lru_cache(maxsize=1)
def tuned() -> list[Case]:
    """Return the cases that rules may be tuned on."""
    chance = random.Random("whole")
    lines = [text for _, text in whole.quoted(chance, 270)]
    documents = [*whole.documents(chance), *whole.plain(chance, 480)]
    return [
        *_notices(NOTICES, "notices", 6),
        *_documents_that_stop(),
        *_whole(whole.LINES, "lines", 6),
        *_whole(lines, "quoted", 3),
        *(Case(None, "", kind, "", text) for kind, text in documents),
    ]


@lru_cache(maxsize=1)
def kept_aside() -> list[Case]:
    """Return the cases that no rule was tuned on."""
    return [*_notices(aside.NOTICES, "aside", 6), *_whole(aside.WHOLE, "aside", 6)]
