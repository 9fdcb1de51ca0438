"""Who reads a stored result: its owner, and whoever else asks learns nothing, not even whether there is one."""

from __future__ import annotations

import asyncio
import base64
import functools
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent_otel
from agent_otel._internal.daemon_pool import Workers, run_now
from agent_otel.core import execution_context
from agent_otel.remedies.claim_check.envelope import Claims, Origin, current_owner
from agent_otel.remedies.claim_check.reader import ClaimReader, Place, Resolved
from agent_otel.remedies.claim_check.stores import NotFoundError, StoreError
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.remedies.claim_check.writer import ClaimWriter, Stored
from tests.rows import each_row
from tests.unit.remedies.claim_check.hostile_stores import Failing, Hanging, Lying

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.remedies.claim_check.stores import ClaimStore

ENCRYPTION_KEY = base64.b64encode(b"k" * 32).decode()
RESULT = "".join(f"{number:06}\n" for number in range(40_000))  # 280,000 bytes: five chunks
PLACE = Place("run-1", "agent", "call_0")


class Desk:
    """A store with a writer and a reader, and what they report."""

    def __init__(self, store: ClaimStore | None = None, *, key: str = "secret", encryption_key: str = "") -> None:
        self.store = store or MemoryStore()
        self.reports: list[tuple[str, str, int]] = []
        self.claims = Claims(self.store, key=key, encryption_key=encryption_key, report=self._report)
        self.reader = ClaimReader(self.claims)

    def put(self, data: bytes | str = RESULT, *, owner: str = "run-1", ttl: float = 60, place: Place = PLACE) -> str:
        """Store, and return the reference."""
        writer = ClaimWriter(self.claims, budget=60, ttl=ttl)
        outcome = writer.put(data, Origin(owner, place.execution, place.node, "search", place.call))
        assert isinstance(outcome, Stored)
        self.reports.clear()
        return str(outcome.reference)

    def _report(self, operation: str, result: str, size: int, _: float) -> None:
        self.reports.append((operation, result, size))


class Asking:
    """A reader, asked in one of its two ways."""

    def __init__(self, reader: ClaimReader, way: str) -> None:
        self._reader = reader
        self._way = way

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if self._way == "blocking":
            asked = getattr(self._reader, f"a{name}")
            return lambda *args, **named: run_now(asked(*args, **named, blocks=True))
        return lambda *args, **named: asyncio.run(getattr(self._reader, f"a{name}")(*args, **named))


ways = pytest.mark.parametrize("way", ["blocking", "asynchronous"])
encryptions = pytest.mark.parametrize("encryption_key", ["", ENCRYPTION_KEY], ids=["plain", "encrypted"])


@ways
@encryptions
def test_the_owner_reads(way: str, encryption_key: str) -> None:
    desk = Desk(encryption_key=encryption_key)
    reference = desk.put()
    asking = Asking(desk.reader, way)

    for what in (reference, f" {reference}\n", PLACE):
        assert RESULT == asking.resolve(what, caller="run-1").text
        assert RESULT[70_000:70_007] == asking.resolve(what, caller="run-1", start=70_000, end=70_007).text
        assert 280_000 == asking.head(what, caller="run-1").bytes

    assert [("get", "ok", 280_000), ("range", "ok", 7), ("head", "ok", 0)] * 3 == desk.reports


@encryptions
@settings(deadline=None)
@given(start=st.none() | st.integers(-5, 280_005), end=st.none() | st.integers(-5, 280_005))
def test_a_part_is_that_part(encryption_key: str, start: int | None, end: int | None) -> None:
    desk = _stored(encryption_key)

    read = desk.reader.resolve(PLACE, caller="run-1", start=start, end=end)

    assert RESULT[max(start or 0, 0) : 280_000 if end is None else max(end, 0)] == read.data.decode()


@functools.cache
def _stored(encryption_key: str) -> Desk:
    """A desk with a result, made when it is first asked for: what was stored while tests are collected expires."""
    desk = Desk(encryption_key=encryption_key)
    desk.put()
    return desk


@pytest.mark.parametrize(
    ("encryption_key", "read"),
    [
        ("", [1024, 153 * 32, 65_536]),  # the header, the digests of 153 chunks, and one chunk
        (ENCRYPTION_KEY, [1024, 65_536 + 16]),  # a chunk with its tag, which alone is decrypted
    ],
    ids=["plain", "encrypted"],
)
def test_a_part_of_a_large_result_is_read_alone(encryption_key: str, read: list[int]) -> None:
    desk = Desk(_Counting(), encryption_key=encryption_key)
    desk.put(b"x" * 10_000_000)
    assert isinstance(desk.store, _Counting)

    assert b"x" * 10 == desk.reader.resolve(PLACE, caller="run-1", start=5_000_000, end=5_000_010).data

    assert read == desk.store.read


