"""What the switch adds to the import of a framework, with all loaded that its first call needs.

``python -m benchmarks.framework_imports [--write]`` from the root of the repository. It makes the environments of
tests/environments.toml that it needs. Processes with and without the switch take turns; what counts is their CPU time.
With ``--write`` it writes `benchmarks/framework_imports.md`: what each framework's import costs, and which modules take
the time.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import clock
from tests.environments import environment

#: The budget in milliseconds, on the server where the budgets were set.
BUDGET_MS: Final = 3
#: The name of an environment, and what a program imports from it.
FRAMEWORKS: Final = (
    ("langchain", "from langchain_core.tools import tool"),
    ("langchain", "from langgraph.prebuilt import create_react_agent"),
    ("langchain", "import openai"),
    ("openai-agents", "import agents"),
    ("pydantic-ai", "import pydantic_ai"),
    ("mcp-1", "import mcp"),
    ("mcp-2", "import mcp"),
    ("anthropic", "import anthropic"),
    ("temporal", "import temporalio.worker"),
)
_MEASURED: Final = (FRAMEWORKS[0], FRAMEWORKS[4])
_RUNS, _ROUNDS = 5, 4
_PAGE: Final = Path(__file__).with_suffix(".md")
_IMPORTTIME: Final = re.compile(r"import time:\s*(\d+) \|\s*\d+ \|\s*(\S+)")
_MODULES_SHOWN: Final = 30


class Added(NamedTuple):
    """CPU time in seconds: of the import without the switch, and what the switch adds, least, median and most."""

    without: float
    least: float
    median: float
    most: float


def added(name: str, statement: str, runs: int = _RUNS) -> Added:
    """Measure several runs, each the difference of the minima of processes that take turns."""
    clock.pin()
    python = str(environment(name).python)
    found, alone = [], []
    for switch in ("", "1"):
        _cpu_seconds(python, statement, switch)  # writes the bytecode
    for _ in range(runs):
        pairs = [(_cpu_seconds(python, statement, ""), _cpu_seconds(python, statement, "1")) for _ in range(_ROUNDS)]
        without, with_switch = (min(column) for column in zip(*pairs, strict=True))
        found.append(with_switch - without)
        alone.append(without)
    return Added(statistics.median(alone), min(found), statistics.median(found), max(found))


def _environ(switch: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONHASHSEED": "0",
        "AGENT_OTEL": switch,
    }


def _cpu_seconds(python: str, statement: str, switch: str) -> float:
    child = os.posix_spawn(python, [python, "-c", statement], _environ(switch))
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{statement!r} failed in {python}")
    return usage.ru_utime + usage.ru_stime


def rows() -> list[tuple[str, float, float, str]]:
    """Return (what, budget in U, measured in U, spread in U) for the frameworks of the table of budgets."""
    unit = clock.measure({})["seconds per U"]
    budget = BUDGET_MS * 1000 / 3.1
    found = []
    for name, statement in _MEASURED:
        took = added(name, statement)
        spread = f"{took.least / unit:,.0f} to {took.most / unit:,.0f}"
        found.append((f"variable set, {statement!r}, all loaded", budget, took.median / unit, spread))
    return found


def modules(name: str, statement: str) -> Counter[str]:
    """Return the microseconds of each module that the switch makes a program import: the least of some processes."""
    python = str(environment(name).python)
    least: dict[str, dict[str, int]] = {"": {}, "1": {}}
    for switch in ("", "1") * _ROUNDS:
        command = [python, "-X", "importtime", "-c", statement]
        run = subprocess.run(command, env=_environ(switch), capture_output=True, text=True, check=True)
        for took, module in _IMPORTTIME.findall(run.stderr):
            least[switch][module] = min(least[switch].get(module, sys.maxsize), int(took))
    return Counter({module: took for module, took in least["1"].items() if module not in least[""]})


def _group(module: str) -> str:
    first, *rest = module.split(".")
    if first == "agent_otel":
        return ".".join(["agent_otel", *rest[:1]])
    return "standard library" if first in sys.stdlib_module_names else first


def _profile() -> str:
    found = {what: modules(*what) for what in FRAMEWORKS}
    groups = [(what, Counter[str]()) for what in FRAMEWORKS]
    for what, sums in groups:
        for module, took in found[what].items():
            sums[_group(module)] += took
    names = sorted({name for _, sums in groups for name in sums}, key=lambda name: -groups[0][1][name])
    lines = ["| modules | " + " | ".join(f"{name}: {statement}" for (name, statement), _ in groups) + " |"]
    lines.append("| --- |" + " --- |" * len(groups))
    lines += [f"| {name} | " + " | ".join(f"{sums[name] / 1000:.1f}" for _, sums in groups) + " |" for name in names]
    lines.append("| all | " + " | ".join(f"{sums.total() / 1000:.1f}" for _, sums in groups) + " |")
    shown = found[FRAMEWORKS[0]].most_common(_MODULES_SHOWN)
    return "\n".join(lines) + "\n\n" + "\n".join(f"{took / 1000:6.2f} {module}" for module, took in shown)


def _page() -> str:
    unit = clock.measure({})["seconds per U"]
    rows = []
    for name, statement in FRAMEWORKS:
        took = added(name, statement)
        figures = [took.without * 1000, *(1000 * each for each in took[1:])]
        cells = " | ".join(f"{figure:,.1f}" for figure in figures)
        rows.append(f"| {name}: `{statement}` | {cells} | {took.median / unit * 3.1 / 1000 / BUDGET_MS:.1f} |")
    table, _, single = _profile().partition("\n\n")
    return f"""# What the switch adds to the import of a framework

<!-- Written by `python -m benchmarks.framework_imports --write`; the figures are one machine's. -->

Milliseconds of CPU time; the median of {_RUNS} runs with the least and the most, each the difference of the minima of
{_ROUNDS} processes that take turns. One U is {unit * 1e6:.2f} µs here; the budget is {BUDGET_MS} ms
where it is 3.1 µs.

| import | without the switch | least | median | most | of the budget |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}

## Where it goes

Milliseconds of `-X importtime`, the least of {_ROUNDS} processes, of modules that the program does not import itself.

{table}

The modules of the first column that take most:

```text
{single}
```
"""


def main() -> None:
    """Measure all, and print or write the page."""
    page = _page()
    if "--write" in sys.argv[1:]:
        _PAGE.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
