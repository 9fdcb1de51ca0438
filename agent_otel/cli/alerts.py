"""``agent-otel alerts``: list, thresholds, export, check."""

from __future__ import annotations

import functools
import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import yaml

from agent_otel import alerts as alerting
from agent_otel import semconv
from agent_otel.alerts import Options, Thresholds
from agent_otel.alerts.options import RUNBOOK
from agent_otel.cli import console, files, prometheus
from agent_otel.cli.console import Failure
from agent_otel.cli.prometheus import LABEL_NAMES, METRIC_NAMES, Prometheus
from agent_otel.semconv.types import HISTOGRAM, prometheus_label

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_otel.semconv.types import Metric

    _Rule = Mapping[str, Any]
    #: The name of a rule, a metric or an alert, its state, and its details.
    _Found = dict[str, Any]

#: Format -> the name of its file.
_FILES: Final = {
    "prometheus": "agent-otel.rules.yaml",
    "operator": "agent-otel.prometheusrule.yaml",
    "mimir": "agent-otel.mimir.yaml",
}
_NO_RUNBOOKS: Final = (
    "Warning: the alerts have no links to their runbooks, but a short form of them in the annotation `runbook`. To "
    "have links, publish the folder alerts/runbooks and give --runbook-url 'https://…/{alert}.md'."
)
_NO_DASHBOARDS: Final = "Warning: the alerts have no links to dashboards. Give --dashboard-url 'https://grafana.…'."
#: Number of alerts that the table lists for one threshold.
_USERS: Final = 3


# --- options for writing rules: on the command line, in a file, or both --------------------------------------------

_Command = TypeVar("_Command", bound="Callable[..., Any]")
#: Names that a file of ``--config`` may hold.
_KEYS: Final = ("thresholds", *(item.name for item in fields(Options)))
_PARAMETERS: Final = (
    click.option("--set", "set_", multiple=True, metavar="NAME=VALUE", help="A threshold or window; "
                 "`agent-otel alerts thresholds` has them all. May be given again."),
    click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
                 help="YAML with these options, `thresholds` among them; the command line goes before it."),
    click.option("--runbook-url", metavar="PATTERN", help="Where runbooks are; {alert} stands for the alert's name. "
                 "Without it alerts have a short form of their runbooks."),
    click.option("--dashboard-url", metavar="URL", help="Where Grafana is, for links in the alerts."),
    click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="A label that every alert gets."),
    click.option("--severity", "severities", multiple=True, metavar="ALERT=SEVERITY", help="The severity of an alert, "
                 "such as AgentRepeatsItself=critical. May be given again."),
    click.option("--selector", metavar="MATCHERS", help="Matchers for every series, such as 'namespace=\"prod\"'."),
    click.option("--by", multiple=True, metavar="LABEL", help="A label to group by besides job, such as cluster."),
    click.option("--no-keep-firing", is_flag=True, help="For Prometheus before 2.42 and vmalert before 1.92."),
)  # fmt: skip
_GIVEN: Final = ("set_", "runbook_url", "dashboard_url", "labels", "severities", "selector", "by", "no_keep_firing")


