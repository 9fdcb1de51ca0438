"""Branches of AWS durable functions: they run side by side, so that no payload of one is the next turn of another's."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_otel.core.types import Payload

#: Sub-types of the contexts of branches. The SDK numbers their names.
BRANCHES = ("ParallelBranch", "MapIteration")
_WITH_BRANCHES = ("Parallel", "Map")
# Branches of an execution whose payloads have turns of their own; those of more would push out the others.
_MOST = 4
_REMEMBERED = 1_000

# The first branches of executions, the last few of these: an invocation that goes on with one starts only the branches
# that are not done.
_numbered: OrderedDict[str, list[str]] = OrderedDict()


class Branches:
    """The contexts of one invocation, each with the number of its branch."""

    def __init__(self, execution: str) -> None:
        self._execution = execution
        self._numbers: dict[str, int] = {}

    def entered(self, context: Any) -> None:
        """Record a context whose function begins."""
        number = self._numbers.get(context.parent_id)
        if context.sub_type in BRANCHES:
            number = _number(self._execution, context.operation_id)
        elif context.sub_type in _WITH_BRANCHES:
            number = _MOST  # of its flat branches, whose steps are its own
        if number is not None:
            self._numbers[context.operation_id] = number

    def of(self, operation: Any, carried: Payload | None) -> Payload | None:
        """Put the result of an operation into the series of its branch."""
        is_branch = operation.sub_type in BRANCHES
        number = self._numbers.get(operation.operation_id if is_branch else operation.parent_id)
        if carried is None or number is None:
            return carried
        return carried._replace(kind=str(number), is_appended=number >= _MOST)


def _number(execution: str, branch: str) -> int:
    """Return the number of a branch in its execution; all behind the first few have one together."""
    first = _numbered.setdefault(execution, [])
    if len(_numbered) > _REMEMBERED:
        _numbered.popitem(last=False)
    if branch not in first and len(first) < _MOST:
        first.append(branch)
    return first.index(branch) if branch in first else _MOST
