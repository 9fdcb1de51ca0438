"""A crew of one agent; ``text`` is one whose model cannot call tools."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from crewai import Agent, Crew, Task
from crewai.agents import step_executor
from crewai.hooks import register_after_tool_call_hook, unregister_after_tool_call_hook
from crewai.llms.providers.openai.completion import OpenAICompletion
from crewai.tools import tool
from crewai.utilities.agent_utils import setup_native_tools
from opentelemetry import trace

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class InText(OpenAICompletion):
    """A model that cannot call tools."""

    def supports_function_calling(self) -> bool:
        """It cannot."""
        return False


def make(base_url: str, tools: Sequence[Any], prompt: str, setting: str, **more: Any) -> Crew:
    """A crew that does what the prompt says with these tools."""
    kind = InText if setting.startswith("text") else OpenAICompletion
    llm = kind(model="gpt-4o-mini", base_url=base_url, api_key="scripted", max_retries=0, **more)
    natives = [each if hasattr(each, "args_schema") else tool(each) for each in tools]
    clerk = Agent(role="clerk", goal="help", backstory="none", llm=llm, tools=natives)
    return Crew(agents=[clerk], tasks=[Task(description=prompt, expected_output="a word", agent=clerk)])


def step(crew: Crew, prompt: str) -> str:
    """Make the calls of the prompt as one step of a plan does."""
    (clerk,) = crew.agents
    _, functions, _ = setup_native_tools(clerk.tools)
    for id_, name, arguments in json.loads(prompt)["calls"]:
        step_executor.execute_single_native_tool_call(
            {"id": id_, "function": {"name": name, "arguments": json.dumps(arguments, separators=(",", ":"))}},
            available_functions=functions,
            original_tools=clerk.tools,
            structured_tools=None,
            tools_handler=None,
            agent=clerk,
            task=crew.tasks[0],
            crew=crew,
            event_source=clerk,
        )
    return "stepped"


def function(base_url: str, tools: Sequence[Any], prompt: str) -> str:
    """Ask the model with the functions that it may call, without an agent."""
    model = OpenAICompletion(model="gpt-4o-mini", base_url=base_url, api_key="scripted", max_retries=0)
    offered = [{"type": "function", "function": {"name": each.__name__, "parameters": {}}} for each in tools]
    return model.call(prompt, offered, available_functions={each.__name__: each for each in tools}) or ""


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    if setting == "step":
        return step(make(base_url, tools, prompt, setting), prompt)
    if setting == "function":
        return function(base_url, tools, prompt)
    with traced():
        return str(make(base_url, tools, prompt, setting).kickoff().raw)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    with traced(), shortening() if setting.endswith("shorten") else nullcontext():
        return str((await make(base_url, tools, prompt, setting).akickoff()).raw)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run with the model's answers streamed."""
    with traced():
        return str((await make(base_url, tools, prompt, setting, stream=True).akickoff()).raw)


def traced() -> Any:
    """The program's own span, by which calls without ids are known to belong together."""
    return trace.get_tracer("program").start_as_current_span("run")


@contextmanager
def shortening() -> Iterator[None]:
    """What tools return is shortened by a hook."""
    register_after_tool_call_hook(_shorten)
    try:
        yield
    finally:
        unregister_after_tool_call_hook(_shorten)


def _shorten(context: Any) -> str:
    return str(context.tool_result)[:100]


@tool
def nested(key: str) -> str:
    """Look a record up with another tool."""
    return str(tool(toolbox.lookup).run(key=key))


TOOLS: dict[str, Any] = {"nested": nested}
