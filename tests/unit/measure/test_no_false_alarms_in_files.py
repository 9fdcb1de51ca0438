"""No alarm in 2,000 results that are parts of real files: source code, documentation, data, and diffs of them.

The files are those of the interpreter's standard library. A result is a file, its end, lines of its middle, or a diff.
"""

from __future__ import annotations

import difflib
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from agent_otel.measure.truncation import find_cut

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Endings of files of the library: code, documentation, data and web pages.
ENDINGS = {".py", ".txt", ".rst", ".md", ".html", ".css", ".js", ".toml", ".xml", ".c", ".h", ".json", ".pyi"}
RESULTS = 2_000
LONGEST_FILE = 200_000
LOG_LINE = "2026-11-22T10:30:07Z INFO worker-3 [{number}] {line}"
#: The test data of a parser: the file is the beginning of a table.
CUT = {"eof-after-opening.toml"}


def _texts() -> Iterator[str]:
    """Yield results in a fixed order."""
    library = Path(sysconfig.get_path("stdlib"))
    paths = sorted(path for path in library.rglob("*") if path.suffix in ENDINGS and "site-packages" not in path.parts)
    for path in paths:
        if path.name in CUT or not 0 < path.stat().st_size <= LONGEST_FILE:
            continue
        try:
            text = path.read_text("utf-8")
        except ValueError:
            continue
        lines = text.split("\n")
        yield text
        yield "\n".join(lines[-137:])
        if path.suffix != ".json":
            yield "\n".join(lines[40:411])
            yield "\n".join(LOG_LINE.format(number=number, line=line) for number, line in enumerate(lines[:203]))
            yield "".join(difflib.unified_diff(lines[:90], lines[7:97], "a", "b", lineterm="\n"))


def test_parts_of_real_files_raise_no_alarm() -> None:
    read = 0
    alarms = []
    for text in _texts():
        if not text:
            continue
        read += 1
        cut = find_cut(text)
        if cut is not None and cut.reason != "suspected":
            alarms.append((cut, text[:80]))
        if read == RESULTS:
            break
    assert alarms == []
    assert read == RESULTS
