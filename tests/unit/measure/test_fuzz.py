"""The properties that ``scripts/fuzz`` checks, with the inputs that it starts from."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.properties import one
from tests.rows import each_row

SEEDS = sorted((Path(__file__).resolve().parents[2] / "fuzz" / "seeds").iterdir())


@each_row("seed", SEEDS, ids=lambda seed: seed.name)
def test_properties(seed: Path) -> None:
    one(seed.read_bytes())
