"""Runs the agent in a process that AGENT_OTEL=1 switched on, and keeps what the product emitted meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from examples.durable_agent import repository
from examples.durable_agent.ending import Ending
from examples.durable_agent.later import Later, Shown
from examples.durable_agent.model_server import SEARCHES, scripted_model
from examples.local_servers.otlp import Span, TraceReceiver
from examples.repository_agent.readings import Scrape, scrape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from subprocess import Popen

REPOSITORY = "repository"
RUNTIMES = ("temporal", "langgraph", "dapr")
QUESTION = "Which handlers are registered for which topic?"

# daprd is not to be had as a package; this one speaks its protocol and has its limits.
_SIDECAR = "tests.system.examples.durable_sidecar"
KEPT = "history bytes: "
_MESSAGE_BYTES = 16 * 1024 * 1024

# What a run that dies may take, with five seconds for each turn of one that goes on: the machine may be busy.
_PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Run:
    """What came of one run; ``heard`` and ``scrapes`` have an entry for each turn that reached the model.

    ``heard`` are the times in nanoseconds since 1970 at which the model was asked, ``scrapes`` what ``/metrics`` said
    then and, as its last entry, at the end.
    """

    ending: Ending
    spans: list[Span]
    heard: list[int]
    scrapes: list[Scrape]


def watch(
    runtime: str, turns: int, folder: Path, say: Callable[[int], None], variables: Mapping[str, str] | None = None
) -> Run:
    """Run the agent on a runtime until it answers, which it does after so many turns, or dies; ``say`` each turn.

    The repository, and what the runtime keeps, are made in ``folder``; ``variables`` are further ones of the agent's
    environment.
    """
    heard: dict[int, tuple[int, Scrape]] = {}
    metrics = f"http://127.0.0.1:{(port := _free_port())}/metrics"

    def asked(turn: int) -> None:
        if turn not in heard:
            heard[turn] = time.time_ns(), scrape(metrics)
            say(turn)

    with (
        TraceReceiver() as receiver,
        scripted_model(turns, asked) as model,
        _beside(runtime) as sidecar,
    ):
        made = repository.make(folder / REPOSITORY, SEARCHES * turns)
        watched = {
            "AGENT_OTEL": "1",
            "AGENT_OTEL_PROMETHEUS_PORT": str(port),
            "AGENT_OTEL_PROMETHEUS_HOST": "127.0.0.1",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_METRICS_EXPORTER": "none",  # scraped, not pushed
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_SERVICE_NAME": "durable-agent",
            **(variables or {}),
        }
        given = (
            *("--repository", str(made.path), "--question", QUESTION, "--folder", str(folder)),
            *("--patience", str(_PATIENCE_SECONDS + (5 * turns if variables else 0))),
        )
        environ = {**watched, **model.environment, **sidecar.variables}
        with started(f"examples.durable_agent.{runtime}_agent", *given, variables=environ) as agent:
            ending = _ending(agent, sidecar)
            last = scrape(metrics)
        # It has sent all its spans before it was gone.
        spans = list(receiver.inbox.spans)
    ending = replace(ending, kept_bytes=ending.kept_bytes or sidecar.kept_bytes)
    times, scrapes = zip(*(heard[turn] for turn in sorted(heard)), strict=True) if heard else ((), ())
    return Run(ending, spans, [*times], [*scrapes, last])


def look_back(folder: Path, run: str, variables: Mapping[str, str]) -> Later:
    """Have another process, with the agent's settings, make what it can of what was kept of a run."""
    given = ("--folder", str(folder), "--run", run)
    with started("examples.durable_agent.afterwards", *given, variables={"AGENT_OTEL": "1", **variables}) as process:
        said = json.loads(next(iter(process.stdout or ()), "null"))
    if said is None:
        raise RuntimeError("nothing was made of what was kept of the run")
    return Later(**{**said, "shown": [Shown(**each) for each in said["shown"]]})


class _Sidecar:
    """What runs beside the agent: the variables that point at it, what it has logged, how much it has kept at last."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.log: list[str] = []
        self.kept_bytes = 0

    def listen(self, said: Iterable[str]) -> None:
        """Read what it says until it is gone."""
        for line in said:
            if line.startswith(KEPT):
                self.kept_bytes = int(line.removeprefix(KEPT))
            else:
                self.log.append(line)


@contextlib.contextmanager
def _beside(runtime: str) -> Iterator[_Sidecar]:
    """Start Dapr's sidecar; the other runtimes have none."""
    if runtime != "dapr":
        yield _Sidecar({})
        return
    with started(_SIDECAR, "--max-body-size", str(_MESSAGE_BYTES)) as process:
        said = iter(process.stdout or ())
        sidecar = _Sidecar(
            {
                "DAPR_RUNTIME_HOST": "127.0.0.1",
                "DAPR_GRPC_PORT": next(said, "").strip(),
                "DAPR_GRPC_MAX_INBOUND_MESSAGE_SIZE_BYTES": str(_MESSAGE_BYTES),
                # The product cannot know what the sidecar was told.
                "AGENT_OTEL_CAPS": f"dapr.message={_MESSAGE_BYTES}",
            }
        )
        listening = threading.Thread(target=sidecar.listen, args=(said,), daemon=True)
        listening.start()
        yield sidecar
        if process.stdin is not None:
            process.stdin.close()
        listening.join()


@contextlib.contextmanager
def started(module: str, *given: str, variables: Mapping[str, str] | None = None) -> Iterator[Popen[str]]:
    """Start a Python program that ends with its standard input, and wait for that when the block is left."""
    # What the shell says about telemetry is for other programs.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "AGENT_OTEL"))}
    environ["NO_PROXY"] = environ["no_proxy"] = "127.0.0.1,localhost"
    environ.update(variables or {})
    # -I: a folder named examples where this is started must not be taken for ours.
    with (
        tempfile.TemporaryFile("w+") as stderr,
        subprocess.Popen(
            (sys.executable, "-I", "-m", module, *given),
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            yield process
            if process.stdin is not None:
                process.stdin.close()
            process.wait(timeout=30)
        finally:
            process.kill()
            if process.wait() != 0:
                stderr.seek(0)
                sys.stderr.write(stderr.read())


def _ending(agent: Popen[str], sidecar: _Sidecar) -> Ending:
    """Wait for the agent's ending; on Dapr it is the sidecar that knows why, and it says so in its log alone."""
    # Temporal's server, which the agent has started, says where it listens before that.
    line = next((line for line in agent.stdout or () if line.startswith("{")), None)
    if line is None:
        raise RuntimeError("the agent ended without a word")
    ending = Ending(**json.loads(line))
    if ending.answer is None and not ending.said and sidecar.log:
        return replace(ending, said=sidecar.log[0].strip())
    return ending


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
