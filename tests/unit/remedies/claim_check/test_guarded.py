"""Whatever the store does, the agent goes on: within the budget it knows whether a result is stored."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel._internal import errors
from agent_otel._internal.daemon_pool import Workers
from agent_otel.remedies.claim_check.envelope import Claims, Origin
from agent_otel.remedies.claim_check.reader import ClaimReader
from agent_otel.remedies.claim_check.stores import StoreError, open_store
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.remedies.claim_check.writer import Breaker, ClaimWriter, NotStored, Stored
from tests.patience import Deadline
from tests.system.engines import redis, starting
from tests.unit.remedies.claim_check.hostile_stores import Failing, Hanging

if TYPE_CHECKING:
    from collections.abc import Iterator


FOREVER = 60.0


@pytest.fixture(autouse=True)
def _our_failures_are_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise  # noqa: PLE0704 - called where an exception is being handled

    monkeypatch.setattr(errors, "handler", fail)
    monkeypatch.setattr(errors, "_said", set())


def _origin(call: str = "call_0", owner: str = "run-1") -> Origin:
    return Origin(owner, "run-1", "agent", "search", call)


class _Reports(list[tuple[str, str, int]]):
    """What was reported, without the seconds."""

    def __call__(self, operation: str, result: str, size: int, seconds: float) -> None:
        assert seconds >= 0
        self.append((operation, result, size))


@pytest.fixture
def reports() -> _Reports:
    return _Reports()


Put = Any  # a function of a writer and what its put takes


def test_what_is_stored_can_be_read_by_its_owner(put: Put, reports: _Reports) -> None:
    claims = Claims(MemoryStore(), key="secret", report=reports)

    outcome = put(ClaimWriter(claims, budget=FOREVER), "hällo", _origin())

    assert isinstance(outcome, Stored)
    assert ("tool-result/=/run-1/agent/call_0", 6) == (outcome.reference.key, outcome.size)
    read = ClaimReader(claims).resolve(str(outcome.reference), caller="run-1")
    assert ("hällo", "text/plain; charset=utf-8") == (read.text, read.content_type)
    assert [("put", "ok", 6), ("get", "ok", 6)] == reports


@pytest.mark.parametrize(
    ("data", "content_type", "expected"),
    [
        (b"\x89PNG\xff", None, (b"\x89PNG\xff", None, "application/octet-stream")),
        (b"\x89PNG\xff", "image/png", (b"\x89PNG\xff", None, "image/png")),
        (bytearray(b"x"), None, (b"x", None, "application/octet-stream")),
        ("", None, (b"", "", "text/plain; charset=utf-8")),
        ("\ud800", None, (b"\xed\xa0\x80", "\ud800", "text/plain; charset=utf-8")),
        ('{"a": 1}', "application/json", (b'{"a": 1}', '{"a": 1}', "application/json")),
        ("x", "text/html\r\nx: y", (b"x", "x", "application/octet-stream")),
    ],
)
def test_a_result_of_any_kind_comes_back_as_it_was(data: Any, content_type: str | None, expected: object) -> None:
    claims = Claims(MemoryStore(), key="secret")

    if content_type is None:
        outcome = ClaimWriter(claims, budget=FOREVER).put(data, _origin())
        assert isinstance(outcome, Stored)
        reference = outcome.reference
    else:
        raw, encoding = (data.encode(), "utf-8") if isinstance(data, str) else (data, None)
        reference, stored = claims.sealed(raw, _origin(), content_type=content_type, encoding=encoding, ttl=FOREVER)
        claims.store.put(reference.key, stored, FOREVER)

    read = ClaimReader(claims).resolve(str(reference), caller="run-1")
    assert expected == (read.data, read.text, read.content_type)


def test_what_hangs_is_given_up_and_what_it_stores_later_has_no_reference(put: Put, reports: _Reports) -> None:
    store = Hanging()
    writer = ClaimWriter(Claims(store, key="secret", report=reports), budget=0.02, workers=Workers("test", 2))

    assert NotStored("timeout") == put(writer, "x", _origin())
    store.go.set()
    assert isinstance(_until_stored(writer), Stored)

    assert ("put", "timeout", 0) == reports[0]


def _until_stored(writer: ClaimWriter) -> Stored | NotStored:
    deadline = Deadline(FOREVER)
    while True:
        outcome = writer.put("x", _origin())
        if isinstance(outcome, Stored) or deadline.has_passed():
            return outcome
        time.sleep(0.01)


def test_at_most_so_many_threads_hang(put: Put) -> None:
    store = Hanging()
    name = f"test-{id(store)}"
    writer = ClaimWriter(
        Claims(store, key="secret"), budget=0.01, workers=Workers(name, 3), breaker=Breaker(failures=1_000)
    )
    number = itertools.count()
    while store.entered < 3:
        assert NotStored("timeout") == put(writer, "x", _origin(str(next(number))))

    outcomes = [put(writer, "x", _origin(f"late-{number}")) for number in range(5)]

    assert [NotStored("timeout")] * 5 == outcomes
    assert 3 == sum(thread.name == f"agent_otel-{name}" and thread.is_alive() for thread in threading.enumerate())
    store.go.set()
    assert isinstance(_until_stored(writer), Stored)
    # Those that were given up before they began are never written.
    assert [] == [key for key in store._values if "late" in key]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (StoreError("redis: down"), "redis: down"),
        (OSError(28, "a value"), "OSError: No space left on device at "),
        (RuntimeError("a value"), "RuntimeError at "),
        (TimeoutError(), "TimeoutError at "),
    ],
)
def test_what_fails_is_not_stored(
    put: Put, reports: _Reports, caplog: pytest.LogCaptureFixture, error: Exception, shown: str
) -> None:
    store = Failing(error)
    writer = ClaimWriter(Claims(store, key="secret", report=reports), budget=FOREVER, breaker=Breaker(failures=10))

    assert [NotStored("error")] * 2 == [put(writer, "x", _origin()), put(writer, "x", _origin())]

    assert [("put", "error", 0)] * 2 == reports
    [message] = caplog.messages
    assert message.startswith("The store of the claim check failed: until it is back, ")
    assert f"the rest is lost. {shown}" in message
    assert "a value" not in message


def test_a_result_that_is_too_large_says_so_and_the_store_counts_as_well(put: Put, reports: _Reports) -> None:
    store = MemoryStore(max_bytes=2_000)
    writer = ClaimWriter(Claims(store, key="secret", report=reports), budget=FOREVER, breaker=Breaker(failures=1))

    outcomes = [put(writer, "x" * 1_000, _origin()), put(writer, "x" * 10, _origin())]

    assert NotStored("too_large") == outcomes[0]
    assert isinstance(outcomes[1], Stored)
    assert [("put", "too_large", 0), ("put", "ok", 10)] == reports


def test_what_nobody_owns_is_not_stored(put: Put) -> None:
    store = MemoryStore()

    assert NotStored("no_owner") == put(ClaimWriter(Claims(store, key="secret")), "x", _origin(owner=""))
    assert 0 == len(store._values)


def test_after_failures_in_a_row_the_store_is_left_alone_for_a_while(put: Put, reports: _Reports) -> None:
    now = [0.0]
    store = Failing(StoreError("down"))
    breaker = Breaker(failures=3, seconds=10, clock=lambda: now[0])
    writer = ClaimWriter(Claims(store, key="secret", report=reports), budget=FOREVER, breaker=breaker)

    def outcomes(count: int) -> list[str]:
        said = [put(writer, "x", _origin()) for _ in range(count)]
        return ["stored" if isinstance(outcome, Stored) else outcome.reason for outcome in said]

    assert ["error", "error", "error", "open", "open"] == outcomes(5)
    now[0] = 9.9
    assert ["open"] == outcomes(1)
    now[0] = 10
    assert ["error", "open"] == outcomes(2)  # one try
    now[0] = 20
    store.error = None
    assert ["stored", "stored"] == outcomes(2)
    assert 6 == store.asked
    assert ("put", "open", 0) == reports[3]


def test_one_success_forgets_the_failures_before() -> None:
    breaker = Breaker(failures=2, seconds=FOREVER)

    breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert breaker.allows()
    breaker.failed()
    assert not breaker.allows()


def test_the_event_loop_goes_on_while_a_store_takes_its_time() -> None:
    store = Hanging()
    writer = ClaimWriter(Claims(store, key="secret"), budget=FOREVER, workers=Workers("test", 1))

    async def main() -> Stored | NotStored:
        writing = asyncio.create_task(writer.aput("x", _origin()))
        await asyncio.to_thread(store.begun.wait)
        store.go.set()  # by this loop, and by nobody else
        return await writing

    assert isinstance(asyncio.run(main()), Stored)


def test_a_cancelled_turn_is_cancelled() -> None:
    store = Hanging()
    writer = ClaimWriter(Claims(store, key="secret"), budget=FOREVER, workers=Workers("test", 2))

    async def main() -> None:
        writing = asyncio.create_task(writer.aput("x", _origin()))
        await asyncio.to_thread(store.begun.wait)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    asyncio.run(main())
    store.go.set()
    assert isinstance(_until_stored(writer), Stored)


def test_another_kind_of_event_loop_is_served_as_well() -> None:
    writer = ClaimWriter(Claims(MemoryStore(), key="secret"), budget=FOREVER)
    writing = writer.aput("x", _origin())

    with pytest.raises(StopIteration) as stopped:
        writing.send(None)

    assert isinstance(stopped.value.value, Stored)


def test_a_report_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []
    monkeypatch.setattr(errors, "handler", failed.append)

    def report(*_: object) -> None:
        raise RuntimeError

    outcome = ClaimWriter(Claims(MemoryStore(), key="secret", report=report), budget=FOREVER).put("x", _origin())

    assert isinstance(outcome, Stored)
    assert ["remedies.report"] == failed


@pytest.mark.parametrize("origin", [None, (), Origin("a", None, "b", "c", "d"), Origin("a", "b", 1, "c", "d")])  # type: ignore[arg-type]
@pytest.mark.parametrize("data", ["x", None, object()])
def test_nonsense_is_not_stored_and_never_raised(
    put: Put, monkeypatch: pytest.MonkeyPatch, origin: Any, data: Any
) -> None:
    monkeypatch.setattr(errors, "handler", lambda _: None)

    assert NotStored("error") == put(ClaimWriter(Claims(MemoryStore(), key="secret"), budget=FOREVER), data, origin)


def test_nonsense_is_no_fault_of_the_store(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []
    monkeypatch.setattr(errors, "handler", failed.append)
    writer = ClaimWriter(Claims(MemoryStore(), key="secret"), budget=FOREVER, breaker=Breaker(failures=1))

    outcomes = [put(writer, object(), _origin()), put(writer, "x", _origin())]

    assert NotStored("error") == outcomes[0]
    assert isinstance(outcomes[1], Stored)
    assert ["remedies.claim_check"] == failed


# --- processes -----------------------------------------------------------------------------------------------------

_PROGRAM = """
    import os, sys, threading
    from agent_otel.remedies.claim_check.envelope import Claims
    from agent_otel.remedies.claim_check.envelope import Origin
    from agent_otel.remedies.claim_check.writer import ClaimWriter
    from agent_otel.remedies.claim_check.reader import ClaimReader
    from agent_otel.remedies.claim_check.stores import open_store
    from agent_otel.remedies.claim_check.stores.base import MemoryStore

    origin = Origin("run-1", "run-1", "agent", "search", "call_0")
