"""What the package costs in real durable runtimes: a Temporal worker's throughput, and a checkpoint of LangGraph.

``python -m benchmarks.durable_runtimes checkpoints`` is the child for LangGraph; ``temporal_program`` is Temporal's.
Each runs with AGENT_OTEL and without, in a process of its own, and the two take turns.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks import children, clock

if TYPE_CHECKING:
    from collections.abc import Iterator

_US = 1 / 3.1  # in U, on the server where the budgets were set
_TURNS = 3  # of LangGraph's children
_BATCHES, _AT_ONCE = 10, 20  # of 200 workflows
_SLOWER = 1 / 0.98  # at most: the time of the same work, on to off
_CHECKPOINT = 60 * _US
_SAVED = 3  # checkpoints of a graph of one node: of the input, of the start and of the node
_ROUNDS, _RUNS = 20, 10
_TEMPORAL = """import os, sys
if os.environ.get("AGENT_OTEL"):
    import agent_otel.auto
from benchmarks.temporal_program import main
main(*sys.argv[1:])
"""

Row = tuple[str, float, float, str, str]
"""What, the budget, what was measured, the unit, the spread."""


def rows() -> Iterator[Row]:
    """Every budget of durable runtimes. Where there is no server to be had, its row is left out, and that is said."""
    yield from _temporal()
    yield from _langgraph()


def _temporal() -> Iterator[Row]:
    from tests.environments import environment
    from tests.interpreters import UnavailableError
    from tests.system.engines import temporal

    try:
        with temporal.server() as server, contextlib.ExitStack() as stack:
            python = str(environment("temporal").python)
            workers = [stack.enter_context(_worker(python, server.address, is_on=is_on)) for is_on in (False, True)]
            for worker in workers:
                _batch(worker)  # the first one loads what is needed
            pairs = [_pair(*workers, reverse=bool(turn % 2)) for turn in range(_BATCHES)]
    except UnavailableError as error:
        print(f"no Temporal: {error}", file=sys.stderr)
        return
    off, on = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratios = sorted(later / earlier for earlier, later in pairs)
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    yield "Temporal: 200 workflows of 10 activities of 1 KB, on to off", _SLOWER, on / off, "x", spread


def _pair(off: Any, on: Any, *, reverse: bool) -> tuple[float, float]:
    """Return the seconds of a batch without the switch, and with it."""
    if reverse:
        second = _batch(on)
        return _batch(off), second
    return _batch(off), _batch(on)


def _batch(worker: Any) -> float:
    print(_AT_ONCE, file=worker.stdin, flush=True)
    return float(worker.stdout.readline())


@contextlib.contextmanager
def _worker(python: str, address: str, *, is_on: bool) -> Iterator[Any]:
    command = (python, "-c", _TEMPORAL, address, "on" if is_on else "off")
    env = children.environment(**_variables(is_on=is_on))
    with subprocess.Popen(
        command, env=env, cwd=children.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        worker: Any = started
        yield worker
        worker.stdin.close()
        if worker.wait():
            raise SystemExit(f"a worker of Temporal ended with {worker.returncode}")


def _langgraph() -> Iterator[Row]:
    from tests.environments import environment

    python = str(environment("langgraph-savers").python)
    least = dict.fromkeys((False, True), float("inf"))
    for _ in range(_TURNS):
        for is_on in least:
            arguments = ("-m", "benchmarks.durable_runtimes", "checkpoints")
            least[is_on] = min(least[is_on], float(children.last_line(python, *arguments, **_variables(is_on=is_on))))
    yield "LangGraph: a checkpoint, with its writes", _CHECKPOINT, (least[True] - least[False]) / _SAVED, "U", ""


def _variables(*, is_on: bool) -> dict[str, str]:
    return {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus"} if is_on else {}


def checkpoints() -> float:
    """Return the time of all threads for a run of a graph of one node, in U."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    graph: Any = StateGraph(MessagesState)
    graph.add_node("answer", lambda _: {"messages": [{"role": "assistant", "content": "x" * 1_000, "id": "a"}]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    saver = InMemorySaver()
    compiled = graph.compile(checkpointer=saver)
    asked = {"messages": [{"role": "user", "content": "where is it", "id": "u"}]}

    def run(thread: str) -> None:
        compiled.invoke(asked, {"configurable": {"thread_id": thread}})

    run("first")
    saved = len(list(saver.list({"configurable": {"thread_id": "first"}})))
    if saved != _SAVED:
        raise SystemExit(f"{saved} checkpoints")
    unit = clock.measure({})["seconds per U"]
    least = float("inf")
    gc.disable()
    for at in range(_ROUNDS):
        started = time.process_time()
        for number in range(_RUNS):
            run(f"{at}-{number}")
        least = min(least, (time.process_time() - started) / _RUNS)
        gc.collect()
    return least / unit


if __name__ == "__main__":
    if os.environ.get("AGENT_OTEL"):
        import agent_otel.auto  # noqa: F401 - before the framework
    print(checkpoints())
