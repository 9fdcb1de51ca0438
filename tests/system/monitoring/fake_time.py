"""Series that the product has made, minute by minute, and the shipped rules over them in fake time."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.system.engines import prometheus, starting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RULES: Final = Path(__file__).resolve().parents[3] / "alerts" / "agent-otel.rules.yaml"

#: The program that makes the series.
DAY: Final = Path(__file__).with_name("day.py")

#: Name with labels -> a value for each minute; NaN where there is no sample.
Series = dict[str, list[float]]
#: An expression, the time at which it is evaluated, and the samples that it has then.
Expected = tuple[str, str, "Sequence[dict[str, Any]]"]


def prove(file: Path, series: Series, step: str, expected: Sequence[Expected]) -> None:
    """Evaluate the rules over the series, and compare what they say with what is expected; the file is written."""
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


def openmetrics(series: Series, start: float) -> str:
    """Return the series as OpenMetrics text; ``start`` is the time of the first minute (epoch seconds)."""
    lines = (
        f"{name} {value:.17g} {start + 60 * minute}"
        for name, values in sorted(series.items())
        for minute, value in enumerate(values)
        if not math.isnan(value)
    )
    return "\n".join((*lines, "# EOF\n"))
