"""Frameworks that are half installed, patched by the program, reloaded, vendored, or in an archive."""

from __future__ import annotations

import json
import shutil
import zipapp
from typing import TYPE_CHECKING, Any

import pytest

from tests.environments import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

#: Calls a tool, and prints what it returned, the calls that were measured, what was logged, and the internal errors.
_CALL = """
import json, logging, sys

class Kept(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())

lines = []
logging.getLogger("agent_otel").addHandler(Kept())

def measured():
    from prometheus_client import REGISTRY
    labels = {"error_type": "", "gen_ai_tool_name": "search"}
    return REGISTRY.get_sample_value("agent_otel_tool_result_size_bytes_sum", labels)

def search(query: str) -> str:
    "Search."
    return query * 150

def report(*said):
    errors = sys.modules.get("agent_otel._internal.errors")
    print(json.dumps([*said, measured(), lines, dict(errors.errors) if errors else {}]))
"""
_ON = {"AGENT_OTEL": "1"}


def _run(python: Environment, program: str, *arguments: str, **env: str) -> list[Any]:
    said: list[Any] = json.loads(python.run(_CALL + program, *arguments, env=env, check=True).stdout)
    return said


def _copy(python: Environment, package: str, folder: Path) -> Path:
    found = python.run(f"import {package}; print({package}.__path__[0])", check=True).stdout.strip()
    return shutil.copytree(found, folder / package, ignore=shutil.ignore_patterns("__pycache__"))


