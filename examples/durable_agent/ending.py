"""What a run is started with, and how it ended, as the agent tells whoever started it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Job:
    """What to ask, how many seconds a run may take, and a folder for what the runtime keeps of it."""

    question: str
    patience: float
    folder: Path


@dataclass(frozen=True)
class Ending:
    """How a run ended: with the model's answer, or else with what its caller saw and what the runtime said of it.

    ``run`` is the id that the runtime gave the run, ``kept_bytes`` what the runtime keeps of it, all turns together.
    """

    answer: str | None = None
    seen: str = ""
    said: str = ""
    cause: str = ""
    run: str = ""
    kept_bytes: int = 0
