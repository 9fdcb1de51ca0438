"""``agent-otel report`` over half an hour of the product's own metrics: all figures are counted from the samples."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel import semconv
from tests.system.engines import prometheus, starting
from tests.system.engines.prometheus import NEWEST
from tests.system.monitoring import stores
from tests.system.monitoring.simulated import END
from tests.system.monitoring.transcript import MODEL
from tests.unit.cli.running import Ran, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_otel.semconv.types import Metric
    from tests.system.engines.prometheus import Prometheus

#: The support job lives through all of the half hour, so that its counters have no resets.
SUPPORT = 'job="support"'
MINUTES = 15
UNTIL = datetime.fromtimestamp(END, tz=timezone.utc).isoformat()
_LINE = re.compile(r"(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+) (?P<at>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Counted:
    """Sums of the support job's counters over both halves of the half hour."""

    def __init__(self, samples: Path) -> None:
        self._series: dict[str, list[tuple[dict[str, str], float, float]]] = defaultdict(list)
        for line in samples.read_text().splitlines():
            found = _LINE.match(line)
            if found and f"{SUPPORT}" in line:
                labels = dict(_LABEL.findall(found["labels"]))
                self._series[found["name"]].append((labels, float(found["at"]), float(found["value"])))

    def gained(self, metric: Metric, part: str = "", *, before: bool = False, **own: str) -> int:
        """Return what the series with these labels gained in the last fifteen minutes, or in those before."""
        end = END - MINUTES * 60 * before
        rows = self._series[f"{metric.exposed_name}_{part}" if part else metric.exposed_name]
        rows = [row for row in rows if own.items() <= row[0].items()]
        return round(_latest(rows, end) - _latest(rows, end - MINUTES * 60))


def _latest(rows: list[tuple[dict[str, str], float, float]], end: float) -> float:
    last = {tuple(sorted(labels.items())): value for labels, at, value in rows if at <= end}
    return sum(last.values())


@pytest.fixture(scope="module")
def counted(samples: Path) -> Counted:
    """Return the sums that the report is to have."""
    return Counted(samples)


def _report(engine: Prometheus, *arguments: str) -> dict[str, Any]:
    since = f"{MINUTES}m"
    ran = run(
        "report", "--url", engine.url, "--since", since, "--until", UNTIL, "--selector", SUPPORT, "--json", *arguments
    )
    assert (0, "") == (ran.code, ran.err)
    return json.loads(ran.out)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", stores.NAMES)
def test_every_server_answers_with_the_figures_of_the_samples(
    store: Callable[[str], Prometheus], counted: Counted, name: str
) -> None:
    report = _report(store(name))

    totals = {
        "tool calls": (semconv.ARGS_SIZE, "count"),
        "bytes of results": (semconv.RESULT_SIZE, "sum"),
        "truncated results": (semconv.RESULTS_TRUNCATED, ""),
        "answers on a part of a result": (semconv.ANSWERS_INCOMPLETE, ""),
        "repeated calls": (semconv.TOOL_REPEATS, ""),
        "requests without the history": (semconv.HISTORY_LOST, ""),
        "calls with refused arguments": (semconv.INVALID_ARGUMENTS, ""),
        "refused payloads": (semconv.PAYLOADS_REJECTED, ""),
        "failures of agent_otel itself": (semconv.INTERNAL_ERRORS, ""),
    }
    expected: list[dict[str, Any]] = [
        {"what": what, "now": counted.gained(*metric), "before": counted.gained(*metric, before=True)}
        for what, metric in totals.items()
    ]
    assert expected == report["totals"]
    assert 200 < expected[0]["now"] < expected[0]["before"]
    calls = counted.gained(semconv.ARGS_SIZE, "count", gen_ai_tool_name="read_document")
    cut = counted.gained(semconv.RESULTS_TRUNCATED, gen_ai_tool_name="read_document", reason="marker")
    most = {"tool": "read_document", "layer": "tool", "reason": "marker", "results": cut, "share": cut / calls}
    assert most == report["cut"][0]
    assert [("search_tickets", "shrunk", 6), ("export_report", "ceiling", 3)] == [
        tuple(row.values()) for row in report["incomplete"]
    ]
    assert ["check_status", "search_tickets", "read_document"] == [row["tool"] for row in report["repeating"]]
    # The fifth turn's payload is near 2 MiB, the sixth's above, in both executions of the period; four refusals each.
    assert {
        "runtime": "dapr", "workflow": "read_attachments", "direction": "input", "utilization": 1.1,
        "near": 2, "over": 2, "refused": 8, "few_turns_left": 2,
    } == report["nearest"][0]  # fmt: skip


