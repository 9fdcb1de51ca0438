"""Runs of Temporal's workflows in this process, from the first activation that is no replay to the last command."""

from __future__ import annotations

from typing import Any

from agent_otel.core import step_handler

# Reasons for an eviction behind a run's last command: CACHE_FULL, of a worker that keeps no run, and
# WORKFLOW_EXECUTION_ENDING. Behind another one, the server has not taken the command.
_DONE = (1, 10)
_RUNS = 4096


class Run:
    """The state of a workflow's run: its type, the counted payloads, the last number of each kind of command.

    A workflow task that failed is done again, and is no replay then. ``has_begun`` is false while this process has only
    replayed the run, as for a query of a run that has ended. ``is_over`` is true behind the run's last command.
    """

    __slots__ = ("counted", "has_begun", "is_over", "last", "workflow")

    def __init__(self, workflow: str | None) -> None:
        self.workflow = workflow
        self.counted: set[tuple[Any, ...]] = set()
        self.last: dict[str, int] = {}
        self.has_begun = self.is_over = False

    def again(self, *what: Any) -> bool:
        """Return True if this has been counted; mark it as counted."""
        known = what in self.counted
        self.counted.add(what)
        return known


_runs: dict[str, Run] = {}


def run_of(run_id: str, workflow: str | None = None) -> Run:
    """Return the run with this id; above the limit the first run is dropped."""
    run = _runs.get(run_id)
    if run is None:
        if len(_runs) >= _RUNS:
            del _runs[next(iter(_runs))]
        run = _runs[run_id] = Run(workflow)
    return run


def begin(run_id: str, run: Run) -> None:
    """Report a run that begins, or goes on, in this process."""
    run.is_over = False
    if not run.has_begun and run.workflow is not None:
        run.has_begun = True
        step_handler.execution_began(run_id, run.workflow)


def evicted(run_id: str, reason: int) -> None:
    """Report the end of a run that has sent its last command; one that was replayed to its end leaves nothing."""
    run = _runs.get(run_id)
    if run is None or reason not in _DONE:
        return
    if run.is_over:
        step_handler.execution_ended(run_id)
    if run.is_over or not run.has_begun:
        del _runs[run_id]
