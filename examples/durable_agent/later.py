"""What ``afterwards.py`` says, as whoever started it reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shown:
    """A record in the last state that has a reference, and the whole result; ``same`` as the tool returns it again."""

    id: str
    record_bytes: int
    bytes: int
    sha256: str
    same: bool


@dataclass(frozen=True)
class Later:
    """What a process that came later made of the history: a worker replayed it, a user interface asked for results."""

    events: int
    replay_failure: str | None
    records: int
    shown: list[Shown]
    stranger: str | None
