"""The import rules, the sizes and the one place for names, read from the source itself."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "agent_otel"
MODULES = sorted(PACKAGE.rglob("*.py"))
STARTUP = ("__init__", "_startup", "_triggers", "_importhook", "_sigterm", "auto")
FRAMEWORKS = ("agents", "anthropic", "dapr", "fastmcp", "langchain_core", "langgraph", "mcp", "openai", "temporalio")


def _name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def _imports(path: Path) -> set[str]:
    """Every module a file imports, wherever in the file; relative imports are not used in this package."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            module = node.module or ""
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def _ours(path: Path) -> set[str]:
    return {name.removeprefix("agent_otel.") for name in _imports(path) if name.startswith("agent_otel")}


def test_no_module_is_longer_than_agreed(subtests: pytest.Subtests) -> None:
    for path in MODULES:
        with subtests.test(module=_name(path)):
            adapter = path.parent.name in ("tools", "models", "runtimes")
            assert (250 if adapter else 400) >= len(path.read_text().splitlines())


def test_measure_imports_nothing_of_ours_but_itself(subtests: pytest.Subtests) -> None:
    for path in sorted((PACKAGE / "measure").glob("*.py")):
        with subtests.test(module=_name(path)):
            assert {name for name in _ours(path) if not name.startswith("measure")} == set()


def test_adapters_reach_neither_emit_nor_measure(subtests: pytest.Subtests) -> None:
    for path in sorted((PACKAGE / "integrations").glob("*/*.py")):
        with subtests.test(module=_name(path)):
            assert {
                name for name in _ours(path) if name.split(".")[0] in ("emit", "measure", "ledger", "record")
            } == set()


def test_no_framework_is_imported(subtests: pytest.Subtests) -> None:
    for path in MODULES:
        with subtests.test(module=_name(path)):
            roots = {name.split(".")[0] for name in _imports(path)}
            assert roots.isdisjoint(FRAMEWORKS)


def test_what_runs_at_interpreter_start_uses_the_standard_library_only(subtests: pytest.Subtests) -> None:
    for path in [PACKAGE / f"{name}.py" for name in STARTUP]:
        with subtests.test(module=_name(path)):
            third_party = {"opentelemetry", "wrapt", "prometheus_client", "typing_extensions"}
            assert {name.split(".")[0] for name in _imports(path)}.isdisjoint(third_party)


def test_telemetry_names_are_written_in_the_catalogue_only(subtests: pytest.Subtests) -> None:
    for path in [path for path in MODULES if path.name != "catalogue.py"]:
        with subtests.test(module=_name(path)):
            telemetry_name = re.compile(
                r"(agent_otel\.(tool|model|workflow|execution|internal)|tool\.(result|args)|gen_ai)\."
            )
            tree = ast.parse(path.read_text())
            docstrings = {
                node.body[0].value.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and node.body
                and isinstance(node.body[0], ast.Expr)
                and isinstance(node.body[0].value, ast.Constant)
            }
            written = {
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docstrings
            }
            assert {text for text in written if telemetry_name.match(text)} == set()


def test_nothing_catches_more_than_exception() -> None:
    """Cancellation, KeyboardInterrupt and SystemExit pass; SystemExit is caught where an interpreter starts only."""
    caught = {
        (_name(path), ast.unparse(node.type) if node.type else "everything")
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or re.search("BaseException|SystemExit|KeyboardInterrupt", ast.unparse(node.type)))
    }
    assert {("_startup", "(Exception, SystemExit)")} == caught
