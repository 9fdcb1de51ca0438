"""What a way out for metrics looks like. Two implementations, one catalogue: ``prometheus`` and ``otel``."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from agent_otel._internal import fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext

    from agent_otel.semconv import Metric


class _RecordingLock:
    """The lock around all that is bound or recorded on any sink, which a fork waits for.

    The locks of the OpenTelemetry SDK and of the Prometheus client are taken only inside it. A lock of theirs that
    another thread held when the process forked would never be free in the child, and neither library renews them all.
    One lock also costs less: a tool call records on four series. Reentrant, because the garbage collector may finish
    another call inside.
    """

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = threading.RLock()
        fork.loading.hold(lambda: self.held, self._renew)

    def _renew(self) -> None:
        self.held = threading.RLock()


recording = _RecordingLock()


class Exemplar:
    """Where a measurement belongs, in each sink's own form when the sink asks for it. The span itself is not held.

    ``at`` is the time of the measurement in epoch seconds.
    """

    __slots__ = ("at", "spot")

    def __init__(self, spot: SpanContext) -> None:
        self.spot = spot
        self.at = time.time()

    @property
    def labels(self) -> dict[str, str]:
        """The labels of an exemplar in Prometheus."""
        return {"trace_id": format(self.spot.trace_id, "032x"), "span_id": format(self.spot.span_id, "016x")}

    @property
    def context(self) -> Context:
        """The context from which OpenTelemetry's SDK makes an exemplar."""
        return set_span_in_context(NonRecordingSpan(self.spot))


class Series(Protocol):
    """One time series, bound to its label values."""

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Observe a value, add to a counter or set a gauge."""

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """As ``record``, for a caller that holds ``recording``."""


class Sink(Protocol):
    """Where metrics go."""

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Bind a metric to label values; an empty value means that the label is absent."""

    def settles(self, settle: Callable[[], None]) -> bool:
        """Whether the sink will call ``settle`` each time before it is read, so that until then calls may wait."""


class Fan:
    """One series on several sinks."""

    __slots__ = ("_series",)

    def __init__(self, series: list[Series]) -> None:
        self._series = series

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Record on each of them."""
        for series in self._series:
            series.record(value, exemplar)

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add on each of them."""
        for series in self._series:
            series.add(value, exemplar)
