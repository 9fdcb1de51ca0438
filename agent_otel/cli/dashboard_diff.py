"""Comparison of two dashboards as a reader sees them.

Grafana adds an id, a version and defaults to a dashboard, and a person selects values of variables: neither counts as a
change. A pushed dashboard carries a mark in its description: a line with the digest of its content. A later change by
hand no longer matches the digest.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from typing import Any, Final

from agent_otel._internal.version import __version__

_MARK: Final = re.compile(r"\s*Pushed by agent-otel (?P<version>\S+) \((?P<digest>[0-9a-f]{12})\)\.\s*\Z")
#: Keys that Grafana writes, not the person who edits the dashboard.
_GRAFANAS: Final = ("id", "uid", "version", "iteration", "gnetId")
#: The values that were selected when the dashboard was saved.
_SELECTED: Final = ("current", "options")

Model = dict[str, Any]


def digest(model: Model) -> str:
    """Return 12 hex digits of a digest of the dashboard's content, without the mark."""
    text = json.dumps(content(model), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def marked(model: Model) -> Model:
    """Return a copy whose description ends with a new mark, without the previous one."""
    made = copy.deepcopy(model)
    text = _MARK.sub("", str(model.get("description") or ""))
    made["description"] = f"{text}\n\nPushed by agent-otel {__version__} ({digest(model)}).".lstrip()
    return made


def mark(model: Model) -> str | None:
    """Return the digest in a dashboard's mark, which is that of the pushed content; None without a mark."""
    found = _MARK.search(str(model.get("description") or ""))
    return found["digest"] if found else None


def message(model: Model) -> str:
    """Return the message of a push in Grafana's version history."""
    return f"agent-otel {__version__} ({digest(model)})"


def content(model: Model) -> Model:
    """Return what a reader sees of a dashboard: no keys of Grafana's, no selected values, no mark, no empty values."""
    made = copy.deepcopy(model)
    made["description"] = _MARK.sub("", str(model.get("description") or ""))
    for key in _GRAFANAS:
        made.pop(key, None)
    for variable in _variables(made):
        for key in _SELECTED:
            variable.pop(key, None)
    pruned: Model = _pruned(made)
    return pruned


def with_selected(model: Model, existing: Model) -> Model:
    """Return a copy in which variables have the values that the existing dashboard has."""
    made = copy.deepcopy(model)
    saved = {variable.get("name"): variable.get("current") for variable in _variables(existing)}
    for variable in _variables(made):
        if saved.get(variable.get("name")):
            variable["current"] = copy.deepcopy(saved[variable["name"]])
    return made


def with_datasource(model: Model, name: str, uid: str) -> Model:
    """Return a copy whose first data source variable has this data source selected."""
    made = copy.deepcopy(model)
    for variable in _variables(made):
        if variable.get("type") == "datasource":
            variable["current"] = {"selected": True, "text": name, "value": uid}
            break
    return made


def selected_datasource(model: Model) -> str | None:
    """Return the value of the first data source variable."""
    for variable in _variables(model):
        if variable.get("type") == "datasource":
            value = (variable.get("current") or {}).get("value")
            return value if isinstance(value, str) else None
    return None


def _variables(model: Model) -> list[Model]:
    templating = model.get("templating")
    found = templating.get("list") if isinstance(templating, dict) else None
    return [variable for variable in found or [] if isinstance(variable, dict)]


def _pruned(value: Any) -> Any:
    """Return a value without empty members, such as the defaults that a server writes out."""
    if isinstance(value, dict):
        kept = {key: _pruned(inner) for key, inner in value.items() if key != "pluginVersion"}
        return {key: inner for key, inner in kept.items() if not _empty(inner)}
    if isinstance(value, list):
        return [_pruned(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})
