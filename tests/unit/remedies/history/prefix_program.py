"""An agent of forty turns over a provider's client that keeps its history itself; run in an environment that has it.

``python prefix_program.py CLIENT <base URL>``, with a key of `CLIENTS`; prints as JSON what it has kept, the stable
part of each request as the metric shows it, the tokens that were cached, and what was counted as removed.
"""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The clients are not installed where types are checked.

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.contract.child import Json, Messages, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

SYSTEM, ASKED, RESULT = "s" * 2_000, "go", "r" * 3_000
MARK = {"cache_control": {"type": "ephemeral"}}


def openai(base_url: str) -> tuple[list[Json], Callable[[], bool]]:
    """The history, and a turn over OpenAI's client: whether there was one."""
    import openai as sdk

    import agent_otel

    client = sdk.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    history: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASKED}]

    def turn() -> bool:
        answer = client.chat.completions.create(model="scripted", messages=history).choices[0].message
        for asked in answer.tool_calls or ():
            history.append(answer.model_dump(exclude_none=True))
            with agent_otel.tool_call(asked.function.name, asked.function.arguments, call_id=asked.id) as call:
                text = call.result(RESULT)
            history.append({"role": "tool", "tool_call_id": asked.id, "content": text})
        return bool(answer.tool_calls)

    return history, turn


def anthropic(base_url: str) -> tuple[list[Json], Callable[[], bool]]:
    """The same over Anthropic's."""
    # A block that asks for it is cached, with all messages before it.
    return _anthropic(base_url, {"type": "text", "text": ASKED, **MARK}, moves=False)


def anthropic_moving(base_url: str) -> tuple[list[Json], Callable[[], bool]]:
    """The same; the end of each request asks to be cached, as Anthropic recommends for conversations."""
    return _anthropic(base_url, {"type": "text", "text": ASKED}, moves=True)


def _anthropic(base_url: str, first: Json, *, moves: bool) -> tuple[list[Json], Callable[[], bool]]:
    import anthropic as sdk

    import agent_otel

    client = sdk.Anthropic(base_url=base_url, api_key="scripted", max_retries=0)
    history: list[Any] = [{"role": "user", "content": [first]}]

    def turn() -> bool:
        sent = _marked(history) if moves else history
        answer = client.messages.create(model="scripted", max_tokens=100, system=SYSTEM, messages=sent)
        calls = [block for block in answer.content if block.type == "tool_use"]
        for asked in calls:
            history.append({"role": "assistant", "content": [asked.model_dump(exclude_none=True)]})
            with agent_otel.tool_call(asked.name, asked.input, call_id=asked.id) as call:
                text = call.result(RESULT)
            answered = {"type": "tool_result", "tool_use_id": asked.id, "content": text}
            history.append({"role": "user", "content": [answered]})
        return bool(calls)

    return history, turn


def _marked(history: list[Any]) -> list[Any]:
    """A request's messages, whose last block asks for the cache; the history itself has no mark."""
    *before, last = history
    *blocks, block = last["content"]
    return [*before, {**last, "content": [*blocks, {**block, **MARK}]}]


def main(client: str, base_url: str) -> Json:
    """Run all turns in one execution."""
    messages, telemetry = Messages(), Telemetry()
    import agent_otel
    from agent_otel._internal import errors

    history, turn = CLIENTS[client](base_url)
    shares: list[float] = []
    cached = 0
    removed: Counter[str] = Counter()
    with agent_otel.execution("run-1"):
        going = True
        while going:
            going = turn()
            for metric in telemetry.metrics():
                if metric["name"] == "agent_otel.model.request.stable_prefix" and metric["count"]:
                    shares.append(metric["sum"])
                elif metric["name"] == "agent_otel.context.removed":
                    removed[metric["attributes"]["strategy"]] += metric["sum"]
                elif metric["name"] == "agent_otel.model.cached_tokens":
                    cached += metric["sum"]
    return {
        "history": history,
        "shares": shares,
        "cached": cached,
        "removed": removed,
        "messages": messages.take(),
        "errors": dict(errors.errors),
    }


CLIENTS = {"openai": openai, "openai_uncached": openai, "anthropic": anthropic, "anthropic_moving": anthropic_moving}

if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
