"""The end of DSPy's agents at a limit of tool calls: they go on to the request with which they end anyway.

``ReAct`` asks for the answer in a request of its own, behind its loop. ``ReActV2`` asks in the same request as before
for a call of its tool ``submit``, now as the only one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from agent_otel.core import remedy_hooks
from agent_otel.core.plain import fields, is_named, listed, text
from agent_otel.integrations.hooks import Hook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.core.types import Invocation

_INPUTS: Final = {"history", "tools"}
_SUBMIT: Final = {"tool_choice": {"type": "function", "function": {"name": "submit"}}, "reasoning_effort": None}


class _Finished:
    """A module that ends the loop of ``ReAct``, in the place of the one that asks a model what to do next."""

    def __call__(self, **_: Any) -> Any:
        made = {"next_thought": "", "next_tool_name": "finish", "next_tool_args": {}}
        return sys.modules["dspy"].Prediction(**made)

    async def acall(self, **_: Any) -> Any:
        """Return the same."""
        return self()


def _before_step(invocation: Invocation) -> None:
    """End the loop whose last tool call was above a limit."""
    trajectory = fields(invocation.arg(1, "trajectory"))
    if not trajectory or invocation.arg(0, "module") is not invocation.instance.react:
        return
    if remedy_hooks.last_note([trajectory[next(reversed(trajectory))]]) is not None:
        invocation.put(0, "module", _Finished())


def _before_predict(invocation: Invocation) -> None:
    """Leave the tool for the answer, where the model has just read that a call was above a limit.

    With an input of the program beside the history, a new question begins.
    """
    given = invocation.kwargs
    if given.keys() != _INPUTS:
        return
    note = remedy_hooks.last_note([text(value) for value in _results(given["history"])])
    tools = [tool for tool in listed(given["tools"]) if text(tool.name) == "submit"]
    if note is None or not tools:
        return
    signature = invocation.instance.signature
    told = signature.with_instructions(f"{signature.instructions}\n\n{note}")
    invocation.kwargs = {**given, "tools": tools, "signature": told, "config": _SUBMIT}


def _results(history: Any) -> Iterator[Any]:
    """Return the results of the last event of a history."""
    events = listed(history.messages) if is_named(history, "History") else ()
    calls = fields(events[-1]).get("tool_calls") if events else None
    results = getattr(calls, "tool_call_results", None)
    for result in listed(getattr(results, "tool_call_results", ())):
        yield result.value


step = Hook(_before_step)
predict = Hook(_before_predict)
