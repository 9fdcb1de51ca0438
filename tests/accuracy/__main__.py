"""Prints how often `truncated` is right, and writes it into docs: see scripts/accuracy."""

from __future__ import annotations

import sys

from tests.accuracy import corpus
from tests.accuracy.score import Score, by


def main() -> int:
    """Print the figures of both parts; with -v each miss and each false alarm."""
    for name, cases in (("tuned", corpus.tuned()), ("aside", corpus.kept_aside())):
        score = Score(cases)
        print(
            f"{name}: {score.cut} cut, {score.whole} whole, precision {score.precision:.2%}, recall {score.recall:.2%}"
        )
        for title, key in (("reason", lambda c: c.reason), ("language", lambda c: c.language)):
            print(f"  recall by {title}:", {k: f"{r}/{t}" for k, (r, t) in by(cases, key).items()})
        print("  tools with misses:", {k: f"{r}/{t}" for k, (r, t) in by(cases, lambda c: c.tool).items() if r < t})
        print("  reasons (said, right):", dict(score.reasons))
        if "-v" in sys.argv or name in sys.argv:
            for case in score.missed:
                print("  MISSED", case[:4], len(case.text), repr(case.text[-90:]))
            for case, reason in score.alarms:
                print("  FALSE", reason, case[:4], len(case.text), repr(case.text[-90:]))
    return 0


sys.exit(main())
