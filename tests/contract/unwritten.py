"""Finds what is left to write of an integration, before its framework is installed or run."""

from __future__ import annotations

import ast
import importlib
import sys
from typing import TYPE_CHECKING

from agent_otel._internal.trigger_modules import watched
from tests import environments, integration_table
from tests.environments import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_otel.integrations.registry import Site
    from tests.contract.suite import Contract

ATTRIBUTES = {
    "agent": "name the module in tests/contract/agents/ that has the agent",
    "environment": "name the row of tests/environments.toml with the framework in it",
    "integrations": "map the integration's name to module:function of each first wrap that must match",
}


def first(contract: type[Contract]) -> str | None:
    """Return the next thing to write for a class of the contract, and where; None when all is there."""
    return next(_missing(contract), None)


def _missing(contract: type[Contract]) -> Iterator[str]:
    here = sys.modules[contract.__module__].__file__
    where = f"{here}: class {contract.__name__}"
    for name, meaning in ATTRIBUTES.items():
        if not hasattr(contract, name):
            yield f"{where}: set `{name}`: {meaning}"
    for name, targets in contract.integrations.items():
        yield from _unregistered(name, targets)
    if contract.environment not in environments.names():
        yield f"tests/environments.toml: add the row [{contract.environment}] with the framework's requirements"
    agent = ROOT / "tests" / "contract" / "agents" / f"{contract.agent}.py"
    yield from _stubs(agent) if agent.exists() else (f"{agent}: write run, arun and astream",)


def _unregistered(name: str, targets: list[str]) -> Iterator[str]:
    integration = next((entry for entry in integration_table.entries() if entry.name == name), None)
    if integration is None:
        yield f"agent_otel/integrations/: add an adapter with an Integration named {name}"
        return
    forms = {
        f"{candidate.module}:{candidate.wraps[0].target}": site
        for site in integration.sites
        for candidate in site.candidates
    }
    where = ROOT / _path(integration.sites[0])
    if "unwritten:unwritten" in forms:
        yield f"{where}: name the function of {name} that is around the handler, here and in the contract"
    for target in targets:
        if target not in forms:
            yield f"{where}: {name} wraps {', '.join(forms)}, and its class of the contract names {target}"
    for site in integration.sites:
        yield from _unread(site)


def _unread(site: Site) -> Iterator[str]:
    """Yield what a site is lacking: the import hook's knowledge of its modules, and the readers."""
    known = set(watched({entry.setting: "1" for entry in integration_table.entries()}))
    for candidate in site.candidates:
        if candidate.module not in known and not site.beside:
            yield f"run scripts/generate: interpreter start does not wait for {candidate.module} yet"
    adapter = importlib.import_module(f"agent_otel.integrations.{site.adapter}")
    yield from _stubs(ROOT / _path(site))
    for candidate in site.candidates:
        for wrap in candidate.wraps:
            if not hasattr(adapter, wrap.reader):
                yield f"{adapter.__file__}: write the reader {wrap.reader} of {candidate.module}:{wrap.target}"


def _path(site: Site) -> str:
    return f"agent_otel/integrations/{site.adapter.replace('.', '/')}.py"


def _stubs(path: Path) -> Iterator[str]:
    """Yield the functions of a file that raise NotImplementedError, with their messages."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in function.body:
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    name, *words = (ast.unparse(part) for part in (node.exc.func, *node.exc.args))
                    if name == "NotImplementedError":
                        yield f"{path}:{node.lineno}: {function.name}: {ast.literal_eval(words[0])}"
