"""The rules as data: recorded series and alerts, in the groups of the rule files.

An alert is critical when a user was harmed, or will be within the hour, by proof and not by likeness. It is a warning
when somebody should look today.
``rules.yaml`` has their texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.options import seconds
from agent_otel.alerts.promql import JOB, Events, Query
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_otel.alerts.options import Options, Thresholds
    from agent_otel.alerts.promql import Recording
    from agent_otel.semconv.types import Metric

_AGENT: Final = (semconv.AGENT_NAME,)
_TOOL: Final = (semconv.GEN_AI_TOOL_NAME, *_AGENT)
_RUN: Final = (semconv.WORKFLOW_NAME, *_AGENT)
_WORKFLOW: Final = (semconv.RUNTIME, *_RUN)
_DIRECTED: Final = (*_WORKFLOW, semconv.DIRECTION)
_BOUNDARY: Final = (*_WORKFLOW, semconv.ACTIVITY, semconv.DIRECTION)
_MODEL: Final = (semconv.REQUEST_MODEL,)

# daprd's own histograms (1.17.7 and newer), payload ÷ --max-body-size, and their labels: dapr/dapr,
# pkg/diagnostics/workflow_monitoring.go.
DAPR_WORKFLOW: Final = "dapr_runtime_workflow_payload_size_ratio"
DAPR_ACTIVITY: Final = "dapr_runtime_workflow_activity_payload_size_ratio"
DAPR_LABELS: Final = ("app_id", "namespace", "workflow_name", "activity_name")

#: Results of operations on the claim store: the store failed, or it answered without a result
#: (agent_otel/remedies/claim_check/envelope.py).
STORE_FAILS: Final = ("error", "timeout", "open")
NOT_RESOLVED: Final = ("not_found", "expired", "denied", "corrupt")
_MARK_SECONDS: Final = 300  # a series stays visible for this long after its last sample


#: Reasons of harmless fragments: the agent can read the rest. Then reasons that the model is told about.
READABLE: Final = (semconv.CLAIM_CHECK, semconv.PAGE)
TOLD: Final = ("marker", semconv.OFFLOADED, semconv.CEILING)
#: Layers with a known limit. They harm larger results. Other layers may harm them.
HARD_LAYERS: Final = (semconv.CEILING, semconv.HOST, semconv.PAYLOAD, semconv.TRANSPORT, semconv.CONTEXT)


@dataclass(frozen=True)
class Alert:
    """An alert; its texts are Prometheus's templates. ``dashboard`` is a path in Grafana, with labels as variables."""

    name: str
    severity: str
    expr: str
    summary: str
    #: The first step, the size and its limit, and since when.
    description: str
    #: A TraceQL query for the calls, the requests or the executions.
    traces: str
    dashboard: str
    #: Time that the expression has to be true before the alert fires (``for``).
    wait: str = ""
    #: Time that the alert stays after its expression is false (``keep_firing_for``), so that single events do not flap.
    keep: str = ""
    #: Recorded series that ``expr`` reads.
    reads: tuple[Recording, ...] = ()
    #: Distinguishes rules of the same name and severity.
    cause: str = ""


# --- templates ---------------------------------------------------------------------------------------------------


def _of(label: str, words: str) -> str:
    """Return the template of a part of a sentence that is left out where a series has no such label."""
    return f"{{{{ with $labels.{label} }}}} {words}{{{{ end }}}}"


def _link(uid: str, **variables: str) -> str:
    """Return a path to a dashboard; ``variables`` maps each variable to the label whose value it takes."""
    query = (f"var-{name}={{{{ $labels.{label} | urlquery }}}}" for name, label in variables.items())
    return f"/d/{uid}?{'&'.join(query)}"


