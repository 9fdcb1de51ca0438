"""Run mutmut room by room: the module of ``scripts/mutants``."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# mutmut is not installed where types are checked.

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter

from mutmut.stats import status_by_exit_code

from tests.history import ROOT

ROOMS = ("core", "measure", "remedies", "telemetry")
TREE = ROOT / ".environments" / "mutants.tree"
MUTANTS = TREE / "mutants"
#: The statuses of mutants that the tests do not notice.
ALIVE = ("survived", "no tests")
UNTESTED = ("not checked", "skipped", "check was interrupted by user")
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "shared")
GENERATE = """
from mutmut import __main__ as mutmut
from mutmut.utils import file_utils
file_utils.copy_src_dir()
file_utils.copy_also_copy_files()
mutmut.create_mutants(2)
"""


def prepare(room: str) -> None:
    """Copy the checkout, and generate the mutants of a room in the copy."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(ROOT, TREE, ignore=IGNORED, symlinks=True)
    others = [path.name for path in TREE.iterdir() if path.name not in ("agent_otel", "tests", "pyproject.toml")]
    settings = {
        "source_paths": ["agent_otel"],
        "only_mutate": [f"agent_otel/{room}/*"],
        "also_copy": others,
        "do_not_mutate_patterns": [r"_?log\w*\.(debug|info|warning|error|exception)\("],
        "pytest_add_cli_args": ["-p", "tests.mutants.plugin", "-p", "no:xdist", "-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": [f"tests/unit/{room}"],
        # Tests may leave state in their process: each run begins in a new one.
        "process_isolation": "forkserver",
        "track_dependencies": False,
        "use_git_change_detection": False,
    }
    with (TREE / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.mutmut]\n")
        file.writelines(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    MUTANTS.mkdir()
    _python("-c", GENERATE)


def _python(*arguments: str, seconds: float | None = None) -> str:
    """Run Python in the copy and return its output. Interrupt it after some seconds; exit if it fails."""
    paths = {"PYTHONPATH": str(TREE), "MUTANT_HITS": str(TREE / "hits"), "MUTANT_FAILED": str(TREE / "failed")}
    with subprocess.Popen(
        (sys.executable, *arguments),
        cwd=TREE,
        env={**os.environ, **paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate()
    if process.returncode:
        sys.exit("\n".join(line.rpartition("\r")[2] for line in output.split("\n"))[-20_000:])
    return output


def statuses() -> dict[str, str]:
    """Return the status of each mutant by its name."""
    exit_codes: dict[str, int | None] = {}
    for path in sorted(MUTANTS.rglob("*.meta")):
        exit_codes |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return {name: status_by_exit_code[code] for name, code in exit_codes.items()}


def run(room: str, sample: int | None, seed: int, minutes: float | None) -> tuple[int, int]:
    """Test the mutants of a room or a sample of them, and print the survivors.

    Return the number of killed mutants and the number of tested ones.
    """
    print(f"{room}: make the mutants", flush=True)
    prepare(room)
    names = sorted(statuses())
    if sample is not None:
        names = random.Random(f"{seed} {room}").sample(names, min(sample, len(names)))  # noqa: S311 - no secret
    print(f"{room}: test {len(names)} mutants", flush=True)
    command = ("-m", "mutmut", "run", "--max-children", str(os.cpu_count() or 2))
    _python(*command, *(names if sample is not None else ()), seconds=None if minutes is None else 60 * minutes)
    found = statuses()
    tested = {name: found[name] for name in sorted(names) if found[name] not in UNTESTED}
    for name, status in tested.items():
        if status in ALIVE:
            print("\n" + _python("-m", "mutmut", "show", name).rstrip(), flush=True)
    killed = sum(status not in ALIVE for status in tested.values())
    failed = sorted({*(TREE / "failed").read_text(encoding="utf-8").splitlines()})
    print(f"\n{room}: killed {killed} of {len(tested)} tested mutants; {dict(Counter(tested.values()))}")
    print(f"{room}: left out {len(failed)} tests that fail without a mutant: {failed}", flush=True)
    return killed, len(tested)


def main() -> int:
    """Test the mutants of the rooms; return 1 if under 85 % of them are killed."""
    parser = argparse.ArgumentParser(prog="scripts/mutants")
    parser.add_argument("rooms", nargs="*", help=f"default: {' '.join(ROOMS)}")
    parser.add_argument("--sample", type=int, help="test a random sample of this size, shared by the rooms")
    parser.add_argument("--seed", type=int, default=0, help="choose another sample")
    parser.add_argument("--minutes", type=float, help="stop the tests of a room after this time")
    chosen = parser.parse_args()
    rooms = chosen.rooms or list(ROOMS)
    unknown = sorted({*rooms} - {*ROOMS})
    if unknown:
        parser.error(f"unknown rooms: {', '.join(unknown)}")
    each = None if chosen.sample is None else max(1, chosen.sample // len(rooms))
    results = [run(room, each, chosen.seed, chosen.minutes) for room in rooms]
    killed, tested = (sum(numbers) for numbers in zip(*results, strict=True))
    share = 100 * killed / max(tested, 1)
    print(f"\nkilled {killed} of {tested} mutants: {share:.0f} %")
    return int(share < 85)


if __name__ == "__main__":
    sys.exit(main())
