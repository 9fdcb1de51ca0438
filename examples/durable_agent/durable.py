"""Runs the agent on a durable runtime until it dies, and prints what agent_otel had said. See ``scripts/durable``.

Everything in the transcript was read back: what the runtime said from the runtime, all else from the product.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from examples.durable_agent.page import page
from examples.durable_agent.report import Report, read
from examples.durable_agent.transcript import TITLES, transcript
from examples.durable_agent.watched import RUNTIMES, look_back, watch

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "durable-agent.md"
TURNS = 8
CLAIMED_TURNS = 50
"""Turns of the runs with the setting, for the page."""


def main() -> int:
    """Run what the command line says; 0 when the product said something."""
    parser = argparse.ArgumentParser(prog="scripts/durable", description="Watch a durable agent grow until it dies.")
    parser.add_argument("runtime", nargs="?", choices=RUNTIMES, default=RUNTIMES[0])
    parser.add_argument("--turns", type=int, default=TURNS, help="after so many the model answers (%(default)s)")
    parser.add_argument(
        "--claim-check",
        nargs="?",
        const="",
        metavar="URL",
        help="set AGENT_OTEL_CLAIM_CHECK: large results go to this store (a folder, for the time of the run)",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "durable", help="folder for what was received")
    parser.add_argument(
        "--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)} from all runtimes, without and with it"
    )
    given = parser.parse_args()
    console = Console(highlight=False)
    if given.write:
        before = [run(runtime, TURNS, None, given.output, console) for runtime in RUNTIMES]
        after = [run(runtime, CLAIMED_TURNS, "", given.output, console) for runtime in RUNTIMES]
        reports = [*before, *after]
    else:
        reports = [run(given.runtime, given.turns, given.claim_check, given.output, console)]
    if not all(report.turns for report in reports):
        console.print("[red]scripts/durable:[/red] the agent ran, and agent_otel said nothing of it")
        return 1
    if given.write:
        PAGE.write_text(page(before, after), encoding="utf-8")
    return 0


def run(runtime: str, turns: int, store: str | None, output: Path, console: Console) -> Report:
    """Run the agent on one runtime and print the transcript; keep what was received.

    ``store`` is the URL of the claim check's store: None for none, empty for a folder that goes when the run is over.
    """
    watched_by = "AGENT_OTEL=1" if store is None else "AGENT_OTEL=1, with AGENT_OTEL_CLAIM_CHECK"
    console.print(f"A durable agent on [b]{TITLES[runtime]}[/b], watched by {watched_by}.\n")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        variables = {} if store is None else _claim_check(store or (folder / "claims").as_uri())
        watched = watch(
            runtime,
            turns,
            folder,
            lambda turn: console.print(f"[dim]turn {turn}: the model is asked[/dim]"),
            variables,
        )
        report = read(runtime, watched)
        if store is not None and runtime == "temporal":
            report = replace(report, later=look_back(folder, report.ending.run, variables))
    console.print("", *transcript(report), sep="\n", soft_wrap=True)
    kept = output / runtime if store is None else output / f"{runtime}-claim-check"
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "report.json").write_text(json.dumps(asdict(report), indent=1), encoding="utf-8")
    (kept / "metrics.txt").write_text(watched.scrapes[-1].text, encoding="utf-8")
    (kept / "spans.json").write_text(json.dumps([asdict(span) for span in watched.spans], indent=1), encoding="utf-8")
    return report


def _claim_check(url: str) -> dict[str, str]:
    """The setting, and the secret that every process needs which is to read what was stored."""
    return {"AGENT_OTEL_CLAIM_CHECK": url, "AGENT_OTEL_CLAIM_CHECK_KEY": secrets.token_urlsafe(32)}


if __name__ == "__main__":
    sys.exit(main())
