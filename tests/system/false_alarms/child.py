"""The child process of the false-alarm test: one loop, twice 200 calls, and what was said of them, as JSON.

``python -m tests.system.false_alarms.child <loop> <base URL>``. In the second run some results are cut.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import partial
from typing import Any

from tests.contract.child import LOOP, Json, Messages, Telemetry
from tests.system.false_alarms import content, cuts, loops, toolbox


class Spans(Telemetry):
    """Telemetry whose spans are taken as they are."""

    def take(self) -> list[Any]:
        """Return and forget the spans that have ended."""
        spans = list(self._spans.get_finished_spans())
        self._spans.clear()
        return spans


def mixed(seed: str, kinds: tuple[str, ...], number: int) -> Any:
    """Return a result that is cut, if one is planted here."""
    return cuts.by_the_tool(number) if cuts.PLANTED.get(number) in kinds else content.produce(seed, number)


def main(name: str, base_url: str) -> Json:
    """Make both runs."""
    messages = Messages()
    telemetry = Spans()
    loop = loops.LOOPS[name]
    query = toolbox.query if loop.objects else toolbox.query_text
    tools = (toolbox.search, toolbox.read, toolbox.run, query)
    report: Json = {}
    for key, make in (
        ("honest", partial(content.produce, name)),
        ("mixed", partial(mixed, name, loop.kinds)),
    ):
        toolbox.make = make
        said = LOOP.run_until_complete(loops.run(loop, base_url, tools, "Make all the calls."))
        report[key] = {"said": said, **_told(telemetry)}
    from agent_otel._internal import errors

    return {**report, "messages": messages.take(), "errors": dict(errors.errors)}


_LABELS = {
    "tool.results.truncated": ("gen_ai.tool.name", "layer", "reason"),
    "tool.results.suspected": ("gen_ai.tool.name",),
    "tool.results.cleared": ("gen_ai.tool.name",),
    "answers.incomplete": ("gen_ai.tool.name", "reason"),
    "tool.schema_changes": ("gen_ai.tool.name",),
    "tool.invalid_arguments": ("gen_ai.tool.name",),
}


def _told(telemetry: Spans) -> Json:
    """What the spans and the metrics of a run say, by the numbers of the calls."""
    found: Json = {"calls": 0, "whole": 0, "cut": [], "suspected": [], "children": []}
    for span in telemetry.take():
        attributes: Any = span.attributes or {}
        cut = _cut(attributes)
        if "tool.args_hash" in attributes:
            number = toolbox.NUMBERS[span.context.span_id]
            found["calls"] += 1
            if attributes["tool.result.truncated"]:
                found["cut"].append([number, *cut])
            elif cut == ["tool", "suspected"]:
                found["suspected"].append(number)
            else:
                found["whole"] += cut is None
        elif span.name.startswith("tool_result_truncated"):
            produced, left = attributes["tool.result.bytes"], attributes.get("tool.result.delivered_bytes")
            left = attributes["tool.result.handed_back_bytes"] if left is None else left
            found["children"].append([toolbox.NUMBERS[span.parent.span_id], *cut, produced, left])
    counted: Counter[str] = Counter()
    for metric in telemetry.metrics():
        name = metric["name"].removeprefix("agent_otel.")
        if name.startswith(("tool.result", "tool.schema", "tool.invalid", "model.history", "answers")):
            labels = (metric["attributes"][label] for label in _LABELS.get(name, ()))
            counted[" ".join((name, *labels))] += metric["sum"]
    return {key: sorted(v) if isinstance(v, list) else v for key, v in found.items()} | {"counted": dict(+counted)}


def _cut(attributes: Any) -> Any:
    layer = attributes.get("tool.result.truncation.layer")
    return None if layer is None else [layer, attributes["tool.result.truncation.reason"]]


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
