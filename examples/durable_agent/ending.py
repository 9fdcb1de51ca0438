"""How a run ended, as the agent tells whoever started it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ending:
    """How a run ended: with the model's answer, or else with what its caller saw and what the runtime said of it."""

    answer: str | None = None
    seen: str = ""
    said: str = ""
    cause: str = ""
