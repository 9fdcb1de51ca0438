"""LangGraph: the names of nodes and checkpoints, which come from the config, the arguments and the loop's tasks."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, listed, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_otel.core.types import Invocation

_PULLED = re.compile(r"(?:~~\d{10})?~__pregel_pull, (.+)", re.DOTALL)
_SENT = re.compile(r"(?:~~\d{10})?~__pregel_push, (\d{10})(?:, \w+)?")
_MOST_BESIDE = 4
# Prefixes of the channels that start a node; older versions have one for each way to start it.
_TRIGGERS = ("branch:", "start:", "__start__")
_SENDS = "__pregel_tasks"

_task: ContextVar[tuple[str, str] | None] = ContextVar("agent_otel_langgraph_task", default=None)


def namespace(config: Mapping[str, Any], task_path: str = "") -> str:
    """Return the path to a subgraph without the ids of its runs, with the numbers of tasks that run side by side."""
    path = _path(config)
    if ":" in path:
        path = "|".join(part.partition(":")[0] for part in path.split("|"))
    return " ".join((path, *map(str, _numbers(config, task_path))))


def is_beside(config: Mapping[str, Any], task_path: str = "") -> bool:
    """Return true for one of so many tasks side by side that their payloads would push out those of the graph."""
    return any(number >= _MOST_BESIDE for number in _numbers(config, task_path))


def _path(config: Mapping[str, Any]) -> str:
    return text(config["configurable"].get("checkpoint_ns")) or ""


def _numbers(config: Mapping[str, Any], task_path: str) -> Iterator[int]:
    """Yield the numbers of the tasks that a node has sent: that of the subgraph's run, and of the task that writes.

    Such tasks run in one step, and their payloads are no turns of one another. A path without ids is that of a graph
    with a memory of its own: its next turn is its next run, whichever task starts it.
    """
    task = fields(config.get("metadata")).get("langgraph_path")
    if type(task) is tuple and len(task) > 1 and type(task[1]) is int and ":" in _path(config):
        yield task[1]
    sent = _SENT.fullmatch(task_path)
    if sent is not None:
        yield int(sent[1])


def kind_of(
    config: Mapping[str, Any], channels: Mapping[str, Any], metadata: Mapping[str, Any], new: Mapping[str, Any]
) -> str:
    """Return the nodes that ran and those that come next, which distinguishes the checkpoints of an agent's turns."""
    ran = metadata.get("writes") or [name for name in new if name not in channels]  # a trigger is empty after use
    coming = {name for name in new if name in channels and name.startswith(_TRIGGERS)}
    if _SENDS in channels:
        coming.update(node for send in listed(channels[_SENDS]) if (node := text(send.node)) is not None)
    return f"{namespace(config)} {','.join(sorted(ran))} > {','.join(sorted(coming))}"


def node_of(task_id: str, task_path: str) -> str | None:
    """Return the node whose task wrote; the path contains its name if the graph's edges started it."""
    task = _task.get()
    if task is not None and task[0] == task_id:
        return task[1]
    pulled = _PULLED.fullmatch(task_path)
    return pulled[1] if pulled else None


def note_task(invocation: Invocation) -> None:
    """Keep the task's name, which only the loop has; its savers' threads run in a copy of this context."""
    task_id = invocation.arg(0, "task_id")
    task = getattr(invocation.instance, "tasks", {}).get(task_id)
    if task is not None:
        _task.set((task_id, task.name))
