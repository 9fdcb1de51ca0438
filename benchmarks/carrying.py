"""The tokens, the window and the cost of a request, beside the reading of its parts: ``python -m benchmarks.carrying``.

The request is the next one of a conversation of 20 turns with 4 tools, of which the provider had nine tenths cached.
"""

from __future__ import annotations

import os
import tracemalloc
from typing import TYPE_CHECKING, Any

from benchmarks import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.core.cost.model_tokens import SentRequest

_US = 1 / 3.1  # in U, on the server where the budgets were set
_BUDGET = 20 * _US
_TURNS = 20
_TOKENS = 40_000
_TOKENS_OF_A_TURN = 1_900
_TOOLS = ("search", "read", "list", "write")
_MODEL = "gpt-4o"
_MOST_MODELS = 256

Row = tuple[str, float, float, str]
"""What, the budget, what was measured, the unit."""


def _request(turns: int) -> dict[str, Any]:
    definitions = [{"type": "function", "function": {"name": name, "description": "d" * 200}} for name in _TOOLS]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "s" * 2_000},
        {"role": "user", "content": "where is it"},
    ]
    for turn in range(turns):
        call_id, name = f"call_{turn}", _TOOLS[turn % len(_TOOLS)]
        function = {"name": name, "arguments": f'{{"query": "{turn}"}}'}
        calls = [{"id": call_id, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": "I look.", "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": f"{turn} " + "x" * 8_000})
    return {"messages": messages, "tools": definitions}


def _sent() -> SentRequest:
    """Return the last request of a conversation."""
    from agent_otel.core.executions import executions as ledger
    from agent_otel.core.thread import delivery
    from agent_otel.core.types import ModelRequest
    from agent_otel.integrations.request_bodies import chat
    from agent_otel.telemetry.setup import telemetry

    for turn in range(_TURNS):
        name, call_id = _TOOLS[turn % len(_TOOLS)], f"call_{turn}"
        state, _ = ledger.began("carrying", name, call_id, call_id)
        ledger.produced(state, name, len(f"{turn} ") + 8_000, call_id)
    requests = (ModelRequest(chat(_request(turn)), execution="carrying", model=_MODEL) for turn in range(_TURNS + 1))
    return [delivery.take(telemetry(), request) for request in requests][-1]


def _measured(sent: SentRequest) -> float:
    from agent_otel.core.cost import model_tokens
    from agent_otel.core.cost.models import ModelFacts, models
    from agent_otel.core.cost.usage import Usage
    from agent_otel.core.execution_state import Conversation
    from agent_otel.measure.forecast import LOOK_BACK
    from agent_otel.telemetry.setup import telemetry

    models._known[_MODEL] = ModelFacts(128_000, ((0, 2.5e-6, 1.25e-6, 2.5e-6, 1e-5),))  # noqa: SLF001 - as if read
    out, usage = telemetry(), Usage(_TOKENS, 36_000, 200)
    tools, conversation = sent.tools, sent.conversation or Conversation()
    grown = [_TOKENS - _TOKENS_OF_A_TURN * turn for turn in range(_TURNS, 0, -1)][-LOOK_BACK:]

    def response() -> None:
        sent.tools, conversation.token_sizes = tools, grown  # as the next request of the conversation has them
        model_tokens.responded(out, sent, usage)

    return clock.measure({"response": response}, rounds=40)["response"]


def rows() -> Iterator[Row]:
    """Yield the budgets of a response, without and with a recorded span, and of the facts of models."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    from agent_otel.core.cost.models import ModelFacts

    sent = _sent()
    sent.span = trace.INVALID_SPAN
    yield "tokens, window and cost of a response, no span recorded", _BUDGET, _measured(sent), "U"
    with TracerProvider().get_tracer("benchmark").start_as_current_span("chat") as span:
        sent.span = span
        yield "the same, span recorded", _BUDGET, _measured(sent), "U"
    tracemalloc.start()
    kept = {
        f"model-{number}": ModelFacts(128_000, ((0, 1e-6 * number, 1.0, 2.0, 3.0),)) for number in range(_MOST_MODELS)
    }
    yield f"windows and prices of {len(kept)} models", 8, tracemalloc.get_traced_memory()[0] / 1e6, "MB"
    tracemalloc.stop()


if __name__ == "__main__":
    os.environ |= {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus"}
    for what, budget, figure, unit in rows():
        print(f"{what}: {figure:.3g} {unit} of {budget:.3g} {unit} ({figure / budget:.2f})")
