"""The recipes name settings that there are, with values that are accepted, and sections that there are."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from agent_otel import remedies
from agent_otel.settings import Settings

PAGE = Path(__file__).resolve().parents[3] / "docs" / "remedies.md"


def test_each_recipe_sets_real_variables_and_has_a_section() -> None:
    kinds = {item.metadata["variable"]: item.metadata["kind"] for item in fields(Settings)}
    page = PAGE.read_text(encoding="utf-8")
    sections = {title.lower().replace(" ", "-") for title in re.findall(r"^##+ (.+)$", page, re.MULTILINE)}
    assert len(remedies.recipes()) == 6
    for recipe in remedies.recipes():
        assert recipe.page in sections
        assert recipe.traps
        for variable, value in recipe.variables.items():
            if "…" not in value and "$" not in value:
                kinds[variable].parse(value)
            assert f"`{variable}" in page, variable
