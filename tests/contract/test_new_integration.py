"""``scripts/new-integration`` in a copy of the checkout, and the example of CONTRIBUTING.md on top of its files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.environments import ROOT
from tests.patience import communicate

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = ("scripts/new-integration", "haystack", "--distribution", "haystack-ai", "--version", "3.4.0")
WRAPS = ("--wraps", "haystack.tools.tool:Tool.invoke")
ADAPTER = "agent_otel/integrations/frameworks/haystack.py"
AGENT = "tests/contract/agents/haystack.py"
CLASS = "tests/contract/frameworks/test_haystack.py"
#: Prints the next thing to write.
NEXT = """
import importlib
from tests.contract import unwritten
print(unwritten.first(importlib.import_module("tests.contract.frameworks.test_haystack").TestHaystack))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the checkout without its environments, and without its own integration of the example."""
    ignored = shutil.ignore_patterns(".*", "__pycache__")
    copy = shutil.copytree(ROOT, tmp_path / "checkout", ignore=ignored, symlinks=True)
    for name in (ADAPTER, AGENT, CLASS):
        (copy / name).unlink()
    environments = copy / "tests" / "environments.toml"
    rows = re.sub(r"\n\[haystack\][^\n]*\n[^\n]+\n", "", environments.read_text(encoding="utf-8"))
    environments.write_text(rows, encoding="utf-8")
    run(copy, "scripts/generate")
    return copy


def run(copy: Path, *command: str, fails: bool = False) -> str:
    """Run a command of this interpreter's environment in the copy; return what it printed."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    variables["PYTHONPATH"] = str(copy)
    with subprocess.Popen(
        (sys.executable, *command), cwd=copy, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        printed, _ = communicate(child, 600)
    assert (child.returncode != 0) == fails, printed
    return printed


def next_to_write(copy: Path) -> str:
    """Return the next thing to write, with paths as from the copy's folder."""
    return run(copy, "-c", NEXT).replace(f"{copy}{os.sep}", "").strip()


def check(copy: Path) -> None:
    """Check format, lint and types of the files of the integration."""
    run(copy, "-m", "ruff", "check", "--no-cache", ADAPTER, AGENT, CLASS)
    run(copy, "-m", "ruff", "format", "--no-cache", "--check", ADAPTER, AGENT, CLASS)
    run(copy, "-m", "mypy", ADAPTER, AGENT, CLASS)


def fill(path: Path, old: str, new: str) -> None:
    """Replace the text of a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_contract_names_what_is_left_to_write(copy: Path) -> None:
    written = run(copy, *SCRIPT)
    assert written.splitlines()[:4] == [ADAPTER, AGENT, CLASS, "tests/environments.toml"]
    check(copy)
    assert next_to_write(copy).startswith(f"{ADAPTER}: name the function of haystack that is around the handler")
    fill(copy / ADAPTER, '"unwritten", tool="unwritten"', '"haystack.tools.tool", tool="Tool.invoke"')
    assert next_to_write(copy).startswith(f"{ADAPTER}: haystack wraps haystack.tools.tool:Tool.invoke, and its class")
    fill(copy / CLASS, "unwritten:unwritten", "haystack.tools.tool:Tool.invoke")
    assert next_to_write(copy).startswith("run scripts/generate")
    run(copy, "scripts/generate")
    assert re.match(rf"{ADAPTER}:\d+: _call: return the ToolCall", next_to_write(copy))
    fill(copy / ADAPTER, "raise NotImplementedError(", "return tool or (")
    assert next_to_write(copy).startswith(f"{AGENT}:16: make: make an agent")
    failure = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", CLASS, "-k", "each_call_is_one", fails=True)
    assert f"NotImplementedError: {copy / AGENT}:16: make: make an agent" in failure


def test_nothing_is_written_over(copy: Path) -> None:
    (copy / AGENT).write_text("mine")
    assert "exists already: tests/contract/agents/haystack.py" in run(copy, *SCRIPT, fails=True)
    assert (copy / AGENT).read_text() == "mine"
    assert not (copy / ADAPTER).exists()


def test_the_example_of_the_page_keeps_the_contract(copy: Path) -> None:
    run(copy, *SCRIPT, *WRAPS)
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^`([\w/.]+)`:\n\n```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert sorted(blocks) == sorted((ADAPTER, AGENT, CLASS))
    for name, text in blocks.items():
        (copy / name).write_text(text, encoding="utf-8")
    check(copy)
    run(copy, "scripts/generate")
    assert next_to_write(copy) == "None"
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", CLASS, "-k", "each_call or functions or delivered")
