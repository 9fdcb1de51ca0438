"""A long run under load: every call counted, memory flat, a bad collector felt by nobody.

``scripts/soak`` runs it, and ``scripts/soak --write`` writes the figures into docs/evidence/load.md. The measured
program is a process of its own. This one scrapes it each second and receives its metrics by OTLP. The expected figures
are computed from the plan of the calls, not from what the package counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import selectors
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.soak_program import Plan
from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ROOT = Path(__file__).resolve().parent.parent
_PAGE = _ROOT / "docs" / "evidence" / "load.md"
_BEGIN, _END = "<!-- {part}: written by scripts/soak -->\n", "<!-- {part}: end -->\n"
#: What a bad collector may add to a call, and to the end of a program.
DELAY_SECONDS = 0.005
EXIT_SECONDS = 6.0
#: Seconds that the host may take of a row, above which the delays of single calls are not judged.
_MOST_STOLEN = 0.5
#: How much the memory may grow after the first tenth of the calls.
GROWTH = 1.05

_FIGURES = ("p50 µs", "p99.9 µs", "max ms", "above 5 ms")
_console = Console(width=200)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and return 1 if a figure is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000, help="calls of the soak (default: 1,000,000)")
    parser.add_argument("--only", choices=("load", "collectors"), help="one of the two parts")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/evidence/load.md")
    options = parser.parse_args(arguments)
    parts = {"load": lambda: soak(Plan(options.calls)), "collectors": collectors}
    failures = []
    for name in [options.only] if options.only else parts:
        report = parts[name]()
        failures += report.failures
        if options.write:
            write(name, report.text)
    for failure in failures:
        _console.print(f"[red]{failure}")
    return int(bool(failures))


class Report(NamedTuple):
    """The figures of one part in Markdown, and those that are not as they must be."""

    text: str
    failures: list[str]


def write(part: str, figures: str) -> None:
    """Write the figures of a part into the page, between its markers."""
    begin, end = _BEGIN.format(part=part), _END.format(part=part)
    before, _, rest = _PAGE.read_text(encoding="utf-8").partition(begin)
    _PAGE.write_text(before + begin + figures + end + rest.partition(end)[2], encoding="utf-8")


def soak(plan: Plan) -> Report:
    """Make all calls of a plan, scraped each second, and compare what arrived with the plan."""
    port = _free_port()
    with OtlpReceiver() as receiver:
        env = {
            **receiver.environment("http/protobuf"),
            "AGENT_OTEL_METRICS": "both",
            "AGENT_OTEL_PROMETHEUS_PORT": str(port),
            "OTEL_METRICS_EXPORTER": "otlp",
        }
        began = time.monotonic()
        with _program("soak", str(plan.calls), env=env) as program:
            scrapes = _scrape_until_done(program, port)
            last = _scrape(port)
            said = _finished(program)
        pushed = {name: sum(_sums(receiver.latest(name))) for name in ("agent_otel.tool.result.size",)}
    seconds = time.monotonic() - began
    rows = {
        "calls on spans": (plan.calls, said["spans"]),
        "spans of executions": (plan.runs, said["runs"]),
        "bytes on spans": (plan.bytes, said["span_bytes"]),
        "calls scraped": (plan.calls, _total(last, "agent_otel_tool_args_size_bytes_count")),
        "results scraped": (plan.calls - plan.failures, _total(last, "agent_otel_tool_result_size_bytes_count")),
        "bytes scraped": (plan.bytes, _total(last, "agent_otel_tool_result_size_bytes_sum")),
        "bytes pushed": (plan.bytes, pushed["agent_otel.tool.result.size"]),
        "internal errors": (0, _total(last, "agent_otel_internal_errors_total")),
    }
    title = f"{plan.calls:,} calls in {seconds:,.0f} s, {scrapes} scrapes"
    cells = [(name, f"{planned:,.0f}", f"{counted:,.0f}") for name, (planned, counted) in rows.items()]
    sizes = said["resident"]
    memory = f"Resident MB in each tenth (median of ten readings): {', '.join(f'{size / 1e6:.1f}' for size in sizes)}"
    text = _table(title, ("figure", "planned", "counted"), cells) + f"\n{memory}.\n"
    _console.print(memory)
    failures = [f"{name}: {counted:,.0f}, not {planned:,.0f}" for name, (planned, counted) in rows.items()
                if planned != counted]  # fmt: skip
    if max(sizes[1:]) > GROWTH * sizes[0]:
        failures.append(f"memory grew by {max(sizes[1:]) / sizes[0] - 1:.1%} after the first tenth")
    return Report(text, failures)


def collectors() -> Report:
    """Make paced calls against collectors of every kind and compare the delays with those of none."""
    failures = []
    cells = []
    with contextlib.ExitStack() as stack:
        endpoints = {
            "none": "",
            "healthy": stack.enter_context(OtlpReceiver()).environment("http/protobuf")["OTEL_EXPORTER_OTLP_ENDPOINT"],
            "dead": f"http://127.0.0.1:{_free_port()}",
            "hanging": stack.enter_context(_answering(None)),
            "slow (5 s)": stack.enter_context(_answering("200 OK", seconds=5)),
            "refusing (503)": stack.enter_context(_answering("503 Service Unavailable")),
        }
        for name, endpoint in endpoints.items():
            env = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
            env = {**env, "OTEL_METRICS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "otlp"} if endpoint else {}
            stolen = _stolen_seconds()
            alone, _ = _paced("sdk", env)
            ours, took = _paced("paced", env)
            stolen = _stolen_seconds() - stolen
            cells.append((name, *_figures(alone), *_figures(ours), f"{took:.1f}", f"{stolen:.1f}"))
            if took > EXIT_SECONDS:
                failures.append(f"{name} collector: the program ended after {took:.1f} s")
            if _late(ours) > _late(alone) and stolen < _MOST_STOLEN:
                failures.append(f"{name} collector: {_late(ours)} calls took more than {DELAY_SECONDS * 1e3:.0f} ms")
    head = (
        "collector",
        *(f"{who}: {what}" for who in ("SDK alone", "agent_otel") for what in _FIGURES),
        "exit s",
        "stolen s",
    )
    return Report(_table("Delay of a call, 8,000 calls for each collector", head, cells), failures)


def _stolen_seconds() -> float:
    """Return the seconds for which the host of a virtual machine has kept its cores so far."""
    return int(Path("/proc/stat").read_text(encoding="ascii").split()[8]) / os.sysconf("SC_CLK_TCK")


def _paced(mode: str, env: dict[str, str]) -> tuple[list[float], float]:
    """Return the seconds of each call, sorted, and those that the program took to end."""
    with _program(mode, "8000", env=env) as program:
        said = json.loads(_output(program).readline())
        began = time.monotonic()
        program.wait()
        return sorted(said["delays"]), time.monotonic() - began


def _figures(delays: list[float]) -> tuple[str, ...]:
    """Return the cells of ``_FIGURES``."""
    middle, high = delays[len(delays) // 2], delays[len(delays) * 999 // 1000]
    return f"{middle * 1e6:.0f}", f"{high * 1e6:.0f}", f"{delays[-1] * 1e3:.1f}", f"{_late(delays)}"


def _late(delays: list[float]) -> int:
    """Return the number of calls that took longer than a bad collector may make them."""
    return sum(delay > DELAY_SECONDS for delay in delays)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Print a table, and return it in Markdown."""
    table = Table(*head, title=title)
    for row in rows:
        table.add_row(*row)
    _console.print(table)
    lines = (head, ["---"] * len(head), *rows)
    return f"{title}:\n\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines)


