"""Results that are too large or too slow for the store: what they cost their own call, and others nothing."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel._internal.daemon_pool import BusyError, Workers
from agent_otel.measure.json_pieces import WORKER_STEPS
from agent_otel.measure.size import size
from agent_otel.remedies.claim_check.envelope import Claims, Origin
from agent_otel.remedies.claim_check.reader import ClaimReader, Place
from agent_otel.remedies.claim_check.serialization import Content, Raw, raw_of, size_up_to
from agent_otel.remedies.claim_check.stores import StoreError
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.remedies.claim_check.writer import Breaker, ClaimWriter, NotStored, Stored
from tests.unit.remedies.claim_check.hostile_stores import Failing, Hanging

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(500)  # the machine may be busy with other tests

FOREVER = 60.0
MIB = 1024 * 1024
ORIGIN = Origin("run-1", "run-1", "agent", "search", "call_0")


class HangingWithLarge(Hanging):
    """Hangs with what has more than 1 MiB."""

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Hang, or store."""
        if len(data) > MIB:
            super().put(key, data, ttl)
        else:
            MemoryStore.put(self, key, data, ttl)


class Unreadable(list[Any]):
    """A result that nobody may look into."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError

    __len__ = __iter__  # type: ignore[assignment]


Put = Any


def test_above_the_maximum_nothing_is_read_and_no_breaker_opens(put: Put) -> None:
    store = Failing(None)
    writer = ClaimWriter(Claims(store, key="k"), budget=FOREVER, max_bytes=1_000, breaker=Breaker(failures=1))
    for data in ("x" * 1_001, b"x" * 1_001, Content(Unreadable(), 1_001)):
        assert put(writer, data, ORIGIN) == NotStored("too_large")
    # The size of a structured result is a lower bound; its bytes are the thread's to find.
    assert put(writer, Content(["x" * 1_000], 2), ORIGIN) == NotStored("too_large")
    assert store.asked == 0
    assert isinstance(put(writer, "x" * 1_000, ORIGIN), Stored)


def test_a_large_payload_that_is_slow_says_nothing_of_the_store(put: Put) -> None:
    store = Hanging()
    writer = ClaimWriter(
        Claims(store, key="k"), budget=0.05, breaker=Breaker(failures=1, seconds=FOREVER), workers=Workers("test", 1)
    )
    assert put(writer, "x" * (MIB + 1), ORIGIN) == NotStored("timeout")
    assert put(writer, "x", ORIGIN) == NotStored("timeout")  # it waits for the thread, and not for the store
    assert writer._breaker.allows()
    store.go.set()


def refused(put: Put, writer: ClaimWriter, store: Hanging) -> int:
    """Write large results, of which 40 are refused in the end; return how many came to the store.

    A refusal is a thread's, which may be late on a busy machine: it counts as a timeout then.
    """
    large = Content(["x" * (MIB + 1)], 2)
    refusals = 0
    while refusals < 40:
        outcome = put(writer, large, ORIGIN)
        assert outcome in (NotStored("timeout"), NotStored("open"))
        refusals += outcome == NotStored("open")
        assert store.entered or not refusals
    return store.entered


def test_a_store_that_hangs_with_large_payloads_alone_is_left_alone_with_these(put: Put) -> None:
    store, large = HangingWithLarge(), Breaker(failures=3, seconds=FOREVER * 60)
    writer = ClaimWriter(Claims(store, key="k"), budget=0.25, large_breaker=large, workers=Workers("test", 8))
    assert refused(put, writer, store) in (3, 4)
    assert writer._breaker.allows()
    while not isinstance(put(writer, "x", ORIGIN), Stored):  # small ones go on, as soon as a thread has time for one
        assert writer._breaker.allows()
    store.go.set()
    while writer._late:
        threading.Event().wait(0.001)
    assert large.allows()  # it has ended them, late


def test_large_payloads_take_half_of_the_threads_at_most(put: Put) -> None:
    store = HangingWithLarge()
    writer = ClaimWriter(
        Claims(store, key="k"), budget=0.25, large_breaker=Breaker(failures=1_000), workers=Workers("test", 8)
    )
    assert refused(put, writer, store) == 4
    store.go.set()


def test_a_store_that_refuses_a_large_payload_has_failed(put: Put) -> None:
    breaker = Breaker(failures=1, seconds=FOREVER)
    writer = ClaimWriter(Claims(Failing(StoreError("down")), key="k"), budget=FOREVER, breaker=breaker)
    assert put(writer, "x" * (MIB + 1), ORIGIN) == NotStored("error")
    assert not breaker.allows()


def test_a_write_that_is_taken_back_gives_its_bytes_back_at_once(put: Put) -> None:
    class Rows(list[Any]):
        """A result that can be watched."""

    store = Hanging()
    writer = ClaimWriter(
        Claims(store, key="k"), budget=0.05, breaker=Breaker(failures=1_000), workers=Workers("test", 1)
    )
    while not store.entered:
        put(writer, "x", ORIGIN)
    for _ in range(3):
        rows = Rows(["x"] * 1_000)
        kept = weakref.ref(rows)
        assert put(writer, Content(rows, 4_000), ORIGIN) == NotStored("timeout")
        del rows
        gc.collect()
        assert kept() is None
    store.go.set()


def test_the_queue_is_bounded_and_what_is_taken_back_makes_room() -> None:
    go = threading.Event()
    workers = Workers("test", 1)
    first = workers.submit(go.wait)
    while not first.running():
        threading.Event().wait(0.001)
    waiting = [workers.submit(lambda: None) for _ in range(256)]
    with pytest.raises(BusyError):
        workers.submit(lambda: None)
    assert waiting[7].cancel()
    last = workers.submit(lambda: "done")
    go.set()
    assert last.result(FOREVER) == "done"
    assert all(job.done() for job in waiting)


def test_with_a_full_queue_nothing_is_stored_and_no_call_waits(put: Put) -> None:
    writer = ClaimWriter(Claims(MemoryStore(), key="k"), budget=FOREVER, workers=Workers("test", 0, 0))
    assert put(writer, "x", ORIGIN) == NotStored("timeout")


def test_jobs_beside_one_that_hangs_find_a_thread_of_their_own() -> None:
    workers, go = Workers("test", 2), threading.Event()
    for _ in range(200):
        workers.submit(lambda: None).result(FOREVER)
        workers.submit(lambda: None)
    workers.submit(go.wait)
    for _ in range(10):
        assert workers.submit(lambda: "done").result(FOREVER) == "done"
    go.set()


def test_what_arrives_late_can_be_read_at_its_place(put: Put) -> None:
    store = Hanging()
    claims = Claims(store, key="k")
    writer = ClaimWriter(claims, budget=0.05, workers=Workers("test", 1))
    while not store.entered:
        assert put(writer, "x", ORIGIN) == NotStored("timeout")
    store.go.set()
    while writer._late:
        threading.Event().wait(0.001)
    assert ClaimReader(claims).resolve(Place("run-1", "agent", "call_0"), caller="run-1").text == "x"


def test_a_late_answer_of_the_store_takes_away_nothing_that_was_stored_since(put: Put) -> None:
    class Late(MemoryStore):
        """Stores the first value at once, and says so late."""

        go = threading.Event()
        written = 0

        def put(self, key: str, data: bytes, ttl: float) -> None:
            super().put(key, data, ttl)
            self.written += 1
            if self.written == 1:
                self.go.wait()

    store, workers = Late(), Workers("test", 2)
    claims = Claims(store, key="k")
    writer = ClaimWriter(claims, budget=0.05, workers=workers)
    while not store.written:
        assert put(writer, "first", ORIGIN) == NotStored("timeout")
    outcome = put(ClaimWriter(claims, budget=FOREVER, workers=workers), "second", ORIGIN)
    store.go.set()
    for _ in range(10):
        workers.submit(lambda: None).result(FOREVER)
    assert ClaimReader(claims).resolve(str(outcome.reference), caller="run-1").text == "second"


# --- what is nested too deeply for json ---------------------------------------------------------------------------


def test_what_is_nested_too_deeply_for_json_has_its_json_nevertheless() -> None:
    nested: Any = "ö"
    for _ in range(20_000):
        nested = {"a": [nested, 1]}
    text = '{"a":[' * 20_000 + '"ö"' + ",1]}" * 20_000
    assert raw_of(nested, WORKER_STEPS).text == text
    assert raw_of(nested).is_whole is False
    assert size_up_to(nested, len(text)).exact is False
    while isinstance(nested, dict):  # freed one by one
        nested = nested["a"][0]


def test_json_is_the_same_in_pieces() -> None:
    values: tuple[Any, ...] = (
        [],
        {},
        [[], {}, ()],
        {"a": list(range(1_000)), "b": {str(n): n for n in range(1_000)}, 1: None, None: True, 2.5: "ö\n"},
        [{"a": {"b": {"c": {"d": [1, (2, 3)]}}}}] * 300,
        (1, {"x": float("inf")}),
    )
    for value in values:
        assert raw_of(value).text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Color(Enum):
    """A color."""

    RED = "red"


@dataclass(slots=True)
class Row:
    """A row without an instance dictionary."""

    name: str
    color: Color


def test_enums_and_objects_with_slots_are_json() -> None:
    value = {"rows": [Row("ä", Color.RED)], "first": Color.RED, "last": deque([1])}
    assert raw_of(value) == Raw(
        b'{"rows":[{"name":"\xc3\xa4","color":"red"}],"first":"red","last":[1]}',
        "application/json",
        '{"rows":[{"name":"ä","color":"red"}],"first":"red","last":[1]}',
    )
    assert size(value) == (63, True)
    assert raw_of({"at": Folder("/a")}).text == '{"at":"/a"}'


class Folder(PurePosixPath):
    """A path of a class of its own, which has slots and a text."""
