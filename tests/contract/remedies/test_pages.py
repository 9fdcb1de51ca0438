"""The schema of a paginated tool, as the frameworks build it for the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_TOOL = '''
import asyncio, json
from agent_otel.remedies import paginated

@paginated
def search(query: str) -> list[str]:
    """Find something."""
    return [query] * 60
'''

#: The expression of a tool's schema, and of the answer to a call with a page of 70 rows where it is called.
_PROGRAMS = {
    "langchain": """
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
made = tool(search)
schema = convert_to_openai_tool(made)["function"]["parameters"]
answer = made.invoke({"query": "a", "page_size": 70})
""",
    "openai-agents": """
from agents import function_tool
from agents.tool_context import ToolContext
made = function_tool(search, strict_mode=False)
schema = made.params_json_schema
given = json.dumps({"query": "a", "page_size": 70})
context = ToolContext(context=None, tool_name="search", tool_call_id="c1", tool_arguments=given)
answer = asyncio.run(made.on_invoke_tool(context, given))
""",
    "pydantic-ai": """
from pydantic_ai import Tool
made = Tool(search)
schema = made.function_schema.json_schema
answer = made.function_schema.function(query="a", page_size=70)
""",
    "mcp-1": """
from mcp.server.fastmcp import FastMCP
server = FastMCP("pages")
server.tool(structured_output=False)(search)
(made,) = asyncio.run(server.list_tools())
schema = made.inputSchema
(content,) = asyncio.run(server.call_tool("search", {"query": "a", "page_size": 70}))
answer = json.loads(content.text)
""",
}
_REPORT = "print(json.dumps([schema['properties']['page_size'], len(answer['items']), answer['total_estimate']]))"


@pytest.mark.parametrize("framework", _PROGRAMS)
@pytest.mark.shows("001.pagination")
def test_the_schema_has_the_bounds_of_a_page_and_no_size_is_rejected(
    framework: str, environment: Callable[[str], Environment]
) -> None:
    code = "\n".join((_TOOL, _PROGRAMS[framework], _REPORT))
    done = environment(framework).run(code, env={"AGENT_OTEL": "0"}, check=True)
    page_size, rows, total = json.loads(done.stdout.splitlines()[-1])
    expected: dict[str, Any] = {"type": "integer", "default": 20, "minimum": 1, "maximum": 50}
    assert {name: page_size.get(name) for name in expected} == expected
    assert (rows, total) == (50, 60)


#: Two pages of a tool that gets a context, with another state of it each time; and of one with other arguments.
_WITH_CONTEXT = {
    "langchain": """
from typing import Annotated
from langchain_core.tools import InjectedToolArg, tool

@tool
@paginated
def search(query: str, run: Annotated[dict, InjectedToolArg]) -> list[str]:
    "Find something."
    return [query] * 60

def call(state, **given):
    return search.invoke({**given, "run": {"state": state}})
""",
    "openai-agents": """
from agents import RunContextWrapper, Usage, function_tool
from agents.tool_context import ToolContext

@function_tool(strict_mode=False)
@paginated
def search(run: RunContextWrapper[str], query: str) -> list[str]:
    "Find something."
    return [query] * 60

def call(state, **given):
    named = {"tool_name": "search", "tool_call_id": f"c{state}", "tool_arguments": json.dumps(given)}
    context = ToolContext(context=None, usage=Usage(requests=state), **named)
    return asyncio.run(search.on_invoke_tool(context, json.dumps(given)))
""",
    "pydantic-ai": """
from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

@paginated
def search(run: RunContext[None], query: str) -> list[str]:
    "Find something."
    return [query] * 60

def call(state, **given):
    return search(RunContext(deps=None, model=TestModel(), usage=RunUsage(requests=state), run_step=state), **given)
""",
}
_PAGES = """
first = call(1, query="a")
second, other = (call(state, query=query, cursor=first["next_cursor"]) for state, query in ((2, "a"), (3, "b")))
print(json.dumps([len(second.get("items", ())), second.get("error"), other.get("error")]))
"""


@pytest.mark.parametrize("framework", _WITH_CONTEXT)
def test_a_cursor_is_valid_for_the_models_arguments_whatever_the_framework_adds(
    framework: str, environment: Callable[[str], Environment]
) -> None:
    code = "\n".join(
        ("import asyncio, json\nfrom agent_otel.remedies import paginated", _WITH_CONTEXT[framework], _PAGES)
    )
    done = environment(framework).run(code, env={"AGENT_OTEL": "0"}, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [20, None, "bad_cursor"]
