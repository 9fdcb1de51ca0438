"""An exception that is raised from outside leaves every guard, and nothing of the call stays in the context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

FOLDER = Path(__file__).parent
#: Interrupts of each kind, and the environment of the program. Python itself loses one in some thousands, while it
#: frees an object. It loses up to 2 % of the exceptions that another thread sets, also without the package.
FEW = {"sync": ("bare", 600), "async": ("bare", 200), "gevent": ("servers", 300)}
MANY = {**FEW, "thread": ("bare", 5_000)}
#: A warning about a coroutine that an interrupt has left swallows the exceptions of signal handlers.
QUIET = ("-W", "ignore")
#: Tasks that outlive their soft limit of one second.
TASKS = 8


def _check(environment: Callable[[str], Environment], name: str, kind: str, count: int) -> None:
    child = environment(name).run(
        FOLDER / "program.py", kind, str(count), env={"AGENT_OTEL": "1"}, options=QUIET, check=True, timeout=900
    )
    said = json.loads(child.stdout.splitlines()[-1])
    most = count // 50 if kind == "thread" else 1
    assert sum(said["swallowed"].values()) <= most, said
    assert max(said["left"].values(), default=0) <= (most if kind == "thread" else 0), said
    assert said["interrupts"] >= count


@pytest.mark.parametrize("kind", FEW)
def test_nothing_is_swallowed_or_left_behind(environment: Callable[[str], Environment], kind: str) -> None:
    name, count = FEW[kind]
    _check(environment, name, kind, count)


def test_every_python_judges_alike(environment: Callable[[str], Environment]) -> None:
    for name in ("oldest", "bare-3.13", "bare-newest"):
        _check(environment, name, "sync", 300)


def test_a_second_signal_is_not_swallowed(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(
        FOLDER / "program.py", "nested", "600", env={"AGENT_OTEL": "1"}, check=True, timeout=900
    )
    assert {} == json.loads(child.stdout.splitlines()[-1])["swallowed"]


@pytest.mark.weekly
@pytest.mark.parametrize("kind", MANY)
def test_five_thousand_interrupts(environment: Callable[[str], Environment], kind: str) -> None:
    _check(environment, MANY[kind][0], kind, 5_000)


def test_soft_limits_of_celery_end_each_task(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    ends = {}
    for switch in ("", "1"):
        child = environment("celery").run(
            FOLDER / "celery_program.py",
            *(str(tmp_path / f"broker{switch}"), str(TASKS)),
            env={"AGENT_OTEL": switch, "PYTHONPATH": str(FOLDER)},
            check=True,
            timeout=300,
        )
        ends[switch] = json.loads(child.stdout.splitlines()[-1])
    assert {"": ["soft"] * TASKS, "1": ["soft"] * TASKS} == ends
