"""A version that cannot be instrumented is one warning at the import of its first module, and a series to alert on."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from agent_otel._internal.trigger_modules import watched
from agent_otel.integrations import versions
from agent_otel.integrations.registry import INTEGRATIONS
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

#: Import modules; print what was logged after each, and the integrations that were published.
_IMPORT = """
import importlib
import json
import logging
import sys

class Kept(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())

lines = []
logging.getLogger("agent_otel").addHandler(Kept())
sys.path.insert(0, sys.argv[1])
logged = {}
for module in sys.argv[2:]:
    importlib.import_module(module)
    logged[module] = lines[:]
    lines.clear()
"""
_PRINT = """
published = sys.modules.get("agent_otel.telemetry.setup")
print(json.dumps([logged, published.integrations() if published else {}]))
"""
#: Records one call of the program's own, which publishes what was found; prints its series.
_SCRAPE = """
import agent_otel
import prometheus_client

with agent_otel.tool_call("own", {}) as call:
    call.result("")
series = prometheus_client.generate_latest().decode().splitlines()
print(json.dumps([logged, [line for line in series if line.startswith("agent_otel_instrumentation_info{")]]))
"""


#: The settings of integrations that are off by default.
_ALL_ON = {integration.setting: "1" for integration in INTEGRATIONS if integration.setting}


def _install(folder: Path, distribution: str, module: str, version: str) -> None:
    """Write a distribution that has nothing but its first module; the packages above that are namespaces."""
    package = folder.joinpath(*module.split("."))
    package.mkdir(parents=True)
    package.joinpath("__init__.py").write_text("")
    metadata = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    metadata.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


def _imported(python: Environment, folder: Path, *modules: str, **env: str) -> tuple[dict[str, list[str]], object]:
    child = python.run(_IMPORT + _PRINT, str(folder), *modules, env={"AGENT_OTEL": "1", **env}, check=True)
    logged, published = json.loads(child.stdout)
    return logged, published


def test_every_distribution_has_a_first_module_that_interpreter_start_watches() -> None:
    packages = [integration.packages for integration in INTEGRATIONS]
    assert all(packages)
    assert {module for modules in packages for module in modules} <= set(watched(_ALL_ON))
    assert {"httpx", "httpx2"}.isdisjoint(watched({"AGENT_OTEL_HTTPX": "off"}))


def test_an_old_version_of_any_distribution_is_one_warning_with_both_versions(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    firsts = {integration.packages[0]: integration for integration in INTEGRATIONS}
    for module, integration in firsts.items():
        _install(tmp_path, integration.distribution, module, "0.0.1")
    modules = sorted(firsts, key=len)

    logged, published = _imported(environment("bare"), tmp_path, *modules, **_ALL_ON)

    for module, integration in firsts.items():
        works = integration.tested or f"{integration.minimum} and later"
        (line,) = logged[module]
        assert line.startswith(f"{integration.distribution} 0.0.1 is not instrumented: older than ")
        assert f" Known to work: {works}. " in line
    assert {integration.name: ["unmatched"] for integration in INTEGRATIONS} == published


def test_a_version_without_the_modules_is_one_warning(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    _install(tmp_path, "strands-agents", "strands", "99.1")

    logged, published = _imported(environment("bare"), tmp_path, "strands")

    line = (
        "strands-agents 99.1 is not instrumented: it has no module strands.tools.executors._executor. Known to work: "
        "1.30, 1.61 and 1.62. Its calls are not measured; everything else goes on as before."
    )
    assert {"strands": [line]} == logged
    assert {"strands": ["unmatched"]} == published


def test_a_part_of_a_framework_in_a_distribution_that_is_not_installed_is_no_warning(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    """AutoGen's core goes without its agents: its tools are measured all the same."""
    _install(tmp_path, "autogen-core", "autogen_core", "0.7.5")
    (tmp_path / "autogen_core" / "tools").mkdir()
    (tmp_path / "autogen_core" / "tools" / "_base.py").write_text("")

    assert ({"autogen_core": []}, {}) == _imported(environment("bare"), tmp_path, "autogen_core")


