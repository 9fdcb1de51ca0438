"""Runs the frameworks' own tests with and without this package, and compares them test by test.

``python -m tests.suites.run [--newest] [--write] [--modes MODE,…] [--keep FOLDER] [SUITE]...``
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import environments, interpreters
from tests.environments import FOLDER, ROOT
from tests.suites import comparison, page, sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.environments import Environment
    from tests.suites.comparison import Difference
    from tests.suites.sources import Source, Suite

_PLUGIN = Path(__file__).parent / "plugin"
_TOOLS = ("pytest-timeout", "pytest-xdist")
_PROVIDER = {"SUITES_PROVIDER": "1"}
_REMEDIES = {
    "AGENT_OTEL_RESULT_CEILING_BYTES": "64KiB",
    "AGENT_OTEL_CLAIM_CHECK": "memory:",
    "AGENT_OTEL_CLAIM_CHECK_BYTES": "64KiB",
    "AGENT_OTEL_TRIM_RESULTS": "1",
    "AGENT_OTEL_COMPACT_ARGUMENTS": "1",
    "AGENT_OTEL_DEDUPLICATE_HISTORY": "1",
    "AGENT_OTEL_MAX_TOOL_CALLS": "100000",
}
#: The variables of each way to run the tests.
MODES: dict[str, dict[str, str]] = {
    "off": {},
    "provider": _PROVIDER,
    "on": {"AGENT_OTEL": "1"},
    "spans": {"AGENT_OTEL": "1", **_PROVIDER},
    "remedies": {"AGENT_OTEL": "1", **_PROVIDER, **_REMEDIES},
}
#: What each is compared with: a provider alone changes what tests of spans and of headers see.
_BASELINES = {"provider": "off", "on": "off", "spans": "provider", "remedies": "provider"}
#: A difference counts when it is there in each of so many passes of its file, or in two passes of all files.
_PASSES = 3
_SECONDS = 1800
_CALLS = "gen_ai_execute_tool_duration_seconds_count"


@dataclass
class Counts:
    """What the processes of one run counted."""

    errors: Counter[str] = field(default_factory=Counter)
    seen: dict[str, str] = field(default_factory=dict)
    warnings: set[str] = field(default_factory=set)
    measured: Counter[str] = field(default_factory=Counter)

    def add(self, folder: Path, *, is_first: bool) -> None:
        """Add what the processes of a run wrote into its folder; what they measured, in the first pass only."""
        for path in folder.glob("*.json"):
            written = json.loads(path.read_text(encoding="utf-8"))
            self.errors.update(written["errors"])
            self.seen.update(written["seen"])
            self.warnings.update(written["warnings"])
            self.measured.update(written["measured"] if is_first else {})


class Runner:
    """One suite in its environment."""

    def __init__(self, suite: Suite, environment: Environment, root: Path, kept: Path) -> None:
        self._suite, self._environment, self._root, self._kept = suite, environment, root, kept
        self._runs = 0
        self.counts: dict[str, Counts] = {}

    def run(self, mode: str, paths: Sequence[str]) -> dict[str, str]:
        """Run these paths in this mode and return the outcome of each test."""
        self._runs += 1
        folder = self._kept / f"{self._runs:02}-{mode}"
        (folder / "home").mkdir(parents=True)
        report, log = folder / "report.xml", folder / "output.txt"
        with log.open("w", encoding="utf-8") as output:
            _wait(self._command(report, paths), self._environ(mode, folder), self._root, output)
        if not report.exists():
            last = log.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise RuntimeError(f"{self._suite.name}, {mode}: no report\n{last}")
        is_first = mode not in self.counts
        self.counts.setdefault(mode, Counts()).add(folder, is_first=is_first)
        return comparison.outcomes(report)

    def _command(self, report: Path, paths: Sequence[str]) -> list[str]:
        plugins = ("-p", "agent_otel_suites", "-p", "no:agent_otel", "-p", "no:cacheprovider")
        written = ("-q", "--rootdir=.", "--junit-xml", str(report), "-o", "junit_family=xunit1", "-o", "addopts=")
        files = [file for path in paths for file in self._files(path)]
        return [str(self._environment.python), "-m", "pytest", *plugins, *written, *self._suite.arguments, *files]

    def _files(self, pattern: str) -> list[str]:
        return sorted(str(path.relative_to(self._root)) for path in self._root.glob(pattern))

    def _environ(self, mode: str, folder: Path) -> dict[str, str]:
        return {
            "PATH": f"{self._environment.python.parent}{os.pathsep}{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "HOME": str(folder / "home"),
            "PYTHONPATH": str(_PLUGIN),
            "SUITES_COUNTS": str(folder),
            **self._suite.env,
            **MODES[mode],
        }


def _wait(command: list[str], env: dict[str, str], cwd: Path, output: Any) -> None:
    """Run a command in a session of its own; end all of it when it takes too long."""
    files = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=env, cwd=cwd, start_new_session=True, **files) as child:
        try:
            child.wait(_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Comparison:
    """What a suite's runs were."""

    #: The outcomes of the first pass, by mode.
    first: dict[str, dict[str, str]]
    #: The differences that later passes have too.
    repeated: set[Difference]
    #: The differences of the first pass only.
    unstable: set[Difference]