@contextlib.contextmanager
def _program(*arguments: str, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run the measured program with the switch on."""
    command = (sys.executable, "-m", "benchmarks.soak_program", *arguments)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "AGENT_OTEL"))}
    with subprocess.Popen(
        command,
        cwd=_ROOT,
        env={**own, "AGENT_OTEL": "1", **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def _scrape_until_done(program: subprocess.Popen[str], port: int) -> int:
    """Scrape each second until the program says that all calls are made; return how often it answered."""
    scrapes = 0
    with contextlib.ExitStack() as stack:
        done = stack.enter_context(_reader(program))
        while not done():
            with contextlib.suppress(OSError):
                _scrape(port)
                scrapes += 1
            time.sleep(1)
    return scrapes


@contextlib.contextmanager
def _reader(program: subprocess.Popen[str]) -> Iterator[Any]:
    """Give a function that tells whether a line stands ready on the program's output."""
    with selectors.DefaultSelector() as selector:
        selector.register(_output(program), selectors.EVENT_READ)
        yield lambda: bool(selector.select(0)) or program.poll() is not None


def _output(program: subprocess.Popen[str]) -> IO[str]:
    if program.stdout is None:
        raise RuntimeError("the program was started without a pipe")
    return program.stdout


def _finished(program: subprocess.Popen[str]) -> dict[str, Any]:
    """Let the program end and return what it reported."""
    output, _ = program.communicate("end\n")
    if program.returncode:
        raise RuntimeError(f"the program ended with {program.returncode}")
    report: dict[str, Any] = json.loads(output.splitlines()[-1])
    return report


def _scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def _total(page: str, name: str) -> float:
    """Return the sum of a series over all its labels."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:\{{[^\n]*\}})? (\S+)", page, re.MULTILINE))


def _sums(points: Any) -> Iterator[float]:
    for point in points:
        yield point.sum


@contextlib.contextmanager
def _answering(status: str | None, seconds: float = 0) -> Iterator[str]:
    """Serve a status after a while, or without a status nothing at all; give the address."""
    program = (
        "import socket, sys, threading, time\n"
        "server = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "def serve(connection):\n"
        "    connection.recv(65536)\n"
        "    if sys.argv[2] == 'None': time.sleep(1e6)\n"
        "    time.sleep(float(sys.argv[3]))\n"
        "    head = f'HTTP/1.1 {sys.argv[2]}\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n'\n"
        "    connection.sendall(head.encode())\n"
        "    connection.close()\n"
        "while True:\n"
        "    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()\n"
    )
    port = _free_port()
    with subprocess.Popen((sys.executable, "-c", program, str(port), str(status), str(seconds))) as server:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


if __name__ == "__main__":
    sys.exit(main())
