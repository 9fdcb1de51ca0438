"""A day of a healthy fleet, and an incident in it: measured by the product, told by the shipped rules, in fake time."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agent_otel import semconv
from tests import interpreters
from tests.system.engines import prometheus, starting
from tests.system.monitoring.day import DYING, INCIDENT, INCIDENT_MINUTES, MINUTES, NEAR_AT, OVER_AT, PROCESSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.environments import Environment

RULES = Path(__file__).resolve().parents[3] / "alerts" / "agent-otel.rules.yaml"
_DAY = Path(__file__).with_name("day.py")
_AT_A_TIME = 3
_MEASURED = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_SDK": "off"}

#: Rules are evaluated each 5 minutes of the day: every window is at least three times as long.
_STEP = "5m"
_FIRING = 'ALERTS{{alertstate="firing", severity="{severity}"}}'
_EPISODES = "sum(count_over_time(({firing} unless {firing} offset 5m)[1d:5m]))"

_WORKFLOW = "gen_ai_workflow_name"
_OF_WORKFLOWS = f'ALERTS{{{_WORKFLOW}!=""}}'

Series = dict[str, list[float]]


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
            stack.enter_context(environment.start(str(environment.python), str(_DAY), name, str(file), env=_MEASURED))
            for name, file in zip(names, files, strict=True)
        ]
        for child in children:
            said = child.communicate()
            assert child.returncode == 0, said
    return [json.loads(file.read_text()) for file in files]


def _total(series: Series, counter: str) -> float:
    return sum(values[-1] for name, values in series.items() if name.startswith(f"{counter}{{"))


def _prove(
    file: Path, series: Series, step: str, expected: Sequence[tuple[str, str, Sequence[dict[str, Any]]]]
) -> None:
    """Evaluate the rules over the series; each of expected is an expression, a time, and the samples then."""
    asked = [{"expr": expr, "eval_time": at, "exp_samples": list(samples)} for expr, at, samples in expected]
    test = {"interval": "1m", "input_series": list(_input(series)), "promql_expr_test": asked}
    document = {"rule_files": [str(RULES)], "evaluation_interval": step, "tests": [test]}
    file.write_text(yaml.safe_dump(document, width=math.inf))

    assert "SUCCESS" in starting.obtained(prometheus.programs, prometheus.NEWEST).test_rules(file)


def _input(series: Series) -> Iterator[dict[str, str]]:
    for name, values in series.items():
        shown = (None if math.isnan(value) else value for value in values)
        runs = [(value, len(list(same))) for value, same in itertools.groupby(shown)]
        parts = (f"_x{length}" if value is None else f"{value:.12g}x{length - 1}" for value, length in runs)
        yield {"series": name, "values": f"{' '.join(parts)} stale"}


@pytest.mark.timeout(900)
def test_a_healthy_day_wakes_nobody_and_writes_two_tickets_at_most(
    measured: tuple[Series, Series], tmp_path: Path
) -> None:
    fleet, _ = measured
    assert 38_000 < _total(fleet, semconv.TOOL_DURATION.exposed_name + "_count") < 39_000
    assert 2_000 < _total(fleet, semconv.RESULTS_LARGE.exposed_name) < 2_500
    assert 50 < _total(fleet, semconv.RESULTS_TRUNCATED.exposed_name) < 200

    critical, warning, info = (
        _EPISODES.format(firing=_FIRING.format(severity=severity)) for severity in ("critical", "warning", "info")
    )
    expected = [
        (f"{info} > bool 0", "1d", [{"labels": "{}", "value": 1}]),  # else nothing was evaluated
        (f"{warning} > 2", "1d", []),
        (critical, "1d", []),
    ]
    _prove(tmp_path / "day.yaml", fleet, _STEP, expected)


@pytest.mark.timeout(900)
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
    tickets = f"group by (alertname, {_WORKFLOW}) ({_FIRING.format(severity='warning')} and {_OF_WORKFLOWS})"
    near, over, few = (
        {"labels": f'{{alertname="AgentWorkflow{name}", {_WORKFLOW}="{DYING}"}}', "value": 1}
        for name in ("PayloadNearCap", "PayloadOverCap", "FewTurnsLeft")
    )
    expected = [
        (pages, f"{NEAR_AT - 1}m", []),
        (tickets, f"{NEAR_AT + 1}m", [few]),
        (pages, f"{NEAR_AT + 1}m", [near]),
        (pages, f"{OVER_AT + 1}m", [near, over]),
        (pages, f"{INCIDENT_MINUTES - 1}m", []),
    ]
    _prove(tmp_path / "incident.yaml", before_noon | incident, "1m", expected)