def _asked(query: str, labels: Iterable[str], words: str, otherwise: str = "") -> str:
    """Return a template with the first sample of a query. ``#`` in the query becomes the matchers of these labels."""
    names = tuple(labels)
    text = query.replace('"', '\\"').replace("#", ", ".join(f"{name}=%q" for name in names))
    values = " ".join(f"$labels.{name}" for name in names * query.count("#"))
    last = f"{{{{ else }}}}{otherwise}{{{{ end }}}}" if otherwise else "{{ end }}"
    return f'{{{{ with printf "{text}" {values} | query }}}}{{{{ with . | first }}}}{words}{{{{ end }}}}{last}'


_TOOL_LABEL, _WORKFLOW_LABEL = map(prometheus_label, (semconv.GEN_AI_TOOL_NAME, semconv.WORKFLOW_NAME))
_BEGAN: Final = '{{ (. | value | toTime).Format "15:04" }}'
_OF_WORKFLOW: Final = (JOB, _WORKFLOW_LABEL)


class _Pieces(dict[str, str]):
    """The templates that texts name; every other name is a label, after ``of_`` a label that a series may lack."""

    def __missing__(self, name: str) -> str:
        label = f"{{{{ $labels.{name} }}}}"
        of_label = _of(name.removeprefix("of_"), "of {{ . }}")
        return _PIECES.get(name) or (of_label if name.startswith("of_") else label)


_PIECES: Final = {
    "in_job": _of(JOB, "in job {{ . }}"),  # some series have no job
    "workflow": _of(_WORKFLOW_LABEL, "{{ . }}"),
    "agent": _of(prometheus_label(semconv.AGENT_NAME), "{{ . }}"),
    "of_agent": _of(prometheus_label(semconv.AGENT_NAME), "of agent {{ . }}"),
    "count": '{{ $value | printf "%.0f" }}',
    "share": "{{ $value | humanizePercentage }}",
    "bytes": "{{ $value | humanize1024 }}B",
    "value": "{{ $value }}",
    "factor": '{{ $value | printf "%.1f" }}',
    "what_is_carried": f"{{{{ $labels.direction }}}}{_of(prometheus_label(semconv.ACTIVITY), 'of {{ . }}')}",
    "this_tool": f'span.tool.name = "{{{{ $labels.{_TOOL_LABEL} }}}}"',
    "this_workflow": f'span.gen_ai.workflow.name = "{{{{ $labels.{_WORKFLOW_LABEL} }}}}"',
    "largest_result": _asked(
        f"max({semconv.RESULT_LARGEST.exposed_name}{{#}})",
        (JOB, _TOOL_LABEL),
        "; the largest has {{ . | value | humanize1024 }}B",
    ),
    "filled_by": _asked(
        f'topk(1, sum by ({_TOOL_LABEL}) ({semconv.PAYLOAD_BY_TOOL.exposed_name}{{#, {_TOOL_LABEL}!="_other"}}))',
        _OF_WORKFLOW,
        f'; most is of tool {{{{ . | label "{_TOOL_LABEL}" }}}}',
    )
    + _asked(
        f"topk(1, sum by (component) ({semconv.PAYLOAD_COMPONENT.exposed_name}{{#}}))",
        _OF_WORKFLOW,
        ' at {{ . | label "component" }}',
    )
    + _asked(
        f"sum({semconv.PAYLOAD_DUPLICATE.exposed_name}{{#}}) / sum({semconv.PAYLOAD_BY_TOOL.exposed_name}{{#}})",
        _OF_WORKFLOW,
        ", {{ . | value | humanizePercentage }} of it twice",
    ),
    "amplification": _asked(
        f"sum({semconv.STORE_WRITTEN.exposed_name}{{#}}) / (sum({semconv.STORE_NEW.exposed_name}{{#}}) > 0)",
        _OF_WORKFLOW,
        '; {{ . | value | printf "%.0f" }} bytes are written for each new one',
    ),
}

# --- events and recorded series ----------------------------------------------------------------------------------

