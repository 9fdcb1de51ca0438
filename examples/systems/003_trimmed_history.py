"""A long conversation on Bedrock: 40 turns, a system prompt of 4,000 tokens with a cache point, results of 800 tokens.

A Strands agent calls a tool in each turn. Without trimming, turn 40 sends all results again; with
``AGENT_OTEL_TRIM_RESULTS=1`` it sends the last two, and a line for each of the others. Prints a table of the requests
that a scripted server received: ``python examples/systems/003_trimmed_history.py``.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_otel.testing.servers.scripted import Answer, LoopbackServer
from examples.systems.prompt_caches import MarkedCache, tokens

TURNS = 40
SYSTEM = "You answer questions about invoices. " * 432  # 16,000 characters: 4,000 tokens
RESULT_CHARACTERS = 3_200  # 800 tokens
VARIABLE = "AGENT_OTEL_TRIM_RESULTS"
CACHED_PRICE = 0.1
"""Price of a cached token, as a share of another's."""


class Turn(NamedTuple):
    """Tokens of one request: all, and those that the cache has."""

    tokens: int
    cached: int

    @property
    def billed(self) -> int:
        """Tokens at the price of those that are not cached."""
        return round(self.tokens - self.cached * (1 - CACHED_PRICE))


class Bedrock(LoopbackServer):
    """Bedrock's Converse API: asks for a tool in each turn, and reports what its cache has."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.turns: list[Turn] = []
        self._cache = MarkedCache()
        super().__init__({"/model/scripted/converse": self._converse})

    def _converse(self, body: bytes) -> Answer:
        request = json.loads(body)
        self.requests.append(request)
        turn = Turn(tokens(request), self._cache.tokens(request))
        self.turns.append(turn)
        number = len(self.turns)
        use = {"toolUseId": f"tooluse_{number:022}", "name": "get_invoice", "input": {"number": number}}
        content = [{"toolUse": use}] if number < TURNS else [{"text": "All invoices are paid."}]
        usage = {
            "inputTokens": turn.tokens - turn.cached,
            "outputTokens": 10,
            "totalTokens": turn.tokens + 10,
            "cacheReadInputTokens": turn.cached,
        }
        answer = {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use" if number < TURNS else "end_turn",
            "usage": usage,
            "metrics": {"latencyMs": 1},
        }
        return Answer(json.dumps(answer).encode())


def result_of(number: int) -> str:
    """Return a tool's result of 800 tokens, with its reference at the end. Every tenth fails."""
    head = f"HTTP 403 Forbidden: invoice {number}. " if number % 10 == 0 else f"Invoice {number}, successfully read. "
    end = f' {{"ref_id": "inv-{number}"}}'
    return head + "." * (RESULT_CHARACTERS - len(head) - len(end)) + end


def converse(base_url: str) -> None:
    """Run the agent for 40 turns."""
    import boto3  # noqa: PLC0415 - only the child has it
    from strands import Agent, tool  # noqa: PLC0415
    from strands.models.bedrock import BedrockModel  # noqa: PLC0415

    @tool
    def get_invoice(number: int) -> str:
        """Return an invoice."""
        return result_of(number)

    session = boto3.Session("scripted", "scripted", region_name="us-east-1")
    model = BedrockModel(boto_session=session, endpoint_url=base_url, model_id="scripted", streaming=False)
    system = [{"text": SYSTEM}, {"cachePoint": {"type": "default"}}]
    Agent(model=model, tools=[get_invoice], system_prompt=system, callback_handler=None)("Are my invoices paid?")


def measured(**variables: str) -> Bedrock:
    """Run the agent in a process of its own and return the server that it used."""
    with Bedrock() as server:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_OTEL")}
        environ |= {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "off", **variables}
        subprocess.run((sys.executable, __file__, server.url), env=environ, check=True)
    return server


def runs() -> dict[str, Bedrock]:
    """Return the servers of the runs without and with the variable."""
    return {"every result": measured(), f"`{VARIABLE}=1`": measured(**{VARIABLE: "1"})}


def table(found: dict[str, Bedrock]) -> str:
    """Return the table of runs."""
    rows = [
        "| turn 40 sends | input tokens | of them cached | billed as |",
        "| --- | --- | --- | --- |",
    ]
    for name, server in found.items():
        last = server.turns[-1]
        rows.append(f"| {name} | {last.tokens:,} | {last.cached:,} | {last.billed:,} |")
    return "\n".join(rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        converse(sys.argv[1])
    else:
        print(table(runs()))
