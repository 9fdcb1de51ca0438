"""The room that payloads have left below their caps, in bytes and in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from dashboards.queries import RANGE, RUNTIME, WORKFLOW, drawn, mean

if TYPE_CHECKING:
    from dashboards.queries import Scope

PER_WORKFLOW = (RUNTIME, WORKFLOW)
DIRECTION = semconv.DIRECTION


#: The exact largest of a gauge of the moment.
LARGEST = "max by ({by}) (max_over_time({series}[{over}]))"


def filled(scope: Scope, *by: str) -> str:
    """Return what share of its cap the largest payload has, exactly."""
    labels = dict.fromkeys((*by, RUNTIME, DIRECTION))
    sizes = LARGEST.format(by=", ".join(labels), series=scope.select(semconv.PAYLOAD_LARGEST), over=RANGE)
    caps = cap(scope, RUNTIME, DIRECTION)
    return f"max by ({', '.join(by)}) ({sizes} / on ({RUNTIME}, {DIRECTION}) group_left () {caps})"


def cap(scope: Scope, *by: str, matchers: tuple[str, ...] = (), over: str = RANGE) -> str:
    """Return the caps in bytes, with those of processes that have just ended."""
    caps = scope.select(semconv.PAYLOAD_CAP, matchers=matchers)
    return f"max by ({', '.join(by)}) (last_over_time({caps}[{over}]))"


def room(scope: Scope, at: float) -> str:
    """Bytes that still fit, by runtime, workflow and direction.

    From the utilization, whose buckets are narrow where they matter; those of sizes are megabytes wide there.
    """
    used = drawn(scope.quantile(at, semconv.UTILIZATION, by=(*PER_WORKFLOW, DIRECTION)))
    on = f"on ({RUNTIME}, {DIRECTION})"
    return f"clamp_min(1 - ({used}), 0) * {on} group_left () {cap(scope, RUNTIME, DIRECTION)}"


def turns_left(scope: Scope) -> str:
    """Whole turns that fit at the mean growth, by runtime and workflow: of the direction that is nearest to its cap."""
    per_workflow = ", ".join(PER_WORKFLOW)
    used = drawn(scope.quantile(0.95, semconv.UTILIZATION, by=(*PER_WORKFLOW, DIRECTION)))
    nearest = f"({used}) == on ({per_workflow}) group_left () max by ({per_workflow}) ({used})"
    free = f"min by ({per_workflow}) ({room(scope, 0.95)} and on ({per_workflow}, {DIRECTION}) ({nearest}))"
    growth = mean(
        scope.sum(semconv.PAYLOAD_GROWTH, "_sum", by=PER_WORKFLOW),
        scope.sum(semconv.PAYLOAD_GROWTH, "_count", by=PER_WORKFLOW),
    )
    return f"floor({free} / ({growth} > 0))"
