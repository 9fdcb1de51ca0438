"""An agent on the tool runner of Anthropic's SDK, either major."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any

import anthropic
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool, ToolError
from opentelemetry import trace

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def _later(function: Any) -> Any:
    """A coroutine function of the same signature, which an async runner asks for."""

    @functools.wraps(function)
    async def later(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return later


def native(function: Any, *, is_async: bool) -> Any:
    """The SDK's tool for a plain function."""
    if function == "builtin":
        return LookupLater() if is_async else Lookup()
    if function == "browser":
        return toolset(is_async=is_async)
    if is_async:
        return beta_async_tool(function if inspect.iscoroutinefunction(function) else _later(function))
    return beta_tool(function)


def make(client: Any, tools: Sequence[Any], prompt: str, *, is_async: bool, **more: Any) -> Any:
    """A runner with these tools."""
    return client.beta.messages.tool_runner(
        model="scripted",
        max_tokens=100,
        messages=[{"role": "user", "content": prompt}],
        tools=[delegate(client) if tool == "delegate" else native(tool, is_async=is_async) for tool in tools],
        **more,
    )


def delegate(client: Any) -> Any:
    """A tool that is a runner with a tool of its own."""

    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        answer = await make(client, [toolbox.lookup], input, is_async=True).until_done()
        return str(answer.content[0].text)

    return beta_async_tool(delegate)


def _request() -> Any:
    """The span of the request that the program serves: what it does belongs together."""
    return trace.get_tracer("program").start_as_current_span("serving")


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync; streamed when the setting says so."""
    with _request():
        return _run(base_url, tools, prompt, setting)


def _run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    client = anthropic.Anthropic(base_url=base_url, api_key="scripted", max_retries=0)
    more: Any = {"stream": True} if setting == "stream" else {}
    runner = make(client, tools, prompt, is_async=False, **more)
    if setting == "stream":
        for stream in runner:
            said = stream.get_final_message()
        return str(said.content[0].text)
    return str(runner.until_done().content[0].text)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    with _request():
        client = anthropic.AsyncAnthropic(base_url=base_url, api_key="scripted", max_retries=0)
        runner = make(client, tools, prompt, is_async=True)
        with warnings.catch_warnings():
            if setting == "unknown":  # a tool that the runner has not
                warnings.simplefilter("ignore")
            return str((await runner.until_done()).content[0].text)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed; with each tool run as soon as it has been asked for when the setting says so."""
    more: Any = {"run_tools_eagerly": True} if setting == "eager" else {}
    with _request():
        client = anthropic.AsyncAnthropic(base_url=base_url, api_key="scripted", max_retries=0)
        runner = make(client, tools, prompt, is_async=True, stream=True, **more)
        async for stream in runner:
            said = await stream.get_final_message()
        return str(said.content[0].text)


def _definition() -> Any:
    return {"name": "builtin", "input_schema": {"type": "object"}}


class Lookup(BetaBuiltinFunctionTool):
    """A tool of the program's own class."""

    def to_dict(self) -> Any:
        """What the model is told."""
        return _definition()

    def call(self, input: Any) -> Any:  # noqa: A002 - the SDK's name
        """Look a record up."""
        return toolbox.lookup(**input)


class LookupLater(BetaAsyncBuiltinFunctionTool):
    """The same, as a coroutine."""

    def to_dict(self) -> Any:
        """What the model is told."""
        return _definition()

    async def call(self, input: Any) -> Any:  # noqa: A002 - the SDK's name
        """Look a record up."""
        return toolbox.lookup(**input)


def toolset(*, is_async: bool) -> Any:
    """A toolset with one member, ``lookup``."""
    from anthropic.lib.tools import BetaAsyncRunnableToolset, BetaRunnableToolset

    def call(_: Any, context: Any, name: str, input: Any) -> str:  # noqa: A002, ARG001 - the SDK's names
        assert name == "lookup"
        return toolbox.lookup(**input)

    async def later(*arguments: Any, **named: Any) -> str:
        return call(*arguments, **named)

    base = BetaAsyncRunnableToolset if is_async else BetaRunnableToolset
    entry = {"type": "browser_toolset_20260801"}
    members = {"toolset_name": "browser", "to_dict": lambda _: entry, "call": later if is_async else call}
    return type("Browser", (base,), members)()


def blocks(key: str) -> Any:
    """Look a record up, in two blocks."""
    text = toolbox.lookup(key)
    return [{"type": "text", "text": text[:7]}, {"type": "text", "text": text[7:]}]


def refused(key: str) -> str:
    """Look a record up that the tool itself says is not there."""
    raise ToolError(f"no record {key}")


TOOLS: dict[str, Any] = {"builtin": "builtin", "browser": "browser", "blocks": blocks, "refused": refused}
TOOLS["delegate"] = "delegate"