class _Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []

    def get_range(self, key: str, start: int, end: int) -> bytes:
        part = super().get_range(key, start, end)
        self.read.append(len(part))
        return part


def test_a_part_that_cuts_a_character_is_still_text() -> None:
    desk = Desk()
    desk.put("äöü")

    assert "\ufffdö" == desk.reader.resolve(PLACE, caller="run-1", start=1, end=4).text


def test_another_kind_of_event_loop_is_served_as_well() -> None:
    reading = _stored("").reader.aresolve(PLACE, caller="run-1")

    with pytest.raises(StopIteration) as stopped:
        reading.send(None)

    assert RESULT == stopped.value.value.text


# --- denied looks like not found -----------------------------------------------------------------------------------


def _forged(desk: Desk) -> str:
    return desk.put()[:-1] + "x"


def _changed(desk: Desk) -> str:
    reference = desk.put()
    return reference[:-1] + ("0" if reference[-1] != "0" else "1")


def _of_another_deployment(desk: Desk) -> str:
    desk.put()
    return Desk(key="another").put()


def _moved(desk: Desk) -> str:
    desk.put(place=PLACE._replace(call="call_1"))
    return desk.put().replace("call_0", "call_1")


def _replaced(desk: Desk) -> str:
    old = desk.put("old")
    desk.put("new")
    return old


def _expired(desk: Desk) -> str:
    reference = desk.put(ttl=0.02)
    time.sleep(0.05)
    return reference


def _deleted(desk: Desk) -> str:
    reference = desk.put()
    desk.reader.delete(reference, caller="run-1")
    desk.reports.clear()
    return reference


def _lost(desk: Desk) -> str:
    reference = desk.put()
    desk.store.delete("tool-result/=/run-1/agent/call_0")
    return reference


class _Keeping(MemoryStore):
    """Lets nothing end."""

    def put(self, key: str, data: bytes, ttl: float) -> None:
        super().put(key, data, ttl + 60)


DENIALS: list[tuple[Callable[[Desk], str], str]] = [
    (_forged, "denied"),
    (_changed, "denied"),
    (_of_another_deployment, "denied"),
    (_moved, "denied"),
    (lambda desk: desk.put()[:-10], "denied"),
    (lambda _: "", "denied"),
    (lambda _: "claim:v2:../../etc/passwd:1:2:3", "denied"),
    (_replaced, "corrupt"),
    (_expired, "expired"),
    (_deleted, "not_found"),
    (_lost, "not_found"),
]


@ways
@each_row(("make", "result"), DENIALS)
def test_whoever_may_not_read_learns_nothing(way: str, make: Callable[[Desk], str], result: str) -> None:
    desk = Desk(_Keeping())
    reference = make(desk)
    asking = Asking(desk.reader, way)

    errors = [
        _error(lambda: asking.resolve(reference, caller="run-1")),
        _error(lambda: asking.resolve(reference, caller="run-1", start=0, end=1)),
        _error(lambda: asking.head(reference, caller="run-1")),
        _error(lambda: asking.delete(reference, caller="run-1")),
    ]

    assert [(NotFoundError, ("there is no such result",), None, None)] * 4 == errors
    assert [(operation, result, 0) for operation in ("get", "range", "head", "delete")] == desk.reports


def _error(ask: Callable[[], object]) -> tuple[type, tuple[object, ...], object, object]:
    with pytest.raises(StoreError) as raised:
        ask()
    error = raised.value
    return type(error), error.args, error.__cause__, error.__context__


@each_row("caller", ["run-2", "RUN-1", "run-1/", "", None, 1, True, b"run-1"])
@each_row("by", ["reference", "place"])
@pytest.mark.shows("000.authorised")
def test_a_result_is_its_owners_alone(caller: Any, by: str) -> None:
    desk = Desk()
    reference = desk.put()

    error = _error(lambda: desk.reader.resolve(reference if by == "reference" else PLACE, caller=caller))

    assert (NotFoundError, ("there is no such result",), None, None) == error
    assert [("get", "denied", 0)] == desk.reports


def test_nothing_is_asked_of_the_store_for_a_reference_that_was_not_given_out() -> None:
    desk = Desk(Failing(AssertionError("it was asked")))

    error = _error(lambda: desk.reader.resolve(Desk(key="another").put(), caller="run-1"))

    assert NotFoundError is error[0]


# --- who is asking -------------------------------------------------------------------------------------------------


def test_the_caller_is_the_execution_that_the_call_is_made_in() -> None:
    desk = Desk()
    reference = desk.put()

    with agent_otel.execution("run-1"):
        assert RESULT == desk.reader.resolve(reference).text
        assert RESULT == asyncio.run(desk.reader.aresolve(reference)).text
    with agent_otel.execution("run-2"), pytest.raises(NotFoundError):
        desk.reader.resolve(reference)
    with pytest.raises(NotFoundError):
        desk.reader.resolve(reference)


