"""Trimmed requests and prompt caches, by each provider's accounting: what is cached of 40 turns, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_otel.remedies.history.request_rewriter import Views
from examples.systems.prompt_caches import AutomaticCache, MarkedCache, tokens
from tests.rows import each_row
from tests.unit.remedies.history.histories import reading, rendered

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 40
RESULT = "r" * 3_200  # 800 tokens
SYSTEM = "s" * 16_000  # 4,000 tokens
STEPS = [7, 12, 17, 22, 27, 32, 37]
"""Requests in which the results of another five turns become lines."""

Cache = MarkedCache | AutomaticCache


class Sent(NamedTuple):
    """Tokens of a request, and those that the cache has."""

    tokens: int
    cached: int


def bedrock(messages: list[Any]) -> dict[str, Any]:
    point = {"cachePoint": {"type": "default"}}
    asked = {"role": "user", "content": [{"text": "go"}]}
    *before, last = [asked, *messages]
    marked = {**last, "content": [*last["content"], point]}
    return {"system": [{"text": SYSTEM}, point], "messages": [*before, marked]}


def anthropic(messages: list[Any]) -> dict[str, Any]:
    control = {"cache_control": {"type": "ephemeral"}}
    *before, last = [{"role": "user", "content": [{"type": "text", "text": "go"}]}, *messages]
    *blocks, block = last["content"]
    marked = {**last, "content": [*blocks, {**block, **control}]}
    return {"system": [{"type": "text", "text": SYSTEM, **control}], "messages": [*before, marked]}


def chat(messages: list[Any]) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "go"}, *messages]}


PROVIDERS: dict[str, tuple[Callable[[list[Any]], dict[str, Any]], type[Cache]]] = {
    "bedrock": (bedrock, MarkedCache),
    "anthropic": (anthropic, MarkedCache),
    "chat": (chat, AutomaticCache),
}
each_provider = each_row("name", list(PROVIDERS))


def run(name: str, views: Views | None, *, cached: bool = True) -> list[Sent]:
    request_of, cache_of = PROVIDERS[name]
    cache, sent = cache_of(), []
    for turns in range(TURNS):
        request = request_of(rendered(name, [reading(number, RESULT) for number in range(turns)]))
        if views is not None:
            request["messages"] = views.of(request["messages"], cached=cached).messages
        sent.append(Sent(tokens(request), cache.tokens(request)))
    return sent


def billed(sent: list[Sent]) -> float:
    """Tokens at the price of those that are not cached: a tenth for one that is."""
    return sum(each.tokens - 0.9 * each.cached for each in sent)


@each_provider
@pytest.mark.shows("003.prompt_cache")
def test_between_two_steps_all_of_the_request_before_is_cached(name: str) -> None:
    sent = run(name, Views())
    step = 128 if name == "chat" else 1
    for number in range(1, TURNS):
        if number in STEPS:
            assert sent[number].cached >= 4_000 // step * step
        else:
            assert sent[number - 1].tokens // step * step == sent[number].cached


@each_provider
def test_steps_cost_less_than_no_steps_and_less_than_no_trimming(name: str) -> None:
    whole, stepped = billed(run(name, None)), billed(run(name, Views()))
    each_turn = billed(run(name, Views(), cached=False))
    assert stepped < each_turn
    assert stepped < whole


@pytest.mark.shows("003.last_two_turns")
def test_without_a_cache_exactly_the_last_two_turns_stay_whole() -> None:
    last = Views().of(
        chat(rendered("chat", [reading(number, RESULT) for number in range(39)]))["messages"], cached=False
    )
    assert [True] * 2 == [each["content"] == RESULT for each in last.messages[2:] if each["role"] == "tool"][-2:]
    assert 2 == sum(each["content"] == RESULT for each in last.messages)
