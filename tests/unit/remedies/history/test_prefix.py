"""Views of a history on their way to a model: what stays the same from request to request, down to the byte.

An agent of forty turns; each asks for a file to be written, with 3,000 bytes in its arguments, and has 3,000 bytes as
its result. Arguments are marks from the first request on that carries them. Results of two turns are kept and those of
five are rewritten together: before request n, which carries n turns, the results of the first (n - 2) // 5 * 5 of them
are rewritten. Where responses report no cached tokens, all but those of the last two turns are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer, message_of
from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, chat_answer, chat_completion, tool_results
from agent_otel.testing.servers.scripted import Answer
from examples.systems.prompt_caches import LEAST_TOKENS, STEP_TOKENS, AutomaticCache, MarkedCache, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.scripted import Endpoint, Reply, Route
    from tests.environments import Environment

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[4]
TURNS = 40
REWRITTEN = [max(number - 2, 0) // 5 * 5 for number in range(TURNS + 1)]
"""Turns whose results are rewritten in each request."""

STEPS = [7, 12, 17, 22, 27, 32, 37]
"""Requests that do not begin with all of the one before: in these the results of another five turns are rewritten."""

CONTENT, RESULT = "c" * 3_000, "r" * 3_000
MARK = "[argument removed: 3000 bytes]"
LINE = f"[trimmed 3000 bytes] write_file: {'r' * 150}…"
COMPACTED, TRIMMED = 2_970, 2_814  # what the two save in a turn
TURN = {"openai": 6_214, "anthropic": 6_215}
"""What a turn adds to a request: 6,000 bytes and the JSON around them."""

SENT = {"openai": (5_181_375, 874_665), "anthropic": (5_184_655, 877_945)}
"""Bytes of all requests, without the views and with them."""


def ask(request: Json) -> Reply:
    """Forty calls, one after the other."""
    done = len(tool_results(request))
    arguments = {"path": f"{done:02}.txt", "content": CONTENT}
    return [ToolCall(f"call_{done:02}", "write_file", arguments)] if done < TURNS else "done"


class OpenAI(OpenAIServer):
    """Keeps the bytes of each request; has OpenAI's cache, and says in its answers how many tokens that had."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self._cache = AutomaticCache()
        super().__init__(ask)

    def endpoints(self) -> dict[str, Endpoint]:
        """Return chat completions with cached tokens."""
        return {"/v1/chat/completions": self._answer}

    def _answer(self, request: Json, reply: Reply) -> Answer:
        completion = chat_completion(request, reply)
        cached = {"cached_tokens": self._cache.tokens(request)}
        completion["usage"] |= {"prompt_tokens": tokens(request), "prompt_tokens_details": cached}
        return Answer(json.dumps(completion).encode())

    def _route(self, endpoint: Endpoint) -> Route:
        return _keeping(self.bodies, super()._route(endpoint))


class UncachedOpenAI(OpenAI):
    """Has no cache, as most servers of OpenAI's API."""

    def endpoints(self) -> dict[str, Endpoint]:
        """Return chat completions without cached tokens."""
        return {"/v1/chat/completions": chat_answer}


