"""Thresholds, windows and options of the rules: their meaning, their defaults and their valid values."""

from __future__ import annotations

import difflib
import re
import string
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from agent_otel.semconv.types import MONEY_BUCKETS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Prometheus's own grammar (prometheus/common, model/time.go): each unit once, the largest first.
_DURATION = re.compile(r"(?:\d+y)?(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?(?:\d+ms)?")
_SECONDS = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|)")
_UNITS = {"": 1, "KiB": 1024, "MiB": 1024 * 1024}


class Kind(NamedTuple):
    """The unit of a threshold, the form of its text, its type, its valid values, and both in words."""

    unit: str
    form: re.Pattern[str]
    convert: Callable[[str], Any]
    is_valid: Callable[[Any], bool]
    expected: str

    def read(self, text: str) -> Any:
        """Return the value of a text; ValueError names the expected form."""
        value = self.convert(text) if self.form.fullmatch(text) else None
        if value is None or not self.is_valid(value):
            raise ValueError(self.expected)
        return value


def _one_of(unit: str, *bounds: float) -> Kind:
    """Return the kind of a number that is compared with buckets: Prometheus would round others up to one."""
    expected = f"one of {', '.join(f'{bound:g}' for bound in bounds)}"
    return Kind(unit, _NUMBER, float, bounds.__contains__, expected)


def _size(text: str) -> int:
    number, unit = re.findall(_SIZE, text)[0]
    return int(float(number) * _UNITS[unit])


_KINDS = {
    "duration": Kind(
        "duration",
        _DURATION,
        str,
        lambda text: any(digit in text for digit in "123456789"),
        "a duration above 0 as Prometheus writes it, such as 15m, 1h30m or 1w",
    ),
    "wait": Kind("duration", _DURATION, str, bool, "a duration as Prometheus writes it, such as 10m, or 0s"),
    "ratio": Kind(
        "ratio", _NUMBER, float, lambda value: 0 < value <= 1, "a ratio above 0 and not above 1, such as 0.2"
    ),
    # The buckets of daprd 1.18 below 1.
    "dapr_ratio": _one_of("ratio", 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99),
    "dollars": _one_of("dollars", *MONEY_BUCKETS),
    "factor": Kind("factor", _NUMBER, float, lambda value: value > 1, "a factor above 1, such as 4"),
    "count": Kind("count", re.compile(r"\d+"), int, lambda value: value >= 1, "a whole number from 1 up"),
    "bytes": Kind("bytes", _SIZE, _size, lambda _: True, "a size such as 16000, 32KiB or 2MiB"),
}
_ROWS = yaml.safe_load(Path(__file__).with_name("thresholds.yaml").read_text(encoding="utf-8"))
_VALUES = make_dataclass(
    "_VALUES",
    [
        (name, Any, field(default=default, metadata={"kind": _KINDS[kind], "meaning": meaning}))
        for name, (kind, default, meaning) in _ROWS.items()
    ],
    frozen=True,
)


class Thresholds(_VALUES):  # type: ignore[misc, valid-type] # its fields are the rows of ``thresholds.yaml``
    """Every threshold and window of the rules; `parse` makes one from text.

    The name of a recorded series contains the window of its recording rule.
    """

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Thresholds:
        """Return the defaults with these values, as text or as the numbers of a YAML file.

        ValueError names the unknown threshold, or the invalid value and the expected form.
        """
        known = {item.name: item.metadata["kind"] for item in fields(cls)}
        chosen: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                raise ValueError(f"unknown threshold {name!r}" + (f"; is it {near[0]!r}?" if near else ""))
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError(f"{name}: {value!r} is neither text nor a number")  # noqa: TRY004 - bad input is one error
            try:
                chosen[name] = known[name].read(str(value).strip())
            except ValueError as expected:
                raise ValueError(f"{name}: {value!r} is not {expected}") from None
        return cls(**chosen)


def seconds(duration: str) -> float:
    """Return the seconds of a duration that `Thresholds` has accepted."""
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)([a-z]+)", duration))


#: Path of a runbook, relative to the folder that holds ``alerts``.
RUNBOOK = "alerts/runbooks/{alert}.md"

_MATCHER = r'\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*'
_SELECTOR = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*,?\s*")
_LABEL = re.compile(r"[a-zA-Z_]\w*")
_OURS = ("alertname", "cause", "component", "severity")


@dataclass(frozen=True)
class Options:
    """Options for writing rules; ValueError for a value that a rule file cannot hold."""

    #: Set to False for rulers that reject the field, such as Prometheus before 2.42 and vmalert before 1.92.
    keep_firing_for: bool = True
    #: Pattern of the annotation ``runbook_url``; ``{alert}`` is the alert's name.
    runbook_url: str = RUNBOOK
    #: Address of Grafana, the prefix of ``/d/agent-otel-…`` in links to dashboards. Links are relative when it is
    #: empty.
    dashboard_url: str = ""
    #: Labels that are added to every alert: ``{"team": "agents"}``.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Severities of alerts that differ from the shipped ones: ``{"AgentToolResultTooLarge": "critical"}``.
    severities: Mapping[str, str] = field(default_factory=dict)
    #: Matchers that are added to every selector: ``namespace="prod"``.
    selector: str = ""
    #: Labels to group by besides ``job``, such as ``("cluster", "namespace")``. Alerts and recorded series carry them.
    by: tuple[str, ...] = ()
    #: ``metadata`` of a PrometheusRule. An operator's ``ruleSelector`` selects by its labels.
    name: str = "agent-otel"
    namespace: str = ""
    metadata_labels: Mapping[str, str] = field(default_factory=lambda: {"app.kubernetes.io/name": "agent-otel"})

    def __post_init__(self) -> None:
        if self.matchers and not _SELECTOR.fullmatch(self.matchers):
            raise ValueError(f'selector: {self.selector!r} is not matchers such as namespace="prod",cluster=~"eu-.*"')
        for name in (*self.labels, *self.by):
            if not _LABEL.fullmatch(name):
                raise ValueError(f"{name!r} is not a name of a label")
        for name in self.labels:
            if name in _OURS:
                hint = "; use --severity AlertName=critical" if name == "severity" else ""
                raise ValueError(f"labels: {name!r} is set by the rules themselves{hint}")
        for name, severity in self.severities.items():
            if not severity or not severity.isprintable() or {"{", "}"} & {*severity}:
                raise ValueError(f"severities: {severity!r} of {name} is not a value such as critical")
        try:
            names = {name for _, name, _, _ in string.Formatter().parse(self.runbook_url) if name is not None}
        except ValueError:
            names = {""}
        if not names <= {"alert"}:
            raise ValueError(f"runbook_url: {self.runbook_url!r} may hold {{alert}} and no other braces")

    @property
    def matchers(self) -> str:
        """Return the selector without surrounding braces."""
        text = self.selector.strip()
        return text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text
