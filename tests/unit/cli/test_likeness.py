"""What counts as a change of a dashboard, and what does not."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from agent_otel.cli import dashboard_diff, shipped
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Iterator

# Every third value of the smallest dashboard: all of them take seconds, and show the same.
STRIDE = 3


def _model() -> dict[str, Any]:
    return shipped.dashboards(("agent-otel-health",))[0].model


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*path, key))
    else:
        yield path


def _changed(model: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    made = deepcopy(model)
    at: Any = made
    for key in path[:-1]:
        at = at[key]
    value = at[path[-1]]
    at[path[-1]] = not value if isinstance(value, bool) else "changed" if value is None else value * 2 + type(value)(1)
    return made


def test_every_change_of_a_value_shows() -> None:
    model = _model()
    before = dashboard_diff.digest(model)
    paths = list(_leaves(model))[::STRIDE]
    unseen = [path for path in paths if dashboard_diff.digest(_changed(model, path)) == before]
    assert 200 < len(paths)
    assert {"templating", "uid", "version"} >= {path[0] for path in unseen}
    assert {"current", "options"} >= {path[3] for path in unseen if path[0] == "templating"}


def test_panels_in_another_order_are_a_change() -> None:
    model = _model()
    model["panels"].reverse()
    assert dashboard_diff.digest(model) != dashboard_diff.digest(_model())


@each_row("added", [{"id": 7}, {"version": 12}, {"uid": "x"}, {"gnetId": None}, {"liveNow": False}])
def test_what_grafana_adds_is_none(added: dict[str, Any]) -> None:
    assert dashboard_diff.digest(_model()) == dashboard_diff.digest({**_model(), **added})


def test_a_mark_is_no_change_and_there_is_one() -> None:
    model = _model()
    once, twice = dashboard_diff.marked(model), dashboard_diff.marked(dashboard_diff.marked(model))
    assert once == twice
    assert dashboard_diff.digest(model) == dashboard_diff.digest(once) == dashboard_diff.mark(once)
    assert None is dashboard_diff.mark(model)
    assert model == _model()


def test_the_mark_stands_behind_what_the_description_says() -> None:
    model = {**_model(), "description": "What it shows."}
    digest = dashboard_diff.digest(model)
    assert f"What it shows.\n\nPushed by agent-otel 0.1.0 ({digest})." == dashboard_diff.marked(model)["description"]
    assert digest != dashboard_diff.digest({**model, "description": "What I say."})
