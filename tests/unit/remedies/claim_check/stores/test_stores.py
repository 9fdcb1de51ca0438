"""Each store does what the contract says, in both halves, against a real server where it needs one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from key_value.aio.stores.memory import MemoryStore as AnyMemoryStore

from agent_otel._internal import errors
from agent_otel.remedies.claim_check import envelope
from agent_otel.remedies.claim_check.stores import StoreError, TooLargeError, open_store
from agent_otel.remedies.claim_check.stores.base import MemoryStore, added, group_of
from agent_otel.remedies.claim_check.stores.key_value import KeyValueStore
from tests.environments import ROOT
from tests.rows import each_row
from tests.system.engines import redis, s3, starting
from tests.unit.remedies.claim_check.stores import contract
from tests.unit.remedies.claim_check.stores.contract import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.remedies.claim_check.stores import ClaimStore
    from tests.environments import Environment

STORES = ("memory", "files", "redis", "objects", "key_value")


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    """A Redis that is well."""
    with starting.or_skip(redis.server()) as url:
        yield url


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """The variables that lead to a bucket."""
    with s3.server() as environ:
        yield environ


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClaimStore]:
    """The store of this name."""
    with contextlib.ExitStack() as stack:
        match request.param:
            case "memory":
                yield open_store("memory:")
            case "files":
                yield open_store((tmp_path / "made when used").as_uri())
            case "redis":
                opened = open_store(request.getfixturevalue("redis_url"), timeout=60)
                stack.callback(opened._client.close)  # type: ignore[attr-defined]  # no part of the protocol
                yield opened
            case "objects":
                for name, value in request.getfixturevalue("bucket").items():
                    monkeypatch.setenv(name, value)
                yield open_store(f"s3://results/{tmp_path.name}", timeout=60)
            case "key_value":
                yield KeyValueStore(AnyMemoryStore())


@pytest.mark.parametrize("store", STORES, indirect=True)
@pytest.mark.parametrize("case", contract.CASES, ids=lambda case: case.__name__)
def test_contract(store: ClaimStore, case: Callable[[Store], None]) -> None:
    case(Store(store))


# moto's server fails by itself when two write one key.
@pytest.mark.parametrize("store", [name for name in STORES if name != "objects"], indirect=True)
def test_two_writers_of_one_key(store: ClaimStore) -> None:
    contract.two_writers_of_one_key(store)


EXPIRY_OF_DAPR = (
    "The claim check's store dapr://statestore keeps expired results, unreadable: a component of type state.etcd does "
    "not remove them."
)


@pytest.mark.parametrize("name", ["dapr-1.18", "dapr-1.19"])
def test_contract_of_dapr(environment: Callable[[str], Environment], name: str) -> None:
    program = Path(__file__).with_name("dapr_store_program.py")

    said = environment(name).run(program, env={"PYTHONPATH": str(ROOT)}, timeout=110, check=True).stdout.splitlines()

    cases = [case.__name__ for case in contract.CASES]
    assert [
        EXPIRY_OF_DAPR,
        *cases,
        "{'ttlInSeconds': '86400'}",
        "1",
        "1 []",
        "dapr: 5242880 bytes are more than the sidecar takes",
    ] == said


# --- bad input and bad days ----------------------------------------------------------------------------------------


@each_row(
    ("url", "said"),
    [
        ("", "not the URL of a store; known are memory:, file:, redis:, rediss:, unix:, s3:, gs:, az:, dapr:"),
        ("secret", "not the URL of a store; known are memory:, file:, redis:, rediss:, unix:, s3:, gs:, az:, dapr:"),
        (
            "ftp://user:secret@h/",
            "not the URL of a store; known are memory:, file:, redis:, rediss:, unix:, s3:, gs:, az:",
        ),
        ("http://[secret", "not the URL of a store"),
        ("file:", "file: wants the absolute path of a folder, as in file:///var/lib/agent/results"),
        ("file://secret/x", "file: wants the absolute path of a folder, as in file:///var/lib/agent/results"),
        ("redis://user:se/cret@h:6379/0", "redis: not the URL of a database, as in redis://host:6379/0"),
        ("redis://h:secret/0", "redis: not the URL of a database, as in redis://host:6379/0"),
        ("s3://", "objects: GenericError"),
        ("dapr://", "dapr: wants the name of a state store component, as in dapr://statestore"),
        (
            "dapr://statestore",
            "dapr.clients cannot be imported; pip install 'dapr>=1.18'",
        ),
    ],
)
def test_a_url_that_names_no_store(url: str, said: str) -> None:
    with pytest.raises(StoreError) as raised:
        open_store(url)

    assert said == str(raised.value)[: len(said)]
    assert "secret" not in str(raised.value)
    assert "cret@" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "package"),
    [("redis://127.0.0.1:6379/0", "redis>=5"), ("s3://b", "obstore>=0.6"), ("dapr://b", "dapr>=1.18")],
)
def test_a_missing_library_is_named_with_what_installs_it(
    environment: Callable[[str], Environment], url: str, package: str
) -> None:
    code = f"""
        from agent_otel.remedies.claim_check.stores import StoreError, open_store
        try:
            open_store({url!r})
        except StoreError as error:
            print(error)
    """

    said = environment("bare").run(code, check=True).stdout

    assert f"pip install '{package}'\n" == said.partition("; ")[2]


def test_no_library_is_imported_before_its_store_is_opened(environment: Callable[[str], Environment]) -> None:
    code = """
        import sys
        from agent_otel.remedies.claim_check.stores import open_store
        open_store("memory:").put("a", b"a", 60)
        open_store("file:///nowhere")
        print(sorted({"redis", "obstore", "dapr", "key_value", "cryptography"} & {*sys.modules}))
    """

    assert "[]\n" == environment("bare").run(code, check=True).stdout


def test_memory_forgets_what_was_not_asked_for_the_longest_time() -> None:
    store = MemoryStore(max_bytes=30)
    for key in ("a", "b", "c"):
        store.put(key, key.encode() * 10, 60)
    store.get("a")

    store.put("d", b"d" * 10, 60)

    assert b"a" * 10 == store.get("a")
    assert contract.is_missing(store.get, "b")
    assert b"c" * 10 == store.get("c")
    with pytest.raises(TooLargeError, match="31 bytes are more than the 30 that this store holds"):
        store.put("e", b"e" * 31, 60)
    assert b"d" * 10 == store.get("d")


def test_a_redis_that_is_not_there_is_an_error() -> None:
    store = open_store(f"redis://127.0.0.1:{starting.free_port()}/0")

    with pytest.raises(StoreError, match=r"^redis: ConnectionError at "):
        store.put("a", b"x", 60)
    with pytest.raises(StoreError, match=r"^redis: ConnectionError at "):
        store.get("a")


def test_a_full_redis_is_an_error() -> None:
    with starting.or_skip(redis.server(maxmemory="2mb", maxmemory_policy="noeviction")) as url:
        store = open_store(url, timeout=60)
        with pytest.raises(StoreError, match=r"^redis: OutOfMemoryError"):
            _fill(store)


def _fill(store: ClaimStore) -> None:
    for number in range(10):
        store.put(str(number), b"x" * 1_000_000, 60)


def test_a_bucket_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name, value in (("ACCESS_KEY_ID", "x"), ("SECRET_ACCESS_KEY", "x"), ("REGION", "x")):
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        store = open_store("s3://results", timeout=0.01)

        with pytest.raises(StoreError, match=r"^objects: GenericError at "):
            store.get("a")


def test_objects_say_that_they_do_not_survive_a_fork(bucket: dict[str, str]) -> None:
    code = """
        import os
        from agent_otel.remedies.claim_check.stores import StoreError, open_store
        store = open_store("s3://results/fork", timeout=60)
        store.put("a", b"x", 60)
        child = os.fork()
        if child == 0:
            try:
                store.get("a")
            except StoreError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(store.get("a"))
    """.replace("\n        ", "\n")

    said = subprocess.run(
        (sys.executable, "-c", code),
        env={**os.environ, **bucket},
        capture_output=True,
        text=True,
        check=True,
    )

    assert [
        "objects: used before this process was forked; obstore does not survive that",
        "b'x'",
    ] == said.stdout.splitlines()


def test_objects_say_once_that_they_do_not_expire(
    bucket: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(errors, "_said", set())
    for name, value in bucket.items():
        monkeypatch.setenv(name, value)
    for _ in range(2):
        open_store("s3://results/agents")
    open_store("gs://results/agents", timeout=1)

    assert [
        f"The claim check's store {scheme}: keeps expired results, unreadable, until a life-cycle rule of the bucket "
        "removes them. docs/remedies/stored-results.md has the rule."
        for scheme in ("s3", "gs")
    ] == caplog.messages


def test_the_documented_rule_of_a_bucket_is_accepted_and_meets_what_is_stored(
    bucket: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    boto3 = pytest.importorskip("boto3")
    for name, value in bucket.items():
        monkeypatch.setenv(name, value)
    page = (ROOT / "docs" / "remedies" / "stored-results.md").read_text()
    rules = {rule: json.loads(rule) for rule in re.findall(r"'(\{\"rules?\".*?\})'", page, re.DOTALL | re.IGNORECASE)}
    s3_rule, gs_rule, az_rule = rules.values()
    key = envelope.key("run", "node", "call")
    client = boto3.client("s3", endpoint_url=bucket["AWS_ENDPOINT_URL"], region_name=bucket["AWS_REGION"])
    open_store("s3://results/agents", timeout=60).put(key, b"x", 60)

    client.put_bucket_lifecycle_configuration(Bucket="results", LifecycleConfiguration=s3_rule)

    (rule,) = client.get_bucket_lifecycle_configuration(Bucket="results")["Rules"]
    prefix = rule["Filter"]["Prefix"]
    assert [f"agents/{key}"] == [
        found["Key"] for found in client.list_objects_v2(Bucket="results", Prefix=prefix)["Contents"]
    ]
    assert [prefix] == gs_rule["rule"][0]["condition"]["matchesPrefix"]
    assert [f"results/{prefix}"] == az_rule["rules"][0]["definition"]["filters"]["prefixMatch"]
    client.delete_bucket_lifecycle(Bucket="results")


def test_an_index_drops_a_few_expired_keys_with_each_write() -> None:
    before = {str(number): 1.0 for number in range(10)}

    entry, ttl, expired = added(before, "key", 60)

    assert [str(number) for number in range(8)] == expired
    assert {"8", "9", "key"} == set(json.loads(entry))
    assert 59 < ttl <= 60


def test_a_group_is_forgotten_whichever_processes_have_written_to_it() -> None:
    shared = AnyMemoryStore()
    store = KeyValueStore(shared)
    keys = [envelope.key("run", "node", str(number)) for number in range(40)]
    for key in keys:  # each as if by another process
        KeyValueStore(shared).put(key, b"x", 60)

    assert 40 == store.delete_group(group_of(keys[0]))
    assert all(contract.is_missing(store.get, key) for key in keys)


@each_row("value", [{}, {"base64": 1}, {"base64": "?"}])
def test_a_value_of_another_program_is_an_error(value: dict[str, Any]) -> None:
    shared = AnyMemoryStore()
    store = KeyValueStore(shared)
    store._wait(shared.put(hashlib.sha256(b"a").hexdigest(), value, collection="tool-results"))

    with pytest.raises(StoreError, match="written by somebody else"):
        store.get("a")
