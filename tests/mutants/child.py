"""Runs at the start of a child process: in the first run, append the names of the called functions to a file."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# mutmut is not installed where types are checked.

from __future__ import annotations

import os
from pathlib import Path

if os.environ.get("MUTANT_UNDER_TEST") == "stats":
    import mutmut.stats

    _seen: set[str] = set()

    def _record(name: str, caller: str | None = None) -> None:  # noqa: ARG001 - the signature is mutmut's
        if name not in _seen:
            _seen.add(name)
            with Path(os.environ["MUTANT_HITS"]).open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")

    mutmut.stats.record_trampoline_hit = _record
