"""The dashboards and rules that the package ships, in a wheel or in a checkout of the repository."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent_otel.cli.console import Failure

PACKED: Final = Path(__file__).resolve().parent / "files"
_SECTION: Final = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
#: Line end inside a paragraph or a list item.
_WRAPPED: Final = re.compile(r"(?<!\n)\n(?!\n|\d+\. |- ) *")
CHECKOUT: Final = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Dashboard:
    """A dashboard; ``text`` is the shipped file."""

    file: str
    text: str

    @property
    def model(self) -> dict[str, Any]:
        """A new copy of Grafana's JSON model."""
        model: dict[str, Any] = json.loads(self.text)
        return model

    @property
    def uid(self) -> str:
        """Grafana's id of the dashboard, the same on every server."""
        return str(self.model["uid"])

    @property
    def title(self) -> str:
        """Its title."""
        return str(self.model["title"])

    @property
    def panels(self) -> int:
        """Number of panels, including those in collapsed rows."""
        every = (one for panel in self.model["panels"] for one in (panel, *panel.get("panels", ())))
        return sum(one["type"] != "row" for one in every)


def folder(name: str) -> Path:
    """Return ``dashboards`` or ``alerts``: from the wheel, else from the checkout.

    Raises:
        Failure: neither has it.
    """
    if (PACKED / name).is_dir():
        return PACKED / name
    if (CHECKOUT / "pyproject.toml").is_file() and (CHECKOUT / name).is_dir():
        return CHECKOUT / name
    raise Failure(f"this installation of agent-otel holds no {name}; install it from a wheel or run it in a checkout")


def files(name: str, pattern: str) -> dict[str, str]:
    """Return path -> text of the shipped files below ``dashboards`` or ``alerts`` that match a glob."""
    root = folder(name)
    found = (path for path in root.glob(pattern) if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(found)}


def runbooks() -> dict[str, str]:
    """Return the short form of each alert's runbook by the alert's name: its meaning and remedy, as text."""
    return {Path(file).stem: _short(text) for file, text in files("alerts", "runbooks/*.md").items()}


def _short(runbook: str) -> str:
    sections = {title: text.strip() for title, text in _SECTION.findall(runbook)}
    text = _LINK.sub(r"\1", f"{sections['Meaning']}\n\n{sections['Remedy']}")
    # Prometheus would parse these as the beginning of an expression.
    return _WRAPPED.sub(" ", text).replace("{{", "{ {")


def dashboards(uids: tuple[str, ...] = ()) -> list[Dashboard]:
    """Return the shipped dashboards, or those with these uids.

    Raises:
        Failure: a uid is not one of ours, or no dashboard is shipped.
    """
    every = [Dashboard(file, text) for file, text in files("dashboards", "*.json").items()]
    if not every:
        raise Failure(f"this installation of agent-otel is broken: {folder('dashboards')} holds no dashboard")
    unknown = sorted(set(uids) - {dashboard.uid for dashboard in every})
    if unknown:
        known = ", ".join(dashboard.uid for dashboard in every)
        raise Failure(f"no dashboard of ours: {', '.join(unknown)}. There are {known}.")
    return [dashboard for dashboard in every if not uids or dashboard.uid in uids]
