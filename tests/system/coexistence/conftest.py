"""Runs the programs of this folder and reads what they report."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.environments import ROOT
from tests.patience import communicate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.environments import Environment

OURS = "agent_otel"
HASH = "tool.args_hash"
BYTES = "tool.result.bytes"


@dataclass(frozen=True)
class Report:
    """Spans and histogram points of one program."""

    spans: list[dict[str, Any]]
    points: list[dict[str, Any]]

    def numbered(self, attribute: str = HASH) -> Counter[str]:
        """Count the spans that carry our numbers, by tool."""
        return Counter(span["attributes"]["tool.name"] for span in self.spans if attribute in span["attributes"])

    def own(self) -> Counter[str]:
        """Count the spans of ours, by name."""
        return Counter(span["name"] for span in self.spans if span["scope"] == OURS)

    def parents(self, name: str) -> list[dict[str, Any]]:
        """Return the parents of all spans of a name."""
        by_id = {span["id"]: span for span in self.spans}
        return [by_id[span["parent"]] for span in self.spans if span["name"] == name]

    def counts(self, metric: str) -> dict[tuple[str, str], int]:
        """Return a histogram's counts by tool and by who recorded it."""
        found: Counter[tuple[str, str]] = Counter()
        for point in self.points:
            if point["name"] == metric:
                found[point["attributes"]["gen_ai.tool.name"], point["scope"]] += point["count"]
        return dict(found)


def report(environment: Environment, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Report:
    """Run a program of this folder and read its report."""
    module = ("-m", f"tests.system.coexistence.{program}", *arguments)
    with environment.start(str(environment.python), *module, env=env, cwd=ROOT) as child:
        stdout, stderr = communicate(child, 100)
    assert child.returncode == 0, f"{stdout}\n{stderr}"
    assert "agent_otel failed" not in stderr
    assert "Failed to detach context" not in stderr
    return Report(**json.loads(stdout))
