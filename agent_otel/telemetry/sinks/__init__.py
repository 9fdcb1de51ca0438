"""Metric sinks: OpenTelemetry and Prometheus."""

from __future__ import annotations

import threading

from agent_otel._internal import fork


class recording:  # noqa: N801 - read as a variable
    """The lock ``held`` by threads while they bind or record a series on any sink; a fork waits for it.

    The locks of the OpenTelemetry SDK and of the Prometheus client are taken only inside it. If another thread held
    one of those at a fork, it would stay locked in the child, and neither library renews all of its locks. A single
    lock also costs less, because a tool call records on four series. It is reentrant, because the garbage collector
    may finish another call while a thread holds it.
    """

    held = threading.RLock()


def _renew() -> None:
    recording.held = threading.RLock()


fork.loading.hold(lambda: recording.held, _renew)
