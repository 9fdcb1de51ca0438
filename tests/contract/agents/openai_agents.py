"""An agent on OpenAI's Agents SDK, from 0.7 on."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import agents
from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    ToolOutputText,
    function_tool,
)
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI

from tests.contract import toolbox
from tests.contract.agents import mcp_client

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CONFIG = RunConfig(group_id="group-1")


def native(function: Any) -> FunctionTool:
    """The framework's tool for a plain function."""
    # Without a failure function the SDK raises what the tool raises.
    return function_tool(function, failure_error_function=None) if inspect.isroutine(function) else function


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk", **more: Any) -> Agent[Any]:
    """An agent with these tools."""
    kind = OpenAIResponsesModel if setting.startswith("responses") else OpenAIChatCompletionsModel
    model = kind("scripted", AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0))
    given = [delegate(base_url) if tool == "delegate" else native(tool) for tool in tools]
    return Agent(name, tools=given, model=model, **more)


def delegate(base_url: str) -> Any:
    """A tool that is an agent with a tool of its own."""
    sub = make(base_url, [toolbox.lookup], "", name="assistant")
    return sub.as_tool("delegate", "Ask the assistant.")


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    return str(Runner.run_sync(make(base_url, tools, setting), prompt, run_config=CONFIG).final_output)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    if setting == "mcp":
        params: Any = {"command": sys.executable, "args": [str(Path(__file__).with_name("mcp_server.py"))]}
        # A busy machine takes longer than the five seconds that are the default to start a server.
        async with MCPServerStdio(params, client_session_timeout_seconds=100) as server:
            agent = make(base_url, (), setting, mcp_servers=[server])
            return str((await Runner.run(agent, prompt, run_config=CONFIG)).final_output)
    result = await Runner.run(make(base_url, tools, setting), prompt, run_config=CONFIG)
    if setting.endswith("approval"):
        return f"{len(result.interruptions)} to approve"
    return str(result.final_output)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    result = Runner.run_streamed(make(base_url, tools, setting), prompt, run_config=CONFIG)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


@function_tool
async def nested(context: RunContextWrapper[Any], key: str) -> str:
    """Look a record up with another tool."""
    inner = native(toolbox.lookup)
    return str(await inner.on_invoke_tool(cast("Any", context), json.dumps({"key": key})))


@function_tool
def text_output(key: str) -> ToolOutputText:
    """Look a record up, as the SDK's own text."""
    return ToolOutputText(text=toolbox.lookup(key))


def _withhold(data: Any) -> ToolGuardrailFunctionOutput:
    del data
    return ToolGuardrailFunctionOutput.reject_content("withheld")


def guarded(key: str) -> str:
    """Look a record up that must not be seen."""
    return toolbox.lookup(key)


_guarded = function_tool(guarded)
_guarded.tool_output_guardrails = [ToolOutputGuardrail(_withhold)]


async def _check(data: Any) -> ToolGuardrailFunctionOutput:
    del data
    async with mcp_client.connect("") as client:
        await client.call_tool("big", {"n": 3})
    return ToolGuardrailFunctionOutput.allow()


def checked(key: str) -> str:
    """Look a record up after a guardrail has used a tool of its own."""
    return toolbox.lookup(key)


_checked = function_tool(checked)
_checked.tool_input_guardrails = [ToolInputGuardrail(_check)]


def _apologise(_: Any, error: Exception) -> str:
    return f"sorry: {error}"


def _named(function: Callable[..., Any], name: str, **more: Any) -> FunctionTool:
    known = inspect.signature(function_tool).parameters
    return function_tool(function, name_override=name, **{k: v for k, v in more.items() if k in known})


async def _in_text(_: Any, given: str) -> str:
    return toolbox.lookup(**json.loads(given))


async def _raising(_: Any, given: str) -> str:
    return toolbox.broken(**json.loads(given))


async def _shell(_: Any) -> Any:
    output = agents.ShellCommandOutput(stdout="x" * 500, stderr="")
    return agents.ShellResult(output=[output])


class _Editor:
    def create_file(self, _: Any) -> str:
        return "File created"

    update_file = delete_file = create_file


# The SDK's own kinds of tools, of the versions that have them.
_OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "shell": ("ShellTool", {"executor": _shell}),
    "shell_approved": ("ShellTool", {"executor": _shell, "needs_approval": True}),
    "apply_patch": ("ApplyPatchTool", {"editor": _Editor()}),
    "custom": ("CustomTool", {"name": "custom", "description": "Look up.", "on_invoke_tool": _in_text}),
    "custom_broken": ("CustomTool", {"name": "custom_broken", "description": "Fail.", "on_invoke_tool": _raising}),
}

TOOLS = {
    **{
        name: getattr(agents, kind)(**given)
        for name, (kind, given) in _OWN.items()
        if hasattr(agents, kind) and given.keys() <= inspect.signature(getattr(agents, kind)).parameters.keys()
    },
    "nested": nested,
    "text_output": text_output,
    "guarded": _guarded,
    "checked": _checked,
    "delegate": "delegate",
    "converted": _named(toolbox.broken, "converted"),
    "converted_later": _named(toolbox.broken_later, "converted_later"),
    "apologetic": _named(toolbox.broken, "apologetic", failure_error_function=_apologise),
    "hasty": _named(toolbox.linger, "hasty", timeout=0.05),
    "approved": _named(toolbox.lookup, "approved", needs_approval=True),
}
