"""What other instrumentations add to the same LangChain tool call, side by side, each in its own environment.

``python -m benchmarks.peers`` from the root of the repository; makes the environments of tests/environments.toml that
it needs. ``--markdown FILE`` writes the table of docs/overhead.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.environments import environment

ROOT = Path(__file__).resolve().parent.parent
PEERS = {
    "agent_otel": "langchain",
    "openllmetry-without-content": "peers-openllmetry",
    "genai": "peers-genai",
    "openllmetry": "peers-openllmetry",
    "openinference": "peers-openinference",
    "langsmith": "langchain",
}


def added(peer: str, environment_name: str) -> dict[str, float]:
    """Run one peer and return what it adds, by case, in U."""
    python = environment(environment_name).python
    variables = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", ""), "PYTHONPATH": str(ROOT)}
    variables["ROUNDS"] = os.environ.get("ROUNDS", "25")
    run = subprocess.run(
        [python, "-m", "benchmarks.peer", peer], env=variables, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"{peer} failed:\n{run.stderr[-2000:]}")
    measured: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return measured


def main() -> int:
    """Measure all and print the multiples of what this package adds."""
    results = {peer: added(peer, name) for peer, name in PEERS.items()}
    ours = results["agent_otel"]
    table = Table("added by", *ours, title="time added to tool.invoke: ours in U, the others as multiples of ours")
    lines = [["added by", *ours], ["---"] * (len(ours) + 1)]
    for peer, measured in results.items():
        cells = [
            f"{value:.1f} U" if peer == "agent_otel" else f"{value / ours[case]:.1f} ×"
            for case, value in measured.items()
        ]
        table.add_row(peer, *cells)
        lines.append([peer, *cells])
    Console(width=110).print(table)
    if "--markdown" in sys.argv:
        text = "".join("| " + " | ".join(line) + " |\n" for line in lines)
        Path(sys.argv[sys.argv.index("--markdown") + 1]).write_text(text)
    cheapest = min(measured["text 200 B"] for peer, measured in results.items() if peer != "agent_otel")
    return 0 if ours["text 200 B"] < cheapest else 1


if __name__ == "__main__":
    sys.exit(main())
