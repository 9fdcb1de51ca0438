"""Types of attributes and metrics, their kinds, and the buckets of histograms, for `agent_otel.semconv`.

Sizes are UTF-8 bytes, durations are seconds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_KIB = 1024.0
_MIB = 1024.0 * 1024.0
SIZE_BUCKETS: Final = (
    256.0, _KIB, 4 * _KIB, 16 * _KIB, 32 * _KIB, 64 * _KIB, 128 * _KIB, 256 * _KIB, 512 * _KIB,
    _MIB, 1.5 * _MIB, 2 * _MIB, 4 * _MIB, 16 * _MIB,
)  # fmt: skip
# Buckets that the GenAI conventions advise for gen_ai.execute_tool.duration: 0.01 doubled thirteen times.
DURATION_BUCKETS: Final = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
)  # fmt: skip
UTILIZATION_BUCKETS: Final = (0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0, 1.1, 1.25, 1.5, 2.0)
SHARE_BUCKETS: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
TOKEN_BUCKETS: Final = tuple(4.0**power for power in range(4, 14))
MONEY_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0)
COUNT_BUCKETS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
#: A momentary gauge has no value for longer than this after it was set.
MOMENT_SECONDS: Final = 300.0

HISTOGRAM: Final = "histogram"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"

_PROMETHEUS_UNITS = {"By": "_bytes", "s": "_seconds"}


def prometheus_label(name: str) -> str:
    """Return the name of an attribute as a Prometheus label: dots become underscores."""
    return name.replace(".", "_")


class Attribute(NamedTuple):
    """A span attribute: its type, the condition for setting it, and its meaning."""

    name: str
    type: str
    when: str
    meaning: str


class Metric(NamedTuple):
    """A metric, with the same name, unit, labels and buckets on both sinks.

    ``unit`` is the UCUM unit (``By``, ``s``, ``1``) or an annotation such as ``{result}``, which has no suffix in
    Prometheus. The labels of the run, its agent and its workflow, come last where ``is_of_run``.
    """

    name: str
    kind: str
    unit: str
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()
    is_of_run: bool = True

    @property
    def own_labels(self) -> tuple[str, ...]:
        """Return the labels without the agent and the workflow."""
        return self.labels[:-2] if self.is_of_run else self.labels

    @property
    def is_momentary(self) -> bool:
        """Return true for a gauge of the moment: its value ends after `MOMENT_SECONDS`."""
        return self.kind == GAUGE and self.name.endswith((".largest", ".stuck", ".turns_left"))

    @property
    def prometheus_name(self) -> str:
        """Return the name in Prometheus, without the ``_total`` that its client adds to counters."""
        return self.name.replace(".", "_") + _PROMETHEUS_UNITS.get(self.unit, "")

    @property
    def exposed_name(self) -> str:
        """Return the name for queries: a counter's with ``_total``, a histogram's without ``_bucket`` and the like."""
        return f"{self.prometheus_name}_total" if self.kind == COUNTER else self.prometheus_name

    @property
    def prometheus_labels(self) -> tuple[str, ...]:
        """Return the label names in Prometheus."""
        return tuple(map(prometheus_label, self.labels))
