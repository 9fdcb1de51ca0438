"""Dapr Workflows on a real daprd, and what only that one can answer: where its caps are, and what it says there.

``scripts/extra`` runs this; ``scripts/test`` has the stand-in.
"""

# ruff: noqa: D101, D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.runtimes import test_dapr
from tests.environments import ROOT
from tests.system.engines import daprd, starting
from tests.system.examples.test_dead_store import ends_with_an_answer
from tests.system.replay.test_replay import ran

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.contract.runtimes.suite import Json, Runs
    from tests.environments import Environment

    Ask = Callable[..., "Answer"]

ENVIRONMENTS = ("dapr-1.19", "dapr-1.18")
MESSAGE = 4_194_304
SCHEDULER = 2_097_152
#: 2.1 and 4.1 MiB.
OVER_SCHEDULER, OVER_MESSAGE = 2_202_009, 4_299_161

REFUSAL = (
    "Error scheduling reminder job run-activity due to: rpc error: code = ResourceExhausted"
    f" desc = trying to send message larger than max (N vs. {SCHEDULER})"
)


class TestDaprd(test_dapr.TestDapr):
    #: It is run again each second; that may cost the worker its connection, and comes back a second later.
    seconds: ClassVar = 7
    endless: ClassVar = {
        "input too large for the scheduler": (4, 12),
        "input and history too large for the scheduler": (2, 12),
    }

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        """Build it; each child starts its own."""
        del environment
        with starting.or_skip(built()):
            yield {"daprd": {}}

    def test_what_the_sidecar_refuses_is_counted(self, runs: Runs) -> None:
        refused = self._found(runs, "payload.rejected")
        for name, (least, most) in self.endless.items():
            (times,) = refused.pop(name).values()
            assert least <= times <= most
        assert refused == {name: found for name, found in self.refused.items() if name not in self.endless}

    def test_a_retry_that_cannot_succeed_is_told_apart(self, runs: Runs) -> None:
        stuck = self._found(runs, "payload.stuck_retries")
        for name in self.endless:
            assert set(stuck.pop(name)) == {("consume", "input")}
        assert stuck == {"result too large twice": {("produce", "output"): 1}}

    def _found(self, runs: Runs, metric: str) -> dict[str, dict[tuple[str, str], int]]:
        found = {name: self.counted(runs, name, metric) for name in self.cases()}
        return {
            name: {where: int(point["sum"]) for where, point in points.items()}
            for name, points in found.items()
            if points
        }


class TestDaprdOldest(TestDaprd):
    environment = "dapr-1.18"


@contextlib.contextmanager
def built() -> Iterator[None]:
    """Build daprd, unless that was done before."""
    daprd.build()
    yield


@dataclass
class Answer:
    """What a daprd of its own made of one workflow, and what this package told of it."""

    report: Json

    def __getitem__(self, name: str) -> Any:
        return self.report[name]

    def metric(self, name: str, activity: str, direction: str, **labels: str) -> float | None:
        """Return one sample of ours, without the prefix; None when it is 0 or not there."""
        wanted = {"direction": direction, **({"workflow_activity": activity} if activity else {}), **labels}
        found = [value for sample, had, value in self["metrics"] if sample == name and wanted.items() <= had.items()]
        assert len(found) <= 1, found
        return found[0] if found else None

    def spans(self, direction: str) -> list[Json]:
        """Return the attributes of the spans with payloads of a direction, the smallest first."""
        spans = (span for span in self["spans"] if span["workflow.payload.direction"] == direction)
        return sorted(spans, key=lambda span: int(span["workflow.payload.bytes"]))


@pytest.fixture(params=ENVIRONMENTS)
def ask(request: pytest.FixtureRequest, environment: Callable[[str], Environment]) -> Ask:
    """Return a function that runs a workflow on a daprd of its own."""

    def asked(workflow: str, given: Json, *, caps: str = "", seconds: int = 20, **options: Any) -> Answer:
        with starting.or_skip(built()):
            done = environment(request.param).run(
                "import runpy; runpy.run_module('tests.extra.asked', run_name='__main__')",
                json.dumps(options),
                workflow,
                json.dumps(given),
                str(seconds),
                env={"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_CAPS": caps},
                timeout=100,
                check=True,
            )
        return Answer(json.loads(done.stdout.splitlines()[-1]))

    return asked


