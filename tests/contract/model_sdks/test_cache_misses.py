"""Requests that begin otherwise: the tokens and the money of the missed cache, as the provider accounts them."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, chat_answer
from agent_otel.testing.servers.scripted import Answer
from tests.contract.model_sdks.spans import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.replies import Json, Reply
    from agent_otel.testing.servers.scripted import Endpoint
    from tests.environments import Environment

_PROGRAM = (
    IN_MEMORY
    + """
import genai_prices.data
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
def definition(name, text="Look it up."):
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
tools = [definition(name) for name in ("search", "fetch", "list")]
messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Find it."}]
tracer = trace.get_tracer("program")
def ask():
    with tracer.start_as_current_span("chat"):
        client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools)
def turn(number):
    call = {"id": f"call-{number}", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    with agent_otel.tool_call("search", {"page": number}, call_id=f"call-{number}") as asked:
        asked.result(f"row {number}; " * 300)
    messages.extend([{"role": "assistant", "content": None, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": f"call-{number}", "content": f"row {number}; " * 300}])
    ask()

with agent_otel.execution("run"):
    turn(1)
    turn(2)
    tools.reverse()
    turn(3)
    tools.append(definition("late"))
    turn(4)
    tools[0] = definition(tools[0]["function"]["name"], "Look it up now.")
    turn(5)
    tools.pop()
    turn(6)
    messages[0] = {"role": "system", "content": "Be kind. It is five past ten."}
    turn(7)
    messages[3] = {"role": "tool", "tool_call_id": "call-1", "content": "cleared"}
    turn(8)
    turn(9)
agent_otel.flush()
counts = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if sample.name.startswith("agent_otel_model_cache_missed") and not sample.name.endswith("_created"):
            part = f"{sample.labels['part']} {sample.labels['change']}"
            counts.setdefault(sample.name, {})[part] = sample.value
names = ("changed_part", "change", "changed_tool", "missed_tokens")
shown = [[span.attributes.get(f"agent_otel.context.{name}") for name in names] for span in spans.get_finished_spans()
    if span.name == "chat"]
assert errors.errors == {}, errors.errors
print(json.dumps([shown, counts]))
"""
)


def _common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class CachingServer(OpenAIServer):
    """A server with an automatic cache: it has the longest beginning of a prompt that an earlier request had, too."""

    def __init__(self) -> None:
        self.accounts: list[tuple[int, int]] = []
        self._prompts: list[str] = []
        super().__init__(lambda _: "Fine.")

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the API of chat completions."""
        return {"/v1/chat/completions": self._cached}

    def _cached(self, request: Json, reply: Reply) -> Answer:
        prompt = "".join(f"{json.dumps(part)}\n" for part in (request["tools"], *request["messages"]))
        cached = max((_common(prompt, each) // 4 for each in self._prompts), default=0)
        self._prompts.append(prompt)
        self.accounts.append((len(prompt) // 4, cached))
        answer: Any = chat_answer(request, reply)
        details = {"cached_tokens": cached}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 2, "prompt_tokens_details": details}
        return Answer({**answer.body, "usage": usage})


def test_a_miss_costs_what_the_provider_would_have_cached(environment: Callable[[str], Environment]) -> None:
    with CachingServer() as model:
        done = environment("pydantic-ai").run(
            _PROGRAM, model.base_url, env={"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus"}, check=True
        )
    shown, counts = json.loads(done.stdout.splitlines()[-1])
    changes = [
        *(None, None, ("tools", "order", "list"), ("tools", "added", "late"), ("tools", "content", "list")),
        *(("tools", "removed", "late"), ("system", "content", None), ("tool_results", "content", "search"), None),
    ]
    before = [0, *(tokens for tokens, _ in model.accounts)]
    missed = [earlier - cached for earlier, (_, cached) in zip(before, model.accounts, strict=False)]
    assert [0] * 3 == [missed[0] - 0, missed[1], missed[8]]  # the turns without a change
    rows = [(change or (None,) * 3, tokens or None) for change, tokens in zip(changes, missed, strict=True)]
    assert [[*change, tokens] for change, tokens in rows] == shown
    by_change = {
        f"{change[0]} {change[1]}": tokens for change, tokens in zip(changes, missed, strict=True) if change is not None
    }
    assert by_change == counts["agent_otel_model_cache_missed_tokens_total"]
    # gpt-4o: 2.50 and 1.25 dollars for a million tokens of input, and of cached input.
    assert {key: pytest.approx(tokens * 1.25e-6) for key, tokens in by_change.items()} == counts[
        "agent_otel_model_cache_missed_cost_total"
    ]
