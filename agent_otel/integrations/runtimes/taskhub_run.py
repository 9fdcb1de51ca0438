"""A run of a workflow of a task hub, as far as it has been read."""

from __future__ import annotations


class Run:
    """The progress of reading one run of a workflow; a run that continues as new has a new one."""

    __slots__ = ("committed", "history_bytes", "is_over", "seen", "unsendable", "was_told", "workflow")

    def __init__(self) -> None:
        #: Events that were history at the last turn; every turn adds to them.
        self.committed = -1
        #: True if it continues as new, or has ended and left no history that distinguishes it from a later run of its
        #: name.
        self.is_over = False
        #: Events measured so far, and what they came to.
        self.seen = 0
        self.history_bytes = 0
        #: Tasks whose input was counted where it was made, because it may be too large to arrive.
        self.unsendable: set[int] = set()
        #: True if the SDK was informed that the last turn was refused.
        self.was_told = False
        self.workflow: str | None = None