@pytest.mark.parametrize("is_late", [False, True])
def test_a_module_that_a_newer_version_has_kept_is_no_warning(
    environment: Callable[[str], Environment], tmp_path: Path, *, is_late: bool
) -> None:
    """Google's kit has kept the module of its older functions, and has the functions elsewhere."""
    _install(tmp_path, "google-adk", "google.adk", "2.13.0")
    (integration,) = (each for each in INTEGRATIONS if each.name == "google-adk")
    for candidate in (candidate for site in integration.sites for candidate in site.candidates):
        path = tmp_path.joinpath(*candidate.module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    functions = ("_call_tool_async", "_execute_single_prepared_call", "_build_response_event")
    caller = tmp_path / "google" / "adk" / "flows" / "llm_flows" / "tools" / "_caller.py"
    caller.write_text("\n".join(f"def {name}(): pass" for name in functions))
    modules = ["google.adk.flows.llm_flows.functions", "google.adk.flows.llm_flows.tools._caller"]
    if is_late:
        modules = ["agent_otel.settings", *modules, "agent_otel.auto"]

    child = environment("bare").run(
        _IMPORT + _PRINT, str(tmp_path), *modules, env={} if is_late else {"AGENT_OTEL": "1"}, check=True
    )

    logged, published = json.loads(child.stdout)
    assert logged == {module: [] for module in modules}
    assert published == {"google-adk": [f"{modules[-1 - is_late]}:_call_tool_async"]}


def test_a_package_of_the_program_with_the_name_of_a_framework_is_none(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text("")

    assert ({"agents": []}, {}) == _imported(environment("bare"), tmp_path, "agents")


def test_a_disabled_integration_is_silent(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    _install(tmp_path, "strands-agents", "strands", "0.2.1")

    off = {"AGENT_OTEL_DISABLED_INTEGRATIONS": "strands"}
    assert ({"strands": []}, {}) == _imported(environment("bare"), tmp_path, "strands", **off)


@pytest.mark.parametrize(
    ("name", "module", "distribution", "version"),
    [
        ("strands-0.2", "strands", "strands-agents", "0.2.1"),
        ("google-adk-1.14", "google.adk", "google-adk", "1.14.1"),
        ("mistralai-0", "mistralai", "mistralai", "0.4.2"),
    ],
)
def test_real_versions_that_are_too_old(
    environment: Callable[[str], Environment], name: str, module: str, distribution: str, version: str
) -> None:
    python = environment(name)
    child = python.run(_IMPORT + _SCRAPE, str(python.folder), module, env={"AGENT_OTEL": "1"}, timeout=240, check=True)
    logged, series = json.loads(child.stdout.splitlines()[-1])
    (line,) = logged[module]
    integration = next(row.name for row in INTEGRATIONS if row.distribution == distribution)

    assert line.startswith(f"{distribution} {version} is not instrumented: older than ")
    info = f'agent_otel_instrumentation_info{{integration="{integration}",target="unmatched",version="{version}"}} 1.0'
    assert info in series


def test_a_version_that_works_loads_nothing_but_the_table(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    """The wrapping waits for the modules that it wraps, and the metadata of distributions is not read."""
    look = """
import importlib.metadata

def refuse(name):
    raise AssertionError(name)

importlib.metadata.version = refuse
"""
    show = "print(json.dumps([logged, sorted(name for name in sys.modules if name.startswith('agent_otel.'))]))"
    modules = ("langgraph.checkpoint", "langchain_core")
    python = environment("ollama")
    child = python.run(look + _IMPORT + show, str(tmp_path), *modules, env={"AGENT_OTEL": "1"}, check=True)
    logged, loaded = json.loads(child.stdout)

    assert {"langgraph.checkpoint": [], "langchain_core": []} == logged
    assert "agent_otel.integrations.versions" in loaded
    assert {
        "agent_otel.integrations.patching",
        "agent_otel.integrations.wrap",
        "agent_otel.telemetry",
        "agent_otel.semconv",
    }.isdisjoint(loaded)


def test_a_module_in_a_namespace_below_a_package_is_found_unimported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("outer_package", "outer_package/inner", "outer_package/inner/space"):
        (tmp_path / folder).mkdir()
        if not folder.endswith("space"):
            (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "outer_package/inner/space/module.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    assert versions._spec("outer_package.inner.space.module") is not None
    assert versions._spec("outer_package.inner.space.other") is None
    assert "outer_package" not in sys.modules


def test_a_version_is_read_once_from_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("a_package")
    package.__file__ = str(tmp_path / "a_package" / "__init__.py")
    package.__path__ = [str(tmp_path / "a_package")]
    monkeypatch.setitem(sys.modules, "a_package", package)
    monkeypatch.setattr(versions, "_imported", {})
    metadata = tmp_path / "A_Package-1.2.3.dist-info"
    metadata.mkdir()

    assert "1.2.3" == versions.imported("a-package", "a_package")
    metadata.rmdir()
    assert "1.2.3" == versions.imported("a-package", "a_package")
    versions.forget()
    assert versions.imported("a-package", "a_package") is None


@each_row(
    ("version", "than", "is_older"),
    [
        ("1.29.9", "1.30", True),
        ("0.0.1", "0.3", True),
        ("1.30", "1.30.0", False),
        ("1.30.0rc1", "1.30", False),
        ("2", "1.30", False),
        ("1.2+cu118", "1.30", True),
        # What builds have that do not know their own.
        ("0+unknown", "1.30", False),
        ("0.0.0", "1.30", False),
        ("0.0.0.post1.dev0+g1a2b3c4", "1.30", False),
        ("unknown", "1.30", False),
    ],
)
def test_which_version_is_older(version: str, than: str, *, is_older: bool) -> None:
    assert versions.is_older(version, than) == is_older


def test_of_two_installations_over_each_other_the_newer_version_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = ModuleType("b_package")
    package.__file__ = str(tmp_path / "b_package.py")
    monkeypatch.setitem(sys.modules, "b_package", package)
    for version in ("0.9.1", "0.10.0", "0.2"):
        (tmp_path / f"b_package-{version}.dist-info").mkdir()

    assert versions._beside("b-package", "b_package") == "0.10.0"


@each_row("content", [None, b"", b"\xff\xfe\x80"], ids=["missing", "empty", "no text"])
def test_metadata_that_cannot_be_read_has_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    (tmp_path / "c_package.dist-info").mkdir()
    if content is not None:
        (tmp_path / "c_package.dist-info" / "METADATA").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)

    assert versions.installed("c-package") is None
