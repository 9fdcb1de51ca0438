"""Temporal's external storage with our store: on a real server, in a file store, read by another process."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel import remedies
from agent_otel._internal import errors
from agent_otel.remedies.claim_check.envelope import Claims
from agent_otel.remedies.claim_check.payload_store import Payloads, open_payloads
from agent_otel.remedies.claim_check.stores import NotFoundError, StoreError
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from tests.environments import ROOT
from tests.system.engines import starting, temporal
from tests.unit.remedies.claim_check.hostile_stores import Failing, Hanging, Lying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_otel.remedies.claim_check.stores import ClaimStore
    from tests.environments import Environment

SIZE = 5 * 1024 * 1024
DIGEST = hashlib.sha256(b"ab" * (SIZE // 2)).hexdigest()
PROGRAM = "tests.unit.remedies.claim_check.temporal_driver_program"
KEY = "the secret of this test"
OTHER = "the secret of another one"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server."""
    with starting.or_skip(temporal.server()) as server:
        yield server.address


@pytest.fixture(params=["temporal", "temporal-1.28"])
def child(
    request: pytest.FixtureRequest, environment: Callable[[str], Environment], address: str, tmp_path: Path
) -> Callable[..., Any]:
    """Return a function that runs the program in a process of its own."""
    made = environment(request.param)

    def run(mode: str, *, key: str = KEY, store: str = (tmp_path / "claims").as_uri()) -> Any:
        arguments = (mode, address, store, key, str(tmp_path / "history"))
        done = made.run(f"from {PROGRAM} import main; main()", *arguments, cwd=ROOT, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    return run


def stored(folder: Path) -> list[Path]:
    """The files with payloads in them."""
    return [path for path in folder.glob("claims/*/??/*") if path.is_file()]


@pytest.mark.shows("000.payload_codec")
def test_a_large_result_goes_out_and_comes_back(child: Callable[..., Any], tmp_path: Path) -> None:
    said = child("run")
    assert said["said"] == DIGEST
    # It is in the history twice, as a result and as an input, and in the store once.
    assert said["history_bytes"] < 10_000
    (file,) = stored(tmp_path)
    assert SIZE < file.stat().st_size < SIZE + 10_000


def test_payloads_are_forgotten_with_their_run(
    child: Callable[..., Any], tmp_path: Path, set_variables: Callable[..., None]
) -> None:
    said = child("run")
    set_variables(AGENT_OTEL_CLAIM_CHECK=(tmp_path / "claims").as_uri(), AGENT_OTEL_CLAIM_CHECK_KEY=KEY)

    assert remedies.forget("another run") == 0
    assert len(stored(tmp_path)) == 1
    assert remedies.forget(said["run_id"]) == 1
    assert stored(tmp_path) == []
    assert "is not in the store" in child("replay")["failure"]


@pytest.mark.shows("000.replay")
def test_another_process_replays_the_history(child: Callable[..., Any], tmp_path: Path) -> None:
    child("run")
    (file,) = stored(tmp_path)
    assert child("replay") == {"failure": None}
    assert "AGENT_OTEL_CLAIM_CHECK_KEY was another one" in child("replay", key=OTHER)["failure"]
    assert child("replay", key=f"{OTHER},{KEY}") == {"failure": None}
    whole = file.read_bytes()
    file.write_bytes(whole[:-50_000] + bytes([whole[-50_000] ^ 1]) + whole[-49_999:])
    assert "is not in the store" in child("replay")["failure"]
    file.unlink()
    assert "it was kept for 2.592e+06 s" in child("replay")["failure"]


def test_where_the_store_fails_the_activity_fails(child: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = child("run", store=(tmp_path / "file").as_uri())
    assert "a payload could not be stored: files: " in said["error"]


def test_an_sdk_without_external_storage_says_so(environment: Callable[[str], Environment]) -> None:
    code = (
        "from agent_otel.remedies.claim_check.payload_store import *; temporal_storage_driver('memory:', key='k' * 16)"
    )
    done = environment("temporal-1.20").run(code)
    assert done.stderr.splitlines()[-1] == "ImportError: temporalio has external storage from version 1.24 on"


# --- what drivers have in common ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _said_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_said", set())


def payloads(store: ClaimStore, reports: list[Any] | None = None, *, key: str = KEY, timeout: float = 60) -> Payloads:
    """Payloads in a store that may be hostile."""

    def report(operation: str, result: str, size: int, _: float) -> None:
        (reports if reports is not None else []).append((operation, result, size))

    return Payloads(Claims(store, key=key, report=report), keep_seconds=60, timeout=timeout)


DATA = bytes(range(256)) * 1000


class Gated(MemoryStore):
    """Answers when the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Wait, and store."""
        self.gate.wait(60)
        super().put(key, data, ttl)

    def get(self, key: str) -> bytes:
        """Wait, and read."""
        self.gate.wait(60)
        return super().get(key)


def test_a_thousand_payloads_at_once_are_stored_and_read() -> None:
    store = Gated()
    kept = payloads(store)
    data = [str(number).encode() for number in range(1_000)]

    async def all_of(tasks: list[Any]) -> list[Any]:
        waiting = asyncio.gather(*tasks)
        asyncio.get_running_loop().call_soon(store.gate.set)  # when all have begun
        return await waiting

    references = asyncio.run(all_of([kept.aput(each, "run", "node") for each in data]))
    store.gate.clear()
    assert asyncio.run(all_of([kept.aget(str(reference)) for reference in references])) == data


def test_both_halves_read_what_either_has_written() -> None:
    reports: list[Any] = []
    both = payloads(MemoryStore(), reports)
    reference = str(both.put(DATA, "run", "node"))
    assert str(asyncio.run(both.aput(DATA, "run", "node"))) == reference  # a task that runs again
    assert both.get(reference) == asyncio.run(both.aget(reference)) == DATA
    assert reports == [("put", "ok", 256_000)] * 2 + [("get", "ok", 256_000)] * 2


def test_only_a_reference_of_this_key_is_known() -> None:
    mine = payloads(MemoryStore())
    reference = str(mine.put(DATA, "run", "node"))
    other = payloads(MemoryStore(), key=OTHER)
    assert mine.knows(reference)
    assert not other.knows(reference)
    changed = f"{reference[:-1]}{'0' if reference[-1] != '0' else '1'}"
    for text in (changed, reference[:-1], f'"{reference}"', "claim:v2:", "", "x" * 100_000):
        assert not mine.knows(text)
    with pytest.raises(NotFoundError, match="KEY was another one"):
        other.get(reference)


def test_what_the_store_makes_of_it_is_found_out() -> None:
    store = Lying(lambda _, __, whole: whole[:-1] + bytes([whole[-1] ^ 1]))
    lied_to = payloads(store)
    reference = str(lied_to.put(DATA, "run", "node"))
    assert lied_to.get(reference) == DATA
    store.honest = False
    with pytest.raises(NotFoundError):
        lied_to.get(reference)


@pytest.mark.parametrize("error", [StoreError("down"), OSError("full"), TimeoutError("theirs")])
def test_a_store_that_fails_is_an_error_in_both_halves(error: Exception) -> None:
    reports: list[Any] = []
    failing = payloads(Failing(error), reports)
    with pytest.raises(StoreError, match="a payload could not be stored"):
        failing.put(DATA, "run", "node")
    with pytest.raises(StoreError, match="a payload could not be stored"):
        asyncio.run(failing.aput(DATA, "run", "node"))
    assert reports == [("put", "error", 0)] * 2


def test_a_store_that_hangs_is_waited_for_so_long() -> None:
    reports: list[Any] = []
    store = Hanging()
    hanging = payloads(store, reports, timeout=0.05)
    try:
        with pytest.raises(StoreError, match=r"no answer within 0\.05 s"):
            hanging.put(DATA, "run", "node")
        with pytest.raises(StoreError, match=r"no answer within 0\.05 s"):
            asyncio.run(hanging.aput(DATA, "run", "node"))
    finally:
        store.go.set()
    assert reports == [("put", "timeout", 0)] * 2


def test_a_store_of_the_program_s_own_will_do() -> None:
    store = MemoryStore()
    reference = str(open_payloads(store, KEY, 60, 60).put(DATA, "run", "node"))
    assert open_payloads(store, KEY, 60, 60).get(reference) == DATA


def test_neither_store_nor_key_is_guessed() -> None:
    with pytest.raises(ValueError, match="no store is named"):
        open_payloads(None, KEY, 1, 1)
    with pytest.raises(ValueError, match="no key is given"):
        open_payloads("memory:", None, 1, 1)
    for key in ("k", "k" * 15, f"{KEY},k"):
        with pytest.raises(ValueError, match=r"^the key is not a key of at least 16 bytes, as `openssl rand"):
            open_payloads("memory:", key, 1, 1)
    with pytest.raises(StoreError, match="not the URL of a store"):
        open_payloads("ftp://somewhere", KEY, 1, 1)
    for keep_seconds, timeout in ((0, 1), (1, 0), (float("nan"), 1)):
        with pytest.raises(ValueError, match="above 0"):
            open_payloads("memory:", KEY, keep_seconds, timeout)
