"""What becomes of results on their way to the model, for frameworks whose requests an SDK's adapter reads."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

import pytest

from tests.contract.cases import WIRE, Case, Cut, Record
from tests.contract.suite import Contract

if TYPE_CHECKING:
    from tests.contract.cases import Json
    from tests.contract.suite import Runs

#: A result so large that whoever cuts by default has cut it: {"n":2000000} are 13 bytes.
WHOLE = Case(("big",), (("call_90", "big", {"n": 2_000_000}),), (Record("big", "call_90", 2_000_000, args=13),))
#: {"n":400000} are 12 bytes.
LARGE = Case(("big",), (("call_91", "big", {"n": 400_000}),), (Record("big", "call_91", 400_000, args=12),))


class Delivery(Contract):
    """The cases of the contract, followed to the model."""

    #: Whether requests name the tool of each result, which is enough with their order.
    knows_names: ClassVar[bool] = False
    #: By case the bytes of results that another message than the call's own brings.
    quoted: ClassVar[dict[str, dict[str, int]]] = {}
    #: Known gaps: by case, tools with results that are not found in the request.
    unfound: ClassVar[dict[str, tuple[str, ...]]] = {}

    def test_bytes_delivered_are_those_on_the_wire(self, runs: Runs, case_name: str) -> None:
        expected: Counter[str] = Counter(self.quoted.get(case_name, {}))
        for record in self.cases()[case_name].records:
            text = runs.wire.get(str(record.call_id))
            # Without an id or a name a text is known by three words in a row, or a long one.
            words = re.findall(r"[^\W_]+", text or "")
            has_passage = len(words) > 2 or any(len(word) >= 16 for word in words)
            is_known = record.produced is not None and (self.knows_ids or self.knows_names or has_passage)
            is_known = is_known or (record.error is not None and self.tells_failures)
            if is_known and text is not None and record.tool not in self.unfound.get(case_name, ()):
                expected[record.tool] += len(text.encode())
        found = _counted(runs.on["cases"][case_name]["metrics"], "agent_otel.tool.result.delivered")
        if not self.tells_failures:
            for record in self.cases()[case_name].records:
                is_failure = record.error is not None and record.produced is None
                found -= Counter({record.tool: found[record.tool] if is_failure else 0})
        # A structured result is known by its passages only if the framework makes a text of it.
        by_passages = not (self.knows_ids or self.knows_names)
        assert found == +expected or (case_name == "structured" and by_passages and not found)

    def test_cuts_are_counted_and_nothing_else(self, runs: Runs, case_name: str) -> None:
        found = Counter(
            (attributes["gen_ai.tool.name"], attributes["layer"], attributes["reason"])
            for metric in runs.on["cases"][case_name]["metrics"]
            if metric["name"] == "agent_otel.tool.results.truncated" and metric["sum"]
            for attributes in (metric["attributes"],)
        )
        told = [(cut.tool, cut.layer, cut.reason) for cut in self.cuts_told(case_name)]
        own = [(r.tool, *r.cut) for r in self.cases()[case_name].records if r.cut and r.cut[0] == "tool"]
        # Suspected and cleared results have counters of their own.
        assert found == Counter(cut for cut in (*told, *own) if cut[2] not in {"suspected", "cleared"})

    @pytest.mark.shows("001.framework_cuts")
    def test_a_cut_on_the_way_says_both_sizes(self, runs: Runs, case_name: str) -> None:
        records = self.cases()[case_name].records
        produced = {record.tool: record.produced for record in records}
        wire = {record.tool: len(runs.wire.get(str(record.call_id), "").encode()) for record in records}
        found = []
        for span in runs.on["cases"][case_name]["spans"]:
            attributes = span["attributes"]
            if span["name"].startswith("tool_result_truncated"):
                tool, layer = attributes["tool.name"], attributes["tool.result.truncation.layer"]
                arrived = attributes[
                    "tool.result." + ("delivered" if layer == "model_request" else "handed_back") + "_bytes"
                ]
                assert span["parent"] == self.span.format(tool=tool)
                assert attributes["tool.result.bytes"] == produced[tool]
                found.append(Cut(tool, layer, attributes["tool.result.truncation.reason"], arrived))
        assert found == [
            cut._replace(arrived=wire[cut.tool]) if cut.arrived == WIRE else cut for cut in self.cuts_told(case_name)
        ]


def _counted(metrics: list[Json], name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for metric in metrics:
        if metric["name"] == name:
            found[metric["attributes"]["gen_ai.tool.name"]] += metric["sum"]
    return +found
