"""Flows of Prefect; their results are stored as JSON in a folder."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The folder's name is in what is stored.
HOME = tempfile.mkdtemp(prefix="prefect-", dir="/tmp")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ.setdefault("PREFECT_HOME", HOME)
os.environ["PREFECT_LOGGING_TO_API_ENABLED"] = "false"
os.environ["PREFECT_LOGGING_LEVEL"] = "CRITICAL"
os.environ["PREFECT_RESULTS_PERSIST_BY_DEFAULT"] = "true"
os.environ["PREFECT_RESULTS_DEFAULT_SERIALIZER"] = "json"
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["DO_NOT_TRACK"] = "1"

from prefect import cache_policies, flow, task  # noqa: E402 - after its settings

from tests.contract.runtimes import steps  # noqa: E402

TASKS = {
    function.__name__: task(function, name=function.__name__)
    for function in (steps.produce, steps.produce_later, steps.consume, steps.flaky, steps.broken, steps.use_tool)
}
twice = TASKS["flaky"].with_options(retries=1)
unstored = TASKS["produce"].with_options(persist_result=False)
cached = TASKS["produce"].with_options(cache_policy=cache_policies.INPUTS)


@flow
def one(activity: str, n: int) -> int:
    """Run one task; how long its result is."""
    return len(TASKS[activity](n))


@flow
async def later(activity: str, n: int) -> int:
    """Run one task that is a coroutine function."""
    return len(await TASKS[activity](n))


@flow
def retried(activity: str, n: int) -> int:
    """Run one task, twice at most."""
    del activity
    return len(twice(n))


@flow
def parallel(n: int) -> int:
    """Run two tasks at once."""
    futures = [TASKS["produce"].submit(n + more) for more in (0, 1)]
    return sum(len(future.result()) for future in futures)


@task(name="consume")
def gather(texts: list[str]) -> list[str]:
    """Hand all texts on."""
    return texts


@flow(name="turns")
def turning(turns: int, n: int) -> int:
    """Carry every turn's text into what the next turn hands on."""
    texts: list[str] = []
    for turn in range(turns):
        texts.append(TASKS["produce"](n + turn))
        texts = gather(texts)
    return sum(len(text) for text in texts)


@flow
def once(n: int) -> int:
    """Run a task twice, whose second result is the first one's."""
    return len(cached(n)) + len(cached(n))


@flow
def forgotten(n: int) -> int:
    """Run a task whose result is not stored."""
    return len(unstored(n))


@flow
def given(text: str) -> int:
    """Take a text."""
    return len(text)


FLOWS = {each.name: each for each in (one, later, retried, parallel, turning, once, forgotten, given)}


@contextlib.contextmanager
def running(engine: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs a flow; the server runs already."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: engine["url"]}):

        def start(workflow: str, data: Any) -> Any:
            if workflow == "given":
                data = {"text": steps.produce(data["n"])}
            result = FLOWS[workflow](**data)
            return asyncio.run(result) if asyncio.iscoroutine(result) else result

        yield start
