"""Reads a ``/metrics`` page over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections import defaultdict
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

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


def scrape(url: str) -> Scrape:
    """Read a ``/metrics`` page."""
    try:
        with _DIRECT.open(url, timeout=10) as answer:
            return Scrape(answer.read().decode())
    except urllib.error.URLError:
        return Scrape()
