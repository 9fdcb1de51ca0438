"""The Prometheus sink: metrics in the program's registry, recorded in `cells`.

Nothing reads the registry of a client that the program has not imported. Unless a setting asks for it, the client is
not loaded here, which takes a tenth of what a framework's import loads of this package and its dependencies, and the
cells go into its registry when the program imports it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from agent_otel._bootstrap import import_hook
from agent_otel._internal import errors
from agent_otel.telemetry.sinks import Cells, Sink

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from prometheus_client import CollectorRegistry

    from agent_otel.semconv.types import Metric
    from agent_otel.settings import Settings
    from agent_otel.telemetry.sinks import Series

_CLIENT = "prometheus_client"
_READER = "opentelemetry.exporter.prometheus"
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
#: The module `metrics_server`, once the client is loaded.
_exposition: ModuleType | None = None
#: The sinks of the client's own registry.
_sinks: list[PrometheusSink] = []


def prepare(chosen: Settings) -> None:
    """Load the client and what a scrape gets: where a setting asks for it now, else when the program imports it."""
    if chosen.prometheus_port or chosen.metrics != "auto" or os.environ.get(_FOLDER):
        _load()
    elif _exposition is None:
        import_hook.install({_CLIENT: errors.guarded("metrics.expose")(_load)})


def _load(_: str = _CLIENT) -> None:
    global _exposition  # noqa: PLW0603 - once per process
    from agent_otel.telemetry import metrics_server  # noqa: PLC0415 - loads the client

    _exposition = metrics_server
    for sink in _sinks:
        sink.expose()


def has_reader(provider: object) -> bool:
    """Return true where OpenTelemetry's own exporter puts the metrics of a provider into the client's registry.

    Not in multiprocess mode, where a scrape reads files that only the client's own metrics write.
    """
    if os.environ.get(_FOLDER):
        return False
    consumer = getattr(provider, "_measurement_consumer", None)
    readers = getattr(consumer, "_reader_storages", ())  # by reader; no public name has them
    return any(
        type(reader).__module__ == _READER
        and getattr(reader, "_registry", None) in (None, sys.modules[_CLIENT].REGISTRY)
        for reader in readers
    )


def sink() -> PrometheusSink:
    """Return the sink of the client's own registry: a second one would find its names taken by the first one's."""
    return _sinks[0] if _sinks else PrometheusSink()


class PrometheusSink(Sink):
    """Metrics in ``registry``, by default the client's own, created at first use."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__()
        self._registry = registry
        self._cells: list[Cells] = []
        #: Of each metric in the registry, the object that put it there: two threads may try at once.
        self._exposed: dict[str, object] = {}
        self._multiprocess = bool(os.environ.get(_FOLDER))
        if registry is None:
            _sinks.append(self)
        if registry is not None or self._multiprocess:
            _load()

    def declare(self, metric: Metric) -> Callable[[tuple[str, ...]], Series]:
        """Create the metric: in multiprocess mode one of the client itself."""
        if self._multiprocess and _exposition is not None:
            return _exposition.client_metric(metric, self._registry)  # type: ignore[no-any-return]
        cells = Cells(metric)
        self._cells.append(cells)
        self.expose(cells)
        return cells.series

    def expose(self, *cells: Cells) -> None:
        """Put metrics into the registry, by default all."""
        for one in cells or list(self._cells):
            here = object()
            if _exposition is not None and self._exposed.setdefault(one.metric.name, here) is here:
                _exposition.expose(one, self._registry)
