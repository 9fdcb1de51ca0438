"""A remedy that is set and cannot act on a framework in use says so, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

_SMOLAGENTS = """
from smolagents import tool

@tool
def search(query: str) -> str:
    '''Search.

    Args:
        query: What to search for.
    '''
    return query * 100

for _ in range(3):
    assert len(search("x")) == 100
"""
_LANGCHAIN = """
from langchain_core.tools import tool

@tool
def search(query: str) -> str:
    '''Search.'''
    return query * 100

for _ in range(3):
    assert "result_too_large" in search.invoke({"query": "x"})
"""
_GENERATORS = """
import asyncio
import agent_otel

@agent_otel.tool
def lines(query):
    yield from [query * 100] * 3

@agent_otel.tool(name="pages")
async def read_pages(query):
    yield query * 100

async def read():
    return [page async for page in read_pages("x")]

for _ in range(2):
    assert list(lines("x")) == ["x" * 100] * 3
    assert asyncio.run(read()) == ["x" * 100]
"""
_OTHER_PROVIDER = """
from langchain_core.language_models import FakeListChatModel

for _ in range(2):
    FakeListChatModel(responses=["done"]).invoke("go")
"""
_STORED = """
import sys
import agent_otel
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.tools import tool

@tool
def search(query: str) -> str:
    'Search.'
    return "row\\n" * 2000

call = {"name": "search", "args": {"query": "x"}, "id": "call_1", "type": "tool_call"}
with agent_otel.execution("run-1"):
    result = search.invoke(call)
    assert "the whole is stored" in result.content
    for _ in range(2):
        messages = [SystemMessage(sys.argv[1]), AIMessage("", tool_calls=[call]), result]
        FakeListChatModel(responses=["done"]).invoke(messages)
"""
_CEILING = {"AGENT_OTEL": "1", "AGENT_OTEL_RESULT_CEILING_BYTES": "50"}


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({}, "AGENT_OTEL_RESULT_CEILING_BYTES"),
        ({"AGENT_OTEL_MAX_TOOL_CALLS": "2"}, "AGENT_OTEL_RESULT_CEILING_BYTES, AGENT_OTEL_MAX_TOOL_CALLS"),
    ],
)
def test_results_of_a_framework_that_takes_no_replacement(
    environment: Callable[[str], Environment], tmp_path: Path, more: dict[str, str], named: str
) -> None:
    program = tmp_path / "program.py"  # smolagents reads the source of its tools
    program.write_text(_SMOLAGENTS)
    child = environment("smolagents").run(program, env=_CEILING | more, check=True)
    warnings = [line for line in child.stderr.splitlines() if "AGENT_OTEL" in line]
    assert [
        (
            f"{named}: without effect on calls through smolagents, in this version of it or of agent_otel; they go on "
            "whole and unlimited."
        )
    ] == warnings


_OBSERVED = """
import sys
from tests.contract.agents import smolagents
from tests.contract.remedies.tools import fetch

print(smolagents.run(sys.argv[1], [fetch], "go", ""))
"""


def test_results_that_an_agent_writes_into_texts(environment: Callable[[str], Environment]) -> None:
    def decide(_: Json) -> Reply:
        number = len(server.requests)
        last = ToolCall("call_last", "final_answer", '{"answer": "done"}')
        return [ToolCall(f"call_{number}", "fetch", '{"key": "k"}') if number < 3 else last]

    settings = {"AGENT_OTEL": "1", "AGENT_OTEL_TRIM_RESULTS": "1"}
    with OpenAIServer(decide) as server:
        child = environment("smolagents").run(_OBSERVED, server.base_url, env=settings, check=True)
    assert [
        (
            "AGENT_OTEL_TRIM_RESULTS: without effect on results that an agent writes into the texts of its messages "
            "(Observation: ...), such as those of smolagents; they go on whole."
        )
    ] == [line for line in child.stderr.splitlines() if "AGENT_OTEL" in line]


_LOOP = """
import openai
from agent_otel.testing.servers.openai import OpenAIServer

call = {"id": "call_1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
messages = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call_1", "content": "found" * 100},
]
with OpenAIServer(lambda _: "done") as server:
    client = openai.OpenAI(base_url=server.base_url, api_key="scripted", max_retries=0)
    for _ in range(2):
        client.chat.completions.create(model="scripted", messages=messages)
