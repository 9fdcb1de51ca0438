"""The telemetry of a process: providers, sinks and endpoint, resolved once at the first measured call."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import hmac
import io
import json
import logging
import os
import platform
import queue
import secrets
import stat
import sys
import threading
import time
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv, settings
from agent_otel._bootstrap import import_hook
from agent_otel._internal import __version__, errors, fork
from agent_otel.settings.kinds import keys_of
from agent_otel.telemetry import providers
from agent_otel.telemetry.metrics import MOST_SETS, Labels, Metrics, costliest, labelled, usual_before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opentelemetry.trace import Tracer

    from agent_otel.semconv.types import Metric
    from agent_otel.settings import Settings
    from agent_otel.telemetry.sinks import Sink
    from agent_otel.telemetry.sinks.otel import OTelSink


_NOWHERE = (
    "AGENT_OTEL_METRICS=otel, but the program has no MeterProvider and no OTEL_* variable names an exporter: "
    "what is counted until the program sets one is lost"
)
#: Seconds without a new attempt after a first use that failed; doubled with each failure that follows.
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 300.0
#: The telemetry of this process; None before the first measured call.
resolved: Telemetry | None = None
#: The providers that this package has built, their guarded flush functions, and the events to set after a flush.
_owned: list[tuple[object, Callable[[], object], queue.SimpleQueue[threading.Event]]] = []
_integrations: dict[tuple[str, str], str] = {}
_lock = threading.Lock()
#: The thread that resolves telemetry while the lock is held.
_resolver: int | None = None


class UnavailableError(Exception):
    """Telemetry is being resolved in this thread, or could not be a short time ago and the next attempt is not due."""


#: Seconds without a new attempt, and when the next one is due: each costs milliseconds and files that are read.
_wait = _due = 0.0


def _check() -> None:
    """Raise UnavailableError while no attempt is due."""
    if _wait and time.monotonic() < _due:
        raise UnavailableError


class Telemetry:
    """The tracer, the metrics and the settings of this process, for the runs of one agent and workflow.

    ``values`` are those of the program's labels. ``base`` is the telemetry of what no run moves.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the differences between runs
        self,
        chosen: Settings,
        tracer: Tracer | None,
        sinks: list[Sink],
        values: tuple[str, ...] | None = None,
        base: Telemetry | None = None,
        run: tuple[str, str] = ("", ""),
    ) -> None:
        #: The labels of the program; None without any, and where the values are given.
        self.labels = Labels(chosen.labels) if chosen.labels and values is None else None
        names, fixed = _fixed(chosen.labels)
        values = fixed if values is None else values
        self.agent, self.workflow = run
        named = (*zip(names, values, strict=True), (semconv.AGENT_NAME, run[0]), (semconv.WORKFLOW_NAME, run[1]))
        self.label_attributes = {name: value for name, value in named if value}
        self.sinks = sinks
        limits: Metrics | None = None if base is None else base.metrics
        self.metrics: Metrics = Metrics(sinks, chosen.large_result_bytes, chosen.remedies, names, values, limits, run)
        self._by_values: dict[tuple[str, ...], Telemetry] = {}
        self._values = values
        #: By agent and workflow.
        self.by_run: dict[tuple[str, str], Telemetry] = {run: self} if base is None else base.by_run
        self.settings = chosen
        self.tracer = tracer
        self.captures = chosen.capture_content
        self.args_key: bytes = _args_key(chosen) if base is None else base.args_key

    def of(self, run: tuple[str, str]) -> Telemetry:
        """Return the telemetry of the runs of an agent and a workflow; beyond their limits that of ``_other``."""
        found = self.by_run.get(run)
        if found is not None:
            return found
        base = self.by_run["", ""]
        limit = base.metrics.limit
        run = limit(semconv.AGENT_NAME, run[0]), limit(semconv.WORKFLOW_NAME, run[1])
        if semconv.OTHER in run or (len(self.by_run) > MOST_SETS and run not in self.by_run):
            run = run[0] and semconv.OTHER, run[1] and semconv.OTHER
        found = self.by_run.get(run)
        if found is None:
            found = Telemetry(self.settings, self.tracer, self.sinks, self._values, base, run)
            found.metrics.announce(self.settings.limits)
            found = self.by_run.setdefault(run, found)
        return found

    def labelled(self) -> Telemetry:
        """Return the telemetry whose metrics and spans have the program's labels of this context."""
        values = () if self.labels is None else self.labels.now()
        found = self._by_values.get(values)
        if found is None:
            found = Telemetry(self.settings, self.tracer, self.sinks, values)
            found.args_key = self.args_key
            if self.labels is None or values != self.labels.fixed:  # alerts look for the start with a counter's labels
                found.metrics.record(semconv.PROCESS_START, time.time())
            found = self._by_values.setdefault(values, found)
        return found


