"""All ways in which a process ends, each with the real program; and what of its calls arrives at a collector.

``python -m tests.system.processes.ends --write`` writes the table of docs/evidence/process-ends.md.
"""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import environments
from tests.environments import ROOT
from tests.servers.otlp import OtlpReceiver
from tests.system.engines import redis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen

    from tests.environments import Environment

CALLS = 40
PAGE = ROOT / "docs" / "evidence" / "process-ends.md"
BEGIN, END = "<!-- ends: written by scripts/process-ends -->\n", "<!-- ends: end -->\n"
_PROGRAMS = Path(__file__).parent
PROGRAM = _PROGRAMS / "ends_program.py"
#: So long that nothing is sent but at an end.
LONG = {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
_DELTA = {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"}
#: No machine is so slow; what ends sooner is seen at once.
_PATIENCE = 300


@dataclass(frozen=True)
class End:
    """A way to end: its title in the table, the environment it runs in, and what runs it."""

    title: str
    environment: str
    run: Callable[[Environment, dict[str, str], Path], None]
    #: Spans of one call: its own, and its task's.
    spans: int = 1


@dataclass(frozen=True)
class Arrived:
    """The numbers that a collector got: distinct spans, calls that the metrics count, spans that came again."""

    spans: int
    metric: int
    twice: int


def measure(end: End, servers: Environment, *, flush: bool) -> Arrived:
    """Make the calls, end the program, and count what arrives; ``flush`` is the documented setting."""
    with OtlpReceiver() as receiver, tempfile.TemporaryDirectory(prefix="ends-") as folder:
        env = {
            **receiver.environment(),
            **LONG,
            **_DELTA,
            "OTEL_METRICS_EXPORTER": "otlp",
            "AGENT_OTEL": "1",
            "AGENT_OTEL_FLUSH_ON_SIGTERM": str(int(flush)),
            "PYTHONPATH": str(_PROGRAMS),
            "FOLDER": folder,
        }
        end.run(servers, env, Path(folder))
    spans = Counter(
        (span.name, span.attributes.get("tool.args_hash") or span.span_id)
        for span in receiver.spans
        if span.name.startswith("execute_")
    )
    counted = sum(point.count for point in receiver.points if point.name == "agent_otel.tool.args.size")
    return Arrived(len(spans), counted, sum(spans.values()) - len(spans))


def _script(how: str, number: signal.Signals | None = None) -> Callable[[Environment, dict[str, str], Path], None]:
    def run(servers: Environment, env: dict[str, str], folder: Path) -> None:
        command = (str(servers.python), str(PROGRAM), how, str(CALLS))
        with servers.start(*command, env=env, cwd=folder) as running:
            if number is not None:
                assert running.stdout is not None
                assert "called\n" == running.stdout.readline()
                running.send_signal(number)
            running.communicate(timeout=_PATIENCE)

    return run


def _server(program: str, *options: str, pause: float = 0.0) -> Callable[[Environment, dict[str, str], Path], None]:
    """Ask a server for each call, then stop it with SIGTERM."""

    def run(servers: Environment, env: dict[str, str], folder: Path) -> None:
        path = folder / "socket"
        command = (str(servers.program(program)), *(option.format(socket=path) for option in options))
        with servers.start(*command, env=env, cwd=folder) as running:
            for number in range(CALLS):
                assert "x" == _get(path, f"/{number}", running)
                time.sleep(pause)
            running.terminate()
            running.communicate(timeout=_PATIENCE)

    return run


def _get(path: Path, url: str, server: Popen[str]) -> str:
    """Ask a server that listens on a Unix socket; wait until it does."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(_Connection(path)) as asking:
            asking.request("GET", url)
            return asking.getresponse().read().decode()
        time.sleep(0.05)
    server.kill()
    raise AssertionError("\n".join(server.communicate()))


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket: no port to be taken."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock: Any = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def _celery(*options: str) -> Callable[[Environment, dict[str, str], Path], None]:
    """Have a worker do all tasks, then stop it with SIGTERM, warmly."""

    def run(servers: Environment, env: dict[str, str], folder: Path) -> None:
        command = (str(servers.program("celery")), "-A", "ends_celery", "worker", "-c", "2", *options)
        with redis.server() as url, (folder / "log").open("w+") as log:
            quiet = {**env, "REDIS_URL": url, "AGENT_OTEL": "0"}
            environ = servers.environ({**quiet, "AGENT_OTEL": "1"})
            worker = subprocess.Popen(command, env=environ, cwd=folder, stdout=log, stderr=log)
            try:
                servers.run(_PROGRAMS / "ends_celery.py", str(CALLS), env=quiet, timeout=_PATIENCE, check=True)
                worker.terminate()
                assert worker.wait(_PATIENCE) == 0, (folder / "log").read_text()
            finally:
                worker.kill()
                worker.wait()

    return run


def _dask(servers: Environment, env: dict[str, str], folder: Path) -> None:
    servers.run(_PROGRAMS / "ends_dask.py", str(CALLS), env=env, timeout=_PATIENCE, cwd=folder, check=True)


_BOUND = ("--bind", "unix:{socket}", "ends_program:wsgi")
_ASGI = ("--bind", "unix:{socket}", "ends_program:asgi")
_UDS = ("--lifespan", "off", "--uds", "{socket}", "ends_program:asgi")
_RECYCLED = ("--max-requests", "7")

ENDS = (
    End("Python: the end of the program", "bare", _script("return")),
    End("Python: an exception", "bare", _script("exception")),
    End("Python: `sys.exit`", "bare", _script("sys.exit")),
    End("Python: SIGINT", "bare", _script("signal", signal.SIGINT)),
    End("Python: SIGTERM", "bare", _script("signal", signal.SIGTERM)),
    End("Python: SIGHUP", "bare", _script("signal", signal.SIGHUP)),
    End("uvicorn", "servers", _server("uvicorn", *_UDS)),
    End("uvicorn, 2 workers", "servers", _server("uvicorn", "--workers", "2", *_UDS)),
    End("gunicorn, sync", "servers", _server("gunicorn", "-w", "2", *_BOUND)),
    End("gunicorn, gthread", "servers", _server("gunicorn", "-w", "2", "-k", "gthread", *_BOUND)),
    End("gunicorn, `--max-requests`", "servers", _server("gunicorn", *_RECYCLED, *_BOUND)),
    End(
        "gunicorn, `uvicorn.workers.UvicornWorker`",
        "servers",
        _server("gunicorn", "-w", "2", "-k", "uvicorn.workers.UvicornWorker", *_ASGI),
    ),
    End(
        "gunicorn, `uvicorn_worker.UvicornWorker`",
        "servers",
        _server("gunicorn", "-w", "2", "-k", "uvicorn_worker.UvicornWorker", *_ASGI),
    ),
    End(
        "gunicorn, UvicornWorker, `--max-requests`",
        "servers",
        # It looks each 0.1 s how many requests there were.
        _server("gunicorn", "-k", "uvicorn_worker.UvicornWorker", *_RECYCLED, *_ASGI, pause=0.05),
    ),
    End("Celery, prefork", "celery", _celery("-P", "prefork"), spans=2),
    End("Celery, prefork, `--max-tasks-per-child`", "celery", _celery("--max-tasks-per-child", "7"), spans=2),
    End("Celery, threads", "celery", _celery("-P", "threads"), spans=2),
    End("Celery, solo", "celery", _celery("-P", "solo"), spans=2),
    End("multiprocessing, fork", "bare", _script("fork close")),
    End("multiprocessing, spawn", "bare", _script("spawn close")),
    End("multiprocessing, forkserver", "bare", _script("forkserver close")),
    End("multiprocessing, fork, `Pool.terminate`", "bare", _script("fork terminate")),
    End("multiprocessing, spawn, `Pool.terminate`", "bare", _script("spawn terminate")),
    End("`ProcessPoolExecutor`, spawn", "bare", _script("spawn executor")),
    End("Dask, local workers under nannies", "dask", _dask),
)
#: Ends that leave no time to send anything.
LOST = (
    End("Python: `os._exit`", "bare", _script("os._exit")),
    End("Python: SIGKILL", "bare", _script("signal", signal.SIGKILL)),
)


def table(ends: Mapping[End, tuple[Arrived, Arrived]]) -> str:
    """Return the table: what is lost by default, and with the setting."""
    head = (
        "| how it ends | spans lost by default | calls lost in metrics by default | spans lost with the setting "
        "| calls lost in metrics with the setting |\n| --- | --- | --- | --- | --- |\n"
    )
    return head + "".join(
        f"| {end.title} | " + " | ".join(part for arrived in both for part in _lost(end, arrived)) + " |\n"
        for end, both in ends.items()
    )


def _lost(end: End, arrived: Arrived) -> tuple[str, str]:
    made = CALLS * end.spans
    return f"{made - arrived.spans} of {made}", f"{CALLS - arrived.metric} of {CALLS}"


def main() -> None:
    """Measure all ends, print the table, and with ``--write`` write it into the page."""
    found = {}
    for end in (*ENDS, *LOST):
        servers = environments.environment(end.environment)
        found[end] = measure(end, servers, flush=False), measure(end, servers, flush=True)
        print(end.title, *found[end], file=sys.stderr)
    written = table(found)
    print(written)
    if "--write" in sys.argv:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + written + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