_NO_REMEDY: Final = f'{semconv.LAYER}!="{semconv.LAYER_REMEDY}"'
_RESULTS: Final = Events(semconv.RESULT_SIZE, name="agent_otel_tool_results", part="count")
_GROWN: Final = Events(semconv.RESULTS_GROWN)
_OVER_HARD: Final = Events(
    semconv.RESULTS_OVER_BUDGET,
    (*_TOOL, semconv.LAYER),
    (f'{semconv.LAYER}=~"{"|".join(HARD_LAYERS)}"',),
    name="agent_otel_tool_results_over_limit",
)
_OVER_SOFT: Final = Events(
    semconv.RESULTS_OVER_BUDGET,
    matchers=(f'{semconv.LAYER}!~"{"|".join(HARD_LAYERS)}"',),
    name="agent_otel_tool_results_over_default",
)
_OVER_CEILING: Final = Events(
    semconv.RESULTS_LARGE,
    matchers=(f'{semconv.THRESHOLD}="{semconv.CEILING}"',),
    name="agent_otel_tool_results_over_ceiling",
)
_REPEATS: Final = Events(semconv.TOOL_REPEATS, (*_TOOL, semconv.BY))
#: Without results that a remedy cut on purpose.
_CUTS: Final = Events(
    semconv.RESULTS_TRUNCATED, matchers=(_NO_REMEDY,), name="agent_otel_tool_results_truncated_without_remedies"
)
_OF_NO_PAGE: Final = f'{prometheus_label(semconv.GEN_AI_TOOL_NAME)}!="{semconv.GET_TOOL_RESULT}"'
#: The definition of an incomplete answer, also of tiles and columns: the model was not told that it had a part only.
UNTOLD: Final = (f'{semconv.REASON}!~"{"|".join((*READABLE, *TOLD))}"', _OF_NO_PAGE)
_UNTOLD: Final = Events(semconv.ANSWERS_INCOMPLETE, matchers=UNTOLD, name="agent_otel_answers_incomplete")
_TOLD: Final = Events(
    semconv.ANSWERS_INCOMPLETE,
    matchers=(f'{semconv.REASON}=~"{"|".join(TOLD)}"', _OF_NO_PAGE),
    name="agent_otel_answers_incomplete_told",
)
_ENDED: Final = Events(semconv.EXECUTION_TOOL_CALLS, _AGENT, name="agent_otel_executions", part="count")
_STORES_LARGE: Final = Events(semconv.STORES_LARGE, _WORKFLOW)
_CALLS: Final = Events(semconv.TOOL_DURATION, name="gen_ai_execute_tool_calls", part="count")
_ERRORS: Final = Events(
    semconv.TOOL_DURATION,
    matchers=(f'{prometheus_label(semconv.ERROR_TYPE)}!=""',),
    name="gen_ai_execute_tool_errors",
    part="count",
)
#: Calls, those with refused arguments included.
_ALL_CALLS: Final = Events(semconv.ARGS_SIZE, name="agent_otel_tool_calls", part="count")
_REFUSED: Final = Events(semconv.INVALID_ARGUMENTS)
_LOST: Final = Events(semconv.HISTORY_LOST, _AGENT)
_REJECTED: Final = Events(semconv.REQUESTS_REJECTED, (*_MODEL, *_AGENT, semconv.REASON))
_OPERATIONS: Final = Events(semconv.CLAIM_CHECK_OPERATIONS, (semconv.OPERATION,))
_FAILED: Final = Events(
    semconv.CLAIM_CHECK_OPERATIONS,
    (semconv.OPERATION,),
    (f'{semconv.RESULT}=~"{"|".join(STORE_FAILS)}"',),
    name="agent_otel_claim_check_failures",
)
_UNRESOLVED: Final = Events(
    semconv.CLAIM_CHECK_OPERATIONS,
    (semconv.RESULT,),
    (f'{semconv.RESULT}=~"{"|".join(NOT_RESOLVED)}"',),
    name="agent_otel_claim_check_unresolved",
)


