"""What has expired is gone from each store without a later write."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from agent_otel.remedies.claim_check.stores import open_store
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.remedies.claim_check.stores.services import RedisStore
from tests.environments import ROOT
from tests.patience import Deadline
from tests.system.engines import redis, starting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment


def wait_until(is_so: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for a sweep; the time is for a machine that has much else to do."""
    deadline = Deadline(seconds)
    while not is_so():
        assert not deadline.has_passed()
        time.sleep(0.05)


@pytest.mark.shows("000.retention")
def test_memory_loses_what_has_expired() -> None:
    store = MemoryStore()
    store.put("long", b"x" * 10, 600)
    store.put("short", b"x" * 1000, 1)

    wait_until(lambda: store._bytes == 10)

    assert b"x" * 10 == store.get("long")


@pytest.mark.shows("000.retention")
def test_a_folder_loses_what_has_expired(tmp_path: Path) -> None:
    store = open_store(tmp_path.as_uri())
    store.put("long", b"x", 600)
    store.put("short", b"x", 1)
    assert 2 == len(list(tmp_path.glob("*/??/*")))

    wait_until(lambda: len(list(tmp_path.glob("*/??/*"))) == 1)

    assert b"x" == store.get("long")


@pytest.mark.shows("000.retention")
def test_redis_loses_what_has_expired() -> None:
    with starting.or_skip(redis.server()) as url:
        store = open_store(url, timeout=60)
        assert isinstance(store, RedisStore)
        client = store._client
        before = time.time()
        store.put("long", b"x", 600)
        after = time.time()
        store.put("short", b"x", 1)
        assert 0 < client.pttl("short") <= 1000

        wait_until(lambda: client.dbsize() == 1)

        assert 1000 * before + 599_999 <= client.pexpiretime("long") <= 1000 * after + 600_001
        client.close()


def test_a_store_of_py_key_value_that_can_cull_is_made_to(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    code = """
        import sys, time
        from pathlib import Path
        from key_value.aio.stores.filetree import FileTreeStore
        from agent_otel.remedies.claim_check.stores.key_value import KeyValueStore

        folder = Path(sys.argv[1])
        store = KeyValueStore(FileTreeStore(data_directory=folder))
        store.put("tool-result/long/n/c", b"x" * 10_000, 600)
        store.put("tool-result/short/n/c", b"x" * 10_000, 1)
        large = lambda: len([path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 10_000])
        assert large() == 2
        until = time.monotonic() + 100
        while large() != 1:
            assert time.monotonic() < until
            time.sleep(0.05)
        print(len(store.get("tool-result/long/n/c")))
    """.replace("\n        ", "\n")

    assert "10000\n" == environment("key-value").run(code, str(tmp_path), timeout=110, check=True).stdout


SWEEPERS = "[thread.name for thread in threading.enumerate() if thread.name == 'agent_otel-sweeper']"


def test_the_first_write_starts_a_thread_in_each_process(tmp_path: Path) -> None:
    code = f"""
        import os, threading, time
        from agent_otel.remedies.claim_check.stores import open_store

        def sweepers():
            return {SWEEPERS}

        store = open_store({tmp_path.as_uri()!r})
        print(sweepers())
        for number in range(3):
            store.put("a", b"x", 600)
        open_store("memory:").put("a", b"x", 600)
        print(sweepers(), flush=True)
        if os.fork() == 0:
            print(sweepers(), flush=True)
            store.put("b", b"x", 1)
            while len(list({tmp_path!r}.glob("*/??/*"))) > 1:
                time.sleep(0.05)
            print(sweepers(), flush=True)
            os._exit(0)
        os.wait()
    """.replace("\n        ", "\n").replace("PosixPath", "__import__('pathlib').Path")

    said = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=False)

    one = "['agent_otel-sweeper']"
    assert ["[]", one, "[]", one] == said.stdout.splitlines(), said.stderr


@pytest.mark.parametrize("forks", [40])
def test_a_fork_amid_sweeps_and_writes_hangs_no_child(forks: int) -> None:
    code = f"""
        import os, threading
        from agent_otel.remedies.claim_check.stores.base import MemoryStore

        def write():
            store = MemoryStore()
            for number in range(10**9):
                store.put("a", b"x", 1 + 1 / (number + 1))

        for _ in range(4):
            threading.Thread(target=write, daemon=True).start()
        for _ in range({forks}):
            child = os.fork()
            if child == 0:
                MemoryStore().put("b", b"x", 1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        os._exit(0)
    """.replace("\n        ", "\n")

    done = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
