"""Celery tasks that call other tasks, with a broker and results in memory."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from celery import Celery, chain
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Reject
from celery.result import allow_join_result
from kombu.transport import TRANSPORT_ALIASES, memory

from tests.contract.runtimes import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: As if the queue took four times as much as it can be told to.
MESSAGE = 4 * 1024 * 1024


class Channel(memory.Channel):
    """Says what SQS says to messages that are too large, and what RabbitMQ says of those that it delivers again."""

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        # The body is in base64 here, and SQS gets the whole message in base64.
        if len(message["body"]) * 4 / 3 > MESSAGE:
            raise ValueError(
                "An error occurred (InvalidParameterValue) when calling the SendMessage operation: One or more "
                f"parameters are invalid. Reason: Message must be shorter than {MESSAGE} bytes."
            )
        super()._put(queue, message, **kwargs)

    def _restore(self, message: Any) -> None:
        # RabbitMQ tells, and Redis as kombu uses it.
        message.properties["delivery_info"]["redelivered"] = True
        super()._restore(message)


class Transport(memory.Transport):
    """SQS, as far as a size goes."""

    Channel = Channel
    driver_type = "sqs"
    driver_name = "sqs"


TRANSPORT_ALIASES["like-sqs"] = f"{__name__}:Transport"

app = Celery("agent")
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_transport_options={"polling_interval": 0.02},
    worker_hijack_root_logger=False,
)

for _function in (steps.produce, steps.consume, steps.broken, steps.use_tool):
    app.task(_function, name=_function.__name__)


@app.task(bind=True, name="flaky", max_retries=1)
def flaky(task: Any, n: int) -> str:
    """Fail the first time, and be made again."""
    try:
        return steps.flaky(n)
    except steps.BrokenError as error:
        raise task.retry(exc=error, countdown=0) from error


def _run(activity: str, given: Any) -> Any:
    with allow_join_result():
        return app.tasks[activity].apply_async((given,)).get(timeout=200, interval=0.02)


@app.task(bind=True, name="rejecting", acks_late=True)
def rejecting(task: Any, n: int) -> str:
    """Give the message back the first time."""
    if not task.request.delivery_info["redelivered"]:
        raise Reject("not yet", requeue=True)
    return steps.produce(n)


def one(given: dict[str, Any]) -> int:
    """Run one task; how long its result is."""
    return len(_run(given["activity"], given["n"]))


for _name in ("one", "retried"):
    app.task(one, name=_name)


@app.task(name="handing")
def handing(given: dict[str, Any]) -> int:
    """Hand a text on."""
    return int(_run("consume", [steps.produce(given["n"])]))


@app.task(name="parallel")
def parallel(given: dict[str, Any]) -> int:
    """Run two tasks at once."""
    running = [app.tasks["produce"].apply_async((given["n"] + more,)) for more in (0, 1)]
    with allow_join_result():
        return sum(len(each.get(timeout=200, interval=0.02)) for each in running)


@app.task(name="turns")
def turns(given: dict[str, Any]) -> int:
    """Carry every turn's text into the next turn."""
    texts: list[str] = []
    length = 0
    for turn in range(given["turns"]):
        texts.append(_run("produce", given["n"] + turn))
        length = _run("consume", texts)
    return length


@app.task(name="eager")
def eager(given: dict[str, Any]) -> int:
    """Run a task in place."""
    return len(app.tasks["produce"].apply((given["n"],)).get(disable_sync_subtasks=False))


@app.task(name="listed")
def listed(text: str) -> list[str]:
    """Put a text into a list."""
    return [text]


@contextlib.contextmanager
def running(engine: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Start a worker; yield what runs a task."""
    if engine.get("instrumented"):
        from opentelemetry.instrumentation.celery import CeleryInstrumentor

        CeleryInstrumentor().instrument()
    app.conf.update(
        broker_url=engine.get("broker", "memory://"), result_backend=engine.get("results", "cache+memory://")
    )
    with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False, loglevel="WARNING"):

        def start(workflow: str, given: Any) -> Any:
            if workflow == "chained":
                tasks = chain(app.tasks["produce"].s(given["n"]), listed.s(), app.tasks["consume"].s())
                return tasks.apply_async().get(timeout=200, interval=0.02)
            return app.tasks[workflow].apply_async((given,)).get(timeout=200, interval=0.02)

        yield start
