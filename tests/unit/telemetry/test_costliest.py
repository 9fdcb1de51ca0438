"""The costliest executions of a process."""

from __future__ import annotations

from agent_otel.doctor.findings import of_status
from agent_otel.telemetry.metrics import Costliest, Costly

ROW = Costly("run", "", "answer", "support", None, 1_000, 2)


def test_ten_are_kept_and_those_with_a_price_come_first() -> None:
    found = Costliest()
    for number in range(30):
        found.add(ROW._replace(execution=f"free-{number}", tokens=number))
    assert [row["tokens"] for row in found.rows()] == [*range(29, 19, -1)]
    found.add(ROW._replace(execution="paid", dollars=0.02, tokens=5))
    found.add(ROW._replace(execution="dear", dollars=0.3, tokens=5))
    assert [row["execution"] for row in found.rows()][:3] == ["dear", "paid", "free-29"]
    assert len(found.rows()) == 10


def test_a_price_that_comes_later_replaces_the_row_without_one() -> None:
    found = Costliest()
    first, second = ROW._replace(), ROW._replace()  # a conversation that goes on has the same id again
    found.add(first)
    found.add(second)
    found.add(first._replace(dollars=0.5), first)
    assert [row["dollars"] for row in found.rows()] == [0.5, None]


def test_the_doctor_shows_them() -> None:
    found = Costliest()
    found.add(ROW._replace(dollars=1.23456, trace="0af7651916cd43dd8448eb211c80319c"))
    found.add(ROW)
    status = {
        "pid": 1,
        "agent_otel": "0.1.0",
        "python": "3.11",
        "time": 4_000_000_000,
        "integrations": {},
        "spans": "",
        "metrics": "",
        "warnings": [],
        "internal_errors": {},
        "costliest": found.rows(),
    }
    assert [one.text for one in of_status(status) if one.topic == "costliest"] == [
        "answer support run: $1.2346, 1,000 tokens in 2 model requests, trace 0af7651916cd43dd8448eb211c80319c",
        "answer support run: without a price, 1,000 tokens in 2 model requests",
    ]
    del status["costliest"]  # of a process with an older version
    assert not [one for one in of_status(status) if one.topic == "costliest"]
