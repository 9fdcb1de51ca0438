"""Bytecodes that the package adds to calls and requests. A busy machine gives the same counts.

``python -m benchmarks.bytecodes`` runs a child for each environment, prints a table, and exits with 1 if a count is
over its limit by 2 %. Work inside of functions of C has no bytecodes: the other benchmarks time it.
"""

from __future__ import annotations

import json
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import children
from tests.environments import environment

TOLERANCE = 1.02
#: What is counted, the limit. A count below its limit lowers the limit with the change that made it cheaper.
LIMITS: dict[str, float] = {
    "a text call": 3_150,
    "a text call, OTel sink": 5_280,
    "LangChain text call: ours to OpenLLMetry without content": 0.93,
    "a text call with an id": 4_300,
    "a 16 KB dictionary with an id": 5_560,
    "a 16 KB JSON text with an id": 4_290,
    "the same, of a tool that pages": 5_900,
    "the same, after other shapes": 4_610,
    "a 1 MB dictionary with an id": 9_800,
    "a request with a new turn": 14_370,
    "the same, of a restored conversation": 20_100,
    "each old message": 60,
    "each old message, of a restored conversation": 60,
}


def _child(name: str, function: str, argument: str) -> dict[str, float]:
    python = str(environment(name).python)
    counted: dict[str, float] = json.loads(
        children.last_line(python, "-m", "benchmarks.bytecode_cases", function, argument)
    )
    return counted


def counts() -> dict[str, float]:
    """Return all rows."""
    rows = _child("bare", "hand_written", "prometheus")
    rows["a text call, OTel sink"] = _child("bare", "hand_written", "otel")["a text call"]
    peer = _child("peers-openllmetry", "langchain", "openllmetry-without-content")["text"]
    rows["LangChain text call: ours to OpenLLMetry without content"] = (
        _child("peers-openllmetry", "langchain", "agent_otel")["text"] / peer
    )
    off = _child("agents", "openai", "off")
    for kind, suffix in (("measured", ""), ("restored", ", of a restored conversation")):
        on = _child("agents", "openai", kind)
        added = {turns: on[turns] - off[turns] for turns in on}
        rows[f"the same{suffix}" if suffix else "a request with a new turn"] = added["2 turns"]
        rows[f"each old message{suffix}"] = max(0, (added["40 turns"] - added["10 turns"]) / 60)
    return rows


def main() -> int:
    """Print the counts beside their limits; return 1 if one is over its limit by 2 %."""
    rows = counts()
    table = Table("bytecodes of", "counted", "limit")
    over = {name for name, counted in rows.items() if counted > LIMITS[name] * TOLERANCE}
    for name, counted in rows.items():
        table.add_row(name, f"{counted:,.5g}", f"{LIMITS[name]:,}", style="red" * (name in over))
    Console(width=120).print(table)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
