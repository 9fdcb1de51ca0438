"""What an execution has stored is erased from every store, and nothing else is."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from key_value.aio.stores.memory import MemoryStore as AnyMemoryStore

import agent_otel
from agent_otel import remedies
from agent_otel._internal.daemon_pool import run_now
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.envelope import Origin
from agent_otel.remedies.claim_check.payload_store import open_payloads
from agent_otel.remedies.claim_check.reader import Place
from agent_otel.remedies.claim_check.stores import NotFoundError, StoreError
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.remedies.claim_check.stores.key_value import KeyValueStore
from agent_otel.remedies.claim_check.writer import Stored
from tests.environments import ROOT
from tests.system.engines import redis, s3, starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEY = "0123456789abcdef0123456789abcdef"


class Refusing(MemoryStore):
    """Takes everything and gives nothing up."""

    def delete_group(self, group: str) -> int:
        """Refuse."""
        raise OSError(group and "read-only")


@pytest.fixture(params=["memory", "files", "redis", "objects", "key_value"])
def switched_on(
    request: pytest.FixtureRequest,
    set_variables: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[str]:
    """A claim check in each store, and its name."""
    common = {"AGENT_OTEL_CLAIM_CHECK_KEY": KEY, "AGENT_OTEL_CLAIM_CHECK_BUDGET": "60"}
    with contextlib.ExitStack() as stack:
        match request.param:
            case "memory":
                set_variables(**common, AGENT_OTEL_CLAIM_CHECK="memory:")
            case "files":
                set_variables(**common, AGENT_OTEL_CLAIM_CHECK=tmp_path.as_uri())
            case "redis":
                url = stack.enter_context(starting.or_skip(redis.server()))
                set_variables(**common, AGENT_OTEL_CLAIM_CHECK=url)
            case "objects":
                environ = stack.enter_context(s3.server())
                set_variables(**common, **environ, AGENT_OTEL_CLAIM_CHECK="s3://results/agents")
            case "key_value":
                set_variables(**common, AGENT_OTEL_CLAIM_CHECK="memory:")
                monkeypatch.setattr(policy, "_given", KeyValueStore(AnyMemoryStore()))
        yield request.param


def keep(execution: str, number: int) -> str:
    """Store a result of an execution, and return the reference to it."""
    check = policy.current()
    assert check is not None
    with agent_otel.execution(execution):
        stored = check.keep(f"{number} of {execution}", "search", f"call-{number}")
    assert isinstance(stored, Stored), stored
    return str(stored.reference)


def can_be_read(execution: str, reference: str) -> bool:
    """Read a result as its owner does."""
    with contextlib.suppress(NotFoundError):
        assert execution in (agent_otel.remedies.resolve(reference, caller=execution).text or "")
        return True
    return False


def awaited(execution: str) -> int:
    """Call the other twin."""
    return asyncio.run(remedies.aforget(execution))


@pytest.mark.parametrize("forget", [remedies.forget, awaited], ids=["forget", "aforget"])
@pytest.mark.usefixtures("switched_on")
@pytest.mark.shows("000.retention")
def test_one_execution_is_forgotten(forget: Callable[[str], int]) -> None:
    executions = ("run-4", "run-42", "run/42", "*")
    references = {execution: [keep(execution, number) for number in range(3)] for execution in executions}
    assert all(can_be_read(execution, each) for execution, kept in references.items() for each in kept)

    assert 3 == forget("run-4")
    assert 0 == forget("run-4")
    assert 0 == forget("run")

    assert {"run-4": 0, "run-42": 3, "run/42": 3, "*": 3} == {
        execution: sum(can_be_read(execution, each) for each in kept) for execution, kept in references.items()
    }
    assert 3 == forget("*")
    assert 6 == sum(
        can_be_read(execution, each) for execution in ("run-42", "run/42") for each in references[execution]
    )


def test_payloads_are_forgotten_wherever_this_process_stores_them(
    set_variables: Callable[..., None], tmp_path: Path
) -> None:
    set_variables(AGENT_OTEL_CLAIM_CHECK="memory:", AGENT_OTEL_CLAIM_CHECK_KEY=KEY)
    elsewhere = open_payloads(tmp_path.as_uri(), KEY, 600, 60)
    mine, others = (str(elsewhere.put(b"payload", execution, "node")) for execution in ("run-4", "run-42"))
    result = keep("run-4", 0)

    assert 2 == remedies.forget("run-4")

    assert not can_be_read("run-4", result)
    with pytest.raises(NotFoundError):
        elsewhere.get(mine)
    assert b"payload" == elsewhere.get(others)


def test_a_store_that_fails_is_an_error_after_all_others_were_asked(
    set_variables: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(policy, "report", lambda *report: reports.append(report[:2]))
    set_variables(AGENT_OTEL_CLAIM_CHECK="memory:", AGENT_OTEL_CLAIM_CHECK_KEY=KEY)
    monkeypatch.setattr(policy, "_given", Refusing())
    store = MemoryStore()
    payloads = open_payloads(store, KEY, 600, 60)

    for forget in (remedies.forget, awaited):
        reference = str(payloads.put(b"payload", "run", "node"))
        reports.clear()
        with pytest.raises(StoreError, match=r"^not everything could be erased: OSError at .*test_forgetting.py:"):
            forget("run")
        with pytest.raises(NotFoundError):
            payloads.get(reference)
        assert ("delete", "error") in reports


def test_without_a_store_and_without_an_id_nothing_is_guessed(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_CLAIM_CHECK="memory:", AGENT_OTEL_CLAIM_CHECK_KEY=KEY)
    for wrong in ("", None, 42):
        with pytest.raises(ValueError, match="the id of an execution is a text, and not empty"):
            remedies.forget(wrong)  # type: ignore[arg-type]


def test_summarised_history_is_forgotten_without_a_claim_check(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS="12000")
    policy._in_memory.cache_clear()
    archive = policy.archive()
    assert archive is not None
    origin = Origin("alice", "alice", "summarize", "search", "call_1")
    assert run_now(archive.keep_text("the original", origin, blocks=True))
    assert remedies.forget("alice") == 1
    with pytest.raises(NotFoundError):
        archive.reader.resolve(Place("alice", "summarize", "call_1"), caller="alice")


def test_it_is_loaded_when_it_is_first_used_and_counted() -> None:
    code = """
        import os, sys
        os.environ |= {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_CLAIM_CHECK": "memory:",
                       "AGENT_OTEL_CLAIM_CHECK_KEY": "0123456789abcdef0123456789abcdef"}
        import agent_otel.auto
        import agent_otel
        import agent_otel.remedies
        print([name for name in sys.modules if name.startswith("agent_otel.remedies.")])
        try:
            agent_otel.remedies.remember
        except AttributeError as error:
            print(error)

        @agent_otel.tool
        def read_log(name: str) -> str:
            return name * 100_000

        with agent_otel.execution("run-42"):
            ref = read_log("build").rpartition('ref="')[2].partition('"')[0]
            print(len(agent_otel.remedies.get_tool_result(ref)["content"]))
            try:
                agent_otel.remedies.forget("")
            except ValueError as error:
                print(error)
            print(agent_otel.remedies.forget("run-41"), agent_otel.remedies.forget("run-42"))
            print(agent_otel.remedies.get_tool_result(ref)["error"])
        from prometheus_client import generate_latest
        for line in generate_latest().decode().splitlines():
            if line.startswith("agent_otel_claim_check_operations_total") and "delete" in line:
                print(line)
    """.replace("\n        ", "\n")

    said = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=False)

    assert [
        "[]",
        "module 'agent_otel.remedies' has no attribute 'remember'",
        "16384",
        "the id of an execution is a text, and not empty",
        "0 1",
        "tool_result_unavailable",
        'agent_otel_claim_check_operations_total{operation="delete",result="ok"} 2.0',
    ] == said.stdout.splitlines(), said.stderr


def test_without_a_claim_check_it_says_so() -> None:
    code = """
        from agent_otel.remedies import forget
        try:
            forget("run")
        except Exception as error:
            print(type(error).__name__, error)
    """.replace("\n        ", "\n")

    said = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=True)

    assert "StoreError AGENT_OTEL_CLAIM_CHECK names no store\n" == said.stdout
