"""``agent-otel integrations``: the supported frameworks, SDKs and runtimes, and those that are installed."""

from __future__ import annotations

import os

import click

from agent_otel import settings
from agent_otel.cli import console
from agent_otel.integrations import versions
from agent_otel.integrations.registry.table import INTEGRATIONS

_HEAD = ("name", "distribution", "minimum", "tested", "installed", "state")


@click.command("integrations")
@click.option("--installed", "is_installed", is_flag=True, help="Those that this interpreter has.")
@console.json_option
def command(*, is_installed: bool, is_json: bool) -> None:
    """Print the supported frameworks with their versions, and what this interpreter has of them.

    `agent-otel doctor` imports those that are installed, and prints what was wrapped of each.
    """
    disabled = settings.load(os.environ).disabled_integrations
    rows = []
    for item in sorted(INTEGRATIONS, key=lambda item: item.name):
        found = versions.installed(item.distribution) or ""
        state = ""
        if item.is_disabled(disabled):
            state = "disabled"
        elif found and not item.is_chosen(os.environ):
            state = f"off: {item.setting}"
        elif found:
            state = "too old" if versions.is_older(found, item.minimum) else "measured"
        if found or not is_installed:
            rows.append((item.name, item.distribution, item.minimum, item.tested, found, state))
    if is_json:
        console.rows_as_json(_HEAD, rows)
    else:
        console.table(_HEAD, rows)