def _p95(query: Query) -> str:
    """Record the 95th percentile of a tool's result size; no series without results."""
    window, size = query.thresholds.p95_window, semconv.RESULT_SIZE
    buckets = promql.total(query.labels(*_TOOL, promql.LE), f"rate({query.series(size, part='bucket')}[{window}])")
    return query.record(size.exposed_name, f"p95_{window}", _TOOL, f"{promql.quantile(0.95, buckets)} > 0")


def _p95_before(query: Query, size: str, every: str) -> str:
    """Record the 95th percentile to compare with: of last week, else of yesterday, else of the first hours.

    A time with too few results is skipped, because its percentile means little.
    """
    chosen = query.thresholds
    step = chosen.p95_window
    times = (
        (chosen.grown_baseline_window, chosen.grown_baseline_offset),
        (chosen.grown_baseline_window, chosen.grown_yesterday_offset),
        (chosen.grown_first_window, chosen.grown_first_offset),
    )
    highest = (
        f"  max_over_time({size}[{window}] offset {ago})\n"
        f"    and sum_over_time({every}[{window}:{step}] offset {ago}) >= {chosen.grown_min_results}"
        for window, ago in times
    )
    return query.record(semconv.RESULT_SIZE.exposed_name, f"p95_{step}_before", _TOOL, "\nor\n".join(highest))


# --- conditions: the expressions of alerts -----------------------------------------------------------------------


_Condition = Callable[[Query], str]


def _counted(prefix: str, *events: Events, one: bool = False) -> _Condition:
    """Return the condition for at least ``{prefix}_min`` events in ``{prefix}_window``, or for any: ``one``."""

    def condition(query: Query) -> str:
        window = getattr(query.thresholds, f"{prefix}_window")
        least = 1 if one else getattr(query.thresholds, f"{prefix}_min", 1)
        return "\nor ".join(promql.at_least(query.count(each, window), least) for each in events)

    return condition


def _shared(  # noqa: PLR0913 - one for each difference
    prefix: str, events: Events, every: Events, *, least: str = "min_results", above: str = ">", or_none: bool = False
) -> _Condition:
    """Return the condition for a share of events above ``{prefix}_ratio``, of enough events in ``{prefix}_window``."""

    def condition(query: Query) -> str:
        window, ratio, number = (getattr(query.thresholds, f"{prefix}_{name}") for name in ("window", "ratio", least))
        share = query.share(events, every, window, or_none=or_none)
        return f"{share} {above} {ratio}\nand {promql.at_least(query.count(every, window), number)}"

    return condition


def _grown(query: Query) -> str:
    """Return the condition, which the process has counted or the store shows; its value is the largest result."""
    chosen, by = query.thresholds, query.by(*_TOOL)
    window = chosen.p95_window
    size, every = _p95(query), query.count(_RESULTS, window)
    before, counted = _p95_before(query, size, every), query.count(_GROWN, window)
    return (
        f"max by ({by}) (max_over_time({query.series(semconv.RESULT_LARGEST)}[{window}]))\n"
        f"and on ({by}) (\n  {promql.at_least(counted, chosen.grown_min)}\n  or\n"
        f"  {size} > {chosen.grown_factor:g} * {before} and {size} > {chosen.grown_min_bytes}\n"
        f"  and {promql.at_least(every, chosen.grown_min_results)}\n)"
    )


def _repeats(query: Query) -> str:
    """Return the condition for calls that repeat arguments or results, whichever is more."""
    chosen = query.thresholds
    repeats, calls = (query.count(events, chosen.repeats_window) for events in (_REPEATS, _ALL_CALLS))
    most = f"max by ({query.by(*_TOOL)}) ({repeats})"
    return f"{promql.at_least(most, chosen.repeats_min)}\nand {most} / {calls} >= {chosen.repeats_ratio}"


