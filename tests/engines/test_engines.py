"""Every engine starts by itself, and the real SDK gets an answer from it, in a child process of its environment."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import postgres, restate, starting, temporal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_HELLO = Path(__file__).parent / "hello"


def _run(environment: Environment, program: str, *arguments: str) -> Any:
    """Return what a program prints last."""
    done = environment.run(_HELLO / program, *arguments, timeout=110, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("name", "cap"), [("temporal", 2097152), ("temporal-1.20", None)])
def test_temporal(environment: Callable[[str], Environment], name: str, cap: int | None) -> None:
    with starting.or_skip(temporal.server()) as engine:
        said = _run(environment(name), "with_temporal.py", engine.address, "2097152")

    assert ["Hello, World!", cap, "Blob data size exceeds limit."] == said


def test_temporal_with_a_lower_cap(environment: Callable[[str], Environment]) -> None:
    with starting.or_skip(temporal.server(**{"limit.blobSize.error": 4096})) as engine:
        said = _run(environment("temporal"), "with_temporal.py", engine.address, "4096")

    assert ["Hello, World!", 4096, "Blob data size exceeds limit."] == said


def test_restate(environment: Callable[[str], Environment]) -> None:
    with starting.or_skip(restate.server()) as engine:
        said = _run(environment("restate"), "with_restate.py", engine.ingress, engine.admin)

    assert "Hello, World!" == said


def test_postgres(environment: Callable[[str], Environment]) -> None:
    with starting.or_skip(postgres.server()) as engine:
        said = _run(environment("langgraph-savers"), "with_postgres.py", engine.dsn)

    assert [["World", "Hello, World!"], 3] == said


@pytest.mark.parametrize("name", ["dapr-1.18", "dapr-1.19"])
def test_dapr_sidecar(environment: Callable[[str], Environment], name: str) -> None:
    said = _run(environment(name), "with_dapr.py")

    assert {
        "hello": [*["Hello, World!"] * 3, "Hello at last, World!", "Hello, World!"],
        "hello, not replaying": 1,
        "result": 3145728,
        "large result": "larger than max (5242932 vs. 4194304)",
        "input": 1048576,
        "input, replaying": [False, True],
        "large input": "RUNNING",
        "large input, replaying": [False, False, False],
        "refusals": ["trying to send message larger than max (3145785 vs. 2097152)"] * 3,
        "large history": "STALLED",
    } == said


@pytest.mark.parametrize(
    "name",
    ["aws-durable", "celery", "dbos", "dbos-2", "durabletask", "durabletask-1.5", "hatchet", "inngest", "prefect"],
)
def test_runtimes_that_need_no_server(environment: Callable[[str], Environment], name: str) -> None:
    runtime = re.sub(r"-[0-9.]+$", "", name).replace("-", "_")

    assert "Hello, World!" == _run(environment(name), "in_process.py", runtime)