def compare(runner: Runner, suite: Suite, modes: Sequence[str]) -> Comparison:
    """Run a suite in these modes, and again what differs: its files twice, then all files once."""
    first = {}
    for mode in modes:
        first[mode] = runner.run(mode, suite.paths)
        print(f"  {mode}: {dict(Counter(first[mode].values()))}", flush=True)
    differing = _differences(first)
    repeated = set(differing)
    for _ in range(_PASSES - 1):
        repeated &= _again(runner, repeated, modes, sorted({difference.file for difference in repeated}))
    # A test may differ only behind tests of other files, whose state the process keeps.
    repeated |= (differing - repeated) & _again(runner, differing - repeated, modes, suite.paths)
    return Comparison(first, repeated, differing - repeated)


def _again(runner: Runner, differing: set[Difference], modes: Sequence[str], paths: Sequence[str]) -> set[Difference]:
    """Return the differences of another pass in the modes of these differences."""
    wanted = {difference.mode for difference in differing}
    wanted |= {_BASELINES[mode] for mode in wanted}
    return _differences({mode: runner.run(mode, paths) for mode in modes if mode in wanted})


def _differences(runs: dict[str, dict[str, str]]) -> set[Difference]:
    pairs = ((mode, _BASELINES.get(mode)) for mode in runs)
    return {
        difference
        for mode, baseline in pairs
        if baseline in runs
        for difference in comparison.differences(mode, runs[baseline], runs[mode])
    }


def run(suite: Suite, modes: Sequence[str], kept: Path) -> page.Line:
    """Run one suite, print what differs and what the package counted, and return its line of the table."""
    print(f"scripts/suites: {suite.name}", flush=True)
    source = sources.fetch(suite)
    runner = Runner(suite, _environment(suite, source), source.folder, kept / suite.name)
    found = compare(runner, suite, modes)
    repeated = _with_us(found.repeated)
    ours = {item for item in repeated if not comparison.is_known(item, suite.known)}
    unstable = _with_us(found.unstable)
    for label, items in (("OURS", ours), ("with a reason", repeated - ours), ("not repeated", unstable)):
        for item in sorted(items, key=str):
            print(f"  {label}: {item}")
    for mode, counts in runner.counts.items():
        for text in (*sorted(counts.warnings), *counts.seen.values()):
            print(f"  {mode}: {text}")
    with_us = [runner.counts[mode] for mode in reversed(modes) if "AGENT_OTEL" in MODES[mode]] or [Counts()]
    print(f"  measured: {dict(with_us[-1].measured)}", flush=True)
    passed = {mode: sum(outcome == "passed" for outcome in tests.values()) for mode, tests in found.first.items()}
    return page.Line(
        suite.name,
        source.version,
        suite.python,
        f"{datetime.now(timezone.utc):%Y-%m-%d}",
        **{mode: str(passed.get(mode, page.NOT_RUN)) for mode in MODES},
        calls=str(int(with_us[-1].measured[_CALLS])),
        differences=str(len(ours)),
        listed=str(len(repeated) - len(ours)),
        unstable=str(len(unstable)),
        errors=str(sum(counts.errors.total() for counts in runner.counts.values())),
    )


def _with_us(differences: Iterable[Difference]) -> set[Difference]:
    return {item for item in differences if item.mode != "provider"}


def _environment(suite: Suite, source: Source) -> Environment:
    """Return the environment of a suite, made if need be."""
    folder = FOLDER / f"suite-{suite.name}"
    stamp, content = folder / "made-from", repr((suite.requirement, suite.install, suite.python, source.version))
    if not (stamp.exists() and stamp.read_text() == content):
        requirements = (f"{suite.requirement}=={source.version}", *_TOOLS, *suite.install)
        environments.make(folder, interpreters.find(suite.python), "--editable", str(ROOT), *requirements)
        stamp.write_text(content)
    return environments.Environment(folder.name, folder)


def main() -> int:
    """Run the suites that the arguments name; return 1 when one differs or the package failed in it."""
    parser = argparse.ArgumentParser(prog="scripts/suites", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--newest", action="store_true", help="the newest versions, without any pin")
    parser.add_argument("--write", action="store_true", help=f"write {page.PATH.relative_to(ROOT)}")
    parser.add_argument("--modes", default=",".join(MODES), help="the ways to run them (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="keep reports and output in this folder")
    options = parser.parse_args()
    if options.newest:
        os.environ["UV_EXCLUDE_NEWER"] = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    every = sources.suites(newest=options.newest)
    if unknown := set(options.suites) - every.keys():
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    os.nice(10)
    kept = options.keep or Path(tempfile.mkdtemp(prefix="suites-"))
    lines, are_all_run = [], True
    try:
        for name in options.suites or every:
            try:
                lines.append(run(every[name], options.modes.split(","), kept))
            except interpreters.UnavailableError as error:
                print(f"  {error}", flush=True)
                are_all_run = False
                continue
            if options.write:
                page.PATH.write_text(page.text(page.PATH.read_text() if page.PATH.exists() else "", lines))
    finally:
        if options.keep is None:
            shutil.rmtree(kept, ignore_errors=True)
    print(page.table(lines))
    return int(not are_all_run or any(line.differences != "0" or line.errors != "0" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
