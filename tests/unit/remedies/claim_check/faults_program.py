"""Agents whose tool results are large, several at once in one process, as long as their model wants them to go on.

``python faults_program.py <base URL> <kind of agent>...``; prints as JSON what became of them and what was counted.
"""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

from tests.contract.child import Json, Messages, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

took: list[float] = []
"""Seconds that each call of a tool took its caller."""


def produced(agent: str, number: int, size: int) -> str:
    """What the tool returns: so many bytes, in no two calls the same."""
    return f"{agent} {number:06} ".ljust(size, "x")


def dump(agent: str, number: int, size: int) -> str:
    """Return a large result."""
    return produced(agent, number, size)


async def dump_later(agent: str, number: int, size: int) -> str:
    """Return a large result."""
    return produced(agent, number, size)


def by_hand(base_url: str, agent: str) -> str:
    """A loop of one's own over OpenAI's client."""
    import openai

    import agent_otel

    tool = agent_otel.tool(dump)
    client = openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": agent}]
    while True:
        answer = client.chat.completions.create(model="scripted", messages=messages).choices[0].message
        if not answer.tool_calls:
            return str(answer.content)
        messages.append(answer.model_dump(exclude_none=True))
        for call in answer.tool_calls:
            before = time.perf_counter()
            text = tool(**json.loads(call.function.arguments))
            took.append(time.perf_counter() - before)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


async def by_hand_later(base_url: str, agent: str) -> str:
    """The same in an event loop."""
    import openai

    import agent_otel

    tool = agent_otel.tool(name="dump")(dump_later)
    messages: list[Any] = [{"role": "user", "content": agent}]
    async with openai.AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0) as client:
        while True:
            completion = await client.chat.completions.create(model="scripted", messages=messages)
            answer = completion.choices[0].message
            if not answer.tool_calls:
                return str(answer.content)
            messages.append(answer.model_dump(exclude_none=True))
            for call in answer.tool_calls:
                before = time.perf_counter()
                text = await tool(**json.loads(call.function.arguments))
                took.append(time.perf_counter() - before)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def langgraph(base_url: str, agent: str) -> str:
    """LangGraph's ready-made agent."""
    from tests.contract.agents.langgraph import make

    state = make(base_url, [dump], "").invoke({"messages": [("user", agent)]}, {"recursion_limit": 10_000})
    return str(state["messages"][-1].content)


async def langgraph_later(base_url: str, agent: str) -> str:
    """The same in an event loop."""
    from tests.contract.agents.langgraph import make

    state = await make(base_url, [dump], "").ainvoke({"messages": [("user", agent)]}, {"recursion_limit": 10_000})
    return str(state["messages"][-1].content)


BLOCKING: dict[str, Callable[[str, str], str]] = {"by_hand": by_hand, "langgraph": langgraph}
LATER: dict[str, Callable[[str, str], Any]] = {"by_hand_later": by_hand_later, "langgraph_later": langgraph_later}
LANGGRAPH = {"langgraph", "langgraph_later"}


@contextlib.contextmanager
def dying_with_its_agents() -> Iterator[None]:
    """End the program when an agent fails: the others would work for ever, because the test waits for all."""
    try:
        yield
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def main(base_url: str, *kinds: str) -> Json:
    """Run one agent of each kind that is named, at once: each in a thread, those of an event loop in one loop."""
    messages, telemetry = Messages(), Telemetry()
    import agent_otel
    from agent_otel._internal import errors

    said: dict[str, str] = {}

    # Before there are threads: OpenAI's client looks into ``httpx`` while another thread is still importing it.
    for module in ("httpx", "openai", "tests.contract.agents.langgraph")[: 3 if set(kinds) & LANGGRAPH else 2]:
        importlib.import_module(module)

    def run(agent: str, kind: str) -> None:
        with dying_with_its_agents(), agent_otel.execution(agent):
            said[agent] = BLOCKING[kind](base_url, agent)

    async def run_later(agent: str, kind: str) -> None:
        with dying_with_its_agents(), agent_otel.execution(agent):
            said[agent] = await LATER[kind](base_url, agent)

    async def run_all_later() -> None:
        await asyncio.gather(*(run_later(f"run-{n}", kind) for n, kind in enumerate(kinds) if kind in LATER))

    threads = [
        threading.Thread(target=run, args=(f"run-{n}", kind)) for n, kind in enumerate(kinds) if kind in BLOCKING
    ]
    for thread in threads:
        thread.start()
    asyncio.run(run_all_later())
    for thread in threads:
        thread.join()
    operations = {
        f"{metric['attributes']['operation']} {metric['attributes']['result']}": metric["sum"]
        for metric in telemetry.metrics()
        if metric["name"] == "agent_otel.claim_check.operations" and metric["sum"]
    }
    return {
        "said": said,
        "operations": operations,
        "longest": max(took, default=0),
        "messages": messages.take(),
        "errors": dict(errors.errors),
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