def test_the_costs_are_those_of_the_samples(store: Callable[[str], Prometheus], counted: Counted) -> None:
    costs = _report(store(stores.NAMES[0]))["costs"]

    first = costs["workflows"][0]
    own = {"gen_ai_workflow_name": first["workflow"], "gen_ai_agent_name": first["agent"]}
    assert {
        "executions": counted.gained(semconv.EXECUTION_TOKENS, "count", **own),
        "tokens": counted.gained(semconv.EXECUTION_TOKENS, "sum", **own),
        "requests": counted.gained(semconv.EXECUTION_MODEL_REQUESTS, "sum", **own),
        "retries": counted.gained(semconv.EXECUTION_MODEL_RETRIES, "sum", **own),
    } == {name: first[name] for name in ("executions", "tokens", "requests", "retries")}
    assert first["dollars"] == max(row["dollars"] for row in costs["workflows"]) > 0
    (model,) = [row for row in costs["models"] if row["dollars"]]
    assert (model["name"], model["tokens"]) == (
        MODEL,
        counted.gained(semconv.CONTEXT_TOKENS_OF, gen_ai_request_model=MODEL),
    )
    tools = {row["name"]: row for row in costs["tools"]}
    for name in ("read_document", "tool_0"):
        own = {"gen_ai_tool_name": name}
        assert tools[name]["tokens"] == counted.gained(semconv.CONTEXT_TOKENS_OF, **own)
        assert tools[name]["definition_tokens"] == counted.gained(semconv.DEFINITION_TOKENS, **own)
    saved = {row["remedy"]: row["tokens"] for row in costs["saved"]}
    assert saved == {"ceiling": counted.gained(semconv.CONTEXT_SAVED_TOKENS, strategy="ceiling")}
    savable = {row["remedy"]: row["tokens"] for row in costs["savable"]}
    counter = semconv.CONTEXT_SAVABLE_TOKENS
    assert savable == {remedy: counted.gained(counter, strategy=remedy) for remedy in ("trim", "claim_check")}
    assert min(savable.values()) > 0


#: Two half hours in which a tool's mean result grows from 3,000 to 41,000 bytes; its name would be markup.
_SERVER_NAME = "a|b <i>*join*</i>"
_GROWING = """# TYPE agent_otel_tool_args_size_bytes histogram
{args}
# TYPE agent_otel_tool_result_size_bytes histogram
{results}
# TYPE agent_otel_answers_incomplete counter
agent_otel_answers_incomplete_total{{gen_ai_tool_name="{name}",reason="cut_json"}} 0 {before}
agent_otel_answers_incomplete_total{{gen_ai_tool_name="{name}",reason="cut_json"}} 2 {end}
# EOF
"""