def _answers(events: Events, ratio: str) -> _Condition:
    """Return the condition for a minimum share of the agent's answers, if these are known."""

    def condition(query: Query) -> str:
        chosen = query.thresholds
        built, ended = (query.count(each, chosen.answers_incomplete_window) for each in (events, _ENDED))
        share = f"{built} / on ({query.by(*_AGENT)}) group_left () {ended}"
        return f"{promql.at_least(built, chosen.answers_incomplete_min)}\nunless {share} < {getattr(chosen, ratio)}"

    return condition


def _costly(query: Query) -> str:
    """Return the condition for money of executions, or tokens without prices: the factor to the week's mean."""
    chosen = query.thresholds
    window, week = chosen.costly_window, chosen.costly_history

    def costs(metric: Metric) -> str:
        total, number = (
            query.count(Events(metric, _RUN, name=promql.exposed(metric, part), part=part), window)
            for part in ("sum", "count")
        )
        spent, ended = (f"sum_over_time({one}[{week}:{window}] offset {window})" for one in (total, number))
        return (
            f"{total} / {number}\n  / ({spent}\n  / {ended})\n  > {chosen.costly_factor:g}\n"
            f"and {ended} >= {chosen.costly_min_executions}"
        )

    return "\nor\n".join(map(costs, (semconv.EXECUTION_PRICE, semconv.EXECUTION_TOKENS)))


def _expensive(query: Query) -> str:
    """Return the condition for an execution above a sum of money."""
    price = semconv.EXECUTION_PRICE
    most = query.fullest(price.exposed_name, query.thresholds.costly_window, _RUN, price.prometheus_labels)
    return f"{most} > {query.thresholds.costly_dollars:g}"


def _largest(query: Query, *matchers: str) -> str:
    """Return the exact largest payload of the last minutes."""
    return f"max by ({query.by(*_DIRECTED)}) ({query.series(semconv.PAYLOAD_LARGEST, *matchers)})"


def _filled(query: Query, *matchers: str) -> str:
    """Return the largest payload as a share of its cap."""
    capped = query.by(semconv.RUNTIME, semconv.DIRECTION)
    cap = f"min by ({capped}) ({query.series(semconv.PAYLOAD_CAP)})"
    return f"{_largest(query, *matchers)}\n  / on ({capped}) group_left () {cap}"


def _turns_left(query: Query) -> str:
    """Return the turns left of the execution with fewest."""
    return f"min by ({query.by(*_DIRECTED)}) ({query.series(semconv.TURNS_LEFT)})"


def _last_turns(query: Query) -> str:
    return f"{_turns_left(query)} <= {query.thresholds.last_turns}"


def _few_turns(query: Query) -> str:
    return f"{_turns_left(query)} <= {query.thresholds.few_turns} > {query.thresholds.last_turns}"


def _near_cap(query: Query) -> str:
    """Return the condition for a payload near its cap without a known growth."""
    return f"{_filled(query)}\n  > {query.thresholds.payload_near_ratio:g}\nunless {_turns_left(query)}"


def _stuck(query: Query) -> str:
    return f"sum by ({query.by(*_BOUNDARY)}) ({query.series(semconv.STUCK)}) > 0"


def _state(query: Query) -> str:
    """Return the condition for a state in a store without a near cap; its value is the largest state."""
    chosen, matcher = query.thresholds, f'{semconv.DIRECTION}="{semconv.STATE}"'
    large, largest = query.count(_STORES_LARGE, chosen.state_window), _largest(query, matcher)
    return (
        f"(\n  {largest} > {chosen.state_bytes}\n  or\n"
        f"  {largest}\n  and on ({query.by(*_WORKFLOW)}) ({large} > 0)\n)\n"
        f"unless {_filled(query, matcher)} > {chosen.payload_near_ratio:g}"
    )


