"""What is expected of a case, by hand: the calls that the model asks for and the records that come of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.contract import script
from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES

Json = dict[str, Any]

KEY = {"key": "größe"}
KEY_BYTES = 17
"""``{"key":"größe"}``: 10 bytes around 7."""
BROKEN = "tests.contract.toolbox.BrokenError"
CANCELLED = "asyncio.exceptions.CancelledError"

WIRE = -1
"""As many bytes as the model was sent: the framework's text about an error, which differs between versions."""


@dataclass(frozen=True)
class Record:
    """What is expected of one tool call: sizes in bytes, None where there must be no such attribute.

    ``agent`` is another agent than that of the run, empty for none.
    """

    tool: str
    call_id: str | None
    produced: int | None = None
    handed_back: int | None = None
    structured: int | None = None
    error: str | None = None
    cut: tuple[str, str] | None = None
    args: int = KEY_BYTES
    agent: str | None = None


class Cut(NamedTuple):
    """A cut that not the tool's own span tells of, but a child: it was found when that had ended.

    ``arrived`` is what was left, in bytes, or `WIRE`.
    """

    tool: str
    layer: str
    reason: str
    arrived: int


@dataclass(frozen=True)
class Case:
    """One run of an agent and what must come of it.

    ``origin`` is where the tool's own exception object stands in what the caller gets: 0 is the very same, 1 its
    cause. ``unsent`` names calls whose result does not go to the model.
    """

    tools: tuple[str, ...]
    calls: tuple[tuple[str, str, Json], ...]
    records: tuple[Record, ...]
    mode: str = "async"
    setting: str = ""
    said: str | None = "done"
    origin: int | None = None
    unsent: tuple[str, ...] = ()

    def plan(self) -> Json:
        """What the child is told."""
        return {"tools": self.tools, "prompt": script.prompt(*self.calls), "mode": self.mode, "setting": self.setting}


def looked_up(tool: str, call_id: str | None, mode: str = "async", **more: Any) -> Case:
    """Return a case of one call that returns what ``lookup`` does."""
    records = (Record(tool, call_id, LOOKUP_BYTES),)
    return Case((tool,), ((call_id or "call", tool, KEY),), records, mode, **more)


# The prompt for an agent behind a tool, and itself as an argument: {"input":"…"} with its quotes escaped.
DELEGATED = script.prompt(("call_30", "lookup", KEY))
DELEGATED_BYTES = 12 + 50 + 10


def failed(tool: str, call_id: str, mode: str = "async", error: str = BROKEN, **more: Any) -> Case:
    """Return a case of one call that fails and leaves no result, but perhaps a text for the model."""
    told = None if call_id in more.get("unsent", ()) else WIRE
    records = (Record(tool, call_id, handed_back=told, error=error),)
    return Case((tool,), ((call_id, tool, KEY),), records, mode, **more)


def of_one_agent(case: Case) -> Case:
    """Return a case whose calls have no other agent than the run's, because the framework does not name it."""
    return replace(case, records=tuple(replace(record, agent=None) for record in case.records))


assert len(LOOKUP.encode()) == LOOKUP_BYTES
