"""Durable Functions of Azure in the real Python worker, called as the Functions host calls it.

The host itself is a program of .NET that no package has: the loop below takes its place. It hands the worker the JSON
of a history, schedules what the worker's answer asks for, and appends what comes of it. The messages are objects with
the fields of the host's protocol.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
import types
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import azure_functions_runtime as worker
from azure_functions_runtime import handle_event
from opentelemetry import trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]

APP = """
import azure.durable_functions as df
from tests.contract.runtimes import steps

app = df.DFApp()


@app.orchestration_trigger(context_name="context")
def one(context):
    given = context.get_input()
    text = yield context.call_activity(given["activity"], given["n"])
    return len(text)


@app.orchestration_trigger(context_name="context")
def parallel(context):
    n = context.get_input()["n"]
    texts = yield context.task_all([context.call_activity("produce", n + more) for more in (0, 1)])
    return sum(map(len, texts))


@app.orchestration_trigger(context_name="context")
def turns(context):
    given, texts, length = context.get_input(), [], 0
    for turn in range(given["turns"]):
        text = yield context.call_activity("produce", given["n"] + turn)
        texts.append(text)
        length = yield context.call_activity("consume", texts)
    return length


@app.orchestration_trigger(context_name="context")
def searching(context):
    return len(steps.search(context.get_input()["n"]))


@app.activity_trigger(input_name="n")
def produce(n: int):
    return steps.produce(n)


@app.activity_trigger(input_name="n")
async def produce_later(n: int):
    return await steps.produce_later(n)


@app.activity_trigger(input_name="texts")
def consume(texts: list):
    return steps.consume(texts)


@app.activity_trigger(input_name="n")
def broken(n: int):
    return steps.broken(n)


@app.activity_trigger(input_name="n")
def use_tool(n: int):
    return steps.use_tool(n)
"""


class Kind(type):
    """The class of a message: its constants have their own names as values."""

    def __getattr__(cls, name: str) -> str:
        """Return a constant."""
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class Message(metaclass=Kind):
    """A message of the protocol: fields that are not set are None."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> None:
        """Return the value of a field that is not set."""
        if name.startswith("__") or name[0].isupper():
            raise AttributeError(name)

    def WhichOneof(self, _: str) -> str | None:  # noqa: N802 - protobuf's name
        """Return the field that is set; where there are others beside, it is the first."""
        return next(iter(self.__dict__), None)


MESSAGES = (
    "BindingInfo",
    "FunctionMetadataResponse",
    "InvocationResponse",
    "ParameterBinding",
    "RpcException",
    "RpcFunctionMetadata",
    "StatusResult",
    "TypedData",
    "WorkerInitResponse",
    "WorkerMetadata",
)
PROTOS = types.SimpleNamespace(**{name: Kind(name, (Message,), {}) for name in MESSAGES})


class Host:
    """The loop that stands for the Functions host."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        folder = tempfile.mkdtemp()
        (Path(folder) / "function_app.py").write_text(APP)
        sys.path.insert(0, folder)
        init = Message(capabilities={}, function_app_directory=folder)
        request = Message(request=Message(worker_init_request=init), properties={"host": "", "protos": PROTOS})
        said = self._loop.run_until_complete(worker.worker_init_request(request)).result
        assert said.status == "Success", said.exception.message
        worker.start_threadpool_executor()
        self._functions = {each.name: each for each in handle_event._functions._functions.values()}

    def close(self) -> None:
        """Stop the worker's threads."""
        worker.stop_threadpool_executor()
        self._loop.close()

    def run(self, name: str, given: Json) -> Any:
        """Run an orchestration to its end."""
        return self._loop.run_until_complete(self._run(name, given))

    async def _invoke(self, name: str, text: str, instance: str) -> tuple[str | None, str]:
        """Invoke a function; return the text that it returns, or None and its error."""
        function = self._functions[name]
        parameter = next(iter(function.input_types))
        binding = Message(data=PROTOS.TypedData(json=text), name=parameter)
        call = Message(
            invocation_id=str(uuid.uuid4()),
            function_id=function.function_id,
            input_data=[binding],
            trigger_metadata={"instanceId": PROTOS.TypedData(string=instance)},
            trace_context=Message(),
            retry_context=Message(),
        )
        answer = await worker.invocation_request(Message(request=Message(invocation_request=call)))
        if answer.result.status != "Success":
            return None, str(answer.result.exception.message)
        return answer.return_value.json, ""

    async def _run(self, name: str, given: Json) -> Any:
        instance, sent = str(uuid.uuid4()), []
        history: list[Json] = [_event("ExecutionStarted", Name=name, Input=json.dumps(given), Version=None)]
        waiting: list[tuple[int, str, str]] = []
        known = 0
        while True:
            body = {
                "history": [_event("OrchestratorStarted"), *history],
                "input": json.dumps(given),
                "instanceId": instance,
                "isReplaying": known > 0,
                "parentInstanceId": None,
                "upperSchemaVersion": 0,
            }
            text = json.dumps(body)
            sent.append(len(text))
            answer, error = await self._invoke(name, text, instance)
            if answer is None:
                trace.get_tracer("host").start_span("host", attributes={"sent": sent}).end()
                raise RuntimeError(error)
            state = json.loads(answer)
            if state["isDone"]:
                trace.get_tracer("host").start_span("host", attributes={"sent": sent}).end()
                return state.get("output")
            for event in history:
                event["IsPlayed"] = True
            asked = [action for turn in state["actions"] for action in turn]
            history += await self._act(asked, instance, waiting)
            known += 1

    async def _act(self, asked: list[Json], instance: str, done: list[Any]) -> list[Json]:
        """Run the activities that have not run yet; return the events of it."""
        new: list[Json] = []
        for number, action in enumerate(asked[len(done) :], len(done)):
            done.append(action)
            new.append(_event("TaskScheduled", number, Name=action["functionName"]))
            text, error = await self._invoke(action["functionName"], action["input"], instance)
            if text is not None:
                new.append(_event("TaskCompleted", TaskScheduledId=number, Result=text))
            else:
                new.append(_event("TaskFailed", TaskScheduledId=number, Reason=error, Details=""))
        return new


TYPES = {"ExecutionStarted": 0, "TaskScheduled": 4, "TaskCompleted": 5, "TaskFailed": 6, "OrchestratorStarted": 12}


def _event(kind: str, number: int = -1, **more: Any) -> Json:
    stamp = "2026-01-01T00:00:00.000000Z"
    return {"EventType": TYPES[kind], "EventId": number, "IsPlayed": False, "Timestamp": stamp, **more}


@contextlib.contextmanager
def running(engine: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Start the worker; yield what runs an orchestration."""
    del engine
    host = Host()
    try:
        yield host.run
    finally:
        host.close()
