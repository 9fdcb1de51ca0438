"""An integration has one name: in the setting that disables it, in its series, and on the page of integrations."""

from __future__ import annotations

import importlib
import json
import re
from typing import TYPE_CHECKING

import pytest

from agent_otel.integrations.registry import INTEGRATIONS
from tests import integration_table
from tests.environments import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

#: Imports LangGraph with its savers and makes one; prints what of it is wrapped, its series, and what was logged.
_LANGGRAPH = """
import json
import logging
import sys

class Kept(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())

lines = []
logging.getLogger("agent_otel").addHandler(Kept())
import langgraph.prebuilt
import langgraph.graph
import langgraph.checkpoint.postgres
import prometheus_client
from langgraph.checkpoint.memory import InMemorySaver

import agent_otel

InMemorySaver()
with agent_otel.tool_call("own", {}) as call:
    call.result("")
found = set()
for name, module in list(sys.modules.items()):
    for kind in vars(module).values() if name.startswith("langgraph") else ():
        if isinstance(kind, type):
            found |= {
                f"{kind.__module__}:{kind.__qualname__}.{name}"
                for name, value in vars(kind).items()
                if getattr(value, "_self_agent_otel_wrapped", False)
            }
series = prometheus_client.generate_latest().decode().splitlines()
info = sorted(line for line in series if line.startswith("agent_otel_instrumentation_info{"))
wrapped = sorted(name for name in found if name.startswith("langgraph"))
print(json.dumps([wrapped, [line for line in info if 'integration="langgraph' in line], lines]))
"""
#: Imports modules; prints which of the functions named after ``:`` are wrapped, and the integrations with a series.
_WRAPPED = """
import contextlib
import importlib
import inspect
import json
import sys

wrapped = []
for place in sys.argv[1:]:
    module, _, target = place.partition(":")
    with contextlib.suppress(ImportError):
        found = importlib.import_module(module)
        for name in target.split("."):
            parent, found = found, inspect.getattr_static(found, name, None)
        if getattr(found, "_self_agent_otel_wrapped", False):
            wrapped.append(place)
published = sys.modules.get("agent_otel.telemetry.setup")
print(json.dumps([wrapped, sorted(published.integrations()) if published else []]))
"""
_INIT = "langgraph.checkpoint.base:BaseCheckpointSaver.__init__"
_JSONB = "langgraph.checkpoint.postgres.base:Jsonb.__init__"


def _info(name: str, target: str) -> str:
    return f'agent_otel_instrumentation_info{{integration="{name}",target="{target}"}} 1.0'


def _langgraph(environment: Callable[[str], Environment], disabled: str) -> tuple[list[str], list[str], list[str]]:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_DISABLED_INTEGRATIONS": disabled}
    child = environment("langgraph-savers").run(_LANGGRAPH, env=env, check=True)
    wrapped, info, logged = json.loads(child.stdout.splitlines()[-1])
    return wrapped, [re.sub(',version="[^"]+"', "", line) for line in info], logged


def test_each_distribution_is_one_integration_with_one_name() -> None:
    names = [integration.name for integration in INTEGRATIONS]
    distributions = [integration.distribution for integration in INTEGRATIONS]
    assert len(set(names)) == len(set(distributions)) == len(INTEGRATIONS)
    assert {integration.product for integration in INTEGRATIONS} - {""} <= set(names)


def test_the_table_has_the_entries_of_the_adapters() -> None:
    source = (ROOT / "agent_otel" / "integrations" / "registry.json").read_text(encoding="utf-8")
    assert integration_table.table(integration_table.entries()) == source


def test_each_reader_that_an_entry_names_is_in_its_adapter() -> None:
    missing = [
        f"{site.adapter}: {wrap.reader}"
        for integration in INTEGRATIONS
        for site in integration.whole().sites
        for candidate in site.candidates
        for wrap in candidate.wraps
        if not hasattr(importlib.import_module(f"agent_otel.integrations.{site.adapter}"), wrap.reader)
    ]
    assert missing == []


def test_the_page_lists_the_names() -> None:
    page = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\| ([a-z0-9-]+)(?:<br>part of ([a-z0-9-]+))?(?:<br>with `\w+`)? \| `([\w-]+)` ≥", page, re.MULTILINE
    )
    assert [(entry.name, entry.product, entry.distribution) for entry in INTEGRATIONS] == listed


def test_a_wrap_site_is_a_series_under_the_name_of_the_integration(environment: Callable[[str], Environment]) -> None:
    wrapped, info, logged = _langgraph(environment, "")

    assert logged == []
    assert info == [
        _info("langgraph", "langgraph.prebuilt.tool_node:ToolNode._run_one"),
        _info("langgraph", "langgraph.pregel._loop:PregelLoop.put_writes"),
        _info("langgraph", "langgraph.pregel.main:Pregel.stream"),
        _info("langgraph-checkpoint", _INIT),
        _info("langgraph-checkpoint-postgres", _JSONB),
    ]
    assert {"langgraph.prebuilt.tool_node:ToolNode._run_one", "langgraph.pregel.main:Pregel.stream", _INIT} <= set(
        wrapped
    )


def test_a_disabled_product_is_left_alone_with_all_its_parts(environment: Callable[[str], Environment]) -> None:
    assert _langgraph(environment, "langgraph") == ([], [], [])


def test_a_disabled_part_leaves_the_product_measured(environment: Callable[[str], Environment]) -> None:
    wrapped, info, logged = _langgraph(environment, "langgraph-checkpoint")

    assert logged == []
    assert [line for line in info if "langgraph-checkpoint" in line] == [_info("langgraph-checkpoint-postgres", _JSONB)]
    assert [name for name in wrapped if "checkpoint" in name] == []
    assert "langgraph.prebuilt.tool_node:ToolNode._run_one" in wrapped


def test_a_name_that_there_is_not_is_one_warning(environment: Callable[[str], Environment]) -> None:
    _, info, logged = _langgraph(environment, "langgraph-tasks,langgraph-savers")

    assert logged == ["AGENT_OTEL_DISABLED_INTEGRATIONS names what there is not: langgraph-savers, langgraph-tasks"]
    assert len(info) == 5


@pytest.mark.parametrize(
    ("name", "python", "sites"),
    [("anthropic", "anthropic", 5), ("celery", "celery", 5), ("langchain", "langchain", 2), ("mcp", "mcp-2", 8)],
)
def test_a_disabled_integration_is_left_alone_at_each_site(
    environment: Callable[[str], Environment], name: str, python: str, sites: int
) -> None:
    (integration,) = (entry for entry in INTEGRATIONS if entry.name == name)
    candidates = [candidate for site in integration.whole().sites for candidate in site.candidates]
    places = [f"{candidate.module}:{wrap.target}" for candidate in candidates for wrap in candidate.wraps]

    reports = []
    for disabled in ("", name):
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_DISABLED_INTEGRATIONS": disabled}
        child = environment(python).run(_WRAPPED, *places, env=env, check=True)
        reports.append(json.loads(child.stdout.splitlines()[-1]))
    (wrapped, published), (left, silent) = reports

    assert len({place.partition(":")[0] for place in wrapped}) == sites
    assert name in published
    assert left == []
    assert name not in silent


def test_each_entry_says_what_is_not_measured() -> None:
    assert [entry.name for entry in integration_table.entries() if not entry.uncovered] == []
