"""Every block of the README does what it says."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from agent_otel import semconv
from agent_otel.remedies.dispatch_policy.rules import read_policy
from agent_otel.settings import Settings
from agent_otel.settings.kinds import variable_of
from tests import environments
from tests.rows import each_row

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()

AGENT = """
import sys
import agent_otel

@agent_otel.tool
def search(query):
    return "found"

search("x")
if "wait" in sys.argv:
    print("called", flush=True)
    sys.stdin.read()
"""


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def _commands() -> list[str]:
    """Return every command but those of the dashboards, which tests/unit/cli/test_page.py runs."""
    blocks = [block for block in _blocks("console") if "dashboards" not in block]
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def test_there_are_no_other_blocks_or_commands() -> None:
    kinds = [name for name in re.findall(r"^```(\w*)", README, re.MULTILINE) if name]
    assert ["console", "text", "console", "console", "python"] == kinds
    assert [
        "pip install '.[cli]'",
        "agent-otel doctor -- python your_agent.py",
        "AGENT_OTEL=1 AGENT_OTEL_PROMETHEUS_PORT=9464 python your_agent.py",
        "curl -s localhost:9464/metrics | grep tool_result",
        "AGENT_OTEL=1 OTEL_TRACES_EXPORTER=console python your_agent.py",
    ] == _commands()
    assert all(os.access(ROOT / command, os.X_OK) for command in ("scripts/demo", "scripts/test"))


def test_install_and_run(tmp_path: Path) -> None:
    """The first commands, in a new environment with nothing but pip."""
    environments.uv("venv", "--seed", "--python", sys.executable, str(tmp_path / "venv"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    (tmp_path / "your_agent.py").write_text(AGENT)
    install, doctor, run, _, console = (command.replace("9464", port) for command in _commands())
    environ = {**os.environ, "PATH": f"{tmp_path}/venv/bin{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(install, shell=True, check=True, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL)  # noqa: S602
    said = _run(doctor, tmp_path, environ)
    assert ["search", "1", "5", "0", "0", "0", "0"] in [line.split() for line in said.splitlines()]
    assert "1 tool calls, 0 payloads, 0 internal errors" in said
    command, pipe = ("bash", "-c", f"exec env {run} wait"), subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stdin=pipe, stdout=pipe, text=True) as agent:
        assert agent.stdout is not None
        assert "called\n" == agent.stdout.readline()
        page = urllib.request.urlopen(f"http://localhost:{port}/metrics").read().decode()
        agent.communicate()
    assert 'agent_otel_tool_result_size_bytes_count{error_type="",gen_ai_tool_name="search"} 1.0' in page
    assert 'agent_otel_tool_result_size_bytes_sum{error_type="",gen_ai_tool_name="search"} 5.0' in page
    assert '"tool.result.bytes": 5' in _run(console, tmp_path, environ)


def _run(command: str, cwd: Path, environ: dict[str, str]) -> str:
    ran = subprocess.run(command, shell=True, check=True, cwd=cwd, env=environ, capture_output=True, text=True)  # noqa: S602
    assert "" == ran.stderr
    return ran.stdout


def test_hand_written_loop(environment: Callable[[str], Environment]) -> None:
    code = _blocks("python")[0] + "import prometheus_client\nprint(prometheus_client.generate_latest().decode())\n"
    printed = environment("bare").run(code, env={"AGENT_OTEL": "1"}, check=True).stdout
    labels = 'gen_ai_agent_name="support",gen_ai_workflow_name="support"'
    assert f"agent_otel_execution_tool_calls_sum{{{labels}}} 2.0" in printed
    for tool, size in (("search", 3.0), ("lookup", 17.0)):
        labels = f'error_type="",gen_ai_agent_name="support",gen_ai_tool_name="{tool}",gen_ai_workflow_name="support"'
        assert f"agent_otel_tool_result_size_bytes_sum{{{labels}}} {size}" in printed


def test_the_page_about_payloads(environment: Callable[[str], Environment]) -> None:
    page = (ROOT / "docs" / "payloads.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = "\n".join(blocks) + "import prometheus_client\nprint(prometheus_client.generate_latest().decode())\n"
    printed = environment("bare").run(code, env={"AGENT_OTEL": "1"}, check=True).stdout
    assert printed.startswith("2097152 ran ")
    labels = 'direction="input",gen_ai_agent_name="investigate",gen_ai_workflow_name="investigate"'
    labels += ',workflow_activity="call_model",workflow_runtime="mine"'
    assert f"agent_otel_workflow_payload_size_bytes_sum{{{labels}}} 16.0" in printed


def test_the_page_about_the_policy(environment: Callable[[str], Environment]) -> None:
    page = (ROOT / "docs" / "dispatch-policy.md").read_text()
    (policy,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    rules = read_policy(tomllib.loads(policy))
    assert [rules.rule_for("triage", None, "get_commit"), rules.rule_for("other", None, "get_commit")] == [
        rules.rules[0],
        None,
    ]
    allowed, denied = environment("bare").run(code, check=True).stdout.splitlines()
    assert allowed == "4f2a for 6 characters"
    assert json.loads(denied)["rule"] == "tools"


PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


#: Names in pages that look like those of metrics: a module, a folder, a field of JSON.
#: Names that are no metrics: of files, and of a header of messages.
NO_METRICS = {"agent_otel_contracts", "agent_otel_doctor", "agent_otel_run", "agent_otel_startup"}
each_page = each_row("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link, _, heading in re.findall(r"\]\(([^)#:]*)(#([^)]+))?\)", page.read_text(encoding="utf-8")):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not heading or heading in _headings(target), f"{link}#{heading}"


@each_page
def test_names_exist(page: Path) -> None:
    """Settings, metrics and alerts that a page names are those of the package; blocks of YAML and JSON can be read."""
    text = page.read_text(encoding="utf-8")
    if page.name != "CONTRIBUTING.md":  # it has the names of an example
        known = {variable_of(item) for item in dataclasses.fields(Settings)}
        named = set(re.findall(r"\bAGENT_OTEL_[A-Z_]+[A-Z]\b", text))
        assert set() == named - known
        metrics = {getattr(name, "exposed_name", None) for name in vars(semconv).values() if not isinstance(name, dict)}
        named = set(re.findall(r"(?<![\w:/.-])agent_otel_[a-z_]+[a-z]", text)) - NO_METRICS
        assert set() == {re.sub(r"_(sum|count|bucket)$", "", name) for name in named - metrics} - metrics
        runbooks = {file.stem for file in (ROOT / "alerts" / "runbooks").glob("*.md")}
        assert set() == set(re.findall(r"\*(Agent[A-Z]\w+)\*", text)) - runbooks
    for language, block in re.findall(r"```(yaml|json)\n(.*?)```", text, re.DOTALL):
        assert yaml.safe_load(block) if language == "yaml" else json.loads(block)


def _headings(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


def test_the_map_of_the_tree_is_true() -> None:
    """Every path that CONTRIBUTING.md names exists, but for its example's; the map has every folder of the package."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:agent_otel|alerts|scripts|tests|\.ci)/[\w./-]+)", page)
    assert len(paths) > 50
    examples = ("NAME", "haystack")
    real = [path for path in paths if not any(example in path for example in examples)]
    assert [] == [path for path in real if not (ROOT / path).exists()]
    package = {folder.name for folder in (ROOT / "agent_otel").iterdir() if (folder / "__init__.py").exists()}
    assert package <= set(re.findall(r"^  (\w+)/", page, re.MULTILINE))
