"""Runs the command in this process, with nothing in its environment but what a case says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from click.testing import CliRunner

from agent_otel.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Mapping


class Ran(NamedTuple):
    """What a command left behind; lines are without blanks at their ends."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The lines of standard output, split where a table has two blanks or more."""
        return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in self.out.splitlines()]


def run(*arguments: object, env: Mapping[str, str] | None = None) -> Ran:
    """Run ``agent-otel`` with these arguments; an exception that escapes it fails the test."""
    cleared = dict.fromkeys((name for name in os.environ if name.startswith(("GRAFANA", "PROMETHEUS"))), None)
    result = CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={**cleared, "NO_PROXY": "*", **(env or {})}
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)
