"""A day of a healthy fleet, and an incident in it: measured by the product, told by the shipped rules, in fake time."""

from __future__ import annotations

import contextlib
import json
import math
from typing import TYPE_CHECKING

import pytest

from agent_otel import semconv
from tests import interpreters
from tests.system.monitoring.day import DYING, INCIDENT, INCIDENT_MINUTES, MINUTES, NEAR_AT, OVER_AT, PROCESSES, TOOLS
from tests.system.monitoring.fake_time import DAY, prove

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment
    from tests.system.monitoring.fake_time import Series

_AT_A_TIME = 3
_MEASURED = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_SDK": "off"}

#: Rules are evaluated each 5 minutes of the day: every window is at least three times as long.
_STEP = "5m"
_FIRING = 'ALERTS{{alertstate="firing", severity="{severity}"}}'
_EPISODES = "sum(count_over_time(({firing} unless {firing} offset 5m)[1d:5m]))"

_WORKFLOW = "gen_ai_workflow_name"


@pytest.fixture(scope="session")
def measured(shared: Path, environment: Callable[[str], Environment]) -> tuple[Series, Series]:
    """The series of the fleet and those of the incident, minute by minute, made once for all workers."""
    made = shared / "fleet.json"
    with interpreters.lock(shared / "fleet.lock"):
        if not made.exists():
            fleet: Series = {}
            for first in range(0, len(PROCESSES), _AT_A_TIME):
                numbers = range(len(PROCESSES))[first : first + _AT_A_TIME]
                for number, series in zip(numbers, _run(environment("bare"), shared, *map(str, numbers)), strict=True):
                    before = [math.nan] * (PROCESSES[number][2] * MINUTES)
                    fleet |= {name: before + values for name, values in series.items()}
            (incident,) = _run(environment("bare"), shared, INCIDENT)
            made.write_text(json.dumps([fleet, incident]))
    return tuple(json.loads(made.read_text()))


def _run(environment: Environment, folder: Path, *names: str) -> list[Series]:
    files = [folder / f"day-{name}.json" for name in names]
    with contextlib.ExitStack() as stack:
        children = [
            stack.enter_context(environment.start(str(environment.python), str(DAY), name, str(file), env=_MEASURED))
            for name, file in zip(names, files, strict=True)
        ]
        for child in children:
            said = child.communicate()
            assert child.returncode == 0, said
    return [json.loads(file.read_text()) for file in files]


def _total(series: Series, counter: str) -> float:
    return sum(values[-1] for name, values in series.items() if name.startswith(f"{counter}{{"))


@pytest.mark.timeout(900)
def test_a_healthy_day_wakes_nobody_and_writes_one_ticket_at_most(
    measured: tuple[Series, Series], tmp_path: Path
) -> None:
    fleet, _ = measured
    assert 38_000 < _total(fleet, semconv.TOOL_DURATION.exposed_name + "_count") < 39_000
    assert 2_000 < _total(fleet, semconv.RESULTS_LARGE.exposed_name) < 2_500
    assert 50 < _total(fleet, semconv.RESULTS_TRUNCATED.exposed_name) < 200

    critical, warning = (
        _EPISODES.format(firing=_FIRING.format(severity=severity)) for severity in ("critical", "warning")
    )
    evaluated = f"count({{__name__=~'job_tool_agent:.*'}}) > bool {len(TOOLS)}"
    expected = [
        (evaluated, "23h55m", [{"labels": "{}", "value": 1}]),
        (f"{warning} > 1", "1d", []),
        (critical, "1d", []),
    ]
    prove(tmp_path / "day.yaml", fleet, _STEP, expected)


@pytest.mark.timeout(900)
@pytest.mark.shows("000.near_cap")
def test_an_incident_in_that_fleet_pages_within_five_minutes(measured: tuple[Series, Series], tmp_path: Path) -> None:
    """A payload at 30, 60 and 90 % of its cap, two minutes each, and over it: the last two hours before noon."""
    fleet, incident = measured
    first = MINUTES - INCIDENT_MINUTES
    before_noon = {name: values[first:MINUTES] for name, values in fleet.items() if not math.isnan(values[first])}
    began = semconv.PROCESS_START.exposed_name
    before_noon |= {
        name: [value - first * 60 for value in values] for name, values in before_noon.items() if name.startswith(began)
    }
    pages = f"group by (alertname, {_WORKFLOW}) ({_FIRING.format(severity='critical')})"
    near, over = (
        {"labels": f'{{alertname="AgentWorkflow{name}", {_WORKFLOW}="{DYING}"}}', "value": 1}
        for name in ("PayloadNearCap", "PayloadOverCap")
    )
    expected = [
        # After 30 and 60 %, one turn is left.
        (pages, f"{NEAR_AT - 3}m", []),
        (pages, f"{NEAR_AT - 1}m", [near]),
        (pages, f"{OVER_AT + 1}m", [near, over]),
        (pages, f"{OVER_AT + 7}m", [over]),
        (pages, f"{INCIDENT_MINUTES - 1}m", []),
    ]
    prove(tmp_path / "incident.yaml", before_noon | incident, "1m", expected)
