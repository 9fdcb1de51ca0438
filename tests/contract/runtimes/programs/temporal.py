"""Workflows of Temporal, in its sandbox, on its real server.

``given["worker"]`` names the worker that a workflow runs on: by default the plain one; ``replaying`` keeps nothing from
one workflow task to the next; ``encrypting`` has a payload codec.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import temporalio.api.common.v1
import temporalio.converter
from opentelemetry import trace
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.contrib.opentelemetry import TracingInterceptor
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Replayer, Worker

from tests.contract.runtimes import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

KEY = 0x5A
_SOON = timedelta(seconds=200)

# The field of an event of the history that is a payload.
_PAYLOADS = {
    "workflow_execution_started_event_attributes": "input",
    "workflow_execution_completed_event_attributes": "result",
    "activity_task_scheduled_event_attributes": "input",
    "activity_task_completed_event_attributes": "result",
}

produce, produce_later, consume, flaky, broken, use_tool = (
    activity.defn(step)
    for step in (steps.produce, steps.produce_later, steps.consume, steps.flaky, steps.broken, steps.use_tool)
)


@activity.defn
async def linger(n: int) -> str:
    """Wait until it is cancelled."""
    await asyncio.sleep(60)
    return steps.produce(n)


@activity.defn
def join(letter: str, text: str) -> int:
    """Take two arguments."""
    return len(letter + text)


@activity.defn
async def beat(n: int) -> None:
    """Send so many letters with a heartbeat, and wait until it is cancelled."""
    activity.heartbeat(steps.produce(n))
    await asyncio.sleep(60)


@activity.defn
def explode(n: int) -> str:
    """Fail with so many letters."""
    raise ApplicationError("no", steps.produce(n), type="TooMuch")


def _attempts(most: int) -> RetryPolicy:
    return RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=most)


async def _run(name: str, given: Any, attempts: int = 1) -> Any:
    return await workflow.execute_activity(name, given, start_to_close_timeout=_SOON, retry_policy=_attempts(attempts))


@workflow.defn(name="one")
class One:
    """Run one activity; how long its result is."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> int:
        """Run it."""
        return len(await _run(given["activity"], given["n"]))


@workflow.defn(name="retried")
class Retried:
    """Run one activity, twice at most."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> int:
        """Run it."""
        return len(await _run(given["activity"], given["n"], 2))


@workflow.defn(name="parallel")
class Parallel:
    """Run two activities at once."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> int:
        """Run it."""
        texts = await asyncio.gather(*(_run("produce", given["n"] + more) for more in (0, 1)))
        return sum(len(text) for text in texts)


@workflow.defn(name="turns")
class Turns:
    """Carry every turn's text into the next turn."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> int:
        """Run it."""
        texts: list[str] = []
        length = 0
        for turn in range(given["turns"]):
            texts.append(await _run("produce", given["n"] + turn))
            length = await _run("consume", texts)
        return length


@workflow.defn(name="feeding")
class Feeding:
    """Give an activity a text of workflow code's own, with another activity before it and one beside it."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> int:
        """Run it."""
        await _run("produce", 1)
        text = steps.produce(given["n"])
        lengths = await asyncio.gather(
            _run("consume", ["a"]),
            workflow.execute_activity(join, args=["b", text], start_to_close_timeout=_SOON),
        )
        return sum(lengths)


@workflow.defn(name="returning")
class Returning:
    """Return a text of workflow code's own."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> str:
        """Run it."""
        return steps.produce(given["n"])


@workflow.defn(name="local")
class Local:
    """Run a local activity, and cancel another one if told so."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> int:
        """Run it."""
        length = 0
        for name in given["activities"]:
            running = workflow.start_local_activity(name, given["n"], start_to_close_timeout=_SOON)
            if name == "linger":
                await asyncio.sleep(0.1)
                running.cancel()
                with contextlib.suppress(ActivityError):
                    await running
            else:
                length += len(await running)
        return length


@workflow.defn(name="continuing")
class Continuing:
    """Go on as a new run so many times; how long the text is that it carries."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> int:
        """Run it."""
        if given["more"]:
            workflow.continue_as_new({"more": given["more"] - 1, "text": given["text"] + "x"})
        return len(given["text"])


@workflow.defn(name="parent")
class Parent:
    """Run another workflow."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> None:
        """Run it."""
        await workflow.execute_child_workflow(Continuing.run, given, id=f"{workflow.info().workflow_id}-child")


@workflow.defn(name="searching")
class Searching:
    """Use a tool in workflow code."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> int:
        """Run it."""
        return len(steps.search(given["n"]))


@workflow.defn(name="updated")
class Updated:
    """Wait for ever, and answer updates."""

    @workflow.run
    async def run(self, _: dict[str, Any]) -> None:
        """Run it."""
        await workflow.wait_condition(lambda: False)

    @workflow.update(name="text")
    async def text(self, n: int) -> str:
        """Answer with so many letters."""
        return steps.produce(n)


@workflow.defn(name="signalling")
class Signalling:
    """Send a text to another workflow."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> None:
        """Run it."""
        await workflow.get_external_workflow_handle("another").signal("text", steps.produce(given["n"]))


