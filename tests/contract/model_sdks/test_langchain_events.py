"""LangChain's streams of events: the tokens of a model whose SDK is not read, and whether it asks for a tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_PROGRAM = """
import asyncio, json, warnings
warnings.simplefilter("ignore")
import prometheus_client
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
import agent_otel
from agent_otel.core.executions import executions

COUNTS = {"input_tokens": 1000, "output_tokens": 20, "total_tokens": 1020, "input_token_details": {"cache_read": 800}}

class Model(BaseChatModel):
    @property
    def _llm_type(self): return "mine"
    def _generate(self, messages, stop=None, run_manager=None, **more):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("hi", usage_metadata=COUNTS))])
    def _stream(self, messages, stop=None, run_manager=None, **more):
        yield ChatGenerationChunk(message=AIMessageChunk("h"))
        yield ChatGenerationChunk(message=AIMessageChunk("i", usage_metadata=COUNTS, chunk_position="last"))

@tool
def big(number: int) -> str:
    "Return the beginning of a text."
    return "x" * number + "\\n... [output truncated - 5000 removed]"

def events(model, messages): list(model.stream_events(messages, version="v3"))
async def later(model, messages):
    async for _ in await model.astream_events(messages, version="v3"): pass

WAYS = {
    "invoke": lambda model, messages: model.invoke(messages),
    "stream": lambda model, messages: list(model.stream(messages)),
    "events": events,
    "events, async": lambda model, messages: asyncio.run(later(model, messages)),
}
def incomplete():
    agent_otel.flush()
    samples = [sample for family in prometheus_client.REGISTRY.collect() for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == "agent_otel_answers_incomplete_total")

found, before = {}, 0
for number, (name, ask) in enumerate(WAYS.items()):
    with agent_otel.execution(name):
        call = {"name": "big", "args": {"number": 3000 + number}, "id": f"call_{number}", "type": "tool_call"}
        ask(Model(), [HumanMessage("q"), AIMessage("", tool_calls=[call]), big.invoke(call)])
        state = executions.known(name)
        tokens = state.tokens
        counts = None if tokens is None else [tokens.input, tokens.cached, tokens.output]
        found[name] = [counts, state.estimated_tokens, incomplete() - before]
    before = incomplete()
print(json.dumps(found))
"""


def test_each_way_to_ask_a_model_has_its_tokens_and_its_final_answer(
    environment: Callable[[str], Environment],
) -> None:
    env = {"AGENT_OTEL": "1", "LANGSMITH_TRACING": "false"}
    child = environment("langchain").run(_PROGRAM, env=env, check=True)
    told = [[1000, 800, 20], 0, 1]
    assert json.loads(child.stdout) == {"invoke": told, "stream": told, "events": told, "events, async": told}
