"""Agents in the middle of their work when the store of the claim check fails: nobody of them is to notice.

Real agents over OpenAI's client and LangGraph, a real Redis, and what the model received is the truth.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis as library

from agent_otel.remedies.claim_check.envelope import Claims, Reference
from agent_otel.remedies.claim_check.reader import ClaimReader
from agent_otel.remedies.claim_check.stores import NotFoundError, open_store
from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, tool_results
from tests.patience import Deadline
from tests.system.engines import redis, starting
from tests.unit.remedies.claim_check.faults_program import produced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent_otel.testing.servers.openai import Reply
    from tests.environments import Environment


Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[4]
SIZE = 200_000
TOO_LARGE = 1_100_000
SHOWN = 32 * 1024
KEY = "the secret of this test"
SECONDS = 200  # of work without any new answer, after which a test gives up
BUDGET = 2.0  # seconds for a write where the store is well: the machine may have other things to do
SLOWEST = 5.0  # seconds that a call may take, whatever the store does
EVERYBODY = ("by_hand", "by_hand_later", "langgraph", "langgraph_later")
BY_HAND = ("by_hand", "by_hand_later", "by_hand_later")

_AHEAD = 2  # turns that an agent may be ahead of the slowest: what it carries grows with each

STORED, LOST = "stored", "lost"
_STORED = re.compile(
    r"\n\[(\d+) of (\d+) bytes of dump's result shown; "
    r'the whole is stored: read on with get_tool_result\(ref="(claim:[^"]+)", cursor="[\w-]+"\)\]'
)
_LOST = re.compile(
    r"\n\[(\d+) of (\d+) bytes of dump's result shown; "
    r"the rest could not be stored and is lost; ask for something smaller\]"
)


@dataclass
class Answer:
    """A result as the model received it first: whose, and which, and what became of it."""

    agent: str
    number: int
    what: str
    ref: str | None = None

    @property
    def text(self) -> str:
        """The whole result."""
        return produced(self.agent, self.number, size_of(self.number))


def size_of(number: int) -> int:
    """The bytes of an agent's result with this number: every fifth is very large."""
    return TOO_LARGE if number % 5 == 4 else SIZE


@dataclass
class Script:
    """The model of all agents: each is to go on for ``turns`` and until ``enough`` is set."""

    turns: int
    pause: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)
    known: set[str] = field(default_factory=set)
    turn_of: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, request: Json) -> Reply:
        """Take note of what is new, and ask for the next."""
        agent = next(message["content"] for message in request["messages"] if message["role"] == "user")
        results = tool_results(request)
        for call_id, text in results.items():
            self._received(agent, call_id, text)
        number = len(results)
        if number >= self.turns and self.enough.is_set():
            return "done"
        time.sleep(self.pause)
        self._keep_pace(agent, number)
        arguments = {"agent": agent, "number": number, "size": size_of(number)}
        return [ToolCall(f"{agent}-{number}", "dump", arguments)]

    def _received(self, agent: str, call_id: str, text: str) -> None:
        with self.lock:
            if call_id not in self.known:
                self.known.add(call_id)
                self.answers.append(_read(agent, int(call_id.rpartition("-")[2]), text))

    def _keep_pace(self, agent: str, number: int) -> None:
        """Wait until no agent is more than two turns behind, or none has come forward for a while."""
        deadline, seen = Deadline(SECONDS), 0
        with self.lock:
            self.turn_of[agent] = number
        while number - min(self.turn_of.values()) > _AHEAD and not self.enough.is_set():
            if (now := sum(self.turn_of.values())) != seen:
                deadline, seen = Deadline(SECONDS), now
            assert not deadline.has_passed(), self.turn_of
            time.sleep(0.02)

    def wait_for(self, *kinds: str, agents: int, answers: int) -> None:
        """Wait, as long as any answers arrive, until each agent has had so many of these kinds from now on."""
        begin = seen = len(self.answers)
        deadline = Deadline(SECONDS)
        while True:
            found = Counter(answer.agent for answer in self.answers[begin:] if answer.what in kinds)
            if len(found) == agents and min(found.values()) >= answers:
                return
            if len(self.answers) > seen:
                seen, deadline = len(self.answers), Deadline(SECONDS)
            assert not deadline.has_passed(), (kinds, found, Counter(a.what for a in self.answers[begin:]))
            time.sleep(0.02)


