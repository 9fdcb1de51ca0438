"""Functions of Inngest behind its SDK's own handler, called over HTTP as the server calls them."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from typing import TYPE_CHECKING, Any

import fastapi
import inngest
import inngest.fast_api
from starlette.testclient import TestClient

from tests.contract.runtimes import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

client = inngest.Inngest(app_id="agent", is_production=False, logger=logging.getLogger("inngest-of-the-test"))
client.logger.setLevel(logging.CRITICAL)


def _function(name: str) -> Any:
    return client.create_function(fn_id=name, trigger=inngest.TriggerEvent(event=f"agent/{name}"))


@_function("one")
async def one(ctx: inngest.Context) -> int:
    """Run one step; how long its result is."""
    activity = str(ctx.event.data["activity"])
    return len(await ctx.step.run(activity, getattr(steps, activity), ctx.event.data["n"]))


@_function("retried")
async def retried(ctx: inngest.Context) -> int:
    """Run one step that fails once."""
    return len(await ctx.step.run("flaky", steps.flaky, ctx.event.data["n"]))


@_function("parallel")
async def parallel(ctx: inngest.Context) -> int:
    """Run two steps at once."""
    n = int(str(ctx.event.data["n"]))
    texts = await ctx.group.parallel(
        tuple(functools.partial(ctx.step.run, "produce", steps.produce, n + more) for more in (0, 1))
    )
    return sum(len(text) for text in texts)


@_function("turns")
def turns(ctx: inngest.ContextSync) -> int:
    """Carry every turn's text into what the next turn hands on."""
    texts: list[str] = []
    n = int(str(ctx.event.data["n"]))
    for turn in range(int(str(ctx.event.data["turns"]))):
        texts.append(ctx.step.run("produce", steps.produce, n + turn))
        texts = ctx.step.run("consume", list, texts)
    return sum(len(text) for text in texts)


@_function("unserialisable")
async def unserialisable(ctx: inngest.Context) -> None:
    """Return what is no JSON."""
    await ctx.step.run("opaque", object)  # type: ignore[arg-type]


@_function("bare")
def bare(ctx: inngest.ContextSync) -> str:
    """Return without a step."""
    return steps.produce(int(str(ctx.event.data["n"])))


FUNCTIONS = [one, retried, parallel, turns, unserialisable, bare]


class Server:
    """What the server does for one run: calls the function until there is no step left, and keeps what they return."""

    def __init__(self, http: TestClient, max_attempts: int = 2) -> None:
        self._http = http
        self._max_attempts = max_attempts
        self._runs = itertools.count(1)

    def run(self, name: str, data: Any) -> Any:
        """Run a function; what it returns, or an error."""
        run_id = f"run-{next(self._runs):03}"
        memos: dict[str, Any] = {}
        waiting: list[str] = ["step"]
        attempt = 0
        while True:
            answer = self._call(name, run_id, data, memos, attempt, waiting[0])
            if answer.status_code == 200:
                return answer.json()
            results = answer.json()
            if answer.status_code != 206 or results[0]["op"] in ("StepError", "StepFailed"):
                attempt += 1
                if attempt == self._max_attempts:
                    raise RuntimeError(answer.text[:200])
                continue
            attempt = 0
            waiting.pop(0)
            for result in results:
                if result["op"] == "StepPlanned":
                    waiting.append(result["id"])
                else:
                    memos[result["id"]] = {"data": result["data"]}
            waiting = waiting or ["step"]

    def _call(self, name: str, run_id: str, data: Any, memos: Any, attempt: int, step: str) -> Any:  # noqa: PLR0913, PLR0917
        context = {
            "attempt": attempt,
            "disable_immediate_execution": False,
            "max_attempts": self._max_attempts,
            "run_id": run_id,
            "stack": {"stack": list(memos)},
        }
        event = {"name": f"agent/{name}", "data": data, "id": "event", "ts": 1}
        body = {"ctx": context, "event": event, "events": [event], "steps": memos, "use_api": False}
        return self._http.post("/api/inngest", params={"fnId": f"agent-{name}", "stepId": step}, json=body)


@contextlib.contextmanager
def running(_: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Serve the functions; yield what runs one."""
    app = fastapi.FastAPI()
    inngest.fast_api.serve(app, client, FUNCTIONS)
    with TestClient(app) as http:
        yield Server(http).run
