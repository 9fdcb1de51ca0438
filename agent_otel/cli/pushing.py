"""Plan of a push, computed for every dashboard before anything is written, and the writing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_otel.cli import dashboard_diff
from agent_otel.cli.console import Failure
from agent_otel.cli.grafana import ROOT, Existing, Folder, Grafana

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_otel.cli.dashboard_diff import Model
    from agent_otel.cli.shipped import Dashboard

CREATED: Final = "created"
UPDATED: Final = "updated"
MOVED: Final = "moved"
REPLACED: Final = "replaced"
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"


@dataclass(frozen=True, kw_only=True)
class Step:
    """The action for one dashboard and its reason; ``model`` is what is sent."""

    action: str
    dashboard: Dashboard
    model: Model
    version: int
    folder: Folder
    why: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        """True when the step changes anything in Grafana."""
        return self.action not in {UNCHANGED, REFUSED}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The options of the command line; a data source is its name and its uid."""

    folder: Folder | None = None
    datasource: tuple[str, str] | None = None
    overwrite: bool = False


def plan(grafana: Grafana, dashboards: Iterable[Dashboard], wish: Wish) -> list[Step]:
    """Read every dashboard from Grafana and return the action for each. Nothing is written."""
    return [_step(grafana, dashboard, wish) for dashboard in dashboards]


def carry_out(grafana: Grafana, steps: Iterable[Step]) -> Iterator[tuple[Step, str]]:
    """Write the planned dashboards, the folder first; yield each step with the dashboard's address.

    Raises:
        Failure: a step is refused, before anything is written; or Grafana refuses a write, with its message.
    """
    steps = list(steps)
    if any(step.action == REFUSED for step in steps):
        raise Failure("nothing was written")
    made: dict[str, Folder] = {}
    for step in steps:
        if not step.writes:
            yield step, f"{grafana.url}/d/{step.dashboard.uid}"
            continue
        folder = step.folder
        if not folder.uid and folder is not ROOT:
            folder = made.get(folder.title) or made.setdefault(folder.title, grafana.make_folder(folder.title))
        message = dashboard_diff.message(step.model)
        yield step, grafana.save(step.model, version=step.version, folder=folder.uid, message=message)


def _step(grafana: Grafana, dashboard: Dashboard, wish: Wish) -> Step:
    model = dashboard_diff.marked(dashboard.model)
    if wish.datasource:
        model = dashboard_diff.with_datasource(model, *wish.datasource)
    existing = grafana.dashboard(dashboard.uid)
    if existing is None:
        return Step(action=CREATED, dashboard=dashboard, model=model, version=0, folder=wish.folder or ROOT)
    model = dashboard_diff.with_selected(model, existing.model)
    if wish.datasource:
        model = dashboard_diff.with_datasource(model, *wish.datasource)
    there = Folder(existing.folder, existing.folder_title) if existing.folder else ROOT
    folder = wish.folder or there
    step = Step(action=UPDATED, dashboard=dashboard, model=model, version=existing.version, folder=folder)
    if existing.provisioned:
        by = f" ({existing.provisioned_by})" if existing.provisioned_by else ""
        return replace(
            step, action=REFUSED, why=(f"it is provisioned from a file on Grafana's side{by}: change it there",)
        )
    return _compared(grafana, step, existing, wish, moves=folder != there)


def _compared(grafana: Grafana, step: Step, existing: Existing, wish: Wish, *, moves: bool) -> Step:
    ours, theirs = dashboard_diff.digest(step.model), dashboard_diff.digest(existing.model)
    pushed = dashboard_diff.mark(existing.model)
    untouched = theirs in {ours, pushed} or _saved_by_us_last(grafana, step, pushed)
    if not untouched:
        told = tuple(dashboard_diff.differences(existing.model, step.model))
        if wish.overwrite:
            return replace(step, action=REPLACED, why=told)
        whose = "has been changed since it was pushed" if pushed else "was not put there by this command"
        return replace(step, action=REFUSED, why=(f"it {whose}; --overwrite replaces it", *told))
    selects = wish.datasource is not None and dashboard_diff.selected_datasource(existing.model) != wish.datasource[1]
    if ours not in {theirs, pushed} or selects:
        return step
    return replace(step, action=MOVED if moves else UNCHANGED)


def _saved_by_us_last(grafana: Grafana, step: Step, pushed: str | None) -> bool:
    """Return True when our push is the last save, although the content differs: a newer Grafana migrated it."""
    if pushed is None:
        return False
    said = grafana.message_of_version(step.dashboard.uid, step.version)
    return said.startswith("agent-otel ") and said.endswith(f"({pushed})")