def test_an_owner_is_the_named_execution_else_the_runtimes_run() -> None:
    assert current_owner() is None
    token = execution_context.runtime.set(execution_context.Carrier("workflow-1"))
    try:
        assert "workflow-1" == current_owner()
        with agent_otel.execution("ticket-4711"):
            assert "ticket-4711" == current_owner()
    finally:
        execution_context.runtime.reset(token)


# --- bad stores ----------------------------------------------------------------------------------------------------

LIES: dict[str, Callable[[Lying, str, bytes], bytes]] = {
    "another result": lambda store, _, __: store.really("tool-result/=/run-2/agent/call_0"),
    "nothing": lambda *_: b"",
    "less": lambda _, __, stored: stored[:-1],
    "zeros": lambda _, __, stored: stored[:1024] + b"\0" * (len(stored) - 1024),
    "one byte": lambda _, __, stored: stored[:1500] + bytes([stored[1500] ^ 1]) + stored[1501:],  # never the same one
    "another owner": lambda _, __, stored: stored.replace(b'"owner":"run-1"', b'"owner":"run-2"'),
    "another encoding": lambda _, __, stored: stored.replace(b'"encoding":"utf-8"', b'"encoding":"utf-7"'),
}


@ways
@encryptions
@each_row("lie", LIES)
def test_a_store_that_lies_is_found_out(way: str, encryption_key: str, lie: str) -> None:
    store = Lying(LIES[lie])
    desk = Desk(store, encryption_key=encryption_key)
    desk.put("another's secret" * 1_000, owner="run-2", place=PLACE._replace(execution="run-2"))
    reference = desk.put()
    store.honest = False
    asking = Asking(desk.reader, way)

    for what in (reference, PLACE):
        assert NotFoundError is _error(functools.partial(asking.resolve, what, caller="run-1"))[0]
        # A part is read alone: only at the end is it seen that the end is missing.
        at = 279_000 if lie == "less" else 0
        part = functools.partial(asking.resolve, what, caller="run-1", start=at, end=at + 1_000)
        assert NotFoundError is _error(part)[0]

    assert {"corrupt"} == {result for _, result, _ in desk.reports}


def test_a_part_is_no_worse_for_what_is_wrong_with_the_rest() -> None:
    store = Lying(lambda _, __, stored: stored[:100_000] + b"x" + stored[100_001:] + b"more")
    desk = Desk(store)
    reference = desk.put()
    store.honest = False

    assert RESULT[:60_000] == desk.reader.resolve(reference, caller="run-1", start=0, end=60_000).text
    for start, end in ((90_000, 90_001), (0, 70_000), (None, None)):
        with pytest.raises(NotFoundError):
            desk.reader.resolve(reference, caller="run-1", start=start, end=end)


@ways
def test_a_store_that_fails_is_an_error_that_says_so(way: str) -> None:
    store = Failing(None)
    desk = Desk(store)
    reference = desk.put()
    store.error = OSError("disk on fire")

    with pytest.raises(StoreError, match=r"^the result could not be read$") as raised:
        Asking(desk.reader, way).resolve(reference, caller="run-1")

    assert store.error is raised.value.__cause__
    assert not isinstance(raised.value, NotFoundError)
    assert [("get", "error", 0)] == desk.reports


@ways
def test_a_store_that_hangs_is_given_up(way: str) -> None:
    store = Hanging()
    store.go.set()
    desk = Desk(store)
    reference = desk.put()
    store.go.clear()
    reader = ClaimReader(desk.claims, timeout=0.02, workers=Workers("test", 1))

    with pytest.raises(StoreError, match=r"^the store did not answer within 0.02 s$"):
        Asking(reader, way).resolve(reference, caller="run-1")

    store.go.set()
    assert [("get", "timeout", 0)] == desk.reports
    assert isinstance(ClaimReader(desk.claims).resolve(reference, caller="run-1"), Resolved)


@settings(deadline=None)
@given(st.text() | st.binary() | st.integers() | st.none())
def test_any_nonsense_is_not_found(what: Any) -> None:
    with pytest.raises(NotFoundError):
        _stored("").reader.resolve(what, caller="run-1")


@each_row("owner", ["t" * 129, "t" * 1_000_000, "\u00e4" * 200, "t" * 101])
def test_an_owner_with_a_long_id_reads(owner: str) -> None:
    """The id is a digest by the time that it is kept; the caller's server knows the long one."""
    desk = Desk()
    place = Place(owner, "agent", "call_0")
    reference = desk.put(
        owner=execution_context.short(owner), place=place._replace(execution=execution_context.short(owner))
    )

    for what in (reference, place):
        assert RESULT == desk.reader.resolve(what, caller=owner).text
        assert NotFoundError is _error(functools.partial(desk.reader.resolve, what, caller=f"{owner}."))[0]
    with agent_otel.execution(owner):
        assert RESULT == desk.reader.resolve(reference).text
