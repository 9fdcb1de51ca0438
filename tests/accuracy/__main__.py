"""Writes how often `truncated` is right into docs/evidence/truncation.md: see scripts/accuracy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.accuracy import corpus
from tests.accuracy.score import SUSPECTED, Found, Score, by, of_reason, read, score

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "truncation.md"
BEGIN: Final = "<!-- Written by scripts/accuracy: -->\n\n"
END: Final = "<!-- scripts/accuracy ends here. -->\n"
LANGUAGES: Final = {
    "en": "English", "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "de": "German", "fr": "French",
    "es": "Spanish", "pt": "Portuguese", "it": "Italian", "ru": "Russian",
}  # fmt: skip
REASONS: Final = ("marker", "offloaded", "cleared", "cut_json")


def _row(name: str, each: Score) -> str:
    return f"| {name} | {each.cut:,} | {each.precision:.1%} | {each.recall:.1%} |"


def lines() -> Iterator[str]:
    """Yield the lines of the tables."""
    tuned, aside = read(corpus.tuned()), read(corpus.kept_aside())
    yield from ("| results | cut | whole | precision | recall |", "| --- | --- | --- | --- | --- |")
    for name, found in (("used to write the rules", tuned), ("kept aside", aside)):
        each = score(found)
        yield f"| {name} | {each.cut:,} | {len(found) - each.cut:,} | {each.precision:.2%} | {each.recall:.2%} |"
    silent = [*read(corpus.silent()), *(each for each in (*tuned, *aside) if each.case.reason is None)]
    alike = sum(case.reason is None for case in corpus.silent())
    whole = sum(each.case.reason is None for each in silent)
    yield from (
        "",
        f"`suspected` is measured on cuts without a word and on {whole:,} whole results. {alike} of these were",
    )
    yield from ("made to look the same: decoded bytes, and records that are padded to the length of a buffer.", "")
    yield from ("| reason | cut | precision | recall |", "| --- | --- | --- | --- |")
    yield from (_row(f"`{reason}`", of_reason(tuned, reason)) for reason in REASONS)
    yield _row(f"`{SUSPECTED}`", of_reason(silent, SUSPECTED))
    yield from ("", "| language of the notice | cut | precision | recall |", "| --- | --- | --- | --- |")
    languages = by([each for each in (*tuned, *aside) if each.case.reason], lambda each: each.case.language)
    yield from (_row(LANGUAGES[code], languages[code]) for code in LANGUAGES)
    yield from ("", "| tool with a miss | found | of |", "| --- | --- | --- |")
    for name, each in by([each for each in (*tuned, *aside) if each.case.reason], lambda one: one.case.tool).items():
        if each.right < each.cut:
            yield f"| {name} | {each.right} | {each.cut} |"
    tools = {each.case.tool for each in (*tuned, *aside) if each.case.reason}
    yield from ("", f"All cuts of the other {len(tools)} tools, hosts, frameworks and shells were found.")


def main() -> int:
    """Write the page, or compare it; with -v print each miss and each false alarm."""
    if "-v" in sys.argv:
        for each in read([*corpus.tuned(), *corpus.kept_aside()]):
            if each.is_cut != (each.case.reason is not None):
                _print(each)
        return 0
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    new = f"{head}{BEGIN}{chr(10).join(lines())}\n\n{END}{rest.split(END)[1]}"
    if "--check" in sys.argv:
        return int(page != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


def _print(each: Found) -> None:
    kind = "missed" if each.case.reason else f"false {each.reason}"
    print(kind, each.case.language, each.case.tool, each.case.place, len(each.case.text), repr(each.case.text[-90:]))


if __name__ == "__main__":
    sys.exit(main())
