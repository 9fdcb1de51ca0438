"""Pipecat."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tests.contract.cases import KEY, WIRE, Case, Record
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from tests.contract.suite import Runs


class TestPipecat(Delivery):
    """Pipecat 1.14, which writes each result as JSON, a text in quotes."""

    agent = "pipecat"
    environment = "pipecat"
    integrations: ClassVar = {
        "pipecat": [
            "pipecat.services.llm_service:LLMService._run_function_call",
            "pipecat.processors.frame_processor:FrameProcessor.broadcast_frame",
        ],
    }
    outer = False
    modes: ClassVar = ("async",)
    origin = None
    flagged = "BrokenError"
    reads_failures = True
    own: ClassVar = {
        # An asynchronous call: under its id the model gets a notice first, and the result in another message.
        "with a report before": Case(("steps",), (("call_22", "steps", KEY),), (Record("steps", None, LOOKUP_BYTES),)),
        "two megabytes": WHOLE,
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
    }
    quoted: ClassVar = {"with a report before": {"steps": LOOKUP_BYTES}}
    reformatted: ClassVar = ("async", "sync in async", "raises in async", "parallel", *own)

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases without two.

        A pipeline goes on without the one who waits for it, and sends the model no request after an empty result.
        """
        return {name: case for name, case in super().cases().items() if name not in {"cancelled", "unicode"}}

    def expected(self, record: Record, runs: Runs) -> Record:
        """Return a record with the text about an exception as it is before it is written as JSON."""
        if record.handed_back == WIRE:
            text = json.loads(runs.wire[str(record.call_id)])
            record = replace(record, handed_back=len(text.encode()))
        return super().expected(record, runs)


del Delivery
