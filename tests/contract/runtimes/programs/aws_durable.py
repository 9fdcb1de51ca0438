"""Durable functions of AWS Lambda, in their SDK's in-process runner."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import contextlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from aws_durable_execution_sdk_python import DurableContext, StepContext, durable_execution
from aws_durable_execution_sdk_python.config import Duration, StepConfig
from aws_durable_execution_sdk_python.exceptions import CheckpointError
from aws_durable_execution_sdk_python.execution import InvocationStatus
from aws_durable_execution_sdk_python.retries import RetryPresets, RetryStrategyConfig, create_retry_strategy
from aws_durable_execution_sdk_python.waits import WaitForConditionConfig, WaitForConditionDecision
from aws_durable_execution_sdk_python_testing import DurableFunctionTestRunner
from aws_durable_execution_sdk_python_testing.client import InMemoryServiceClient
from aws_durable_execution_sdk_python_testing.executor import Executor
from botocore.exceptions import ClientError

from tests.contract.runtimes import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ONCE = StepConfig(retry_strategy=RetryPresets.none())
TWICE = StepConfig(
    retry_strategy=create_retry_strategy(RetryStrategyConfig(max_attempts=2, initial_delay=Duration.from_seconds(1)))
)
# The runner does not enforce the service's limit of a step's result; it does here, for a step of this name.
OVERSIZED = "oversized"
LIMIT = 256 * 1024

Executor.RETRY_BACKOFF_SECONDS = 0


class Service(InMemoryServiceClient):
    """The runner's service, with a limit that it lacks; the SDK sees it as its client of the real one would."""

    def checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse what the service would."""
        updates = kwargs["updates"] if "updates" in kwargs else args[2]
        if any(update.name == OVERSIZED and len(update.payload or "") > LIMIT for update in updates):
            said = f"STEP output payload size must be less than or equal to {LIMIT} bytes."
            response: Any = {
                "Error": {"Code": "InvalidParameterValueException", "Message": said},
                "ResponseMetadata": {"HTTPStatusCode": 400},
            }
            raise CheckpointError.from_exception(ClientError(response, "CheckpointDurableExecution"))
        return super().checkpoint(*args, **kwargs)


def _step(ctx: DurableContext, activity: str, given: Any, config: StepConfig = ONCE) -> Any:
    function = getattr(steps, activity)

    def run(_: StepContext) -> Any:
        return function(given)

    return ctx.step(run, name=activity, config=config)


def one(given: dict[str, Any], ctx: DurableContext) -> int:
    """Run one step; how long its result is."""
    return len(_step(ctx, given["activity"], given["n"]))


def retried(given: dict[str, Any], ctx: DurableContext) -> int:
    """Run one step, twice at most; the second attempt is in another invocation."""
    return len(_step(ctx, given["activity"], given["n"], TWICE))


def parallel(given: dict[str, Any], ctx: DurableContext) -> int:
    """Run two steps at once."""
    branches = [partial(_step, activity="produce", given=given["n"] + more) for more in (0, 1)]
    done = ctx.parallel(branches, name="both")
    return sum(len(text) for text in done.get_results())


def turns(given: dict[str, Any], ctx: DurableContext) -> int:
    """Carry every turn's text into what the next turn hands on."""
    texts: list[str] = []
    for turn in range(given["turns"]):
        texts.append(_step(ctx, "produce", given["n"] + turn))
        texts = ctx.step(lambda _, texts=texts: texts, name="consume")
    return sum(len(text) for text in texts)


def resumed(given: dict[str, Any], ctx: DurableContext) -> int:
    """Wait between two steps, so that the first is replayed."""
    before = _step(ctx, "produce", given["n"])
    ctx.wait(Duration.from_seconds(2))
    after = _step(ctx, "produce", given["n"] + 1)
    return len(before) + len(after)


def polled(given: dict[str, Any], ctx: DurableContext) -> int:
    """Ask three times, each time for one letter more."""

    def ask(length: int, _: Any) -> int:
        return length + 1

    def decide(length: int, _: int) -> WaitForConditionDecision:
        if length < given["n"] + 3:
            return WaitForConditionDecision.continue_waiting(Duration.from_seconds(1))
        return WaitForConditionDecision.stop_polling()

    config = WaitForConditionConfig(wait_strategy=decide, initial_state=given["n"])
    return int(ctx.wait_for_condition(ask, config, name="ask"))


def refused(given: dict[str, Any], ctx: DurableContext) -> int:
    """Run a step whose result the service does not take."""
    return len(ctx.step(lambda _: steps.produce(given["n"]), name=OVERSIZED, config=ONCE))


def invoking(given: dict[str, Any], ctx: DurableContext) -> int:
    """Invoke a plain function."""
    text: str = ctx.invoke("repeat", {"text": steps.produce(given["n"])}, name="again")
    return len(text)


def nested(given: dict[str, Any], ctx: DurableContext) -> int:
    """Invoke another durable function."""
    return int(ctx.invoke("one", given, name="other"))


def called_back(given: dict[str, Any], ctx: DurableContext) -> int:
    """Take what another sends, who has it at once."""
    callback = ctx.create_callback(name="approval")
    ctx.step(lambda _: answer(callback.callback_id, given["n"]), name="ask")
    return len(callback.result())


def answer(callback: str, n: int) -> None:
    """Send so many letters to who waits for them."""
    runners[-1].send_callback_success(callback, steps.produce(n).encode())


def repeat(event: dict[str, Any], _: Any) -> str:
    """Return what it is given."""
    return str(event["text"])


runners: list[DurableFunctionTestRunner] = []
WORKFLOWS = (one, retried, parallel, turns, resumed, polled, refused, invoking, nested, called_back)


@contextlib.contextmanager
def running(engine: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Start a runner that knows all functions; yield what runs one."""
    plugins = None
    if engine.get("explicit"):
        from agent_otel.integrations.runtimes.aws_durable import plugin

        plugins = [plugin]
    handlers = {workflow.__name__: durable_execution(workflow, plugins=plugins) for workflow in WORKFLOWS}
    with DurableFunctionTestRunner(handlers["one"]) as runner:
        runner._service_client.__class__ = runner._invoker.service_client.__class__ = Service
        for name, handler in handlers.items():
            runner.register_durable_function(name, handler)
        runner.register_function("repeat", repeat)
        runners.append(runner)

        def start(workflow: str, given: Any) -> Any:
            execution = runner.run_async(input=json.dumps(given), function_name=workflow, execution_timeout=200)
            done = runner.wait_for_result(execution, timeout=200)
            if done.status is not InvocationStatus.SUCCEEDED:
                raise RuntimeError(str(done.error))
            return json.loads(done.result or "null")

        yield start
