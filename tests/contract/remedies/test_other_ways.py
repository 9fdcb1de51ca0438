"""Tools that a framework runs on another way than its agents' usual one: each call counts once, and a policy holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

integrations = {
    "ag2": [
        "ag2.tools.builtin.anthropic_bash:AnthropicBashTool.__call__",
        "ag2.tools.toolkits.mcp_server.toolkit:_MCPProxyTool.__call__",
    ],
    "dspy": ["dspy.adapters.types.tool:ToolCalls.ToolCall.execute"],
    "litellm": [
        "litellm.harness.handlers.tool_loop_handler:_execute_tool",
        "litellm.tool_loop:run_tool_loop",
        "litellm:run_tool_loop",
    ],
    "llama-index": [
        "llama_index.core.tools.ondemand_loader_tool:OnDemandLoaderTool.call",
        "llama_index.core.tools.query_engine:QueryEngineTool.call",
        "llama_index.core.tools.query_plan:QueryPlanTool.__call__",
        "llama_index.core.tools.retriever_tool:RetrieverTool.call",
    ],
    "mistralai": ["mistralai.extra.voice_agents.tools:FunctionHandler.invoke"],
    "strands": ["strands.tools.executors._executor:ToolExecutor._execute_background"],
}

HEAD = """
import json
from contextlib import suppress
from tests.contract.child import Telemetry
telemetry = Telemetry()
ran = []

def lookup(key: str) -> str:
    "Look a record up."
    ran.append(key)
    return key * 10
"""
#: A server of MCP in a process of its own, with the SDK that is there; a call leaves a file named after its key.
SERVER = """
from pathlib import Path
try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
server = Server("served")

@server.tool()
def lookup(key: str) -> str:
    "Look a record up."
    Path(key).touch()
    return key * 10

server.run()
"""
TAIL = """
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
spans = [span for span in spans if "tool.result.seen_at" not in span]  # what the framework tells of its tasks
names = ("tool.name", "gen_ai.tool.call.id", "tool.args.bytes", "tool.result.bytes", "error.type")
print(json.dumps([ran, [[span.get(name) for name in names] for span in spans]]))
"""


@dataclass(frozen=True)
class Way:
    """A program with calls, and what is expected of it: what has run, and each call's id, bytes and error."""

    environment: str
    program: str
    ran: list[str]
    calls: list[list[Any]]