def _buckets(name: str, counts: tuple[int, ...], sums: tuple[int, ...], low: str) -> str:
    times = (END - 3600, END - 1800, END)
    lines = []
    for le in (low, "65536.0", "+Inf"):
        filled = [count if le != low else counts[1] * (count > 0) for count in counts]
        own = f'agent_otel_tool_{name}_size_bytes_bucket{{gen_ai_tool_name="{_SERVER_NAME}",le="{le}"}}'
        lines += [f"{own} {count} {at}" for count, at in zip(filled, times, strict=True)]
    for part, values in (("count", counts), ("sum", sums)):
        own = f'agent_otel_tool_{name}_size_bytes_{part}{{gen_ai_tool_name="{_SERVER_NAME}"}}'
        lines += [f"{own} {value} {at}" for value, at in zip(values, times, strict=True)]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Return a Prometheus with one tool that grows: ten calls of 3,000 bytes, then ten of 41,000."""
    programs = starting.obtained(prometheus.programs, NEWEST)
    text = _GROWING.format(
        name=_SERVER_NAME,
        args=_buckets("args", (0, 10, 20), (0, 100, 200), "256.0"),
        results=_buckets("result", (0, 10, 20), (0, 30_000, 440_000), "4096.0"),
        before=END - 1800,
        end=END,
    )
    folder = tmp_path_factory.mktemp("growing")
    (folder / "samples").write_text(text)
    programs.backfill(folder / "samples", folder / "data")
    with prometheus.server(programs, data=folder / "data") as engine:
        yield engine


def _grown(engine: Prometheus, *arguments: str) -> Ran:
    ran = run("report", "--url", engine.url, "--since", "30m", "--until", UNTIL, *arguments)
    assert (0, "") == (ran.code, ran.err)
    return ran


@pytest.mark.shows("001.daily_review")
def test_a_tool_that_grew(growing: Prometheus) -> None:
    (row,) = json.loads(_grown(growing, "--json").out)["grown"]
    # Nineteen of twenty results of the period are below (4,096 + 0.95 x 61,440) bytes, as buckets have it.
    assert {"mean": 41_000, "mean_before": 3_000, "calls": 10, "factor": 41 / 3, "p95": 62_464} == {
        key: row[key] for key in ("mean", "mean_before", "calls", "factor", "p95")
    }


def test_text(growing: Prometheus) -> None:
    rows = _grown(growing).rows
    assert ["tool", "mean", "before", "growth", "p95", "p95 before", "calls"] in rows
    assert [_SERVER_NAME, "41,000", "3,000", "13.7 x", "62,464", "3,891", "10"] in rows
    assert ["tool calls", "10", "10", "+0%"] in rows
    assert [_SERVER_NAME, "cut_json", "2"] in rows
    assert ["Runbook: AgentToolResultGrown"] in rows


def test_markdown_and_html_show_names_as_they_are(growing: Prometheus) -> None:
    links = ("--runbook-url", "https://wiki.example/{alert}")
    markdown = _grown(growing, "--format", "markdown", *links).out
    assert r"| a\|b \<i\>\*join\*\</i\> | `cut_json` | 2 |" in markdown
    assert "Runbook: [AgentAnswersIncomplete](<https://wiki.example/AgentAnswersIncomplete>)" in markdown
    page = _grown(growing, "--format", "html", *links).out
    assert page.startswith("<!doctype html>")
    assert "<td>a|b &lt;i&gt;*join*&lt;/i&gt;</td>" in page
    assert '<a href="https://wiki.example/AgentToolResultGrown">AgentToolResultGrown</a>' in page
    assert not re.search(r"<(script|link|img)|src=", page)


def test_a_server_without_metrics_of_the_package(growing: Prometheus) -> None:
    ran = run("report", "--url", growing.url, "--until", UNTIL, "--selector", 'job="none"')
    assert 1 == ran.code
    assert "has no metric of agent_otel in this period" in ran.err


def test_wrong_options(growing: Prometheus) -> None:
    for arguments, message in {
        ("--since", "soon"): "--since: 'soon' is no duration such as 15m or 1h30m",
        ("--since", "0"): "--since: '0' is no time at all",
        ("--until", "noon"): "--until: 'noon' is no time such as 2026-11-22T06:00",
        ("--selector", "job"): "selector: 'job' is not matchers",
    }.items():
        ran = run("report", "--url", growing.url, *arguments)
        assert 1 == ran.code
        assert message in ran.err
