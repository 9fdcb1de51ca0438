"""Collects the entries from the adapters, and writes them as the table that `lookup` reads. For ``scripts/generate``.

A running program reads the table, because an adapter is imported only when its framework is.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import Any

from agent_otel.integrations import frameworks, model_sdks, runtimes
from agent_otel.integrations.registry import Integration, Site


def entries() -> list[Integration]:
    """Return the entries of all adapters, each of their sites with the name of its adapter."""
    collected = []
    for room in (frameworks, model_sdks, runtimes):
        for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            adapter = found.name.removeprefix("agent_otel.integrations.")
            for value in vars(importlib.import_module(found.name)).values():
                if isinstance(value, Integration) and value.adapter in {"", adapter}:
                    value.fill(adapter)
                    collected.append(value)
    return collected


def table(integrations: list[Integration]) -> str:
    """Return the text of the table: a row for each integration."""
    return "[\n" + ",\n".join(map(_row, integrations)) + "\n]\n"


def _row(entry: Integration) -> str:
    is_default = entry.packages == (entry.sites[0].candidates[0].module.partition(".")[0],)
    distribution = "" if entry.distribution == entry.name else entry.distribution
    values = {
        **_options(entry, "name", "minimum", "tested", "product", "setting", "adapter"),
        **({"distribution": distribution} if distribution else {}),
        **({} if is_default else {"packages": entry.packages}),
        "sites": [_site(site, entry.adapter) for site in entry.sites],
    }
    return json.dumps(values, ensure_ascii=False)


def _site(site: Site, adapter: str) -> list[Any]:
    """Return the names of a site's modules, and its options."""
    options = _options(site, *(() if site.adapter == adapter else ("adapter",)), "minimum", "beside")
    return [list(dict.fromkeys(candidate.module for candidate in site.candidates)), options]


def _options(of: Integration | Site, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(of, name))}
