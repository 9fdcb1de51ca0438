"""Tasks of Hatchet in its worker's runner, which is given the actions that the engine would send."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import logging
import queue
from typing import TYPE_CHECKING, Any

from hatchet_sdk import ClientConfig, Context, Hatchet
from hatchet_sdk.contracts.dispatcher_pb2 import STEP_EVENT_TYPE_COMPLETED, STEP_EVENT_TYPE_FAILED
from hatchet_sdk.runnables.action import Action, ActionPayload, ActionType
from hatchet_sdk.worker.runner.runner import Runner
from hatchet_sdk.worker.runner.utils.capture_logs import AsyncLogSender

from tests.contract.runtimes import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logging.getLogger("hatchet").setLevel(logging.CRITICAL)


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


# Nobody listens there.
_CLAIMS = {"sub": "t", "server_url": "http://127.0.0.1:1", "grpc_broadcast_address": "127.0.0.1:1", "exp": 4102444800}
CONFIG = ClientConfig(token=f"{_part({'alg': 'none'})}.{_part(_CLAIMS)}.x", tls_config={"strategy": "none"})
hatchet = Hatchet(config=CONFIG)
TASKS: dict[tuple[str, str], Any] = {}


def _task(workflow: Any, name: str) -> None:
    function = getattr(steps, name)

    def run(_: Any, ctx: Context) -> dict[str, Any]:
        return {"said": function(ctx.workflow_input["n"])}

    TASKS[workflow.name, name] = workflow.task(name=name, retries=1)(run)


one = hatchet.workflow(name="one")
for _name in ("produce", "broken", "use_tool", "flaky"):
    _task(one, _name)


@one.task(name="produce_later")
async def produce_later(_: Any, ctx: Context) -> dict[str, Any]:
    """Return so many letters after a wait."""
    return {"said": await steps.produce_later(ctx.workflow_input["n"])}


@one.task(name="illegal")
def illegal(_: Any, ctx: Context) -> Any:
    """Return what may not be returned."""
    return [ctx.workflow_input["n"]]


@one.task(name="silent")
def silent(_: Any, ctx: Context) -> None:
    """Return nothing."""
    del ctx


TASKS |= {("one", each.name): each for each in (produce_later, illegal, silent)}

parallel = hatchet.workflow(name="parallel")
_task(parallel, "produce")
retried = hatchet.workflow(name="retried")
_task(retried, "flaky")
turns = hatchet.workflow(name="turns")
_task(turns, "produce")


@turns.task(name="consume")
def consume(_: Any, ctx: Context) -> dict[str, Any]:
    """Take all texts in; their length."""
    return {"said": steps.consume(ctx.workflow_input["texts"])}


TASKS["turns", "consume"] = consume


class Engine:
    """What the engine does: sends an action, waits for its event, sends it again when it failed."""

    def __init__(self) -> None:
        self._events: queue.Queue[Any] = queue.Queue()
        registry = {f"{workflow}:{name}": task for (workflow, name), task in TASKS.items()}
        self._runner = Runner(
            self._events, CONFIG, 4, 4, False, registry, [], None, AsyncLogSender(hatchet._client.event)
        )
        self._ids = itertools.count(1)

    async def run(self, workflow: str, activity: str, given: Any, run_id: str | None = None) -> Any:
        """Run a task; what it said."""
        run_id = run_id or f"run-{next(self._ids)}"
        step_id = f"step-{next(self._ids)}"
        for attempt in range(TASKS[workflow, activity].retries + 1):
            payload = ActionPayload(input=given, triggered_by="manual")
            action = Action(
                worker_id="",
                tenant_id="t",
                workflow_run_id=run_id,
                job_id="j",
                job_name=workflow,
                job_run_id="r",
                step_id="s",
                step_name=activity,
                step_run_id=step_id,
                action_id=f"{workflow}:{activity}",
                action_type=ActionType.START_STEP_RUN,
                retry_count=attempt,
                action_payload=payload,
            )
            await self._runner.handle_start_step_run(action)
            event = self._event_of(action.key)
            if event.type == STEP_EVENT_TYPE_COMPLETED:
                return json.loads(event.payload)["said"] if event.payload else None
        raise RuntimeError(event.payload)

    def _event_of(self, key: str) -> Any:
        others: list[Any] = []
        while True:
            event = self._events.get(timeout=60)
            if event.action.key == key and event.type in (STEP_EVENT_TYPE_COMPLETED, STEP_EVENT_TYPE_FAILED):
                for other in others:
                    self._events.put(other)
                return event
            others.append(event)

    async def start(self, workflow: str, given: Any) -> Any:
        """Run what the workflow is made of, as the engine would."""
        if workflow == "parallel":
            runs = [self.run(workflow, "produce", {"n": given["n"] + more}, "run-0") for more in (0, 1)]
            return sum(map(len, await asyncio.gather(*runs)))
        if workflow == "turns":
            texts: list[str] = []
            length = 0
            for turn in range(given["turns"]):
                texts.append(await self.run(workflow, "produce", {"n": given["n"] + turn}, "run-00"))
                length = await self.run(workflow, "consume", {"texts": list(texts)}, "run-00")
            return length
        said = await self.run(workflow, given.get("activity", "flaky"), {"n": given["n"]})
        return len(said) if said is not None else None


@contextlib.contextmanager
def running(settings: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Start a runner; yield what runs a workflow."""
    if settings.get("instrumented"):
        from hatchet_sdk.opentelemetry.instrumentor import HatchetInstrumentor

        HatchetInstrumentor(config=CONFIG).instrument()

    loop = asyncio.new_event_loop()

    async def engine() -> Engine:
        return Engine()

    started = loop.run_until_complete(engine())

    def start(workflow: str, given: Any) -> Any:
        return loop.run_until_complete(started.start(workflow, given))

    yield start
    loop.close()
