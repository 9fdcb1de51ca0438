"""What every store does: cases that pytest runs, and children in environments that have no pytest."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from agent_otel.remedies.claim_check import envelope
from agent_otel.remedies.claim_check.stores import NotFoundError
from agent_otel.remedies.claim_check.stores.base import group_of
from tests.patience import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.remedies.claim_check.stores import ClaimStore

#: Ids that lead elsewhere where somebody takes them for a path, a pattern or a command.
HOSTILE = (
    *(
        "",
        ".",
        "..",
        "...",
        "/",
        "a/b",
        "../../etc/passwd",
        "..\\..\\x",
        "C:\\x",
        "a//b",
        "~",
        "=",
        "%2E%2E",
        "%",
        "%00",
    ),
    *("\0", "\n", "*", "a::b", "a||b", "{a}", "ä", "\u4e2d", "\ud800", "CON", "a" * 5000, "A", "a", "a.", ".a", " a "),
)


class Store:
    """A store as a case calls it: values expire after a minute unless the case gives another TTL."""

    def __init__(self, store: ClaimStore) -> None:
        self._store = store
        self.get, self.get_range, self.delete = store.get, store.get_range, store.delete
        self.delete_group = store.delete_group

    def put(self, key: str, data: bytes, ttl: float = 60) -> None:
        """Store."""
        self._store.put(key, data, ttl)


def what_is_stored_comes_back(store: Store) -> None:
    for data in (b"", b"\0", bytes(range(256)), b"x" * 1024 * 1024):
        store.put("a", data)
        assert data == store.get("a")


def what_is_not_there_is_said_to_be_missing(store: Store) -> None:
    for ask in (store.get, lambda key: store.get_range(key, 0, 1)):
        assert is_missing(ask, "never")
    store.delete("never")


def a_part_is_as_python_slices(store: Store) -> None:
    store.put("a", b"0123456789")
    for start, end in (
        (0, 10),
        (0, 1),
        (9, 10),
        (3, 7),
        (0, 100),
        (9, 11),
        (5, 5),
        (7, 3),
        (10, 11),
        (10, 10),
        (99, 100),
    ):
        assert b"0123456789"[start:end] == store.get_range("a", start, end), (start, end)
    store.put("a", b"")
    assert b"" == store.get_range("a", 0, 1)


def a_second_write_replaces_the_first(store: Store) -> None:
    store.put("a", b"first, and longer", 0.05)
    store.put("a", b"second", 60)
    time.sleep(0.1)

    assert b"second" == store.get("a")


def what_has_expired_is_missing(store: Store) -> None:
    store.put("short", b"x", 0.05)
    store.put("long", b"x", 60)
    deadline = Deadline(10)
    while not is_missing(store.get, "short"):
        assert not deadline.has_passed()
        time.sleep(0.02)

    assert is_missing(lambda key: store.get_range(key, 0, 1), "short")
    assert b"x" == store.get("long")


def what_is_deleted_is_missing(store: Store) -> None:
    store.put("a", b"a")
    store.put("b", b"b")
    store.delete("a")

    assert is_missing(store.get, "a")
    assert b"b" == store.get("b")


def hostile_ids_are_kept_apart(store: Store) -> None:
    keys = [envelope.key(first, "n", "c") for first in HOSTILE] + [envelope.key("e", "n", last) for last in HOSTILE]
    for key in keys:
        store.put(key, key.encode())

    assert 2 * len(HOSTILE) == len(set(keys))
    assert [key.encode() for key in keys] == [store.get(key) for key in keys]


def what_a_group_has_stored_is_forgotten(store: Store) -> None:
    """Ids that begin alike, and ids that are patterns, take nothing of another execution with them."""
    executions = [*dict.fromkeys(("run", "run-2", "run/2", "ru", "r*", "r?n", "[r]un", "run\\", *HOSTILE))]
    keys = {execution: [envelope.key(execution, node, "c") for node in ("n", "n/2", "..")] for execution in executions}
    for each in keys.values():
        store.delete_group(group_of(each[0]))
        for key in each:
            store.put(key, b"x")
            store.put(key, b"again")

    for execution in executions:
        mine = keys.pop(execution)
        assert 3 == store.delete_group(group_of(mine[0])), execution
        assert 0 == store.delete_group(group_of(mine[0])), execution
        assert all(is_missing(store.get, key) for key in mine), execution
        if len(keys) in {0, 1, 20, 40}:
            assert {b"again"} >= {store.get(key) for each in keys.values() for key in each}, execution


CASES: tuple[Callable[[Store], None], ...] = (
    what_is_stored_comes_back,
    what_is_not_there_is_said_to_be_missing,
    a_part_is_as_python_slices,
    a_second_write_replaces_the_first,
    what_has_expired_is_missing,
    what_is_deleted_is_missing,
    hostile_ids_are_kept_apart,
    what_a_group_has_stored_is_forgotten,
)


def two_writers_of_one_key(store: ClaimStore) -> None:
    """Two threads write different values, and whoever reads gets one of them, whole."""
    values = [bytes([number]) * (200_000 + number) for number in (1, 2)]
    store.put("a", values[0], 60)

    def write(value: bytes) -> None:
        for _ in range(20):
            store.put("a", value, 60)

    writers = [threading.Thread(target=write, args=(value,)) for value in values]
    for thread in writers:
        thread.start()
    seen = [store.get("a")]
    while any(thread.is_alive() for thread in writers):
        seen.append(store.get("a"))
    seen.append(store.get("a"))

    assert [] == [len(value) for value in seen if value not in values]


def is_missing(ask: Callable[[str], object], key: str) -> bool:
    """Whether a store says that there is no such key."""
    with contextlib.suppress(NotFoundError):
        ask(key)
        return False
    return True
