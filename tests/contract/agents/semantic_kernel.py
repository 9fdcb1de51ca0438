"""An agent of Semantic Kernel."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import FunctionResult, KernelFunctionFromPrompt, KernelPlugin, kernel_function

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

logging.getLogger("semantic_kernel").setLevel(logging.CRITICAL)  # it logs the exceptions of tools


def make(base_url: str, tools: Sequence[Any], setting: str = "", name: str = "clerk") -> ChatCompletionAgent:
    """Return an agent with these tools."""
    client = AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    kernel = Kernel(services=[OpenAIChatCompletion("scripted", async_client=client)])
    if setting in FILTERS:
        kind, function = FILTERS[setting]
        kernel.add_filter(kind, function)
    natives = [_assistant(base_url) if each == "delegate" else _native(each) for each in tools]
    plugin = kernel.add_plugin(KernelPlugin(name="toolbox", functions=natives))
    for function in plugin.functions.values() if setting != "in a plugin" else ():
        function.metadata.plugin_name = None  # the toolbox's names are those that the model knows
    return ChatCompletionAgent(kernel=kernel, name=name)


def _native(function: Any) -> Any:
    """Return the framework's tool for a function."""
    is_native = isinstance(function, KernelFunctionFromPrompt)
    return function if is_native else kernel_function(function, name=function.__name__)


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once, sync."""
    return asyncio.run(arun(base_url, tools, prompt, setting))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once."""
    agent = make(base_url, tools, setting)
    if setting == "invoked":
        return "".join([str(item.content) async for item in agent.invoke(prompt)])
    response = await agent.get_response(prompt, thread=ChatHistoryAgentThread(thread_id="thread-1"))
    return str(response.content)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once, streamed."""
    return "".join([str(item.content) async for item in make(base_url, tools, setting).invoke_stream(prompt)])


def _assistant(base_url: str) -> Any:
    """Return a tool that is an agent with a tool of its own."""

    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        return str((await make(base_url, [toolbox.lookup], name="assistant").get_response(input)).content)

    return _native(delegate)


async def shorten(context: Any, next: Any) -> None:  # noqa: A002 - the framework's name
    """Keep the first hundred letters."""
    await next(context)
    context.function_result = FunctionResult(
        function=context.function.metadata, value=context.function_result.value[:100]
    )


async def shorten_function(context: Any, next: Any) -> None:  # noqa: A002 - the framework's name
    """Keep the first hundred letters, where every caller of the function is served."""
    await next(context)
    context.result = FunctionResult(function=context.function.metadata, value=context.result.value[:100])


async def answer(context: Any, next: Any) -> None:  # noqa: A002 - the framework's name
    """Answer in the tool's place."""
    del next
    context.function_result = FunctionResult(function=context.function.metadata, value=toolbox.LOOKUP)


def later(key: str) -> Any:
    """Look a record up, in two pieces of a generator."""
    text = toolbox.lookup(key)
    yield from (text[:10], text[10:])


FILTERS: dict[str, Any] = {
    "shorten": ("auto_function_invocation", shorten),
    "shorten the function": ("function_invocation", shorten_function),
    "answer": ("auto_function_invocation", answer),
}
TOOLS: dict[str, Any] = {"delegate": "delegate", "later": later}
