"""A crash loop, a gap in scraping and agents that fall silent: the shipped rules, in fake time and in a real server."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from agent_otel import semconv
from tests.system.engines import prometheus, starting
from tests.system.engines.prometheus import NEWEST
from tests.system.monitoring import fake_time
from tests.system.monitoring.day import DYING, LIFE
from tests.system.monitoring.fake_time import RULES, Series
from tests.system.monitoring.simulated import START

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

pytestmark = pytest.mark.timeout(300)

MINUTES: Final = 200
_LIVES: Final = range(60, 101, 5)
#: Job -> its processes: the minute in which each begins and has a payload over its cap, and those of its scrapes.
SCRAPED: Final[dict[str, list[tuple[int, range]]]] = {
    # The counter is at 1 in each scrape of each life.
    "crashing": [(minute, range(minute, minute + 2)) for minute in _LIVES],
    # The same with a label of the program's own.
    "labelled": [(minute, range(minute, minute + 2)) for minute in _LIVES],
    # One process, which is not scraped for 70 minutes.
    "unseen": [(0, range(60)), (0, range(130, MINUTES))],
    "dark": [(0, range(91))],
    "asleep": [(0, range(91))],
}
_OVER_CAP: Final = "AgentWorkflowPayloadOverCap"
_GONE: Final = "AgentTelemetryGone"
_FIRING: Final = 'ALERTS{{alertname="{alert}", alertstate="firing", job="{job}"}}'
#: Alerts that Prometheus tells: those that did not fire a minute before.
_TOLD: Final = "sum(count_over_time(({firing} unless {firing} offset 1m)[200m:1m]))"
_COUNTED: Final = "sum(count_over_time({firing}[{window}]))"


@pytest.fixture(scope="module")
def exposed(environment: Callable[[str], Environment], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Series]:
    """What a real process of each job exposes after its payload."""
    folder = tmp_path_factory.mktemp("lives")
    settings = {"asleep": {"AGENT_OTEL_SCALES_TO_ZERO": "1"}, "labelled": {"AGENT_OTEL_LABELS": "tenant"}}
    found = {}
    for job in ("crashing", *settings):
        file = folder / job
        measured = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_SDK": "off"}
        environment("bare").run(fake_time.DAY, LIFE, str(file), env=measured | settings.get(job, {}), check=True)
        found[job] = json.loads(file.read_text())
    return found


def series(exposed: dict[str, Series], start: float) -> Series:
    """The series of all jobs; minute 0 is at ``start`` (epoch seconds)."""
    found: Series = {}
    for job, processes in SCRAPED.items():
        for name, (value,) in exposed.get(job, exposed["crashing"]).items():
            values = [math.nan] * MINUTES
            for began, scrapes in processes:
                for minute in scrapes:
                    is_start = name.startswith(semconv.PROCESS_START.exposed_name)
                    values[minute] = start + began * 60 if is_start else value
            found[name.replace(f'job="{LIFE}",instance="{LIFE}-0"', f'job="{job}",instance="{job}-0"')] = values
    return found


@pytest.mark.shows("001.growth")
def test_each_is_told_once_and_for_as_long_as_it_lasts(exposed: dict[str, Series], tmp_path: Path) -> None:
    def firing(alert: str, job: str) -> str:
        return _FIRING.format(alert=alert, job=job)

    crashing, unseen = firing(_OVER_CAP, "crashing"), firing(_OVER_CAP, "unseen")
    labelled = firing(_OVER_CAP, "labelled")
    dark, asleep = firing(_GONE, "dark"), firing(_GONE, "asleep")
    one: list[dict[str, Any]] = [{"labels": "{}", "value": 1}]
    none: list[dict[str, Any]] = []
    expected: list[fake_time.Expected] = [
        # Within five minutes, once, in each minute of the loop, and not for ever.
        (f"sum({crashing})", f"{_LIVES[0] + 5}m", one),
        (_TOLD.format(firing=crashing), "199m", one),
        (f"{_COUNTED.format(firing=crashing, window='40m')} == bool 40", f"{_LIVES[-1] + 4}m", one),
        (crashing, "140m", none),
        (_TOLD.format(firing=labelled), "199m", one),
        (f"{_COUNTED.format(firing=labelled, window='40m')} == bool 40", f"{_LIVES[-1] + 4}m", one),
        # What was over before the gap pages no more after it.
        (f"sum({unseen})", "5m", one),
        (_COUNTED.format(firing=unseen, window="160m"), "199m", none),
        # Dark from minute 91 on: a series ends after 5 minutes, and the alert waits for 10. It lasts until the end.
        (f"sum({dark})", "107m", one),
        (_TOLD.format(firing=dark), "199m", one),
        (f"{_COUNTED.format(firing=dark, window='90m')} == bool 90", "199m", one),
        (_COUNTED.format(firing=asleep, window="200m"), "199m", none),
    ]
    fake_time.prove(tmp_path / "incidents.yaml", series(exposed, 0), "1m", expected)


def test_a_server_finds_the_conditions_in_the_minutes_of_the_incidents(
    exposed: dict[str, Series], tmp_path: Path
) -> None:
    programs = starting.obtained(prometheus.programs, NEWEST)
    samples, data = tmp_path / "samples", tmp_path / "data"
    samples.write_text(fake_time.openmetrics(series(exposed, START), START))
    programs.backfill(samples, data)
    end = START + 60 * (MINUTES - 1)
    with prometheus.server(programs, data=data) as engine:
        programs.record(RULES, engine, START, end, data)
    with prometheus.server(programs, data=data) as engine:
        found = {
            (alert, row["metric"]["job"]): [(int(at) - START) // 60 for at, _ in row["values"]]
            for alert in (_OVER_CAP, _GONE)
            for row in engine.query_range(_condition(alert), START, end, 60)
        }
        (over,) = engine.series(f'{semconv.PAYLOAD_OVER_CAP.exposed_name}{{job="crashing"}}', START, end)

    assert over["gen_ai_workflow_name"] == DYING
    for job in ("crashing", "labelled"):
        assert _whole(found[_OVER_CAP, job], _LIVES[0] + 5, _LIVES[-1])
    assert max(found[_OVER_CAP, "unseen"]) < 20
    assert _whole(found[_GONE, "dark"], 97, MINUTES - 1)
    assert (_GONE, "asleep") not in found
    assert found[_GONE, "unseen"][-1] < 130  # while it was not scraped


def _condition(alert: str) -> str:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    (expression,) = (rule["expr"] for group in groups for rule in group["rules"] if rule.get("alert") == alert)
    return str(expression)


def _whole(minutes: list[int], first: int, last: int) -> bool:
    """Return true when these are minutes without a gap, among them all from the first to the last."""
    return minutes == list(range(minutes[0], minutes[-1] + 1)) and minutes[0] <= first and last <= minutes[-1]
