"""durabletask's payload store on our store: an orchestration on its in-memory backend, and a store that fails."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.runtimes.steps import produce
from tests.environments import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

SIZE = 5_000_000
"""More than the 4 MiB of a message."""

PROGRAM = "tests.unit.remedies.claim_check.durabletask_store_program"


def given(size: int) -> str:
    """The orchestration's input, as durabletask serialises it."""
    return json.dumps({"activity": "produce", "n": size, "more": "m" * 300_000})


@pytest.fixture(params=["durabletask", "durabletask-1.5"])
def child(request: pytest.FixtureRequest, environment: Callable[[str], Environment]) -> Callable[[str, int], Any]:
    """Return a function that runs the program in a process of its own."""
    made = environment(request.param)

    def run(store: str, size: int) -> Any:
        done = made.run(f"from {PROGRAM} import main; main()", store, str(size), cwd=ROOT, check=True)
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    return run


def test_what_no_message_takes_goes_through_the_store(child: Callable[[str, int], Any], tmp_path: Path) -> None:
    said, log = child(tmp_path.as_uri(), SIZE)
    assert said["said"] == str(SIZE)
    digest = hashlib.sha256(given(SIZE).encode()).hexdigest()
    assert said["input"] == digest
    # Of the input too only a reference is in the message, and both halves exchange it.
    assert said["raw_input"].startswith("claim:v2:tool-result/")
    assert said["later"] == [digest, digest]
    sizes = sorted(path.stat().st_size for path in tmp_path.glob("*/??/*"))
    assert len(sizes) == 2
    for size, data in zip(sizes, (given(SIZE), json.dumps(produce(SIZE))), strict=True):
        assert len(data) < size < len(data) + 10_000
    assert "Failed to deliver" not in log


def test_while_the_store_fails_payloads_stay_where_they_are(child: Callable[[str, int], Any], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said, log = child((tmp_path / "file").as_uri(), 1_000_000)
    assert said["said"] == "1000000"
    assert said["raw_input"] == given(1_000_000)[:300]
    assert log.count("Large payloads stay in durabletask's messages: a payload could not be stored: files: ") == 1


MEASURED = f"""
import prometheus_client
from {PROGRAM} import main

main()
from agent_otel._internal import errors
print(dict(errors.errors))
print(prometheus_client.generate_latest().decode())
"""


def test_a_process_that_is_measured_counts_what_went_through(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    env = {"AGENT_OTEL": "1", "OTEL_TRACES_EXPORTER": "none"}
    done = environment("durabletask").run(MEASURED, tmp_path.as_uri(), str(SIZE), cwd=ROOT, env=env, check=True)
    _, errors, *lines = done.stdout.splitlines()
    assert errors == "{}"
    samples = dict(line.rsplit(" ", 1) for line in lines if line.startswith("agent_otel_claim_check_"))
    # The result and the input.
    assert float(samples['agent_otel_claim_check_operations_total{operation="put",result="ok"}']) == 2
    written = float(samples['agent_otel_claim_check_io_bytes_total{operation="put"}'])
    assert written == len(given(SIZE)) + len(json.dumps(produce(SIZE)))


def test_it_wants_a_key(environment: Callable[[str], Environment]) -> None:
    code = "from agent_otel.remedies.claim_check.payload_store import *; durabletask_payload_store('memory:')"
    done = environment("durabletask").run(code)
    assert done.stderr.splitlines()[-1].startswith("ValueError: no key is given")


def test_sizes_are_those_of_the_sdk_unless_they_are_given(environment: Callable[[str], Environment]) -> None:
    code = """
        from agent_otel.remedies.claim_check.payload_store import durabletask_payload_store
        from durabletask.payload import LargePayloadStorageOptions as Options

        store = durabletask_payload_store("memory:", key="the secret of this test")
        options, theirs = store.options, Options()
        print(options.threshold_bytes == theirs.threshold_bytes)
        print(options.max_stored_payload_bytes == theirs.max_stored_payload_bytes)
        options = durabletask_payload_store("memory:", key="k" * 16, threshold_bytes=1000, max_bytes=2000).options
        print(options.threshold_bytes, options.max_stored_payload_bytes)
    """
    done = environment("durabletask").run(code, check=True)
    assert done.stdout.split() == ["True", "True", "1000", "2000"]
