"""Runtimes that need no server of their own: ``in_process.py <runtime>``; prints what a step returned, as JSON."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-any-return,unused-ignore"
# ruff: noqa: ARG001 - seven small programs, each as its framework wants it

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.system.engines import starting


def dbos(folder: Path) -> Any:
    from dbos import DBOS

    database = f"sqlite:///{folder}/dbos.sqlite"
    DBOS(config={"name": "hello", "system_database_url": database, "run_admin_server": False})

    @DBOS.step()
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    @DBOS.workflow()
    def hello(name: str) -> str:
        return greet(name)

    DBOS.launch()
    try:
        return hello("World")
    finally:
        DBOS.destroy()


def durabletask(folder: Path) -> Any:
    from durabletask.client import TaskHubGrpcClient
    from durabletask.testing import create_test_backend
    from durabletask.worker import TaskHubGrpcWorker

    def greet(context: Any, name: str) -> str:
        return f"Hello, {name}!"

    def hello(context: Any, name: str) -> Any:
        return (yield context.call_activity(greet, input=name))

    port = starting.free_port()
    backend, address = create_test_backend(port=port), f"127.0.0.1:{port}"
    with TaskHubGrpcWorker(host_address=address) as worker:
        worker.add_orchestrator(hello)
        worker.add_activity(greet)
        worker.start()
        client = TaskHubGrpcClient(host_address=address)
        started = client.schedule_new_orchestration(hello, input="World")
        state = client.wait_for_orchestration_completion(started, timeout=200)
    backend.stop()
    return json.loads(state.serialized_output)


def aws_durable(folder: Path) -> Any:
    from aws_durable_execution_sdk_python import durable_execution
    from aws_durable_execution_sdk_python_testing import DurableFunctionTestRunner

    @durable_execution
    def hello(event: str, context: Any) -> Any:
        return context.step(lambda _: f"Hello, {event}!", name="greet")

    with DurableFunctionTestRunner(handler=hello) as runner:
        return json.loads(runner.run(input=json.dumps("World")).result)


def celery(folder: Path) -> Any:
    from celery import Celery
    from celery.contrib.testing.worker import start_worker

    app = Celery("hello", broker="memory://", backend="cache+memory://")

    @app.task
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    with start_worker(app, pool="solo", perform_ping_check=False):
        return greet.delay("World").get(timeout=200)


def prefect(folder: Path) -> Any:
    from prefect import flow, task
    from prefect.settings import (
        PREFECT_HOME,
        PREFECT_SERVER_ANALYTICS_ENABLED,
        PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS,
        temporary_settings,
    )

    @task
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    @flow
    def hello(name: str) -> str:
        return greet(name)

    # A server of the contract may have left its empty database, which takes longer to make than all else here.
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(Path(sys.prefix) / "prefect.db", folder / "prefect.db")
    settings = {
        PREFECT_HOME: folder,
        PREFECT_SERVER_ANALYTICS_ENABLED: False,
        PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS: 90,
    }
    with temporary_settings(settings):
        return hello("World")


def inngest(folder: Path) -> Any:
    from inngest import Event, Inngest, TriggerEvent
    from inngest.experimental import mocked

    @Inngest(app_id="hello", is_production=False).create_function(fn_id="hello", trigger=TriggerEvent(event="hello"))
    def hello(context: Any) -> Any:
        return context.step.run("greet", lambda: f"Hello, {context.event.data['name']}!")

    event = Event(name="hello", data={"name": "World"})
    return mocked.trigger(hello, event, mocked.Inngest(app_id="hello")).output


def hatchet(folder: Path) -> Any:
    from hatchet_sdk import ClientConfig, Hatchet

    # A token that nobody looks at but the client: it says where the engine is, which is not asked.
    nowhere = {"sub": "0" * 8, "server_url": "http://127.0.0.1:1", "grpc_broadcast_address": "127.0.0.1:1"}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in ({"alg": "none"}, nowhere, {})]
    client = Hatchet(config=ClientConfig(token=".".join(part.rstrip("=") for part in parts)))

    @client.task(name="hello")
    def hello(given: Any, context: Any) -> dict[str, str]:
        return {"said": "Hello, World!"}

    return hello.mock_run()["said"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        print(json.dumps(globals()[sys.argv[1]](Path(name))))
