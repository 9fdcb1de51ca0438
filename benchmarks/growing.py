"""One part of `benchmarks.growth` in a process of its own; prints a JSON object."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.system.engines.starting import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RESULT = "x" * 2_000


def tools(count: int, agents: int) -> list[Any]:
    """Return a measured function for each tool of each agent."""
    import agent_otel
    import agent_otel.auto

    def made(name: str, agent: str) -> Any:
        @agent_otel.tool(name=name, agent=agent)
        def search(query: str) -> str:
            """Answer with text."""
            return RESULT

        return search

    return [made(f"tool_{number}", f"agent_{agent}") for agent in range(agents) for number in range(count)]


def series(count: int, agents: int) -> dict[str, Any]:
    """Measure a call and a scrape beside many series."""
    os.environ.update(AGENT_OTEL="1", AGENT_OTEL_METRICS="prometheus")
    from prometheus_client import REGISTRY, generate_latest

    functions = tools(count, agents)
    for _ in range(50):
        for function in functions:
            function("where is it")
    calls, scrapes = [], []
    for _ in range(30):
        began = time.thread_time()
        for _ in range(max(1, 2_000 // len(functions))):
            for function in functions:
                function("where is it")
        calls.append((time.thread_time() - began) / (max(1, 2_000 // len(functions)) * len(functions)))
    for _ in range(10):
        began = time.thread_time()
        page = generate_latest(REGISTRY)
        scrapes.append(time.thread_time() - began)
    lines = [line for line in page.decode().splitlines() if line.startswith(("agent_otel", "gen_ai"))]
    return {
        "series": len(lines), "call_us": min(calls) * 1e6, "scrape_ms": min(scrapes) * 1e3,
        "scrape_bytes": sum(map(len, lines)),
        "buckets": sum("_bucket{" in line for line in lines),
    }  # fmt: skip


def spans(rate: int, seconds: int, collector: str = "") -> dict[str, Any]:
    """Call a tool at a rate, and count the spans that arrive, where the program ``collector`` passes them on."""
    with _receiver() as (endpoint, ended):
        with _passing_on(collector, endpoint) as (taking, spent):  # which ends first, and passes on what it has
            found = {**send(taking, _at(rate, seconds)), "collector_cpu": spent()}
        return {**found, **ended()}


@contextlib.contextmanager
def _passing_on(program: str, onward: str) -> Iterator[tuple[str, Callable[[], float]]]:
    """Run a collector; give its endpoint, and a function that returns the seconds of processor time it has taken."""
    if not program:
        yield onward, lambda: 0.0
        return
    endpoint = f"127.0.0.1:{free_port()}"
    config = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": endpoint}}}},
        "exporters": {"otlp_http": {"endpoint": onward, "compression": "none"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["otlp_http"]}},
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.yaml").write_text(json.dumps(config))
        command = [program, f"--config={folder}/config.yaml"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                with socket.socket() as probe:
                    while probe.connect_ex(("127.0.0.1", int(endpoint.rpartition(":")[2]))):
                        time.sleep(0.2)
                before = _processor_seconds(process.pid)
                yield f"http://{endpoint}", lambda: _processor_seconds(process.pid) - before
            finally:
                process.terminate()


def _processor_seconds(pid: int) -> float:
    """Return the processor time of another process, from Linux' /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _receiver() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Run `receive` in a process; give its endpoint, and a function that ends it and returns what it received."""
    command = [sys.executable, "-m", "benchmarks.growing", "receive"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        endpoint = process.stdout.readline().strip() if process.stdout else ""
        yield endpoint, lambda: json.loads(process.communicate()[0])


def _at(rate: int, seconds: int) -> Iterator[str]:
    """Yield as often as a rate asks for, in steps of 10 ms."""
    began, made = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        for _ in range(int(passed * rate) - made):
            made += 1
            yield "where is it"
        time.sleep(0.01)


def send(endpoint: str, queries: Iterator[str]) -> dict[str, Any]:
    """Make a span for each query and send it to an OTLP endpoint; each is a trace of its own."""
    os.environ.update(AGENT_OTEL="1", AGENT_OTEL_METRICS="prometheus")
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    trace.set_tracer_provider(provider)
    (function,) = tools(1, 1)
    function("where is it")
    provider.force_flush()
    began, cpu, made = time.perf_counter(), time.process_time(), 1
    for query in queries:
        function(query)
        made += 1
    seconds = time.perf_counter() - began
    spent = time.process_time() - cpu
    provider.shutdown()
    return {"made": made, "seconds": seconds, "cpu": spent}


def receive() -> dict[str, Any]:
    """Receive spans until standard input ends; the endpoint is printed first."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )

    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    import threading

    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()
    requests = [ExportTraceServiceRequest.FromString(body) for body in bodies]
    groups = [group for request in requests for group in request.resource_spans]
    received = sum(len(scope.spans) for group in groups for scope in group.scope_spans)
    server.shutdown()
    return {"received": received, "bytes": sum(map(len, bodies))}


if __name__ == "__main__":
    part, *given = sys.argv[1:]
    chosen: Any = {"series": series, "spans": spans, "receive": receive}[part]
    print(json.dumps(chosen(*(int(value) if value.isdigit() else value for value in given))))