def _args_key(chosen: Settings) -> bytes:
    """Return the key of the arguments' hashes: that of processes with equal secrets, else this process's own."""
    if chosen.hash_key:
        return chosen.hash_key.encode("utf-8", "surrogateescape")
    secret = next(iter(keys_of(chosen.claim_check_key)), None)
    if secret is None:
        return secrets.token_bytes(32)
    return hmac.digest(secret.encode("utf-8", "surrogateescape"), semconv.ARGS_HASH.encode(), "sha256")


def of_run(agent: str | None, workflow: str | None) -> tuple[str, str]:
    """Return the agent and the workflow of the run in this context; `agent_otel.core.tool_visit` replaces this."""
    return agent or "", workflow or ""


def telemetry(agent: str | None = None, workflow: str | None = None) -> Telemetry:
    """Return the telemetry of the run in this context; the first call resolves providers, sinks and the endpoint.

    The given names are those of a call, a request or a payload; the run's own ones come first.

    Raises:
        UnavailableError: this has failed, and is not to be tried again yet.
    """
    out = resolved
    if out is None:
        out = _first()
    if out.labels is not None:
        out = out.labelled()
    return out.of(of_run(agent, workflow))


def _first() -> Telemetry:
    if _lock.locked() and _resolver == threading.get_ident():
        # A handler of the program's log or of a signal calls a tool, and must not wait for the thread that it is in.
        raise UnavailableError
    _check()
    with fork.loading, _lock:
        if resolved is not None:
            return resolved
        _check()  # another thread may have failed meanwhile
        first, spans, metrics = _use_first()
    measured = {name: version for (name, target), version in list(_integrations.items()) if target != "unmatched"}
    names = ", ".join(f"{name} {version}".rstrip() for name, version in sorted(measured.items()))
    text = f"agent_otel {__version__} measures {names or 'calls that the program hands to it'}. {spans} {metrics}"
    errors.warn_once("first use", text, level=logging.INFO)
    if not first.settings.quiet and not logging.root.handlers:
        _show(f"{text} AGENT_OTEL_QUIET=1 ends this line.\n")
    return first


@errors.guarded("first.show")
def _show(line: str) -> None:
    if type(sys.stderr) is io.TextIOWrapper and sys.stderr.isatty():
        sys.stderr.write(line)


def _use_first() -> tuple[Telemetry, str, str]:
    global resolved, _resolver, _wait, _due  # noqa: PLW0603 - resolved once per process
    _resolver = threading.get_ident()
    try:
        first, spans, metrics = _resolve(settings.current())
        for (name, target), version in list(_integrations.items()):
            first.metrics.record(semconv.INSTRUMENTATION_INFO, 1, name, version, target)
    except Exception:
        _wait = min(2 * _wait or _FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS)
        _due = time.monotonic() + _wait
        raise
    errors.handler = first.metrics.count_internal_error(errors.handler)
    resolved = first
    return first, spans, metrics


def report_integration(name: str, version: str, target: str) -> None:
    """Publish the version and a wrapped function of an integration, now or when telemetry is resolved."""
    # Without the lock: this runs inside an import of the program, and resolving imports while it holds the lock.
    _integrations[name, target] = version
    if resolved is not None:
        resolved.metrics.record(semconv.INSTRUMENTATION_INFO, 1, name, version, target)


