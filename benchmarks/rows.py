"""Rows of a table of budgets: what is measured, how much it may be, and how much it was."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

TOLERANCE = 1.3


@dataclass
class Row:
    """One budget: what, how much at most, how much it was, in which unit."""

    what: str
    budget: float
    measured: float
    unit: str = "U"
    spread: str = ""


def show(title: str, rows: list[Row]) -> int:
    """Print the table; return the exit status, 1 where a budget is exceeded by 1.3 times."""
    table = Table("what", "budget", "measured", "ratio", "spread", title=title)
    failed = 0
    for row in rows:
        over = row.measured > row.budget * TOLERANCE
        failed += over
        ratio = f"{row.measured / row.budget:.2f}" if row.budget else "-"
        cells = (f"{row.budget:.4g} {row.unit}", f"{row.measured:.4g} {row.unit}", ratio, row.spread)
        table.add_row(row.what, *cells, style="red" if over else None)
    Console(width=130).print(table)
    return 1 if failed else 0