def _read(agent: str, number: int, text: str) -> Answer:
    """What became of a result; whatever stands before the line about it is its beginning, as it was."""
    size = size_of(number)
    expected = produced(agent, number, size)
    assert len(text) <= SHOWN
    head, _, marker = text.rpartition("\n[")
    assert head == expected[: len(head)]
    stored, lost = _STORED.fullmatch(f"\n[{marker}"), _LOST.fullmatch(f"\n[{marker}")
    found = stored or lost
    assert found is not None, marker
    assert (int(found[1]), int(found[2])) == (len(head), size)
    return Answer(agent, number, STORED if stored else LOST, found[3] if stored else None)


@dataclass
class Agents:
    """Starts the agents of a test."""

    environment: Environment

    @contextmanager
    def working(self, script: Script, url: str, *kinds: str, budget: float = BUDGET) -> Iterator[Json]:
        """Have agents at work until the block is left; then the report is filled with what became of them."""
        report: Json = {}
        with OpenAIServer(script.decide) as server, ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._run, server.base_url, url, kinds, budget)
            try:
                yield report
            finally:
                script.enough.set()
                report.update(running.result())

    def _run(self, base_url: str, url: str, kinds: tuple[str, ...], budget: float) -> Json:
        program = Path(__file__).with_name("faults_program.py")
        env = {
            "AGENT_OTEL": "1",
            "AGENT_OTEL_CLAIM_CHECK": url,
            "AGENT_OTEL_CLAIM_CHECK_BUDGET": str(budget),
            "AGENT_OTEL_CLAIM_CHECK_KEY": KEY,
            "AGENT_OTEL_TRIM_RESULTS": "1",  # what is whole is not to be carried by all later requests
            "LANGSMITH_TRACING": "false",
            "PYTHONPATH": str(ROOT),
        }
        done = self.environment.run(program, base_url, *kinds, env=env, timeout=3 * SECONDS, check=True)
        report: Json = json.loads(done.stdout)
        return report


@pytest.fixture
def agents(environment: Callable[[str], Environment]) -> Agents:
    """Agents of LangGraph and by hand, with redis-py beside them."""
    return Agents(environment("langchain"))


def check(script: Script, report: Json, kinds: tuple[str, ...]) -> dict[str, int]:
    """No turn has failed and nobody waited for long; every result is accounted for. The outcomes are returned."""
    assert {f"run-{number}": "done" for number in range(len(kinds))} == report["said"]
    assert {} == report["errors"]
    assert report["longest"] < SLOWEST
    for agent in report["said"]:
        numbers = [answer.number for answer in script.answers if answer.agent == agent]
        assert list(range(max(script.turns, len(numbers)))) == sorted(numbers)
    operations: dict[str, int] = report["operations"]
    assert operations.keys() <= {"put ok", "put error", "put timeout", "put open"}
    stored = sum(answer.what == STORED for answer in script.answers)
    assert (stored, len(script.answers)) == (operations.get("put ok", 0), sum(operations.values()))
    return operations


def test_redis_is_stopped_and_started_twice_while_agents_work(agents: Agents) -> None:
    script = Script(turns=10, pause=0.2)
    everybody = len(EVERYBODY)
    with starting.folder() as folder, ExitStack() as last:
        path = folder / "redis"  # unlike a TCP port, nobody takes it while the server is down
        url = f"unix://{path}"
        with agents.working(script, url, *EVERYBODY) as report:
            for _ in range(2):
                with starting.or_skip(redis.server(path)):
                    script.wait_for(STORED, agents=everybody, answers=2)
                script.wait_for(LOST, agents=everybody, answers=5)
            before = len(script.answers)
            last.enter_context(redis.server(path))
            script.wait_for(STORED, agents=everybody, answers=2)
        operations = check(script, report, EVERYBODY)
        # What the first two had is gone with them: it is not found, and not mistaken for something else.
        assert set() == resolved(url, script.answers[:before])
        kept = resolved(url, script.answers[before:])
        assert {(answer.agent, answer.number) for answer in script.answers[before:] if answer.ref} == kept
        assert len(kept) >= 2 * everybody
    assert {STORED, LOST} == {answer.what for answer in script.answers}
    # After three failures in a row Redis is left alone: else every call would wait for it.
    assert operations["put open"] > operations["put error"] + operations.get("put timeout", 0)