WAYS = {
    "ag2's shell for Anthropic": Way(
        "ag2",
        """
        import asyncio, os, tempfile
        from ag2 import Agent
        from ag2.events import ToolCallEvent
        from ag2.testing import TestConfig
        from ag2.tools.builtin.anthropic_bash import AnthropicBashTool
        from ag2.tools.sandbox import LocalEnvironment

        with tempfile.TemporaryDirectory() as folder:
            asked = ToolCallEvent(id="call_1", name="bash", arguments=json.dumps({"command": "echo a > b; cat b"}))
            tool = AnthropicBashTool(LocalEnvironment(folder))
            asyncio.run(Agent("clerk", config=TestConfig(asked, "done"), tools=[tool]).ask("go"))
            ran += os.listdir(folder)
        """,
        ["b"],
        # The text {"command": "echo a > b; cat b"} is 32 bytes; the framework strips the line end.
        [["bash", "call_1", 32, 1, None]],
    ),
    "ag2's tools of an MCP server": Way(
        "ag2-mcp",
        """
        import asyncio, os, sys, tempfile
        from ag2 import Agent
        from ag2.events import ToolCallEvent
        from ag2.testing import TestConfig
        from ag2.tools import MCPToolkit
        from ag2.tools.toolkits.mcp_server import MCPStdioServerConfig

        with tempfile.TemporaryDirectory() as folder:
            asked = ToolCallEvent(id="call_1", name="lookup", arguments=json.dumps({"key": "a"}))
            served = MCPToolkit(MCPStdioServerConfig(command=sys.executable, args=["-c", SERVER], cwd=folder))
            asyncio.run(Agent("clerk", config=TestConfig(asked, "done"), tools=[served]).ask("go"))
            ran += os.listdir(folder)
        """,
        ["a"],
        [["lookup", "call_1", 12, 10, None]],  # the text {"key": "a"}
    ),
    "autogen's tools of an MCP server": Way(
        "autogen-mcp",
        """
        import asyncio, os, sys, tempfile
        from autogen_agentchat.agents import AssistantAgent
        from autogen_core import FunctionCall
        from autogen_core.models import CreateResult, RequestUsage
        from autogen_ext.models.replay import ReplayChatCompletionClient
        from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, mcp_server_tools

        FAMILY = {"family": "unknown", "function_calling": True, "json_output": False, "vision": False}

        async def ask(id, **given):
            called = [FunctionCall(id=id, name="lookup", arguments=json.dumps({"key": id}))]
            usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
            asked = CreateResult(finish_reason="function_calls", content=called, usage=usage, cached=False)
            model = ReplayChatCompletionClient([asked, "done"], model_info={**FAMILY, "structured_output": False})
            done = await AssistantAgent("clerk", model, **given).run(task="go")
            return done.messages[-1].content

        async def main(folder):
            served = StdioServerParams(command=sys.executable, args=["-c", SERVER], cwd=folder)
            workbench = McpWorkbench(served)
            said = [await ask("call_1", workbench=workbench)]
            await workbench.stop()
            (answer,) = json.loads(await ask("call_2", tools=await mcp_server_tools(served)))
            assert answer["text"] == said[0].replace("call_1", "call_2"), (answer, said)

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(folder))
            ran += sorted(os.listdir(folder))
        """,
        ["call_1", "call_2"],
        [["lookup", id_, 17, 60, None] for id_ in ("call_1", "call_2")],
    ),
    "camel's tools of an MCP server": Way(
        "camel-ai",
        """
        import asyncio, os, sys, tempfile
        from agent_otel.testing.servers.openai import OpenAIServer
        from camel.utils.mcp_client import MCPClient, ServerConfig
        from tests.contract import script
        from tests.contract.agents import camel


        async def main(base_url, folder):
            served = ServerConfig(command=sys.executable, args=["-c", SERVER], cwd=folder)
            async with MCPClient(served) as client:
                for id, setting in (("call_1", ""), ("call_2", "stream")):
                    agent = camel.make(base_url, [], setting)
                    agent.add_tools(client.get_tools())
                    said = await agent.astep(script.prompt((id, "lookup", {"key": id})))
                    if setting:
                        [response async for response in said]

        with tempfile.TemporaryDirectory() as folder, OpenAIServer(script.decide_one) as server:
            asyncio.run(main(server.base_url, folder))
            ran += sorted(os.listdir(folder))
        """,
        ["call_1", "call_2"],
        [["lookup", id_, 16, 60, None] for id_ in ("call_1", "call_2")],
    ),
    "dspy's native calls": Way(
        "dspy",
        """
        import dspy
        from dspy.adapters.types.tool import ToolCalls

        asked = [{"name": name, "args": {"key": name[0]}} for name in ("lookup", "local", "plain", "listed")]
        calls = ToolCalls.from_dict_list(asked).tool_calls

        def run():
            local = lookup
            return calls[1].execute()

        for execute in (
            calls[0].execute,
            run,
            lambda: calls[2].execute({"plain": dspy.Tool(lookup, name="plain")}),
            lambda: calls[3].execute(functions=[dspy.Tool(lookup, name="listed")]),
        ):
            with suppress(Exception):
                execute()
        try:
            ToolCalls.from_dict_list([{"name": "wrapped", "args": {}}]).tool_calls[0].execute()
        except ValueError:
            pass
        """,
        ["l", "l", "p", "l"],
        # {"key":"l"} are 11 bytes.
        [[name, None, 11, 10, None] for name in ("lookup", "local", "plain", "listed")],
    ),
    "litellm's loops": Way(
        "litellm",
        """
        import asyncio, functools, os
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # and not one from the web
        import litellm

        def call(id, name):
            return {"id": id, "type": "function", "function": {"name": name, "arguments": '{"key":"a"}'}}

        def asking(id):
            left = [id, None]

            def respond(**given):
                id = left.pop(0)
                asked = {"role": "assistant", "content": None, "tool_calls": [call(id, "lookup")]}
                message = {"role": "assistant", "content": "done"} if id is None else asked
                return litellm.ModelResponse(choices=[{"message": message, "finish_reason": "stop"}])

            return respond

        def answer(beside, asked):
            content = lookup(**json.loads(asked.function.arguments))
            return {"role": "tool", "tool_call_id": asked.id, "content": content}

        async def answer_later(beside, asked):
            return answer(beside, asked)

        async def respond_later(respond, **given):
            return respond(**given)

        given = {"model": "scripted", "messages": [{"role": "user", "content": "go"}], "tools": []}
        litellm.completion = asking("call_1")
        litellm.run_tool_loop(execute_tool=functools.partial(answer, 1), **given)
        litellm.acompletion = functools.partial(respond_later, asking("call_2"))
        asyncio.run(litellm.arun_tool_loop(execute_tool=functools.partial(answer_later, 1), **given))
        litellm.acompletion = functools.partial(respond_later, asking("call_3"))
        here = litellm.sandbox.local(".")
        litellm.agent(litellm.Harness.TOOL_LOOP, "go", tools=[lookup], model="scripted", sandbox=here)
        """,
        ["a", "a", "a"],
        [["lookup", id_, 11, 10, None] for id_ in ("call_1", "call_2", None)],
    ),
    "llama-index's tools of queries": Way(
        "llama-index",
        """
        import asyncio
        from llama_index.core.query_engine import CustomQueryEngine
        from llama_index.core.retrievers import BaseRetriever
        from llama_index.core.schema import NodeWithScore, TextNode
        from llama_index.core.tools import FunctionTool, QueryEngineTool, QueryPlanTool, RetrieverTool
        from llama_index.core.tools.ondemand_loader_tool import OnDemandLoaderTool

        class Engine(CustomQueryEngine):
            def custom_query(self, query_str):
                return lookup(query_str)

        class Retriever(BaseRetriever):
            def _retrieve(self, bundle):
                return [NodeWithScore(node=TextNode(text=lookup(bundle.query_str.strip()[-1])))]

        queried = QueryEngineTool.from_defaults(Engine(), name="queried", description="Look a record up.")
        retrieved = RetrieverTool.from_defaults(Retriever(), name="retrieved", description="Look a record up.")

        class Synthesizer:
            def synthesize(self, **given):
                return "so"

        planned = QueryPlanTool.from_defaults([queried], Synthesizer(), name="planned", description_prefix="Look up.")
        nodes = [{"id": 1, "query_str": "a", "tool_name": "queried", "dependencies": []}]

        class Index:
            @classmethod
            def from_documents(cls, documents):
                return cls()

            def as_query_engine(self):
                return Engine()

        loaded = OnDemandLoaderTool.from_tool(FunctionTool.from_defaults(lambda: []), Index, name="loaded")

        async def main():
            with suppress(Exception):
                await queried.acall(input="a")
            with suppress(Exception):
                retrieved(input="a")
            with suppress(Exception):
                planned(nodes=nodes)
            with suppress(Exception):
                loaded(query_str="a")

        asyncio.run(main())
        print()  # behind what the plan prints
        """,
        ["a", "a", "a", "a"],
        [
            ["queried", None, 13, 10, None],
            ["retrieved", None, 13, 12, None],
            ["planned", None, 76, 10, None],
            ["loaded", None, 17, 10, None],  # {"query_str":"a"}
        ],
    ),
    "mistral's voice agents": Way(
        "mistralai",
        """
        import asyncio
        from mistralai.extra.voice_agents.tools import function_tool

        async def looked_up(key: str) -> str:
            "Look a record up."
            return lookup(key)

        async def main():
            for function in (lookup, looked_up):
                await function_tool(function).invoke('{"key":"a"}')

        asyncio.run(main())
        """,
        ["a", "a"],
        [[name, None, 11, 10, None] for name in ("lookup", "looked_up")],
    ),
    "smolagents' tools of pipelines": Way(
        "smolagents",
        """
        import sys, types
        from smolagents import CodeAgent, LogLevel, ToolCallingAgent
        from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model
        from smolagents.tools import PipelineTool

        for name in ("torch", "accelerate", "accelerate.utils"):
            sys.modules[name] = types.ModuleType(name)
        sys.modules["torch"].Tensor = type("Tensor", (), {})
        sys.modules["accelerate.utils"].send_to_device = lambda value, device: value

        class Spoken(PipelineTool):
            name = "spoken"
            description = "Look a record up."
            inputs = {"key": {"type": "string", "description": "key"}}
            output_type = "string"

            def __init__(self):
                self.device, self.is_initialized = None, True

            def encode(self, key):
                return {"key": key}

            def forward(self, inputs):
                return lookup(**inputs)

            def decode(self, outputs):
                return outputs

        class Scripted(Model):
            def __init__(self, *messages):
                super().__init__()
                self.messages = list(messages)

            def generate(self, messages, **given):
                return self.messages.pop(0)

        def asked(name, arguments):
            called = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), "call_1", "function")
            return ChatMessage(MessageRole.ASSISTANT, "", [called])

        def written(code):
            return ChatMessage(MessageRole.ASSISTANT, f"So.\\n<code>\\n{code}\\n</code>")

        answer = asked("final_answer", {"answer": "done"})
        quiet = {"verbosity_level": LogLevel.OFF}
        ToolCallingAgent([Spoken()], Scripted(asked("spoken", {"key": "a"}), answer), **quiet).run("go")
        code = 'spoken(key="a")', 'final_answer("done")'
        CodeAgent([Spoken()], Scripted(*map(written, code)), **quiet).run("go")
        """,
        ["a", "a"],
        [["spoken", None, 11, 10, None]] * 2,
    ),
    "strands' background": Way(
        "strands",
        """
        import asyncio
        from agent_otel.testing.servers.openai import OpenAIServer
        from strands import Agent, tool
        from strands.models.openai import OpenAIModel
        from tests.contract import script

        async def later(key: str) -> str:
            "Look a record up, after the call that has put this one into the background."
            await asyncio.sleep(0.2)
            return lookup(key)

        with OpenAIServer(script.decide_one) as server:
            client = {"base_url": server.base_url, "api_key": "scripted", "max_retries": 0}
            model = OpenAIModel(client_args=client, model_id="scripted")
            for id, function in (("call_1", lookup), ("call_2", later)):
                chosen = {"always": ["*"], "agentic": []}
                agent = Agent(model=model, tools=[tool(function)], callback_handler=None, background_tasks=chosen)
                agent(script.prompt((id, function.__name__, {"key": "a"})))
        """,
        ["a", "a"],
        [["lookup", "call_1", 11, 10, None], ["later", "call_2", 11, 10, None]],
    ),
}


def run(environment: Callable[[str], Environment], way: Way, **settings: str) -> Any:
    program = f"SERVER = {SERVER!r}\n{HEAD}{dedent(way.program)}{TAIL}"
    done = environment(way.environment).run(program, env={**QUIET, "AGENT_OTEL": "1", **settings}, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", WAYS)
def test_each_call_counts_once(environment: Callable[[str], Environment], name: str) -> None:
    way = WAYS[name]
    assert run(environment, way) == [way.ran, way.calls]


@pytest.mark.parametrize("name", WAYS)
def test_a_policy_that_denies_by_default_denies_each(
    environment: Callable[[str], Environment], tmp_path: Path, name: str
) -> None:
    way, policy = WAYS[name], tmp_path / "policy.toml"
    policy.write_text('mode = "enforce"\n')
    denied = [[call, id_, size, None, "tool_denied"] for call, id_, size, _, _ in way.calls]
    assert run(environment, way, AGENT_OTEL_TOOL_POLICY=str(policy)) == [[], denied]