@pytest.mark.parametrize(
    ("max_body_size", "caps"), [("4Mi", ""), ("16Mi", ""), ("16Mi", "dapr.message=16MiB")], ids=["", "16Mi", "told"]
)
def test_an_input_above_2_mib_never_arrives(ask: Ask, max_body_size: str, caps: str) -> None:
    answer = ask("spread", {"n": OVER_SCHEDULER, "times": 1}, caps=caps, max_body_size=max_body_size, seconds=5)

    assert (answer["status"], answer["started"], answer["messages"]) == ("PENDING", False, [])
    said = {re.sub(r"\(\d+ vs", "(N vs", line) for line in answer["log"]}
    assert said == {REFUSAL}
    (span,) = answer.spans("input")
    assert span["workflow.payload.bytes"] == OVER_SCHEDULER + 4
    assert (span["workflow.payload.cap_bytes"], span["workflow.payload.cap_source"]) == (SCHEDULER, "table")
    assert answer.metric("cap_bytes", "", "input") == SCHEDULER
    assert answer.metric("over_cap_total", "consume", "input") == 1
    # Each time but the first it comes back, and so was refused before.
    refused, complaints = answer.metric("rejected_total", "consume", "input"), len(answer["log"])
    assert complaints >= 3
    assert refused in (complaints - 1, complaints)
    assert answer.metric("stuck_retries_total", "consume", "input") == refused - 1


def test_what_the_scheduler_s_message_has_beside_an_input_counts(ask: Ask) -> None:
    """About half a KiB, which names and identifiers make longer or shorter."""
    answer = ask("spread", {"n": SCHEDULER - 400, "times": 1}, seconds=5)

    assert answer["status"] == "PENDING"
    assert len(answer["log"]) >= 2
    assert answer.metric("over_cap_total", "consume", "input") is None
    assert answer.metric("near_cap_total", "consume", "input") == 1
    assert len(answer["log"]) >= (answer.metric("rejected_total", "consume", "input") or 0) >= 1


def test_an_output_of_2_1_mib_completes(ask: Ask) -> None:
    answer = ask("one", {"activity": "produce", "n": OVER_SCHEDULER})

    assert (answer["status"], answer["output"], answer["log"]) == ("COMPLETED", str(OVER_SCHEDULER), [])
    assert answer.metric("over_cap_total", "produce", "output") is None
    assert answer.metric("rejected_total", "produce", "output") is None


def test_an_output_of_4_1_mib_fails(ask: Ask) -> None:
    answer = ask("one", {"activity": "produce", "n": OVER_MESSAGE})

    assert answer["status"] == "FAILED"
    # Two quotation marks, and what the message has beside them.
    assert answer["failure"] == (
        "asked: Activity task #1 failed: Activity result exceeds gRPC max message size:"
        f" grpc: received message larger than max ({OVER_MESSAGE + 2 + 19} vs. {MESSAGE})"
    )
    assert answer.metric("rejected_total", "produce", "output") == 1
    assert answer.metric("over_cap_total", "produce", "output") == 1


def test_history_above_95_percent_stalls_and_was_told_before(ask: Ask) -> None:
    answer = ask("turns", {"turns": 4, "n": 390_000}, seconds=5)

    assert answer["status"] == "STALLED"
    cap = MESSAGE * 95 // 100
    assert answer.metric("cap_bytes", "", "history") == cap
    measured = answer.metric("utilization_count", "", "history")
    assert measured == 8
    assert measured - (answer.metric("utilization_bucket", "", "history", le="0.9") or 0) == 1
    assert answer.spans("history")[-1]["workflow.payload.utilization"] == pytest.approx(0.979, abs=0.001)
    assert answer.metric("over_cap_total", "", "history") is None


def test_our_history_is_what_daprd_holds_against_its_limit(ask: Ask) -> None:
    answer = ask("one", {"activity": "produce", "n": OVER_SCHEDULER})

    turns, share = answer["ratios"]["dapr_runtime_workflow_payload_size_ratio"]
    assert turns == answer.metric("utilization_count", "", "history") == 2
    ours = (answer.metric("utilization_sum", "", "history") or 0) * (MESSAGE * 95 // 100)
    assert ours == pytest.approx(share * MESSAGE, abs=500)
    assert answer["ratios"]["dapr_runtime_workflow_activity_payload_size_ratio"][0] == 1


@pytest.mark.shows("000.fifty_turns")
def test_fifty_turns_of_the_durable_agent_end_with_an_answer(tmp_path: Path) -> None:
    with starting.or_skip(built()):
        done = subprocess.run(
            (ROOT / "scripts" / "durable", "dapr", "--claim-check", "--turns", "50", "--output", tmp_path),
            env={**os.environ, "DURABLE_SIDECAR": "daprd"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "dapr-claim-check" / "report.json").read_text())
    assert "I have read 150 search results, " in report["ending"]["answer"]
    assert (report["answered"], report["stored"], report["rejected"]) == (50, 150, 0)
    assert max(turn["bytes"] for turn in report["turns"]) < SCHEDULER / 2


@pytest.mark.shows("000.store_fails")
def test_with_the_store_dead_from_turn_3_on_the_durable_agent_ends_with_an_answer() -> None:
    with starting.or_skip(built()):
        ends_with_an_answer("dapr", DURABLE_SIDECAR="daprd")


@pytest.mark.shows("000.replay")
def test_a_call_of_a_retried_activity_has_its_attempt(environment: Callable[[str], Environment]) -> None:
    with starting.or_skip(built()):
        report = ran(environment("dapr-1.18"), "dapr_program", DURABLE_SIDECAR="daprd")
    assert report["attempts"] == [None, None, None, 2, 2, None]
