"""Pauses of an exporter's thread while it encodes a batch, so that the program's threads get the interpreter.

An exporter of OpenTelemetry encodes a batch in Python: 512 spans take 50 ms. A thread that computes keeps the
interpreter for up to 5 ms (`sys.getswitchinterval`) each time that another thread asks for it, and a tool call asks
several times. An exporter that pauses gives the interpreter up at once.
"""

from __future__ import annotations

import functools
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Processor seconds that an exporter computes before it pauses.
_TURN_SECONDS = 0.0005
#: A pause: long enough for a waiting thread to wake up, so that it gets the interpreter.
_PAUSE_SECONDS = 0.00005


class PacedList(list[Any]):
    """A list that lets other threads run while its items are iterated over."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the items, and pause between two of them where the turn is over."""
        began = time.thread_time()
        for item in super().__iter__():
            yield item
            if time.thread_time() - began > _TURN_SECONDS:
                time.sleep(_PAUSE_SECONDS)
                began = time.thread_time()


def pace_spans(exporter: Any) -> Any:
    """Return the exporter of spans, whose ``export`` pauses between spans."""
    return _with_batches(exporter, PacedList)


def pace_metrics(exporter: Any) -> Any:
    """Return the exporter of metrics, whose ``export`` pauses between data points."""
    return _with_batches(exporter, _paced_metrics)


def _with_batches(exporter: Any, paced: Callable[[Any], Any]) -> Any:
    export = exporter.export

    @functools.wraps(export)
    def export_paced(batch: Any, *args: Any, **kwargs: Any) -> Any:
        return export(paced(batch), *args, **kwargs)

    exporter.export = export_paced
    return exporter


def _paced_metrics(batch: Any) -> Any:
    """Return a copy of ``MetricsData`` whose data points stand in lists that pause."""
    resources = [
        replace(resource, scope_metrics=[_paced_scope(scope) for scope in resource.scope_metrics])
        for resource in batch.resource_metrics
    ]
    return replace(batch, resource_metrics=resources)


def _paced_scope(scope: Any) -> Any:
    metrics = [
        replace(metric, data=replace(metric.data, data_points=PacedList(metric.data.data_points)))
        for metric in scope.metrics
    ]
    return replace(scope, metrics=metrics)
