"""Values of a payload that are results of tools, or parts of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_otel.measure.breakdown.paths import Place


class Scope:
    """A value that is a tool's result if ``call`` is set, which may come only after the value has been read."""

    __slots__ = ("bytes", "call", "certain", "head", "matched", "name", "parent", "place", "text_bytes")

    def __init__(self, place: Place, parent: Scope | None, head: str = "") -> None:
        self.place = place
        self.parent = parent
        self.head = head
        self.bytes = 0
        self.call: str | None = None
        self.name: str | None = None
        self.certain = False  # whether the call id is one without doubt
        self.text_bytes = 0  # of its longest text, as written in the payload
        self.matched = 0  # bytes in it that stand elsewhere too

    def owner(self) -> Scope | None:
        """Return the outermost result that this is part of: the result of an agent may hold those of its own tools."""
        found, scope = None, self
        while True:
            if scope.call is not None:
                found = scope
            if scope.parent is None:
                return found
            scope = scope.parent

    def hold(self, head: str, written: int) -> None:
        """Remember the longest text that is part of it."""
        if written > self.text_bytes:
            self.text_bytes, self.head = written, head
