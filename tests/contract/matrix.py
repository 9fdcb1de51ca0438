"""Runs the contract classes in the versions that the environments pin, or in the newest, and keeps a table of results.

``python -m tests.contract.matrix [--newest] [--python VERSION] [--write] [DISTRIBUTION[==VERSION]]...``
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from agent_otel.integrations.registry import INTEGRATIONS
from tests import environments
from tests.environments import ROOT
from tests.interpreters import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

PAGE = ROOT / "docs" / "evidence" / "tested-versions.md"
_CONTRACT = Path(__file__).parent
_PIN = re.compile(r"([\w.-]+)(\[[\w,-]+\])?==([\w.]+)")
_ROW = re.compile(r"^\| `([^`]+)` \| (\S+) \| (\S+) \| ([\d-]+) \| (.+?) \|$", re.MULTILINE)
_DISTRIBUTIONS = {integration.distribution for integration in INTEGRATIONS}
_HEAD = """\
# Tested versions

`scripts/matrix` runs the contract classes of the integrations in real environments and writes this table: each version
that `tests/environments.toml` pins, or with `--newest` what a resolver chooses on that day, each week.
A `t` behind the Python is a build without the global interpreter lock.
The [support table](../integrations.md) has the versions that are known to work.

| distribution | version | Python | date | cases |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Row:
    """A row of ``environments.toml`` that pins frameworks, and the contract classes that run in it."""

    name: str
    content: dict[str, Any]
    classes: tuple[str, ...]

    @property
    def pins(self) -> dict[str, str]:
        """Distribution of an integration -> its pinned version."""
        found = (_PIN.match(requirement) for requirement in self.content["requirements"])
        return {match[1]: match[3] for match in found if match and match[1] in _DISTRIBUTIONS}


def rows() -> list[Row]:
    """Return the rows that contract classes run in and that pin a framework."""
    classes: dict[str, list[str]] = {}
    for environment, case in _classes():
        classes.setdefault(environment, []).append(case)
    every = environments.rows()
    found = [Row(name, every[name], tuple(cases)) for name, cases in classes.items() if name in every]
    return [row for row in found if row.pins]


def _classes() -> Iterator[tuple[str, str]]:
    """Yield the environment of each contract class, or of a module of functions, and its name for pytest."""
    for path in sorted(_CONTRACT.glob("*/test_*.py")):
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        if hasattr(module, "ENVIRONMENT"):
            yield module.ENVIRONMENT, str(path.relative_to(ROOT))
        for name, value in vars(module).items():
            if name.startswith("Test") and isinstance(getattr(value, "environment", None), str):
                yield value.environment, f"{path.relative_to(ROOT)}::{name}"


def newest(every: Sequence[Row]) -> list[Row]:
    """Return for each distribution the row with its highest version."""
    best: dict[str, Row] = {}
    for row in every:
        for distribution, version in row.pins.items():
            if distribution not in best or Version(version) > Version(best[distribution].pins[distribution]):
                best[distribution] = row
    return list({row.name: row for row in best.values()}.values())


def changed(row: Row, versions: dict[str, str], python: str, *, unpinned: bool) -> dict[str, Any]:
    """Return what the environment is made from: with these versions, this Python, or without any version."""

    def other(requirement: str) -> str:
        match = _PIN.match(requirement)
        if match is None:
            return requirement
        name = match[1] + (match[2] or "")
        if match[1] in versions:
            return f"{name}=={versions[match[1]]}"
        return name if unpinned else requirement

    content = {**row.content, "requirements": [other(requirement) for requirement in row.content["requirements"]]}
    return {**content, "python": python} if python else content


def run(row: Row, content: dict[str, Any], *, anew: bool) -> list[tuple[str, str, str, str, str]]:
    """Run the classes of a row in an environment that is made from this content; return lines of the table.

    Where it is made ``anew``, an earlier environment of the same content is not used: its versions may be older.
    """
    os.environ[environments.OTHER] = json.dumps({row.name: content})
    if anew:
        environments.made_from(row.name).unlink(missing_ok=True)
    today = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    try:
        environment = environments.environment(row.name)
    except UnavailableError as error:
        print(f"{row.name}: {error}", file=sys.stderr)
        return [(name, version, "-", today, "not installed") for name, version in row.pins.items()]
    code = (
        "import sys, sysconfig; from importlib.metadata import version\n"
        "free = 't' * bool(sysconfig.get_config_var('Py_GIL_DISABLED'))\n"
        "print('%d.%d' % sys.version_info[:2] + free, *map(version, sys.argv[1:]))"
    )
    python, *installed = environment.run(code, *row.pins, check=True).stdout.split()
    cases = _cases(row.classes)
    return [(name, version, python, today, cases) for name, version in zip(row.pins, installed, strict=True)]


def _cases(classes: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", *classes)
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "CI": "true"}, check=False
        )  # also what is large to install
        suite = next(ET.parse(report).iter("testsuite"))  # noqa: S314 - pytest has written it
    total, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    if total == skipped:
        return "not run"
    return f"{total - failed - skipped} passed" + (f", {failed} failed" if failed else "")


def added(
    lines: Sequence[tuple[str, str, str, str, str]], named: Collection[str] = ()
) -> list[tuple[str, str, str, str, str]]:
    """Return one line for each version: a distribution that several environments have gets the sum of their cases.

    Where distributions are ``named``, the others of their environments have no line: not all of their cases have run.
    """
    lines = [line for line in lines if not named or line[0] in named]
    sums: dict[tuple[str, str, str, str], Counter[str]] = {}
    for *version, cases in lines:
        found = {kind: int(count) for count, kind in re.findall(r"(\d+) (passed|failed)", cases)}
        sums.setdefault((version[0], version[1], version[2], version[3]), Counter()).update(found)
    untested = dict(zip((line[:4] for line in lines), (line[4] for line in lines), strict=True))
    return [
        (*version, ", ".join(f"{count} {kind}" for kind, count in counts.items()) or untested[version])
        for version, counts in sums.items()
    ]


def page(before: str, lines: Sequence[tuple[str, str, str, str, str]]) -> str:
    """Return the page with these lines, and those of other versions that it had."""
    table = {found[:3]: found for found in _ROW.findall(before)} | {line[:3]: line for line in lines}
    written = (f"| `{line[0]}` | {' | '.join(line[1:])} |\n" for _, line in sorted(table.items()))
    return _HEAD + "".join(written)


def main() -> int:
    """Run what the arguments name; return 1 when a case fails."""
    parser = argparse.ArgumentParser(prog="scripts/matrix", description=__doc__)
    parser.add_argument("distributions", nargs="*", metavar="DISTRIBUTION[==VERSION]")
    parser.add_argument("--newest", action="store_true", help="the newest of everything, without any pin")
    parser.add_argument("--python", default="", help="the version of Python, such as 3.14")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.newest:
        os.environ["UV_EXCLUDE_NEWER"] = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    named = dict(name.partition("==")[::2] for name in options.distributions)
    versions = {name: version for name, version in named.items() if version}
    every = rows()
    chosen = newest(every) if options.newest or versions else every
    lines = []
    for row in chosen:
        if not named or named.keys() & row.pins.keys():
            print(f"scripts/matrix: {row.name}", flush=True)
            content = changed(row, versions, options.python, unpinned=options.newest)
            lines += run(row, content, anew=options.newest)
    lines = added(lines, named)
    text = page(PAGE.read_text() if PAGE.exists() else "", lines)
    if options.write:
        PAGE.write_text(text)
    for line in lines:
        print(*line)
    return int(not lines or not all(line[-1].endswith("passed") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