"""


def _run(program: str, *arguments: str) -> list[str]:
    code = textwrap.dedent(_PROGRAM) + textwrap.dedent(program)
    done = subprocess.run(
        (sys.executable, "-W", "ignore", "-c", code, *arguments),
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout.splitlines()


def test_a_forked_child_writes_and_reads_on(tmp_path: Any) -> None:
    program = """
        for url in ("memory:", sys.argv[1]):
            claims = Claims(open_store(url))
            writer, reader = ClaimWriter(claims, budget=60), ClaimReader(claims)
            before = str(writer.put("before", origin).reference)
            child = os.fork()
            if child == 0:
                after = str(writer.put("after", origin._replace(call="call_1")).reference)
                print(*(reader.resolve(ref, caller="run-1").text for ref in (before, after)), flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    """

    assert ["before after"] * 2 == _run(program, tmp_path.as_uri())


def test_a_hanging_store_does_not_keep_the_program_from_ending() -> None:
    program = """
        class Hanging(MemoryStore):
            def put(self, *_):
                threading.Event().wait()

        print(ClaimWriter(Claims(Hanging()), budget=0.01).put("x", origin))
    """

    assert ["NotStored(reason='timeout')"] == _run(program)


def test_no_thread_is_started_before_the_first_write() -> None:
    program = """
        writer = ClaimWriter(Claims(MemoryStore()), budget=60)
        print(threading.active_count())
        writer.put("x", origin)
        print([thread.name for thread in threading.enumerate() if thread is not threading.main_thread()])
    """

    assert ["1", "['agent_otel-claim-check', 'agent_otel-sweeper']"] == _run(program)


# --- a real Redis --------------------------------------------------------------------------------------------------


class _Load:
    """Threads and an event loop that store results one after the other."""

    def __init__(self, writer: ClaimWriter) -> None:
        self._writer = writer
        self.outcomes: list[Stored | NotStored] = []
        self.begun = itertools.count()
        self.errors: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=target) for target in (self._call, self._call, self._loop)]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._end()

    def _end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, kind: type) -> None:
        """Wait until each has seen such an outcome from now on."""
        seen = len(self.outcomes)
        deadline = Deadline(200)
        while sum(isinstance(outcome, kind) for outcome in self.outcomes[seen:]) < 10:
            assert not deadline.has_passed(), Counter(map(str, self.outcomes[seen:]))
            time.sleep(0.01)

    def _next(self) -> tuple[str, Origin]:
        return "x" * 50_000, _origin(str(next(self.begun)))

    def _call(self) -> None:
        try:
            while not self._stop.is_set():
                self.outcomes.append(self._writer.put(*self._next()))
                time.sleep(0.002)
        except BaseException as error:
            self.errors.append(error)
            raise

    def _loop(self) -> None:
        async def turn() -> None:
            while not self._stop.is_set():
                self.outcomes.append(await self._writer.aput(*self._next()))
                await asyncio.sleep(0.002)

        async def turns() -> None:
            await asyncio.gather(*(turn() for _ in range(5)))

        try:
            asyncio.run(turns())
        except BaseException as error:
            self.errors.append(error)
            raise


def test_redis_stopped_and_started_under_load() -> None:
    with starting.folder() as folder:
        path = folder / "redis"
        claims = Claims(open_store(f"unix://{path}", timeout=5), key="secret")
        load = _Load(ClaimWriter(claims, budget=5, breaker=Breaker(failures=3, seconds=0.1)))
        with load.running():
            for _ in range(2):
                with starting.or_skip(redis.server(path)):
                    load.wait_for(Stored)
                load.wait_for(NotStored)
            with starting.or_skip(redis.server(path)):
                first = len(load.outcomes)
                load.wait_for(Stored)
                stored = [outcome for outcome in load.outcomes[first:] if isinstance(outcome, Stored)]
                reader = ClaimReader(claims)
                read = {reader.resolve(str(outcome.reference), caller="run-1").text for outcome in stored}
        claims.store._client.close()  # type: ignore[attr-defined]  # no part of the protocol

    assert [] == load.errors
    assert next(load.begun) == len(load.outcomes)
    assert {"error", "open"} == {outcome.reason for outcome in load.outcomes if isinstance(outcome, NotStored)}
    assert {"x" * 50_000} == read
