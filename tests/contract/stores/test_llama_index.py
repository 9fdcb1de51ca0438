"""Contexts of LlamaIndex's workflows, which a program saves after a run and begins the next one with.

The framework leaves its memory out of them: results are there that tools keep in the context's store.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.stores.model import decide

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.environments import Environment

#: What `tests.contract.test_drift` looks for.
integrations = {"llama-index": ["workflows.context.context:Context.to_dict"]}

_PROGRAM = """
import asyncio, json, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
from tests.contract.runtimes.child import settle
telemetry, case = Telemetry(), {{}}
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llama_index.llms.openai import OpenAI

async def search(context: Context, n: int) -> str:
    "Find so many letters, and keep them."
    found = await context.store.get("found", default=[])
    await context.store.set("found", [*found, "x" * n])
    return "x" * n

model = OpenAI("gpt-4o", api_base={base_url!r}, api_key="scripted", max_retries=0)
agent = FunctionAgent(name="clerk", description="It helps.", tools=[FunctionTool.from_defaults(search)], llm=model)

async def main():
    texts, context = [], Context(agent)
    for n in (1000, 20_000, 10):
        if texts:
            context = Context.from_dict(agent, json.loads(texts[-1]))
        await agent.run(user_msg=f"é {{n}}", ctx=context)
        texts.append(json.dumps(context.to_dict()))
    return [len(text) for text in texts]

sizes = asyncio.run(main())
settle(telemetry, case)
from agent_otel._internal import errors
print(json.dumps([sizes, case, dict(errors.errors)]))
"""


def test_a_context_is_what_a_program_stores_of_it(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    with OpenAIServer(decide) as server:
        code = _PROGRAM.format(root=str(request.config.rootpath), base_url=server.base_url)
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_CAPS": "llama-index.state=40KB,llama-index.history=40KB"}
        child = environment("llama-index").run(code, env=env, timeout=240, check=True)
    sizes, case, errors = json.loads(child.stdout.splitlines()[-1])

    assert {} == errors
    assert 1000 < sizes[0] < 20_000 < sizes[1] < sizes[2]
    assert [(3, sum(sizes), "clerk")] == _sizes(case["metrics"], "payload")
    assert [(2, sum(sizes[:2]), "clerk")] == _sizes(case["metrics"], "history")
    spans = [span["attributes"] for span in case["spans"] if "workflow.payload.bytes" in span["attributes"]]
    assert {"state.state_data._data.found"} == {attributes["workflow.payload.largest_path"] for attributes in spans}


def _sizes(metrics: list[dict[str, Any]], kind: str) -> list[tuple[int, float, str]]:
    return [
        (metric["count"], metric["sum"], metric["attributes"]["gen_ai.workflow.name"])
        for metric in metrics
        if metric["name"] == f"agent_otel.workflow.{kind}.size"
        and metric["attributes"]["workflow.runtime"] == "llama-index"
    ]