class Anthropic(AnthropicServer):
    """Keeps the bytes of each request."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        super().__init__(ask)

    def _route(self, endpoint: Endpoint) -> Route:
        return _keeping(self.bodies, super()._route(endpoint))


class CachingAnthropic(Anthropic):
    """Has a cache, and says in its answers how many tokens of a request it had and how many it has kept."""

    def __init__(self) -> None:
        self.cached: list[int] = []
        self._cache = MarkedCache()
        super().__init__()

    def _answer(self, request: Json, reply: Reply) -> Answer:
        message = message_of(request, reply)
        self.cached.append(self._cache.tokens(request))
        kept = {"cache_creation_input_tokens": tokens(request) - self.cached[-1]}
        message["usage"] |= {"input_tokens": 0, "cache_read_input_tokens": self.cached[-1], **kept}
        return Answer(json.dumps(message).encode())


def _keeping(bodies: list[bytes], route: Route) -> Route:
    def answer(body: bytes) -> Answer:
        bodies.append(body)
        return route(body)

    return answer


@dataclass
class Run:
    """What the agent reported, the bodies that its model received, and the tokens of each that a server had cached."""

    report: Json
    bodies: list[bytes]
    cached: list[int]

    @property
    def messages(self) -> list[list[str]]:
        """The messages of each request as JSON, keys in the order in which they came."""
        return [
            [json.dumps(message, ensure_ascii=False) for message in json.loads(body)["messages"]]
            for body in self.bodies
        ]


@pytest.fixture(scope="module", params=["openai", "anthropic"])
def client(request: pytest.FixtureRequest) -> str:
    """The client that the agent uses."""
    return str(request.param)


@pytest.fixture(scope="module")
def runs(client: str, environment: Callable[[str], Environment]) -> tuple[Run, Run]:
    """The agent as it is, and with the views."""
    return _run(client, environment), _run(
        client, environment, AGENT_OTEL_TRIM_RESULTS="1", AGENT_OTEL_COMPACT_ARGUMENTS="1"
    )


SERVERS: dict[str, tuple[type[OpenAI | Anthropic], str]] = {
    "openai": (OpenAI, "openai-agents"),
    "openai_uncached": (UncachedOpenAI, "openai-agents"),
    "anthropic": (Anthropic, "anthropic"),
    "anthropic_moving": (CachingAnthropic, "anthropic"),
}


def _run(client: str, environment: Callable[[str], Environment], **variables: str) -> Run:
    made, name = SERVERS[client]
    server = made()
    program = Path(__file__).with_name("prefix_program.py")
    env = {"AGENT_OTEL": "1", "PYTHONPATH": str(ROOT), **variables}
    with server:
        done = environment(name).run(program, client, server.base_url, env=env, check=True)
    report = json.loads(done.stdout)
    assert ([], {}) == (report["messages"], report["errors"])
    return Run(report, server.bodies, server.cached if isinstance(server, CachingAnthropic) else [])


def test_a_message_is_rewritten_once_and_then_the_same_to_the_byte(runs: tuple[Run, Run]) -> None:
    whole, viewed = runs
    first = len(viewed.messages[0])
    for place, stored in enumerate(whole.messages[-1]):
        turn = (place - first) // 2
        sent = [messages[place] for messages in viewed.messages if place < len(messages)]
        unchanged = [number for number in range(TURNS + 1) if number > turn and REWRITTEN[number] <= turn]
        if turn < 0:
            assert [stored] * (TURNS + 1) == sent
        else:
            compacted = stored.replace(CONTENT, MARK)
            rewritten = compacted.replace(RESULT, LINE)
            assert [compacted] * len(unchanged) + [rewritten] * (TURNS - turn - len(unchanged)) == sent


def test_only_where_another_five_turns_are_rewritten_a_request_begins_otherwise(runs: tuple[Run, Run]) -> None:
    whole, viewed = runs

    assert [] == _broken(whole)
    assert STEPS == _broken(viewed)


def _broken(run: Run) -> list[int]:
    return [number for number, (before, now) in enumerate(pairwise(run.messages), 1) if now[: len(before)] != before]


def test_the_signal_shows_it(client: str, runs: tuple[Run, Run]) -> None:
    for run in runs:
        expected = [_stable(client, before, now) for before, now in pairwise(run.bodies)]
        assert expected == pytest.approx(run.report["shares"], abs=1e-12)

    # Beside 2,000 bytes of instructions, what a new turn adds to a long request is little, and what a step takes
    # from its beginning is much: all that is not yet rewritten.
    breaks = [number for number, share in enumerate(runs[1].report["shares"], 1) if number > 2 and share < 0.7]
    assert STEPS == breaks


def _stable(client: str, before: bytes, now: bytes) -> float:
    """How much of a request is the beginning of the one before, in the bytes of its texts and arguments."""
    earlier, later = _texts(client, before), _texts(client, now)
    same = next((place for place, text in enumerate(later) if text not in earlier[place : place + 1]), len(later))
    sizes = [len(text.encode()) for text in later]
    return sum(sizes[:same]) / sum(sizes)


def _texts(client: str, body: bytes) -> list[str]:
    request = json.loads(body)
    if client == "openai":
        return [
            message["tool_calls"][0]["function"]["arguments"] if "tool_calls" in message else message["content"]
            for message in request["messages"]
        ]
    [asked], *messages = (message["content"] for message in request["messages"])
    return [request["system"], asked["text"], *(_text(block) for message in messages for block in message)]


def _text(block: Json) -> str:
    if block["type"] == "tool_result":
        return str(block["content"])
    return json.dumps(block["input"], separators=(",", ":"))


def test_bytes_on_the_wire(client: str, runs: tuple[Run, Run]) -> None:
    whole, viewed = runs
    begin, turn = len(whole.bodies[0]), TURN[client]

    assert [begin + number * turn for number in range(TURNS + 1)] == [len(body) for body in whole.bodies]
    assert [
        begin + number * (turn - COMPACTED) - rewritten * TRIMMED for number, rewritten in enumerate(REWRITTEN)
    ] == [len(body) for body in viewed.bodies]
    assert SENT[client] == (sum(map(len, whole.bodies)), sum(map(len, viewed.bodies)))
    assert {"compact": sum(range(TURNS + 1)) * COMPACTED, "trim": sum(REWRITTEN) * TRIMMED} == viewed.report["removed"]
    assert {} == whole.report["removed"]


@pytest.mark.shows("003.prompt_cache")
def test_a_cache_of_every_prefix_has_the_request_before_except_at_a_step(client: str, runs: tuple[Run, Run]) -> None:
    """OpenAI's accounting; here Anthropic's client asks for the cache of its first message only."""
    if client == "anthropic":
        return
    for run, steps in zip(runs, ([], STEPS), strict=True):
        cache, requests = AutomaticCache(), [json.loads(body) for body in run.bodies]
        cached = [cache.tokens(request) for request in requests]
        sent = [tokens(request) // STEP_TOKENS * STEP_TOKENS for request in requests]
        large = [number for number in range(1, TURNS + 1) if sent[number - 1] >= LEAST_TOKENS]
        assert [number for number in large if cached[number] < sent[number - 1]] == steps


@pytest.mark.shows("003.prompt_cache")
def test_a_moving_mark_reads_the_request_before_except_at_a_step(environment: Callable[[str], Environment]) -> None:
    """Anthropic's accounting, with a mark at the end of each request: all but a new turn is read from the cache.

    The first request has 500 tokens of instructions, and is too short for an entry; after a step, nothing behind them
    is as it was. Tokens that are read cost a tenth.
    """
    billed = []
    for variables, steps in ({}, []), ({"AGENT_OTEL_TRIM_RESULTS": "1", "AGENT_OTEL_COMPACT_ARGUMENTS": "1"}, STEPS):
        run = _run("anthropic_moving", environment, **variables)
        requests = [json.loads(body) for body in run.bodies]
        assert [list(request["messages"][-1]["content"][-1])[-1] for request in requests] == ["cache_control"] * 41
        sent = [tokens(request) for request in requests]
        assert sent[0] < LEAST_TOKENS < sent[1]
        expected = [0] + [0 if number in steps or number == 1 else sent[number - 1] for number in range(1, TURNS + 1)]
        assert run.cached == expected
        assert run.report["cached"] == sum(expected)
        billed.append(sum(sent) - 0.9 * sum(expected))
    assert billed[1] < billed[0]


def test_without_a_cache_exactly_the_last_turns_stay(environment: Callable[[str], Environment]) -> None:
    run = _run("openai_uncached", environment, AGENT_OTEL_TRIM_RESULTS="1")
    expected = [max(number - 2, 0) for number in range(TURNS + 1)]
    assert expected == [body.count(b"[trimmed 3000 bytes]") for body in run.bodies]


def test_what_the_program_keeps_is_not_touched(runs: tuple[Run, Run]) -> None:
    whole, viewed = runs

    assert whole.report["history"] == viewed.report["history"]
    assert whole.messages[-1] == [json.dumps(message, ensure_ascii=False) for message in viewed.report["history"]]
