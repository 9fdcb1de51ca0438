"""Reads back what the product emitted: its ``/metrics`` over HTTP, and its spans as they came over OTLP."""

from __future__ import annotations

import math
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Sequence

    from examples.local_servers.otlp import Span

PARTS = ("system", "tools", "user", "assistant", "tool_arguments", "tool_results")
"""What a model request is made of, as the label ``part`` of its metric says it."""

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Scrape:
    """One look at a ``/metrics`` page; empty before the product serves it, which it does from its first use on."""

    text: str = ""

    def by(self, name: str, label: str) -> dict[str, float]:
        """Return the values of all samples of this name, added up by one of their labels."""
        values: dict[str, float] = defaultdict(float)
        for family in text_string_to_metric_families(self.text):
            for sample in family.samples:
                if sample.name == name and label in sample.labels:
                    values[sample.labels[label]] += sample.value
        return dict(values)

    @property
    def request_bytes(self) -> dict[str, int]:
        """Bytes of all model requests so far, by part."""
        sums = self.by("agent_otel_model_request_size_bytes_sum", "part")
        return {part: int(sums.get(part, 0)) for part in PARTS}

    @property
    def repeats(self) -> dict[str, int]:
        """Calls with the same arguments again, by tool."""
        counts = self.by("agent_otel_tool_repeats_total", "gen_ai_tool_name")
        return {tool: int(count) for tool, count in counts.items()}


def scrape(url: str) -> Scrape:
    """Read a ``/metrics`` page."""
    try:
        with _DIRECT.open(url, timeout=10) as answer:
            return Scrape(answer.read().decode())
    except urllib.error.URLError:
        return Scrape()


def growth(scrapes: Sequence[Scrape]) -> list[dict[str, int]]:
    """Return what each turn's request weighed by part: the differences between scrapes that follow each other."""
    totals = [each.request_bytes for each in scrapes]
    return [{part: now[part] - before[part] for part in PARTS} for before, now in pairwise(totals)]


@dataclass(frozen=True)
class ToolRow:
    """One tool's row of the table; sizes are UTF-8 bytes, None when no call of it returned."""

    tool: str
    calls: int
    p50: int | None
    p95: int | None
    largest: int | None
    truncated: int
    reasons: tuple[str, ...]
    repeats: int
    errors: int


def tool_rows(spans: Sequence[Span], last: Scrape) -> list[ToolRow]:
    """Return a row for each tool: sizes, cuts and errors from the spans, repeats from the metrics."""
    of_tool: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        if span.name.startswith("execute_tool "):
            of_tool[span.attributes["tool.name"]].append(span)
    rows = [_row(tool, calls, last.repeats.get(tool, 0)) for tool, calls in of_tool.items()]
    return sorted(rows, key=lambda row: -(row.largest or 0))


def _row(tool: str, spans: list[Span], repeats: int) -> ToolRow:
    sizes = sorted(span.attributes["tool.result.bytes"] for span in spans if "tool.result.bytes" in span.attributes)
    cut = [span.attributes for span in spans if span.attributes.get("tool.result.truncated")]
    reasons = Counter(str(attributes.get("tool.result.truncation.reason", "unknown")) for attributes in cut)
    return ToolRow(
        tool=tool,
        calls=len(spans),
        p50=_percentile(sizes, 0.50),
        p95=_percentile(sizes, 0.95),
        largest=sizes[-1] if sizes else None,
        truncated=len(cut),
        reasons=tuple(reason for reason, _ in reasons.most_common()),
        repeats=repeats,
        errors=sum("error.type" in span.attributes for span in spans),
    )


def _percentile(ordered: list[int], share: float) -> int | None:
    """Return a value that was really measured: the nearest rank, nothing in between two."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None