def _first_truncation(query: Query) -> str:
    chosen = query.thresholds
    window, history = chosen.first_cut_window, chosen.first_cut_history
    cut, ago = query.count(_CUTS, window), f"{history}_offset{window}"
    cut_before = f"max_over_time({cut}[{history}] offset {window}) > 0"
    cut_before = query.record(_CUTS.series, f"max{ago}", _TOOL, cut_before)
    every_before = f"sum_over_time({query.count(_RESULTS, window)}[{history}:{window}] offset {window})"
    every_before = query.record(_RESULTS.series, f"increase{ago}", _TOOL, every_before)
    return f"{cut} > 0 unless {cut_before}\nand {promql.at_least(every_before, chosen.first_cut_min_results)}"


def _arguments_invalid(query: Query) -> str:
    chosen = query.thresholds
    window, history = chosen.invalid_arguments_window, chosen.invalid_arguments_history
    share, every = query.share(_REFUSED, _ALL_CALLS, window, or_none=True), query.count(_ALL_CALLS, window)
    average = f"avg_over_time({share}[{history}] offset {window})"
    before = query.record(_REFUSED.series, f"ratio{window}_avg{history}_offset{window}", _TOOL, average)
    return (
        f"{share} > {chosen.invalid_arguments_ratio}\n"
        f"unless {share} <= {chosen.invalid_arguments_factor:g} * {before}\n"
        f"and {promql.at_least(every, chosen.invalid_arguments_min_calls)}"
    )


def _dapr_near_stall(query: Query) -> str:
    """Return the condition, which is never true where daprd's metrics are not scraped."""
    window, ratio = query.thresholds.dapr_window, query.thresholds.dapr_ratio
    histograms = ((DAPR_WORKFLOW, DAPR_LABELS[:3]), (DAPR_ACTIVITY, DAPR_LABELS))
    return "\nor ".join(f"{query.fullest(name, window, labels)} > {ratio:g}" for name, labels in histograms)


def _claim_check_failing(query: Query) -> str:
    chosen = query.thresholds
    failed, every = (query.count(events, chosen.claim_check_window) for events in (_FAILED, _OPERATIONS))
    least = promql.at_least(failed, chosen.claim_check_min_errors)
    return f"{least}\nand {failed} / {every} > {chosen.claim_check_errors_ratio:g}"