@dataclass(frozen=True)
class Rendering:
    """The thresholds and options of one export."""

    thresholds: Thresholds
    options: Options

    @property
    def has_links(self) -> bool:
        """True when the user gave the address of the runbooks; they have no public address by default."""
        return self.options.runbook_url != RUNBOOK

    def text(self, form: str) -> str:
        """Return the rules as a file of this format; alerts without a runbook link hold its short form."""
        return alerting.render(self.thresholds, self.options, form, {} if self.has_links else files.runbooks())

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules of the rule file."""
        return [rule for group in yaml.safe_load(self.text("prometheus"))["groups"] for rule in group["rules"]]


def _rendering_options(command: _Command) -> _Command:
    """Add the options of a rendering to a command, which receives a `Rendering` as ``rendering``."""

    @functools.wraps(command)
    def with_rendering(*, config: Path | None, **given: Any) -> Any:
        chosen = {name: given.pop(name) for name in _GIVEN}
        return command(rendering=_rendering(config, chosen), **given)

    for option in reversed(_PARAMETERS):
        option(with_rendering)
    return with_rendering  # type: ignore[return-value] # click passes its arguments


def _rendering(config: Path | None, given: Mapping[str, Any]) -> Rendering:
    said = _read(config) if config else {}
    thresholds = {**said.pop("thresholds", {}), **prometheus.pairs(given["set_"], "--set")}
    said |= {name: given[name] for name in ("runbook_url", "dashboard_url", "selector", "by") if given[name]}
    for name, option in (("labels", "--label"), ("severities", "--severity")):
        said[name] = {**said.get(name, {}), **prometheus.pairs(given[name], option)}
    if given["no_keep_firing"]:
        said["keep_firing_for"] = False
    try:
        rendering = Rendering(Thresholds.parse(thresholds), Options(**said))
        alerting.alerts(rendering.thresholds, rendering.options)
    except ValueError as error:
        raise Failure(str(error)) from None
    return rendering


def _read(config: Path) -> dict[str, Any]:
    """Return the values of a file of options, in the types of the options."""
    try:
        said = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Failure(f"{config} cannot be read: {' '.join(str(error).split())}") from None
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise Failure(f"{config} holds no names with values; there may be {', '.join(_KEYS)}")
    unknown = sorted(str(key) for key in said if key not in _KEYS)
    if unknown:
        raise Failure(f"{config}: {', '.join(unknown)} is none of {', '.join(_KEYS)}")
    return {name: _typed(name, value) for name, value in said.items()}


def _typed(name: str, value: Any) -> Any:
    """Return the value of an option in its type."""
    if name in {"thresholds", "labels", "severities", "metadata_labels"}:
        if not isinstance(value or {}, dict):
            raise Failure(f"{name}: {value!r} is no name: value")
        return value or {} if name == "thresholds" else {str(key): str(text) for key, text in (value or {}).items()}
    if name == "by":
        return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
    kind, expected = (bool, "neither true nor false") if name == "keep_firing_for" else (str, "no text")
    if not isinstance(value, kind):
        raise Failure(f"{name}: {value!r} is {expected}")
    return value


# --- the commands --------------------------------------------------------------------------------------------------


@click.group(cls=console.Group)
def alerts() -> None:
    """Rules for Prometheus, and whether they work there.

    Example: agent-otel alerts export rules
    """


@alerts.command("list")
@_rendering_options
@console.json_option
def list_(rendering: Rendering, *, is_json: bool) -> None:
    """Show the alerts there are, and the series that are recorded for them.

    Example: agent-otel alerts list
    """
    rules = rendering.rules()
    if is_json:
        console.as_json(rules)
        return
    rows = [
        (
            rule["alert"],
            rule["labels"]["severity"],
            rule.get("for", ""),
            re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"<\1>", rule["annotations"]["summary"]),
        )
        for rule in rules
        if "alert" in rule
    ]
    console.table(("alert", "severity", "for", "summary"), rows)
    console.say("")
    console.table(("recorded",), [(rule["record"],) for rule in rules if "record" in rule])


@alerts.command()
@console.json_option
def thresholds(*, is_json: bool) -> None:
    """Show the thresholds and windows of --set, with their defaults and meanings.

    Example: agent-otel alerts thresholds
    """
    users = alerting.uses()
    rows: list[tuple[object, ...]] = []
    for item in fields(Thresholds):
        own = users[item.name]
        few = ", ".join(own[:_USERS]) + (f" and {len(own) - _USERS} more" if len(own) > _USERS else "")
        rows.append((item.name, item.default, item.metadata["meaning"], own if is_json else few))
    console.table(("name", "default", "meaning", "alerts" if is_json else "of"), rows, is_json=is_json)


@alerts.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@click.option("--format", "form", type=click.Choice(list(_FILES)), default="prometheus", show_default=True,
              help="A rule file, also vmalert's; a PrometheusRule of the operator; or mimirtool's file.")  # fmt: skip
@_rendering_options
@click.option("--overwrite", is_flag=True, help="Replace files of the same name that are not ours.")
@console.json_option
def export(folder: Path, form: str, rendering: Rendering, *, overwrite: bool, is_json: bool) -> None:
    """Write the rules into a folder. Its other files are left alone.

    Example: agent-otel alerts export rules --set errors_ratio=0.3
    """
    files.export(folder, {_FILES[form]: rendering.text(form)}, overwrite=overwrite, is_json=is_json)
    if not rendering.has_links:
        click.echo(_NO_RUNBOOKS, err=True)
    if not rendering.options.dashboard_url:
        click.echo(_NO_DASHBOARDS, err=True)


@alerts.command()
@prometheus.url_option
@click.option("--rules-url", metavar="URL", help="Where its rules are, if that is another server, such as vmalert.")
@prometheus.header_option
@click.option("--since", default="1d", show_default=True, metavar="DURATION", help="How old a metric may be.")
@_rendering_options
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
def check(  # noqa: PLR0913, PLR0917 - one for each option
    url: str,
    rules_url: str | None,
    headers: tuple[str, ...],
    since: str,
    rendering: Rendering,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """See whether a Prometheus has the rules and the metrics, and which alerts fire.

    Give the options that the rules were exported with. Credentials are read from PROMETHEUS_TOKEN, or from
    PROMETHEUS_USER and PROMETHEUS_PASSWORD. The exit code is 1 when something does not work.

    Example: agent-otel alerts check --prometheus http://localhost:9090
    """
    seconds, sent, shipped = prometheus.seconds_since(since), prometheus.sent(headers), rendering.rules()
    with closing(Prometheus(url, sent)) as store, closing(Prometheus(rules_url or url, sent)) as ruler:
        store.check()
        server, version = store.version()
        loaded = ruler.rules()
        rules = _rules_found(ruler, shipped, loaded)
        metrics, problems = _metrics_found(store, seconds)
    problems = [*_problems_of_rules(rules, server), *problems]
    firing = _firing(shipped, loaded)
    if as_json:
        found = {"rules": rules, "metrics": metrics, "alerts": firing, "problems": problems}
        console.as_json({"ok": not problems, "server": server, "version": version, "url": store.url, **found})
    else:
        console.say(f"{server} {version}".rstrip() + f" at {store.url}\n")
        _show(rules, firing)
        for problem in problems:
            console.say(f"Problem: {problem}", style="bold red")
    if problems:
        raise click.exceptions.Exit(1)


def _show(rules: list[_Found], firing: list[_Found]) -> None:
    """Show the rules that are not loaded as they were exported, and the alerts."""
    wrong = [(rule["state"], rule["name"], rule["detail"]) for rule in rules if rule["state"] != OK]
    if len(wrong) < len(rules):
        console.say(f"{len(rules) - len(wrong)} of {len(rules)} rules are loaded as exported.")
    if 0 < len(wrong) < len(rules):
        console.table(("state", "rule", ""), wrong)
    console.say("")
    if not firing:
        console.say("No alert of agent_otel is pending or firing.")
        return
    labels = [", ".join(f"{key}={value}" for key, value in alert["labels"].items()) for alert in firing]
    rows = [(alert["state"], alert["name"], own, alert["since"]) for alert, own in zip(firing, labels, strict=True)]
    console.table(("alert", "name", "labels", "since"), rows)


# --- whether a Prometheus has the rules and metrics in the shipped form ---------------------------------------------

OK: Final = "ok"
MISSING: Final = "missing"
CHANGED: Final = "changed"
FAILING: Final = "failing"
PRESENT: Final = "present"
WRONG_LABELS: Final = "wrong labels"
NO_BUCKETS: Final = "no buckets"

#: Second part of a metric's name -> the group that shows it, and the event that creates the metric.
_GROUPS: Final = {
    "tool": ("tools", "a tool call"),
    "execute_tool": ("tools", "a tool call"),
    "model": ("model requests", "a request through a model's SDK"),
    "execution": ("executions", "a finished execution"),
    "workflow": ("payloads", "a durable runtime"),
    "claim_check": ("remedies", "a remedy that is switched on"),
    "context": ("remedies", "a remedy that is switched on"),
    "limits": ("remedies", "a remedy that is switched on"),
}
_ITSELF: Final = ("agent_otel itself", "a tool call")
#: Labels that may be empty on every series; Prometheus treats an empty label as absent.
_MAY_BE_EMPTY: Final = frozenset({
    semconv.AGENT_NAME, semconv.WORKFLOW_NAME, semconv.ACTIVITY, semconv.ERROR_TYPE, semconv.VERSION,
    semconv.TARGET, semconv.SCALES_TO_ZERO,
})  # fmt: skip


def _rules_found(ruler: Prometheus, shipped: Sequence[_Rule], loaded: Sequence[_Rule]) -> list[_Found]:
    """Return the states of the shipped rules, which are as in a rule file, in the ruler."""
    names = [(rule.get("alert") or rule["record"], "alert" in rule) for rule in shipped]
    wanted = Counter(names)
    named: dict[tuple[str, bool], list[_Rule]] = {name: [] for name in names}
    for rule in loaded:
        named.get((str(rule.get("name")), rule.get("type") == "alerting"), []).append(rule)
    states = (_state(ruler, rule, named[name], wanted[name]) for name, rule in zip(names, shipped, strict=True))
    return [
        {"name": name, "state": state, "detail": detail}
        for (name, _), (state, detail) in zip(names, states, strict=True)
    ]


def _problems_of_rules(rules: list[_Found], server: str) -> list[str]:
    states, problems = Counter(found["state"] for found in rules), []
    if rules and states[MISSING] == len(rules):
        of_vmalert = ": VictoriaMetrics has none of its own, give vmalert's address as --rules-url"
        problems.append(f"none of the {len(rules)} rules is loaded" + of_vmalert * server.startswith("Vict"))
    elif states[MISSING]:
        problems.append(f"{states[MISSING]} of the {len(rules)} rules are not loaded")
    if states[FAILING]:
        problems.append(f"{states[FAILING]} rules fail when they are evaluated")
    return problems


def _firing(shipped: Sequence[_Rule], loaded: Sequence[_Rule]) -> list[_Found]:
    """Return the pending and firing alerts of this package."""
    names = {rule.get("alert") for rule in shipped} - {None}
    return [
        {
            "name": str(rule["name"]),
            "state": str(alert.get("state") or ""),
            "labels": {key: str(value) for key, value in (alert.get("labels") or {}).items() if key != "alertname"},
            "since": str(alert.get("activeAt") or ""),
            "summary": str((alert.get("annotations") or {}).get("summary") or ""),
        }
        for rule in loaded
        if rule.get("name") in names
        for alert in rule.get("alerts") or []
    ]


def _state(ruler: Prometheus, rule: _Rule, named: Sequence[_Rule], times: int) -> tuple[str, str]:
    """Return the state of a rule with details; ``named`` are the ruler's rules of its name."""
    if not named:
        return MISSING, ""
    failing = [str(one.get("lastError") or "") for one in named if one.get("health") == "err"]
    if failing:
        return FAILING, failing[0][:300]
    apart = [_differences(ruler, rule, one) for one in named]
    if all(apart):
        return CHANGED, min(apart, key=len)
    more = [f"loaded {len(named)} times"] if len(named) > times else []
    waits = ["not evaluated yet"] if any(one.get("health") == "unknown" for one in named) else []
    return OK, ", ".join(more + waits)


