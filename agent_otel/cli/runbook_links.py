"""Links of the dashboards' tiles to the runbooks, in place of the links to Grafana's list of alerts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from agent_otel.alerts import Options
from agent_otel.cli.console import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

_Command = TypeVar("_Command", bound="Callable[..., Any]")
#: A link of a tile to the alert of its name; the name of a single alert has more than the common prefix.
_LINK: Final = re.compile(r'"/alerting/list\?search=(Agent\w+)"')


def _checked(_: click.Context, __: click.Parameter, pattern: str) -> str:
    """Return the pattern of the command line.

    Raises:
        Failure: it has braces besides {alert}.
    """
    try:
        return Options(runbook_url=pattern).runbook_url
    except ValueError as error:
        raise Failure(str(error)) from None


def option(command: _Command) -> _Command:
    """Add the option to a command that writes dashboards; it is that of ``agent-otel alerts``."""
    return click.option(
        "--runbook-url", default="", metavar="PATTERN", callback=_checked, help="Where runbooks are; {alert} stands "
        "for the alert's name. Tiles link to them; without it, to the alert in Grafana.",
    )(command)  # fmt: skip


def put(text: str, pattern: str) -> str:
    """Return a dashboard's file with links to the runbooks; the same text where the pattern is empty."""
    if not pattern:
        return text
    return _LINK.sub(lambda link: json.dumps(pattern.format(alert=link[1])), text)
