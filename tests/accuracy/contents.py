"""Contents of results, written by seeded generators: prose in ten languages, code, logs, data, diffs, tables."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_WORDS: Final = {
    "en": "the report says that a lamp in the hall was found and its price is listed in our shop for all of them",
    "de": "der Bericht sagt dass eine Lampe im Flur gefunden wurde und ihr Preis für alle im Laden steht während",
    "fr": "le rapport dit que une lampe a été trouvée dans le couloir et son prix est affiché pour tous",
    "es": "el informe dice que una lámpara fue encontrada en el pasillo y su precio está en la tienda para todos",
    "pt": "o relatório diz que uma lâmpada foi encontrada no corredor e seu preço está na loja para todos",
    "it": "il rapporto dice che una lampada è stata trovata nel corridoio e il suo prezzo è nel negozio",
    "ru": "отчёт говорит что лампа была найдена в коридоре и её цена указана в магазине для всех",
    "zh": "报告 说 走廊 里 找到 了 一 盏 灯 它 的 价格 写 在 商店 里 给 所有 人",
    "ja": "報告 に よると 廊下 で ランプ が 見つかり 価格 は 店 に 書いて あります",
    "ko": "보고서에 따르면 복도에서 램프가 발견되었고 가격은 가게에 적혀 있습니다",
}
LANGUAGES: Final = tuple(_WORDS)


def prose(chance: random.Random, size: int, language: str = "en") -> str:
    """Return paragraphs of sentences, in a language, of about so many characters."""
    words = _WORDS[language].split()
    glue, stop = ("", "。") if language in ("zh", "ja") else (" ", ". ")
    paragraphs: list[str] = []
    while sum(map(len, paragraphs)) < size:
        sentences = (glue.join(chance.choices(words, k=chance.randint(5, 16))) for _ in range(chance.randint(2, 6)))
        paragraphs.append(stop.join(sentence[:1].upper() + sentence[1:] for sentence in sentences) + stop.strip())
    return "\n\n".join(paragraphs)


def _lines(line: Callable[[random.Random, int], str]) -> Callable[[random.Random, int], str]:
    def content(chance: random.Random, size: int) -> str:
        lines: list[str] = []
        length = 0
        while length < size:
            lines.append(line(chance, len(lines)))
            length += len(lines[-1]) + 1
        return "\n".join(lines)

    return content


def _code(chance: random.Random, number: int) -> str:
    name = chance.choice(["rows", "items", "limit", "parts", "value"])
    return chance.choice(
        [
            f"def read_{name}_{number}(self, {name}: list[str], *, most: int = {number}) -> dict[str, Any]:",
            f'    """Return the {name}, sorted by name."""',
            f"    if len({name}) > {number}:",
            f"        return {name}[:most]  # the first ones",
            f'    self.{name} = {{"name": f"{{{name}}}", "n": [1, 2, {number}]}}',
            f"    raise ValueError(f'{name} of {{self!r}} [{number}]')",
            "",
        ]
    )


def _log(chance: random.Random, number: int) -> str:
    level = chance.choice(["INFO", "INFO", "DEBUG", "WARN"])
    return (
        f"2026-11-22T10:{number % 60:02}:07Z {level} worker-{chance.randint(1, 9)} [req={number}] GET /items 200 12ms"
    )


def _csv(chance: random.Random, number: int) -> str:
    return f'{number},"name {number}",{chance.random():.3f},2026-01-{number % 28 + 1:02}' if number else "id,name,p,at"


def _table(chance: random.Random, number: int) -> str:
    return "|---|---|---|" if number == 1 else f"| {number} | row {chance.randint(1, 99)} | {chance.random():.2f} |"


def _diff(chance: random.Random, number: int) -> str:
    if number % 12 == 0:
        return f"@@ -{number + 1},7 +{number + 1},7 @@ def read_{number}():"
    return chance.choice(" +-  ") + f"    value_{number} = read({chance.randint(1, 99)})"


def _grep(chance: random.Random, number: int) -> str:
    return f"src/module_{number % 7}.py:{number * 3 + 1}:    return read(value[{chance.randint(1, 99)}])"


def _tests(chance: random.Random, number: int) -> str:
    state = chance.choice(["PASSED", "PASSED", "PASSED", "SKIPPED", "FAILED"])
    return f"tests/test_module_{number % 7}.py::test_case_{number} {state} [{number % 100:3}%]"


def _files(chance: random.Random, number: int) -> str:
    return f"-rw-r--r-- 1 user user {chance.randint(100, 99999):6} Nov 22 10:30 file_{number}.txt"


def rows(chance: random.Random, size: int) -> list[dict[str, object]]:
    """Return rows that are about so long as JSON."""
    return [
        {"id": number, "name": f"row {number}", "tags": ["a", None], "price": round(chance.random(), 2)}
        for number in range(max(size // 62, 3))
    ]


def _json(chance: random.Random, size: int) -> str:
    return json.dumps(rows(chance, size), indent=chance.choice([None, 2]))


def _html(chance: random.Random, size: int) -> str:
    items = "".join(f"<li class='item'><a href='/i/{n}'>item {n}</a></li>\n" for n in range(size // 48))
    head = f"<!DOCTYPE html>\n<html><head><title>{chance.randint(1, 9)}</title></head>"
    return f"{head}\n<body><ul>\n{items}</ul></body></html>"


def _markdown(chance: random.Random, size: int) -> str:
    parts = (
        f"## Part {n}\n\n{prose(chance, 300)}\n\n* [a link](https://example.com/{n})\n" for n in range(size // 400 + 1)
    )
    return "# Title\n\n" + "\n".join(parts)


def encoded(chance: random.Random, size: int) -> str:
    """Return base64 in one line."""
    return base64.b64encode(chance.randbytes(size * 3 // 4)).decode()


CONTENTS: Final[dict[str, Callable[[random.Random, int], str]]] = {
    "prose": prose,
    "code": _lines(_code),
    "log": _lines(_log),
    "CSV": _lines(_csv),
    "table": _lines(_table),
    "diff": _lines(_diff),
    "grep": _lines(_grep),
    "tests": _lines(_tests),
    "files": _lines(_files),
    "JSON": _json,
    "HTML": _html,
    "Markdown": _markdown,
}
SIZES: Final = (240, 900, 3_000, 9_000, 15_500, 33_000, 70_000)