def integrations() -> dict[str, list[str]]:
    """Return what was reported of each integration: the first function wrapped at each site, or `unmatched`."""
    targets: dict[str, list[str]] = {}
    for name, target in _integrations:
        targets.setdefault(name, []).append(target)
    return targets


def unpublished() -> list[tuple[Metric, tuple[str, ...]]]:
    """Return the gauges of value 1, with label values, that the first call publishes; none after it."""
    if resolved is not None:
        return []
    chosen = settings.current()
    names, fixed = _fixed(chosen.labels)
    found = [(semconv.BUILD_INFO, _build(chosen))]
    for (name, target), version in list(_integrations.items()):
        found.append((semconv.INSTRUMENTATION_INFO, (name, version, target)))
    return [(labelled(metric, names), (*values, *fixed)) for metric, values in found]


def _fixed(labels: tuple[tuple[str, str | None], ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of labels, and their values in the setting."""
    return tuple(name for name, _ in labels), tuple(value or "" for _, value in labels)


def _build(chosen: Settings) -> tuple[str, ...]:
    return __version__, platform.python_version(), "true" if chosen.scales_to_zero else ""


def _resolve(chosen: Settings) -> tuple[Telemetry, str, str]:
    """Return the telemetry, and a sentence each on where spans and metrics go."""
    tracer = None
    exporting = owned = False
    if chosen.spans != "off" and not providers.sdk_disabled():
        provider, owned = providers.provider("TRACES", build=chosen.sdk)
        tracer = provider.get_tracer(semconv.SCOPE, __version__)
        exporting = not providers.is_placeholder(provider)
        if owned:
            _own(provider)
    spans = of_spans(chosen.spans, exporting=exporting, owned=owned)
    sinks, where = _sinks(chosen)
    made = Telemetry(chosen, tracer, sinks)
    made.metrics.announce(chosen.limits)
    made.metrics.record(semconv.PROCESS_START, time.time())
    made.metrics.record(semconv.BUILD_INFO, 1, *_build(chosen))
    if chosen.status_file:

        def described() -> dict[str, object]:
            names = {"integrations": integrations(), "spans": spans, "metrics": where}
            series = [one for of in list(made.by_run.values()) for one in list(of.metrics.tools.items())]
            usual = {tool: one.usual for tool, one in series if one.usual}
            return {**names, "warnings": errors.warnings(), "costliest": costliest.rows(), "usual_bytes": usual}

        usual_before.update(_usual_before(chosen.status_file) or {})
        _keep_status(chosen.status_file, described)
    return made, spans, where


def _sinks(chosen: Settings) -> tuple[list[Sink], str]:
    """Return the sinks of metrics, and a sentence on them."""
    sinks: list[Sink] = []
    provider, owned = None, False
    keeps = registry_keeps() if chosen.metrics == "auto" else ""
    if chosen.metrics in ("auto", "otel", "both") and not providers.sdk_disabled():
        provider, owned = providers.provider("METRICS", build=chosen.sdk and not keeps)
        if provider is None and chosen.metrics != "auto":
            from opentelemetry import metrics  # noqa: PLC0415 - a proxy, until the program sets its provider

            provider = metrics.get_meter_provider()
            if chosen.metrics == "otel":
                errors.warn_once("metrics nowhere", _NOWHERE)
        if provider is not None:
            from agent_otel.telemetry.sinks import otel  # noqa: PLC0415 - only the sinks in use are loaded

            sinks.append(made := otel.OTelSink(provider.get_meter(semconv.SCOPE, __version__)))
            if owned:
                _own(provider)
                fork.after_fork(functools.partial(_begin_anew, provider, made, chosen.labels))
    where = of_metrics(chosen.metrics, keeps, pushed=bool(sinks), owned=owned)
    wanted = chosen.metrics in ("prometheus", "both") or (chosen.metrics == "auto" and not sinks)
    if wanted or (chosen.prometheus_port and chosen.metrics != "off"):
        from agent_otel.telemetry.sinks import prometheus  # noqa: PLC0415

        prometheus.prepare(chosen)
        if not prometheus.has_reader(provider):  # or each number would stand there twice
            sinks.append(prometheus.sink())
        if chosen.prometheus_port:
            from agent_otel.telemetry import metrics_server  # noqa: PLC0415

            metrics_server.endpoint.use(chosen.prometheus_host, chosen.prometheus_port)
            where += f" /metrics is on port {chosen.prometheus_port}."
    return sinks, where


@errors.guarded("emit.fork")
def _begin_anew(provider: object, sink: OTelSink, labels: tuple[tuple[str, str | None], ...]) -> None:
    """Count from 0 in a forked child, and record since when; the counts of a registry go on there."""
    providers.forget_counts(provider)
    sink.forget_counts()
    names, fixed = _fixed(labels)
    for values in {fixed} if resolved is None else {fixed, *resolved._by_values}:  # noqa: SLF001 - of this module
        sink.series(labelled(semconv.PROCESS_START, names), values).record(time.time())


def _renew_lock() -> None:
    """Renew the lock, which another thread of the parent process may have held."""
    global _lock  # noqa: PLW0603 - renewed in the child
    _lock = threading.Lock()


fork.after_fork(_renew_lock)

#: The client's functions that write an exposition, or return the function that does.
_WRITERS: Final = frozenset({"generate_latest", "choose_encoder"})

# Where telemetry goes: the metric sink of ``AGENT_OTEL_METRICS=auto``, and the text for the log.


def registry_keeps() -> str:
    """Return the reason why metrics stay in the registry although an OTLP endpoint is set; empty when they do not.

    An endpoint alone is usually set for traces. Variables that name metrics decide without this rule.
    """
    if os.environ.get("OTEL_METRICS_EXPORTER", "").strip() or os.environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        return ""
    if not providers.exporter_names("METRICS"):
        return ""
    if os.environ.get("OTEL_TRACES_EXPORTER", "").strip() and providers.exporter_names("TRACES"):
        return "only OTEL_TRACES_EXPORTER names an exporter"
    return "the program exposes it" if _is_exposed() else ""


def of_spans(spans: str, *, exporting: bool, owned: bool) -> str:
    """Return a sentence on the destination of spans; ``spans`` is the setting."""
    if spans == "off":
        return "Spans are off."
    if providers.sdk_disabled():
        return "Spans are off, because OTEL_SDK_DISABLED is true."
    if owned:
        return "Spans are pushed by the exporter that the OTEL_* variables name."
    if exporting:
        return "Spans go to the program's own TracerProvider."
    return "Spans are exported once the program sets a TracerProvider."


def of_metrics(metrics: str, keeps: str, *, pushed: bool, owned: bool) -> str:
    """Return a sentence on the destination of metrics and its reason; ``metrics`` is the setting."""
    if metrics == "off":
        return "Metrics are off."
    if metrics == "prometheus":
        return "Metrics are in prometheus_client's registry."
    also = " They are in prometheus_client's registry as well." if metrics == "both" else ""
    if keeps and not pushed:
        return (
            f"Metrics stay in prometheus_client's registry, because {keeps}. OTEL_METRICS_EXPORTER=otlp pushes them "
            "instead, AGENT_OTEL_METRICS=both does both."
        )
    if owned:
        return f"Metrics are pushed by the exporter that the OTEL_* variables name.{also}"
    if pushed:
        return f"Metrics go to the program's own MeterProvider.{also}"
    return "Metrics are in prometheus_client's registry: no provider and no exporter is there for them."


def _is_exposed() -> bool:
    """Return True when the program serves the default registry through a server, an application or its own handler."""
    package = sys.modules.get("prometheus_client")
    if package is None:
        return False
    # start_http_server, make_wsgi_app and make_asgi_app return closures over the registry that they serve.
    if any(type(referrer) is CellType for referrer in gc.get_referrers(package.REGISTRY)):
        return True
    return bool(os.environ.get("PROMETHEUS_MULTIPROC_DIR")) or any(
        type(module) is ModuleType
        and name.partition(".")[0] not in ("agent_otel", "opentelemetry", "prometheus_client")
        and _serves(vars(module), package)
        for name, module in sys.modules.copy().items()
    )


def _serves(names: Mapping[str, object], package: Any) -> bool:
    """Return True when a module has one of the client's writers, or a function that calls one."""
    if any(name in names and names[name] is getattr(package.exposition, name, None) for name in _WRITERS):
        return True
    if names.get("prometheus_client") is not package:
        return False
    values = list(names.values())  # another thread may be importing the module
    values += [member for value in values if type(value) is type for member in list(vars(value).values())]
    return any(type(value) is FunctionType and _writes(value.__code__) for value in values)


def _writes(code: CodeType) -> bool:
    inner = (constant for constant in code.co_consts if type(constant) is CodeType)
    return not _WRITERS.isdisjoint(code.co_names) or any(map(_writes, inner))


EXIT_SECONDS = 5.0
CHILD_SECONDS = 2.0

# Flush of owned providers when a process forks or ends. ``atexit`` alone loses the last batch in children of
# multiprocessing and of Celery, and a hanging exporter would block the exit. So daemon threads flush, one for each
# provider, and callers wait for them with a timeout. A thread starts with its provider, and again in a forked child. It
# cannot start at the end of the process: Python 3.12 and later start no threads during shutdown, and a signal handler
# must not take a lock that the interrupted code may hold.


def flush(seconds: float) -> bool:
    """Flush the owned providers; return False when they do not finish within ``seconds``."""
    until = time.monotonic() + seconds
    waiting = []
    for *_, asked in _owned:
        waiting.append(threading.Event())
        asked.put(waiting[-1])
    return all(done.wait(max(0.0, until - time.monotonic())) for done in waiting)


def owns(provider: object) -> bool:
    """Return true when this package has built a provider."""
    return any(provider is owned for owned, *_ in _owned)


def _own(provider: Any) -> None:
    """Register a provider that this package built for the flush at the end of the process."""
    if owns(provider):
        return
    if not _owned:
        _install()
    force_flush = errors.guarded("emit.flush")(provider.force_flush)
    _owned.append((provider, force_flush, _served(force_flush)))


def _served(force_flush: Callable[[], object]) -> queue.SimpleQueue[threading.Event]:
    """Start a thread that flushes for each event in the queue and sets it; `put` is reentrant, for signal handlers."""
    asked: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()

    def serve() -> None:
        while True:
            done = asked.get()
            force_flush()
            done.set()

    threading.Thread(target=serve, name="agent_otel-flush", daemon=True).start()
    return asked


def _install() -> None:
    """Flush at exit and at the end of child processes; `agent_otel._bootstrap.sigterm` flushes on signals."""

    def flush_at_exit() -> None:
        if not flush(EXIT_SECONDS):
            errors.warn_once(
                "exit", f"Telemetry could not be delivered within {EXIT_SECONDS:g} s of the program's end."
            )

    @errors.guarded("emit.fork")
    def restart() -> None:
        _owned[:] = [(provider, force_flush, _served(force_flush)) for provider, force_flush, _ in _owned]

    atexit.register(flush_at_exit)
    fork.after_fork(restart)
    import_hook.install({"multiprocessing.util": _arm_children, "celery.signals": _arm_celery})


@errors.guarded("emit.children")
def _arm_children(_: str) -> None:
    """Register a finalizer in multiprocessing children, which end by ``os._exit`` and run nothing but finalizers."""
    from multiprocessing import process, util  # noqa: PLC0415 - imported already: its import calls this

    def arm(_: Any) -> None:
        util.Finalize(None, flush, args=(CHILD_SECONDS,), exitpriority=0)
        handling = sys.modules.get("agent_otel._bootstrap.sigterm")
        if handling is not None:
            handling.watch()

    util.register_after_fork(flush, arm)
    if process.parent_process() is not None:
        arm(flush)


@errors.guarded("emit.celery")
def _arm_celery(name: str) -> None:
    """Flush at Celery's worker_process_shutdown signal, because its child processes end by ``os._exit``."""

    def flush_child(**_: Any) -> None:
        flush(CHILD_SECONDS)

    sys.modules[name].worker_process_shutdown.connect(flush_child, weak=False)


# The file of ``AGENT_OTEL_STATUS_FILE``: the state of a process, which ``agent-otel doctor --pid`` reads. One daemon
# thread writes it at first use and then every ten seconds.

INTERVAL_SECONDS: Final = 10.0
#: The first field of a status, and the first bytes; a file of another program has others.
_MARK: Final = "agent_otel_status"
_BEGINNING: Final = b'{\n  "' + _MARK.encode() + b'": '
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@errors.guarded("status.read")
def _usual_before(path: str) -> dict[str, int]:
    """Return the sizes of usual results that the newest status at this path has; none where there is no status."""
    pattern = Path(path.replace("{pid}", "*")).absolute()
    found = [file for file in pattern.parent.glob(pattern.name) if file.is_file() and not file.is_symlink()]
    text = max(found, key=lambda file: file.stat().st_mtime).read_bytes() if found else b""
    if not text.startswith(_BEGINNING):
        return {}
    status = json.loads(text)
    return {tool: size for tool, size in status.get("usual_bytes", {}).items() if type(size) is int}


def _keep_status(path: str, described: Callable[[], dict[str, Any]]) -> None:
    """Write the file of this process now and then; ``{pid}`` in its path is the process's id."""

    def serve() -> None:
        while True:
            write_status(path, described)
            time.sleep(INTERVAL_SECONDS)

    def start() -> None:
        threading.Thread(target=serve, name="agent_otel-status", daemon=True).start()

    start()
    fork.after_fork(errors.guarded("status.fork")(start))


@errors.guarded("status.write")
def write_status(named: str, described: Callable[[], dict[str, Any]]) -> None:
    """Write the file as a whole: a reader sees the status before or after, never a part."""
    path = Path(named.replace("{pid}", str(os.getpid()))).absolute()
    try:
        with _folder(path.parent) as folder:
            if _is_replaceable(folder, path.name):
                _replace(folder, path.name, described())
            else:
                _say(path, "is not a status: it is left alone, and nothing is written")
    except errors.ours(NotADirectoryError):  # so says the system of a link that is not followed
        _say(path, "cannot be written: a folder of its path is a link or no folder")
    except errors.ours(OSError) as error:
        _say(path, f"cannot be written: {os.strerror(error.errno or 0)}")


def _replace(folder: int, name: str, described: dict[str, Any]) -> None:
    status = {
        _MARK: __version__,
        "pid": os.getpid(),
        "time": time.time(),
        "agent_otel": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "internal_errors": dict(errors.errors),
        **described,
    }
    temporary = f".{name}.{secrets.token_hex(8)}"
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o600, dir_fd=folder), "w", encoding="utf-8") as file:
            json.dump(status, file, indent=2)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with errors.suppressed(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[int]:
    """Open a folder, and follow no link on the way but one of the system's, such as ``/var/run``; OSError."""
    with contextlib.ExitStack() as opened:
        at = os.open(path.anchor, _FOLDER)
        opened.callback(os.close, at)
        for depth, name in enumerate(path.parts[1:], 1):
            is_of_system = path.parts[1:depth] in ((), ("var",))
            at = os.open(name, _FOLDER | (0 if is_of_system else os.O_NOFOLLOW), dir_fd=at)
            opened.callback(os.close, at)
        yield at


def _is_replaceable(folder: int, name: str) -> bool:
    """Return true where nothing has the name, or a status that this user has written."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except errors.ours(FileNotFoundError):
        return True
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return False
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def _say(path: Path, what: str) -> None:
    errors.warn_once(f"status {path}", f"AGENT_OTEL_STATUS_FILE: {path} {what}.")