def _differences(ruler: Prometheus, rule: _Rule, loaded: _Rule) -> str:
    told = []
    ours, theirs = rule["expr"], str(loaded.get("query") or "")
    if _squeezed(ours) != _squeezed(theirs):  # Prometheus formats the expressions that it loads
        formatted = ruler.formatted(ours)
        if formatted is None or formatted != ruler.formatted(theirs):
            told.append("its expression")
    waits, wanted = float(loaded.get("duration") or 0), prometheus.seconds_of(rule.get("for") or "0s")
    if "alert" in rule and waits != wanted:
        told.append(f"for: {waits:.0f} s instead of {wanted:.0f} s")
    severity, shipped = (str((one.get("labels") or {}).get("severity") or "") for one in (loaded, rule))
    if severity != shipped:
        told.append(f"severity: {severity or 'none'} instead of {shipped or 'none'}")
    return ", ".join(told)


def _squeezed(expression: str) -> str:
    """Return the expression without comments and blanks, except in quotes."""
    parts = re.findall(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`|#[^\n]*|\s+|[^"\'`#\s]+', expression)
    return "".join(part for part in parts if not part.isspace() and not part.startswith("#"))


def _metrics_found(store: Prometheus, seconds: float) -> tuple[list[_Found], list[str]]:
    """Return the states of this package's metrics of the last ``seconds`` in the store, and what does not work."""
    first = sorted({metric.name.split(".")[0] for metric in semconv.METRICS.values()})
    names = store.names(METRIC_NAMES, f'{{__name__=~"({"|".join(first)})[._].+"}}', seconds)
    untranslated = sorted(name for name in names if name.startswith(tuple(semconv.METRICS)))
    metrics = [_metric_found(store, metric, names, seconds) for metric in semconv.METRICS.values()]
    wrong, native = ([found for found in metrics if found["state"] == state] for state in (WRONG_LABELS, NO_BUCKETS))
    problems = []
    if untranslated:
        problems.append(
            f"{len(untranslated)} metrics came by OTLP with dots in their names, such as {untranslated[0]}; dashboards "
            "and rules want underscores and units: translation_strategy UnderscoreEscapingWithSuffixes of Prometheus, "
            "-opentelemetry.usePrometheusNaming of VictoriaMetrics"
        )
    elif all(found["state"] == MISSING for found in metrics):
        problems.append("there is no metric of agent_otel: is the agent scraped, and has it called a tool?")
    if wrong:
        example = f"{wrong[0]['name']} has {wrong[0]['detail']}"
        problems.append(f"{len(wrong)} metrics lack labels ({example}): does a relabelling drop them?")
    if native:
        problems.append(
            f"{len(native)} histograms have no classic buckets, such as {native[0]['name']}; dashboards and rules read "
            "these: scrape with always_scrape_classic_histograms and without convert_classic_histograms_to_nhcb, push "
            "without OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION, and drop no series by its name"
        )
    return metrics, problems


def _metric_found(store: Prometheus, metric: Metric, names: set[str], seconds: float) -> _Found:
    group, needs = _GROUPS.get(metric.name.split(".")[1], _ITSELF)
    exposed, state, detail = metric.exposed_name, MISSING, f"needs {needs}"
    # A native histogram is stored under the metric's name, without ``_count`` and other parts.
    there = next((name for name in (f"{exposed}_count", exposed) if name in names), None)
    if there is not None:
        labels = store.names(LABEL_NAMES, f'{{__name__="{there}"}}', seconds)
        always = {prometheus_label(label) for label in metric.labels if label not in _MAY_BE_EMPTY}
        state, detail = PRESENT, ""
        if lacks := sorted(always - labels):
            state, detail = WRONG_LABELS, f"no {', '.join(lacks)}"
        elif metric.kind == HISTOGRAM and f"{exposed}_bucket" not in names:
            state, detail = NO_BUCKETS, "no classic buckets"
    return {"name": exposed, "state": state, "group": group, "detail": detail}