def _telemetry_gone(query: Query) -> str:
    """Return the condition; a job counts that reported without a gap and does not scale to zero on purpose."""
    window, count = query.thresholds.gone_steady_window, f"count by ({query.by()})"
    lasts = query.series(semconv.BUILD_INFO, f'{semconv.SCALES_TO_ZERO}=""')
    there = f"{count} ({lasts})"
    marks = max(1, int(seconds(window)) // _MARK_SECONDS)
    lasting = f"{there}\nand\ncount_over_time(({there})[{window}:{_MARK_SECONDS}s]) >= {marks}"
    steady = query.record("agent_otel_processes", f"steady{window}", (), lasting)
    now = f"{count} ({query.series(semconv.BUILD_INFO)})"
    return f"last_over_time({steady}[{query.thresholds.gone_memory}])\nunless {now}"


def _integration_unmatched(query: Query) -> str:
    info = query.series(semconv.INSTRUMENTATION_INFO, f'{semconv.TARGET}="{semconv.UNMATCHED}"')
    by = query.by(semconv.INTEGRATION, semconv.VERSION)
    return f"count by ({by}) (last_over_time({info}[{query.thresholds.unmatched_window}]))"


#: The condition of each alert, by its name in ``rules.yaml``.
CONDITIONS: Final[dict[str, _Condition]] = {
    "over_budget": _counted("over_budget", _OVER_HARD),
    "over_default": _shared("over_default", _OVER_SOFT, _RESULTS),
    "ceiling": _shared("ceiling", _OVER_CEILING, _RESULTS),
    "grown": _grown,
    "errors": _shared("errors", _ERRORS, _CALLS, least="min_calls", or_none=True),
    "first_cut": _first_truncation,
    "invalid_arguments": _arguments_invalid,
    "repeats": _repeats,
    "answers_incomplete": _answers(_UNTOLD, "answers_incomplete_ratio"),
    "answer_incomplete": _counted("answers_incomplete", _UNTOLD, one=True),
    "answers_told": _answers(_TOLD, "answers_told_ratio"),
    "history_lost": _counted("history_lost", _LOST),
    "history_or_task_lost": _counted("history_lost", _LOST, Events(semconv.TASKS_DROPPED, _AGENT), one=True),
    "request_rejected": _counted("request_rejected", _REJECTED),
    "context_near": _counted("context_near", Events(semconv.CONTEXT_NEAR, (*_MODEL, *_AGENT))),
    "costly": _costly,
    "expensive": _expensive,
    "last_turns": _last_turns,
    "few_turns": _few_turns,
    "near_cap": _near_cap,
    "payload_over": _counted(
        "payload_over", Events(semconv.PAYLOAD_OVER_CAP, _BOUNDARY), Events(semconv.PAYLOADS_REJECTED, _BOUNDARY)
    ),
    "stuck": _stuck,
    "dapr": _dapr_near_stall,
    "state": _state,
    "claim_check": _claim_check_failing,
    "unresolved": _counted("unresolved", _UNRESOLVED),
    "limit_hit": _counted("limit_hit", Events(semconv.LIMITS_HIT, (semconv.LIMIT,))),
    "denied": _counted("denied", Events(semconv.POLICY_DENIED, (*_TOOL, semconv.RULE, semconv.MODE))),
    "gone": _telemetry_gone,
    "self_errors": _counted("self_errors", Events(semconv.INTERNAL_ERRORS, (semconv.WHERE,))),
    "unmatched": _integration_unmatched,
}

# --- alerts ------------------------------------------------------------------------------------------------------

_THRESHOLD: Final = re.compile(r"<(\w+)(%?)>")
#: Whom alerts are about, by the names in the rules: the beginning of the summary, labels, dashboard with its variables.
_WHO, _groups = yaml.safe_load_all(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
#: The rules of each group of the files. Rules of one name differ in their severity or their condition. Prometheus
#: evaluates a group in order. Mimir and Grafana Cloud refuse one with more than 20 rules, by default. No group reads
#: what another one records.
GROUPS: Final[dict[str, list[dict[str, Any]]]] = _groups


def alert(said: Mapping[str, Any], thresholds: Thresholds, options: Options) -> Alert:
    """Return the alert of a rule in an export."""
    query = Query(thresholds, options)
    expr, who = CONDITIONS[said["condition"]](query), _WHO[said["who"]]
    name, labels = said["name"], (JOB, *who["labels"], *said.get("by", ()))
    began = _asked(f'ALERTS_FOR_STATE{{alertname="{name}", #}}', labels, _BEGAN, "now")
    shown = {**who, "variables": {JOB: JOB}, **said} if "dashboard" in said else who

    def value(match: re.Match[str]) -> str:
        value = getattr(thresholds, match[1])
        return f"{value * 100:g}%" if match[2] else f"{value:g}" if isinstance(value, float) else str(value)

    def text(said: str) -> str:
        return _THRESHOLD.sub(value, said.format_map(_Pieces()))

    return Alert(
        name,
        options.severities.get(name, said["severity"]),
        expr,
        text(f"{who['text']}: {said['what']}"),
        f"{text(said['first'])} {text(said['size'])}. Since {began}.",
        text(f"{{{{ {said['traces']} }}}}") if "traces" in said else "",
        _link(f"agent-otel-{shown['dashboard']}", **shown["variables"]),
        wait=getattr(thresholds, said["wait"]) if "wait" in said else "",
        keep=thresholds.keep_firing if said.get("event", True) and "wait" not in said else "",
        reads=tuple(query.recorded.values()),
        cause=said.get("cause", ""),
    )
