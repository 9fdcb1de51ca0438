"""What the product said of a run, turn by turn: read from its spans as they came over OTLP, and from ``/metrics``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from examples.durable_agent.ending import Ending
    from examples.durable_agent.later import Later
    from examples.durable_agent.watched import Run
    from examples.local_servers.otlp import Span
    from examples.repository_agent.readings import Scrape

_PAYLOAD = "workflow.payload."
_CAP = f"{_PAYLOAD}cap_bytes"
_REF = "tool.result.ref"


@dataclass(frozen=True)
class Turn:
    """One turn; sizes are bytes, ``near_cap`` is the counter's value when the model was asked.

    ``history_bytes`` is the history with the states of all turns, where the product has said how large it was.
    """

    number: int
    bytes: int
    cap_bytes: int
    utilization: float
    turns_to_cap: int | None
    near_cap: int
    fits: bool = True
    history_bytes: int | None = None


@dataclass(frozen=True)
class Finding:
    """What was found in a payload: the paths with most bytes in common, whose results fill it, and what is unread."""

    turn: int
    bytes: int
    largest_path: str
    largest_path_bytes: int
    duplicate_paths: tuple[str, ...]
    duplicate_bytes: int
    largest_tool: str
    largest_tool_bytes: int
    unread_path: str
    unread_bytes: int
    turns_without_unread: int | None


@dataclass(frozen=True)
class Report:
    """All of it; what follows ``few_turns_left_turn`` is counters at the end.

    A turn is None when what it is of never happened. ``answered`` is how many turns came to their end, ``stored`` how
    many results went to the store of the claim check, and ``removed_bytes`` what that has taken out of them.
    """

    runtime: str
    turns: list[Turn]
    answered: int
    ending: Ending
    findings: list[Finding]
    near_cap_turn: int | None
    few_turns_left_turn: int | None
    near_cap: int
    over_cap: int
    rejected: int
    stuck_retries: int
    stored: int
    removed_bytes: int
    later: Later | None = None


def read(runtime: str, run: Run) -> Report:
    """Read a run."""
    spans = sorted((span for span in run.spans if f"{_PAYLOAD}bytes" in span.attributes), key=lambda s: s.start_ns)
    *scrapes, last = run.scrapes
    near = [_count(scrape, "near_cap") for scrape in run.scrapes]
    return Report(
        runtime=runtime,
        turns=list(_turns(run, spans, near)),
        answered=len(run.heard) - (run.ending.answer is not None),
        ending=run.ending,
        findings=[_finding(run, span) for span in spans if f"{_PAYLOAD}duplicate_paths" in span.attributes],
        near_cap_turn=_first(near[:-1]),
        few_turns_left_turn=_first([_count(scrape, "few_turns_left") for scrape in scrapes]),
        near_cap=near[-1],
        over_cap=_count(last, "over_cap"),
        rejected=_count(last, "rejected"),
        stuck_retries=_count(last, "stuck_retries"),
        stored=sum(_REF in span.attributes for span in run.spans),
        removed_bytes=int(last.by("agent_otel_context_removed_bytes_total", "strategy").get("claim_check", 0)),
    )


def _turns(run: Run, spans: Iterable[Span], near: Sequence[int]) -> Iterable[Turn]:
    """Of each turn the largest payload that is the state: the model's, or what the tools' execution carries."""
    largest: dict[int, dict[str, Any]] = {}
    histories: dict[int, int] = {}
    # Of what a runtime has caps on the state has the smallest.
    state_cap = min((span.attributes.get(_CAP, math.inf) for span in spans), default=math.inf)
    for span in spans:
        said = {name.removeprefix(_PAYLOAD): value for name, value in span.attributes.items()}
        if "cap_bytes" not in said:
            continue
        fits = said["bytes"] <= said["cap_bytes"]
        if fits and not (span.name.startswith("execute_tool ") or said.get("workflow.activity") == "call_model"):
            continue
        turn = _turn_of(run, span) if fits else len(run.heard) + 1
        if said["cap_bytes"] > state_cap:
            histories[turn] = max(said["bytes"], histories.get(turn, 0))
            continue
        if turn not in largest or said["bytes"] > largest[turn]["bytes"]:
            largest[turn] = said
    for turn, said in sorted(largest.items()):
        fits = said["bytes"] <= said["cap_bytes"]
        left = said.get("turns_to_cap")
        history = histories.get(turn)
        yield Turn(turn, said["bytes"], said["cap_bytes"], said["utilization"], left, near[turn - 1], fits, history)


def _finding(run: Run, span: Span) -> Finding:
    said = {name.removeprefix(_PAYLOAD): value for name, value in span.attributes.items()}
    return Finding(
        turn=_turn_of(run, span),
        bytes=said["bytes"],
        largest_path=said["largest_path"],
        largest_path_bytes=said["largest_path_bytes"],
        duplicate_paths=tuple(said["duplicate_paths"]),
        duplicate_bytes=said["duplicate_bytes"],
        largest_tool=said.get("largest_tool", ""),
        largest_tool_bytes=said.get("largest_tool_bytes", 0),
        unread_path=said.get("unread_path", ""),
        unread_bytes=said.get("unread_bytes", 0),
        turns_without_unread=said.get("turns_to_cap_without_unread"),
    )


def _turn_of(run: Run, span: Span) -> int:
    """The turn in which a span ended; each begins when the model is asked."""
    return max(1, sum(heard <= span.end_ns for heard in run.heard))


def _count(scrape: Scrape, counter: str) -> int:
    return int(sum(scrape.by(f"agent_otel_workflow_payload_{counter}_total", "workflow_runtime").values()))


def _first(counts: Sequence[int]) -> int | None:
    """The first turn at which a counter was not 0."""
    return next((turn for turn, count in enumerate(counts, start=1) if count), None)
