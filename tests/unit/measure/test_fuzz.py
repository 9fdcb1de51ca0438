"""The properties that ``scripts/fuzz`` checks, with the inputs that it starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.properties import one

SEEDS = sorted((Path(__file__).resolve().parents[2] / "fuzz" / "seeds").iterdir())


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_properties(seed: Path) -> None:
    one(seed.read_bytes())
