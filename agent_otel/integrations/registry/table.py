"""The entries of all adapters, each site with its modules alone: a program reads it before it loads an adapter.

``scripts/generate`` writes ``table.json`` from the entries of the adapters.
"""

from __future__ import annotations

import json
import pkgutil

from agent_otel.integrations.registry.entries import Integration, Site

_ROWS = json.loads(pkgutil.get_data("agent_otel.integrations.registry", "table.json") or b"[]")
INTEGRATIONS = tuple(
    Integration(**{**row, "sites": [Site(*modules, **options) for modules, options in row["sites"]]}) for row in _ROWS
)