def test_in_an_archive_the_program_activates_the_package(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    """The start-up file does not run for a package in an archive."""
    app = tmp_path / "app"
    shutil.copytree(ROOT / "agent_otel", app / "agent_otel", ignore=shutil.ignore_patterns("__pycache__"))
    (app / "__main__.py").write_text(
        "import agent_otel.auto\n"
        + _CALL
        + "from langchain_core.tools import tool\n"
        + "said = len(tool(search).invoke({'query': 'ab'}))\n"
        + "report('app.pyz' in agent_otel.__file__, len(agent_otel.payload_caps()) > 30, said)\n"
    )
    zipapp.create_archive(app, tmp_path / "app.pyz")

    done = environment("langchain").run(tmp_path / "app.pyz", check=True)

    assert json.loads(done.stdout) == [True, True, 300, 300.0, [], {}]


def test_a_framework_that_is_vendored_under_another_name_is_left_alone(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    python = environment("langchain")
    copy = _copy(python, "langchain_core", tmp_path)
    for path in copy.rglob("*.py"):
        path.write_text(path.read_text().replace("langchain_core", "vendored_core"))
    copy.rename(tmp_path / "vendored_core")

    program = """
        sys.path.insert(0, sys.argv[1])
        from vendored_core.tools import tool
        report(len(tool(search).invoke({"query": "ab"})), "langchain_core" in sys.modules)
    """
    assert _run(python, _dedented(program), str(tmp_path), **_ON) == [300, False, None, [], {}]


@pytest.mark.parametrize(("missing", "warnings"), [("tools/base.py", 1), ("callbacks/manager.py", 0)])
def test_a_framework_that_is_half_installed_fails_as_it_does_without_the_package(
    environment: Callable[[str], Environment], tmp_path: Path, missing: str, warnings: int
) -> None:
    """One warning says so where the missing module is one that is wrapped."""
    python = environment("langchain")
    (_copy(python, "langchain_core", tmp_path) / missing).unlink()
    program = """
        sys.path.insert(0, sys.argv[1])
        said = []
        for _ in range(2):
            try:
                from langchain_core.tools import tool
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")
        report(said)
    """
    (without, *_), (said, sizes, logged, failures) = (
        _run(python, _dedented(program), str(tmp_path), **env) for env in ({}, _ON)
    )
    assert said == without
    assert len(said) == 2
    assert (sizes, failures) == (None, {})
    assert ["it has no module langchain_core.tools.base" in line for line in logged] == [True] * warnings


@pytest.mark.parametrize(
    ("metadata", "content"),
    [("langchain_core-0+unknown.dist-info", b"Name: langchain-core"), ("langchain_core.dist-info", b"\xff\xfe\x80")],
    ids=["no version", "no text"],
)
def test_a_framework_whose_metadata_say_nothing_is_measured(
    environment: Callable[[str], Environment], tmp_path: Path, metadata: str, content: bytes
) -> None:
    """A build without its history has no version, and an installation that was torn off has no metadata."""
    python = environment("langchain")
    _copy(python, "langchain_core", tmp_path)
    (tmp_path / metadata).mkdir()
    (tmp_path / metadata / "METADATA").write_bytes(content)
    program = """
        sys.path.insert(0, sys.argv[1])
        from langchain_core.tools import tool
        report(len(tool(search).invoke({"query": "ab"})))
    """
    assert _run(python, _dedented(program), str(tmp_path), **_ON) == [300, 300.0, [], {}]


def test_a_framework_that_the_program_has_patched_is_measured_as_it_is_then(
    environment: Callable[[str], Environment],
) -> None:
    """What is patched before and after activation runs, and the result is the outermost function's."""
    program = """
        from langchain_core.tools import BaseTool, tool

        def patch(letter):
            before = BaseTool.run
            BaseTool.run = lambda self, *args, **kwargs: before(self, *args, **kwargs) + letter

        patch("<")
        import agent_otel.auto
        patch(">")
        report(tool(search).invoke({"query": "ab"})[-2:])
    """
    # 300 letters and the patch from before; what is put around the wrapper later is not seen.
    assert _run(environment("langchain"), _dedented(program)) == ["<>", 301.0, [], {}]


@pytest.mark.parametrize("remedied", [{}, {"AGENT_OTEL_RESULT_CEILING_BYTES": "1MiB"}], ids=["measured", "remedied"])
def test_an_async_function_that_the_program_has_patched_with_a_sync_one_is_measured_while_it_runs(
    environment: Callable[[str], Environment], remedied: dict[str, str]
) -> None:
    """Its coroutine is no result, and two calls that are made before one is awaited are two, with a span each."""
    program = """
        import asyncio
        from langchain_core.tools import BaseTool, tool
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        before, exporter = BaseTool.arun, InMemorySpanExporter()
        BaseTool.arun = lambda self, *args, **kwargs: before(self, *args, **kwargs)
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        import agent_otel.auto

        async def slow(query: str) -> str:
            "Search."
            await asyncio.sleep(0)
            inside.append(trace.get_current_span().get_span_context().span_id)
            return query * 150

        async def main():
            found = tool("search")(slow)
            calls = [found.arun({"query": query}) for query in ("a", "bc")]
            outside.append(trace.get_current_span().is_recording())
            return [len(result) for result in await asyncio.gather(*calls)]

        inside, outside = [], []
        lengths = asyncio.run(main())
        spans = {span.context.span_id: span.attributes["tool.result.bytes"] for span in exporter.get_finished_spans()}
        report(lengths, [spans[each] for each in inside], outside)
    """
    said = _run(environment("langchain"), _dedented(program), **remedied)
    assert said == [[150, 300], [150, 300], [False], 450.0, [], {}]


_PATCHED = """
from langchain_core.tools import BaseTool, tool
before = BaseTool.arun
BaseTool.arun = lambda self, *args, **kwargs: before(self, *args, **kwargs)

async def slow(query: str) -> str:
    "Search."
    return query

def begin():
    return tool("search")(slow).arun({"query": "a"})
"""
_AGENT = """
from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

def begin():
    client = OpenAIChatCompletionClient("scripted", async_client=AsyncOpenAI(api_key="scripted"))
    return Agent(client, name="clerk").run("go")
"""
_NOT_STARTED = """
import agent_otel.auto
import asyncio, gc, warnings

async def main():
    begin().close()
    task = asyncio.create_task(begin())
    task.cancel()
    return [type(each).__name__ for each in await asyncio.gather(task, return_exceptions=True)]

with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    ended = asyncio.run(main())
    gc.collect()
report(ended, [str(each.message) for each in warned if each.category is RuntimeWarning])
"""


@pytest.mark.parametrize("remedied", [{}, {"AGENT_OTEL_RESULT_CEILING_BYTES": "1MiB"}], ids=["measured", "remedied"])
@pytest.mark.parametrize(
    ("name", "program"), [("langchain", _PATCHED), ("agent-framework", _AGENT)], ids=["patched tool", "run"]
)
def test_a_coroutine_that_is_never_started_warns_of_nothing(
    environment: Callable[[str], Environment], name: str, program: str, remedied: dict[str, str]
) -> None:
    """A program closes it, or cancels its task first; without the package there is nothing to warn of."""
    said = _run(environment(name), program + _NOT_STARTED, **remedied)
    assert said == [["CancelledError"], [], None, [], {}]


@pytest.mark.parametrize("times", [1, 2])
def test_a_module_that_is_reloaded_is_wrapped_again_and_each_function_once(
    environment: Callable[[str], Environment], times: int
) -> None:
    """Tools from before are measured, too, and so are tools of classes from before whose module is not reloaded."""
    program = """
        import importlib
        import langchain_core.tools.base
        from langchain_core.tools import tool

        before = tool(search)
        for _ in range(int(sys.argv[1])):
            base = importlib.reload(langchain_core.tools.base)

        class Search(base.BaseTool):
            name: str = "search"
            description: str = "Search."

            def _run(self, query: str) -> str:
                return query * 20

        def depth(function):
            inner = getattr(function, "__wrapped__", None)
            return 0 if inner is None else 1 + depth(inner)

        report(len(before.invoke({"query": "ab"})), len(Search().invoke({"query": "ab"})), depth(base.BaseTool.run))
    """
    assert _run(environment("langchain"), _dedented(program), str(times), **_ON) == [300, 40, 1, 340.0, [], {}]


def _dedented(program: str) -> str:
    return "\n".join(line.removeprefix(" " * 8) for line in program.splitlines())