@workflow.defn(name="failing")
class Failing:
    """Fail with so many letters."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> None:
        """Run it."""
        raise ApplicationError("no", steps.produce(given["n"]))


class Encrypting(temporalio.converter.PayloadCodec):
    """A codec whose ciphertext is as long as what it encrypts."""

    async def encode(
        self, payloads: Sequence[temporalio.api.common.v1.Payload]
    ) -> list[temporalio.api.common.v1.Payload]:
        """Encrypt."""
        return [
            temporalio.api.common.v1.Payload(
                metadata={"encoding": b"binary/encrypted"},
                data=bytes(byte ^ KEY for byte in payload.SerializeToString(deterministic=True)),
            )
            for payload in payloads
        ]

    async def decode(
        self, payloads: Sequence[temporalio.api.common.v1.Payload]
    ) -> list[temporalio.api.common.v1.Payload]:
        """Decrypt."""
        return [
            temporalio.api.common.v1.Payload.FromString(bytes(byte ^ KEY for byte in payload.data))
            for payload in payloads
        ]


WORKFLOWS = (
    *(One, Retried, Parallel, Turns, Feeding, Returning, Local, Continuing, Parent, Searching),
    *(Updated, Signalling, Failing),
)
ACTIVITIES = (produce, produce_later, consume, flaky, broken, use_tool, linger, join, beat, explode)


class Hub:
    """A loop of its own with a client and the workers."""

    def __init__(self, address: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._stack = contextlib.AsyncExitStack()
        self._queue = str(uuid.uuid4())
        self._clients: dict[str, Client] = {}
        self._executor = ThreadPoolExecutor()
        self.call(self._connect(address))

    def call(self, coroutine: Any) -> Any:
        """Run something in the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    async def _connect(self, address: str) -> None:
        interceptors = [TracingInterceptor()] if os.environ.get("TRACED") else []
        plain = await Client.connect(address, interceptors=interceptors)
        codec = replace(temporalio.converter.default(), payload_codec=Encrypting())
        encrypting = await Client.connect(address, interceptors=interceptors, data_converter=codec)
        for name, client in (("", plain), ("replaying", plain), ("encrypting", encrypting)):
            self._clients[name] = client
            worker = Worker(
                client,
                task_queue=f"{self._queue} {name}",
                workflows=WORKFLOWS,
                activities=ACTIVITIES,
                activity_executor=self._executor,
                max_cached_workflows=0 if name == "replaying" else 1000,
                graceful_shutdown_timeout=timedelta(seconds=1),
            )
            await self._stack.enter_async_context(worker)

    async def run(self, name: str, given: dict[str, Any]) -> Any:
        """Run a workflow; afterwards replay it, query it, or tell the server's history, if ``given`` says so."""
        worker = given.get("worker", "")
        handle = await self._clients[worker].start_workflow(
            name,
            given,
            id=str(uuid.uuid4()),
            task_queue=f"{self._queue} {worker}",
            execution_timeout=timedelta(seconds=given.get("seconds", 200)),
            # What is refused is sent again after it; what a busy machine runs late is not. Local activities learn of
            # their cancellation after most of it.
            task_timeout=timedelta(seconds=1 if "seconds" in given else 10),
        )
        if name == "updated":
            await handle.execute_update("text", given["n"])
        said = await handle.result()
        if given.get("then") == "replay":
            await Replayer(workflows=WORKFLOWS).replay_workflow(await handle.fetch_history())
        if given.get("then") == "ask":
            for _ in range(2):
                await handle.query("__stack_trace")
        if given.get("then") == "tell":
            await self._tell(handle)
        return said

    async def _tell(self, handle: Any) -> None:
        """Write down what the server says of the history, where the test reads it: in a span."""
        sizes: dict[str, list[int]] = {name: [] for name in (*_PAYLOADS, "history")}
        async for event in handle.fetch_history_events():
            kind = event.WhichOneof("attributes")
            attributes = getattr(event, kind)
            if kind in _PAYLOADS:
                sizes[kind].append(getattr(attributes, _PAYLOADS[kind]).ByteSize())
            elif kind == "workflow_task_started_event_attributes":
                sizes["history"].append(attributes.history_size_bytes)
        trace.get_tracer("server").start_span("server", attributes=sizes).end()

    def close(self) -> None:
        """Stop everything."""
        self.call(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._executor.shutdown()


def leave() -> None:
    """End the process without tearing the interpreter down: the threads of SDK 1.20's core then abort it at times."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if hasattr(sys, "last_value") else 0)


@contextlib.contextmanager
def running(engine: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Connect the workers; yield what runs a workflow."""
    atexit.register(leave)
    hub = Hub(engine["address"])
    try:
        yield lambda name, given: hub.call(hub.run(name, given))
    finally:
        hub.close()
