"""Code that runs in every interpreter: short, standard library only, and it touches nothing but its own modules."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments import ROOT, Environment
from tests.unit._bootstrap.conftest import site_packages

_PACKAGE = ROOT / "agent_otel"
_FORBIDDEN = {"__import__", "breakpoint", "compile", "eval", "exec", "open", "print"}


def _without_docstrings(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return "\n".join(line for line in ast.unparse(tree).splitlines() if line)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield node.module or ""


_TABLE = ("integrations/lookup.py", "integrations/registry.py")
_START = tuple(f"_bootstrap/{name}.py" for name in ("startup", "import_hook", "sigterm"))
_INTERNAL = tuple(f"_internal/{name}.py" for name in ("env", "fork", "trigger_modules"))


@pytest.mark.parametrize("name", [*_START, *_INTERNAL, *_TABLE, "auto.py"])
def test_it_imports_the_standard_library_only(name: str) -> None:
    ours = {module for module in _imports(_PACKAGE / name) if module.split(".")[0] == "agent_otel"}
    others = {module.split(".")[0] for module in _imports(_PACKAGE / name)} - {"agent_otel"}

    assert set() == others - sys.stdlib_module_names
    assert ours <= {
        *("agent_otel", "agent_otel._bootstrap", "agent_otel._internal"),
        "agent_otel.integrations.registry",
        # Loaded when a framework is.
        *("agent_otel.core", "agent_otel.integrations", "agent_otel.telemetry.setup"),
    }


_OURS = ("agent_otel._bootstrap", "agent_otel._internal", "agent_otel.core", "agent_otel.integrations")


def test_the_switch_is_short_and_calls_nothing_suspicious() -> None:
    tree = ast.parse((_PACKAGE / "_bootstrap" / "startup.py").read_text())
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}

    assert 60 > len(_without_docstrings(tree).splitlines())
    assert {"os", "sys", *_OURS} == set(_imports(_PACKAGE / "_bootstrap" / "startup.py"))
    assert set() == called & _FORBIDDEN


_AUDIT = """
import __future__, os, sys  # the standard library's own files are not of interest

events = []
sys.addaudithook(lambda event, arguments: events.append((event, arguments)))
import agent_otel._bootstrap.startup
agent_otel._bootstrap.startup.start()
seen = tuple(events)
assert agent_otel._bootstrap.startup.env.active is (sys.argv[1] == "on")
for event, arguments in seen:
    path = arguments[0] if event in ("open", "os.listdir", "os.scandir") else ""
    print(event, path)
"""


@pytest.mark.parametrize(("switch", "state"), [({"AGENT_OTEL": "1"}, "on"), ({}, "off")])
def test_it_opens_nothing_but_its_own_modules(installed: Environment, switch: dict[str, str], state: str) -> None:
    path = str(site_packages(installed))
    run = installed.run(_AUDIT, state, env={**switch, "PYTHONPATH": path}, options=("-S", "-B"), check=True)
    touched = [line.split(" ", 1) for line in run.stdout.splitlines()]
    outside = [line for line in touched if line[1] and not line[1].startswith(f"{path}/agent_otel")]

    assert [] == outside
    assert {event for event, _ in touched} <= {"compile", "exec", "import", "marshal.loads", "open", "os.listdir"}
