"""The interface of metric sinks, which ``prometheus`` and ``otel`` implement for the same metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from agent_otel.telemetry.recording import recording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.spans import Exemplar


class Series(Protocol):
    """A time series, bound to its label values."""

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Observe a value, add to a counter or set a gauge."""

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Do the same as ``record``, for a caller that holds the ``recording`` lock."""


class LockedSeries:
    """A series on one sink, whose ``add`` needs the ``recording`` lock."""

    __slots__ = ()

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Observe a value or add to a counter; the caller holds the lock."""
        raise NotImplementedError

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Do the same as ``add`` with the lock."""
        with recording.held:
            self.add(value, exemplar)


class Sink(Protocol):
    """A destination of metrics."""

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Return the series with these label values; an empty value means that the label is absent."""


class Fan:
    """A series on several sinks."""

    __slots__ = ("_series",)

    def __init__(self, series: list[Series]) -> None:
        self._series = series

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Record on each sink."""
        for series in self._series:
            series.record(value, exemplar)

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add on each sink."""
        for series in self._series:
            series.add(value, exemplar)


class Group:
    """Counters that are added to together, by each model request for its parts."""

    __slots__ = ("_series",)

    def __init__(self, series: Sequence[Series]) -> None:
        self._series = series

    def add(self, amounts: Sequence[float]) -> None:
        """Add an amount to each; the caller holds the ``recording`` lock."""
        for one, amount in zip(self._series, amounts, strict=True):
            if amount:
                one.add(amount)

    def settle(self) -> None:
        """Add to the counters what is not in them yet."""


def grouped(series: Sequence[Series]) -> Group:
    """Return counters of one metric as a group."""
    kinds = set(map(type, series))
    group = getattr(kinds.pop(), "group", Group) if len(kinds) == 1 else Group
    return cast("Group", group(series))