"""


def test_calls_of_a_loop_that_only_its_requests_show(environment: Callable[[str], Environment]) -> None:
    settings = _CEILING | {"AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS": "1"}
    child = environment("openai-agents").run(_LOOP, env=settings, check=True)
    assert [
        (
            "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS: without effect on calls of fetch, which only the requests to the "
            "model show. Decorate its function with agent_otel.tool, or call it within agent_otel.tool_call."
        )
    ] == [line for line in child.stderr.splitlines() if "AGENT_OTEL" in line]


def test_items_of_a_generator(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(_GENERATORS, env=_CEILING, check=True)
    expected = "AGENT_OTEL_RESULT_CEILING_BYTES: without effect on {}, which is a generator; its items go on whole and "
    assert [expected.format(tool) + "unlimited." for tool in ("lines", "pages")] == child.stderr.splitlines()


@pytest.mark.parametrize(
    ("name", "source", "env"),
    [("langchain", _LANGCHAIN, _CEILING), ("smolagents", _SMOLAGENTS, {"AGENT_OTEL": "1"})],
    ids=["it acts", "none is set"],
)
def test_nothing_is_said_otherwise(
    environment: Callable[[str], Environment], tmp_path: Path, name: str, source: str, env: dict[str, str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(source)
    child = environment(name).run(program, env=env, check=True)
    assert "AGENT_OTEL" not in child.stderr


_FILES = """
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.test import TestModel

def image() -> BinaryContent:
    return BinaryContent(b"x" * 5000, media_type="image/png")

def images() -> list[object]:
    return ["two", image(), image()]

def text() -> str:
    return "x" * 5000

run = Agent(TestModel(), tools=[image, images, text]).run_sync("go")
contents = [part.content for message in run.all_messages() for part in message.parts if part.part_kind == "tool-return"]
assert contents[0].data == b"x" * 5000, contents[0]
assert [type(item).__name__ for item in contents[1]] == ["str", "BinaryContent", "BinaryContent"], contents[1]
assert "result_too_large" in contents[2]
"""


def test_files_go_on_whole(environment: Callable[[str], Environment]) -> None:
    child = environment("pydantic-ai").run(_FILES, env=_CEILING, check=True)
    assert child.stderr.count("goes on whole: nothing else satisfies the output it declares") == 2


def test_requests_that_no_sdk_sends_keep_their_tools(environment: Callable[[str], Environment]) -> None:
    settings = {"AGENT_OTEL": "1", "AGENT_OTEL_MAX_TOOL_CALLS": "2", "AGENT_OTEL_TRIM_RESULTS": "1"}
    settings["AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS"] = "1000"
    child = environment("langchain").run(_OTHER_PROVIDER, env=settings, check=True)
    assert [
        (
            "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS: without effect on requests through langchain, in this version of it or "
            "of agent_otel; they go on as they are."
        ),
        (
            "AGENT_OTEL_TRIM_RESULTS: without effect on calls through langchain, in this version of it or of "
            "agent_otel; they go on whole and unlimited."
        ),
        (
            "AGENT_OTEL_MAX_TOOL_CALLS: calls above the limit are not run, but requests through langchain cannot be "
            "rewritten and keep their tools; the run ends when the model or the framework ends it."
        ),
    ] == [line for line in child.stderr.splitlines() if "AGENT_OTEL" in line]


_NOT_OFFERED = (
    "AGENT_OTEL_CLAIM_CHECK: get_tool_result cannot be offered in requests through langchain, in this version of it or "
    "of agent_otel. Add agent_otel.remedies.get_tool_result to the agent's tools, or set "
    "AGENT_OTEL_CLAIM_CHECK_TOOL=off."
)


@pytest.mark.parametrize(
    ("prompt", "more", "said"),
    [
        ("Be brief.", {}, [_NOT_OFFERED]),
        ("Read on with get_tool_result.", {}, []),
        ("Be brief.", {"AGENT_OTEL_CLAIM_CHECK_TOOL": "off"}, []),
    ],
    ids=["it has no tool", "the program names one", "switched off"],
)
def test_a_tool_that_is_named_and_not_offered(
    environment: Callable[[str], Environment], prompt: str, more: dict[str, str], said: list[str]
) -> None:
    settings = {"AGENT_OTEL": "1", "AGENT_OTEL_CLAIM_CHECK": "memory:", "AGENT_OTEL_CLAIM_CHECK_BYTES": "1000"}
    child = environment("langchain").run(_STORED, prompt, env=settings | more, check=True)
    assert said == [line for line in child.stderr.splitlines() if "AGENT_OTEL" in line]