def resolved(url: str, answers: Iterable[Answer]) -> set[tuple[str, int]]:
    """The results that can be had with their references, by their owners alone; each is the whole, to the byte."""
    found, reader = set(), ClaimReader(Claims(open_store(url, timeout=60), key=KEY))
    for answer in answers:
        if answer.ref is None:
            continue
        with suppress(NotFoundError):
            assert answer.text == reader.resolve(answer.ref, caller=answer.agent).text
            found.add((answer.agent, answer.number))
        with pytest.raises(NotFoundError):
            reader.resolve(answer.ref, caller="somebody else")
    return found


def test_a_store_that_accepts_and_never_answers(agents: Agents) -> None:
    script = Script(turns=30)
    script.enough.set()
    with (
        socket.create_server(("127.0.0.1", 0), backlog=64) as silent,
        agents.working(script, f"redis://127.0.0.1:{silent.getsockname()[1]}/0", *BY_HAND, budget=0.25) as report,
    ):
        pass
    operations = check(script, report, BY_HAND)
    assert 30 * len(BY_HAND) == len(script.answers)
    assert {LOST} == {answer.what for answer in script.answers}
    # Three failures, as many again as were on their way by then, and one each time ten seconds have passed.
    assert 3 <= operations.get("put timeout", 0) + operations.get("put error", 0) < operations["put open"]


def test_a_store_that_is_full(agents: Agents) -> None:
    script = Script(turns=30)
    script.enough.set()
    full = {"maxmemory": "5mb", "maxmemory_policy": "noeviction"}
    with starting.folder() as folder, starting.or_skip(redis.server(folder / "redis", **full)):
        url = f"unix://{folder / 'redis'}"
        with agents.working(script, url, *BY_HAND) as report:
            pass
        operations = check(script, report, BY_HAND)
        kept = {(answer.agent, answer.number) for answer in script.answers if answer.ref}
        assert kept == resolved(url, script.answers)
    assert operations["put ok"] * SIZE < 5 * 1024 * 1024
    assert {STORED, LOST} == {answer.what for answer in script.answers}
    assert operations["put error"] >= 3


def test_a_store_that_gives_out_something_else(agents: Agents) -> None:
    script = Script(turns=4)
    script.enough.set()
    with starting.folder() as folder, starting.or_skip(redis.server(folder / "redis")):
        url = f"unix://{folder / 'redis'}"
        with agents.working(script, url, *BY_HAND) as report:
            pass
        assert {"put ok": 4 * len(BY_HAND)} == check(script, report, BY_HAND)
        assert 4 * len(BY_HAND) == len(resolved(url, script.answers))
        with library.Redis.from_url(url) as database:
            lies = script.answers[:6]
            keys = [Reference.parse(answer.ref or "").key for answer in lies]
            values: list[Any] = [database.get(key) for key in keys]
            middle = len(values[0]) // 2
            database.set(keys[0], values[1])  # another one's
            database.set(keys[1], values[0])
            database.set(keys[2], values[2][:middle] + b"y" + values[2][middle + 1 :])  # a byte of the result
            database.set(keys[3], values[3][:-1])
            database.set(keys[4], values[4].replace(b'"bytes":200000', b'"bytes":100000', 1))
            database.set(keys[5], b"")
        assert set() == resolved(url, lies)
        assert 4 * len(BY_HAND) - len(lies) == len(resolved(url, script.answers))
