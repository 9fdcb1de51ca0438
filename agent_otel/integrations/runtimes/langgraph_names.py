"""LangGraph: the names of nodes and checkpoints, which come from the config, the arguments and the loop's tasks."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import listed, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.core.types import Invocation

_PULLED = re.compile(r"(?:~~\d{10})?~__pregel_pull, (.+)", re.DOTALL)
# Prefixes of the channels that start a node; older versions have one for each way to start it.
_TRIGGERS = ("branch:", "start:", "__start__")
_SENDS = "__pregel_tasks"

_task: ContextVar[tuple[str, str] | None] = ContextVar("agent_otel_langgraph_task", default=None)


def namespace(config: Mapping[str, Any]) -> str:
    """Return the path to a subgraph, without the ids of its runs."""
    path = text(config["configurable"].get("checkpoint_ns")) or ""
    return "|".join(part.partition(":")[0] for part in path.split("|")) if ":" in path else path


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
