"""The recipes name settings that there are, with values that are accepted, and pages that there are."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from agent_otel import remedies
from agent_otel.settings import Settings
from agent_otel.settings.kinds import variable_of

PAGES = Path(__file__).resolve().parents[3] / "docs" / "remedies"


def test_each_recipe_sets_real_variables_and_has_a_page() -> None:
    kinds = {variable_of(item): item.metadata["kind"] for item in fields(Settings)}
    assert len(remedies.recipes()) == 6
    for recipe in remedies.recipes():
        page = (PAGES / f"{recipe.page}.md").read_text(encoding="utf-8")
        assert recipe.traps
        for variable, value in recipe.variables.items():
            if "…" not in value and "$" not in value:
                kinds[variable].parse(value)
            assert f"`{variable}" in page, variable
