"""Half a day of one replica of a healthy fleet, or an incident: ``day.py <number, "incident" or "life"> <file>``.

Everything is measured by the product at its doors, in simulated minutes; what the rules read is sampled once in each.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import sys
from pathlib import Path
from typing import Final, NamedTuple

import prometheus_client

import agent_otel
from agent_otel import semconv
from agent_otel.semconv.types import HISTOGRAM, Metric
from agent_otel.telemetry.setup import telemetry

#: Every replica is replaced at noon.
MINUTES: Final = 720
PROCESSES: Final = tuple(
    (job, replica, half) for job in ("support", "research", "coding") for replica in (0, 1) for half in (0, 1)
)
INCIDENT: Final = "incident"
DYING: Final = "refund_run"
LIFE: Final = "life"
INCIDENT_MINUTES: Final = 120
NEAR_AT: Final = 64
OVER_AT: Final = 66
#: Minute -> how full the payload is.
FILLED: Final = {60: 0.3, 62: 0.6, NEAR_AT: 0.9, OVER_AT: 1.05}
_CALLS: Final = 3_200  # of a process; of all twelve 38,400
_CAP_BYTES: Final = 2 * 1024 * 1024


class Tool(NamedTuple):
    """How large the results of a tool are, log-normal, and what share of them it cuts."""

    name: str
    median_bytes: int
    spread: float
    cut: float = 0.0


#: Of all results 5 to 6 % are above 16,000 bytes, of those of read_file and fetch_page every seventh.
TOOLS: Final = {
    "support": (
        Tool("kb_search", 3_000, 1.0),
        Tool("lookup_customer", 900, 0.6),
        Tool("web_search", 4_000, 0.9, 0.005),
    ),
    "research": (Tool("web_search", 4_000, 0.9), Tool("fetch_page", 5_500, 1.0, 0.02), Tool("sql_query", 1_200, 1.2)),
    "coding": (Tool("grep", 1_500, 1.3), Tool("read_file", 5_000, 1.1), Tool("run_tests", 2_500, 1.2)),
}
_FAMILIES: Final = (
    semconv.RESULT_SIZE,
    semconv.TOOL_DURATION,
    semconv.RESULTS_LARGE,
    semconv.RESULTS_OVER_BUDGET,
    semconv.RESULTS_TRUNCATED,
    semconv.UTILIZATION,
    semconv.PAYLOAD_NEAR_CAP,
    semconv.PAYLOAD_OVER_CAP,
    semconv.PAYLOADS_REJECTED,
    semconv.STUCK_RETRIES,
    semconv.FEW_TURNS_LEFT,
    semconv.PAYLOAD_GROWTH,
    semconv.PAYLOAD_CAP,
    semconv.PAYLOAD_LARGEST,
    semconv.TURNS_LEFT,
    semconv.STUCK,
    semconv.RESULT_LARGEST,
    semconv.RESULTS_GROWN,
    semconv.TOOL_REPEATS,
    semconv.ARGS_SIZE,
    semconv.INTERNAL_ERRORS,
    semconv.PROCESS_START,
    semconv.BUILD_INFO,
)


def call(chance: random.Random, tool: Tool) -> None:
    """One call of a tool: one in fifty fails."""
    with agent_otel.tool_call(tool.name, {"q": chance.random()}) as measured:
        if chance.random() < 1 / 50:
            measured.error(TimeoutError())
            return
        text = "lorem ipsum " * (
            max(50, min(400_000, int(tool.median_bytes * chance.lognormvariate(0, tool.spread)))) // 12
        )
        measured.result(text + "\n... [output truncated]" if chance.random() < tool.cut else text)


class Runs:
    """Durable runs, one after the other, whose state grows to 60 % of its cap at most."""

    def __init__(self, job: str, chance: random.Random) -> None:
        self._job = job
        self._chance = chance
        self._number = self._bytes = 0
        self._execution = contextlib.ExitStack()

    def turn(self) -> None:
        """Carry the state once more; a run that is done is followed by the next."""
        if not self._number or self._bytes > 0.6 * _CAP_BYTES:
            self._execution.close()
            self._number, self._bytes = self._number + 1, 30_000
            name = f"{self._job}-{self._number}"
            self._execution.enter_context(agent_otel.execution(name, workflow=f"{self._job}_run"))
        self._bytes += int(self._chance.uniform(20_000, 90_000))
        agent_otel.payload(b"x" * self._bytes, runtime="temporal", activity="answer", direction="input")


_MOMENTARY: Final = {metric.exposed_name for metric in _FAMILIES if metric.is_momentary}


class Scrapes:
    """What the rules read of this process, minute by minute."""

    def __init__(self, instance: str) -> None:
        self._labels = f'job="{instance.partition("-")[0]}",instance="{instance}"'
        names = [sample for metric in _FAMILIES for sample in _names(metric)]
        self._exposed = prometheus_client.REGISTRY.restricted_registry(names)
        self._series: dict[str, list[float]] = {}

    def take(self, minute: int, *, ended: bool = False) -> None:
        """Read all values; a new series was not there before; gauges of the moment are not when it ``ended``."""
        for family in self._exposed.collect():
            for sample in family.samples:
                if ended and sample.name in _MOMENTARY:
                    continue
                labels = ",".join((self._labels, *(f'{key}="{text}"' for key, text in sample.labels.items() if text)))
                self._series.setdefault(f"{sample.name}{{{labels}}}", [math.nan] * minute).append(sample.value)

    def write(self, file: Path) -> None:
        """Write name with labels -> a value for each minute. A counter that stays at 0 is in no sum above 0."""
        file.write_text(
            json.dumps({name: values for name, values in self._series.items() if any(value > 0 for value in values)})
        )


def run(number: int, file: Path) -> None:
    """Run a process of the healthy fleet for half a day."""
    job, replica, half = PROCESSES[number]
    chance = random.Random(number)  # noqa: S311 - the same day each time
    scrapes = Scrapes(f"{job}-{replica}-{half}")
    telemetry().metrics.record(semconv.PROCESS_START, half * MINUTES * 60.0 + 1)
    runs, due = Runs(job, chance), 0.0
    for minute in range(MINUTES):
        # Fewest calls at midnight, most at noon.
        hour = (minute + half * MINUTES) / 60
        due += _CALLS / MINUTES * (1 - 0.8 * math.cos(hour / 24 * 2 * math.pi))
        while due >= 1:
            call(chance, chance.choice(TOOLS[job]))
            due -= 1
        if minute % 3 == 0:
            runs.turn()
        scrapes.take(minute)
    scrapes.write(file)


def incident(file: Path) -> None:
    """Run a process for two hours, in which the payload of one workflow meets its cap."""
    scrapes = Scrapes("support-2")
    telemetry().metrics.record(semconv.PROCESS_START, 1)
    with agent_otel.execution("refund-1", workflow=DYING):
        for minute in range(INCIDENT_MINUTES):
            if minute in FILLED:
                payload = b"x" * int(FILLED[minute] * _CAP_BYTES)
                agent_otel.payload(payload, runtime="temporal", activity="answer", direction="input")
            scrapes.take(minute, ended=minute > OVER_AT + 5)
    scrapes.write(file)


def life(file: Path) -> None:
    """Run a process that meets the cap before it is scraped, once."""
    scrapes = Scrapes(f"{LIFE}-0")
    telemetry().metrics.record(semconv.PROCESS_START, 1)
    with agent_otel.execution("refund-1", workflow=DYING, labels={"tenant": "acme"}):
        payload = b"x" * int(1.05 * _CAP_BYTES)
        agent_otel.payload(payload, runtime="temporal", activity="answer", direction="input")
    scrapes.take(0)
    scrapes.write(file)


def _names(metric: Metric) -> tuple[str, ...]:
    parts = ("_bucket", "_count", "_sum") if metric.kind == HISTOGRAM else ("",)
    return tuple(metric.exposed_name + part for part in parts)


if __name__ == "__main__":
    what, target = sys.argv[1], Path(sys.argv[2])
    if what == INCIDENT:
        incident(target)
    elif what == LIFE:
        life(target)
    else:
        run(int(what), target)
