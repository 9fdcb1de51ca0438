"""What is wrapped exists: each row of the registry is matched in the environment of some class of the suite."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_otel.integrations.registry import INTEGRATIONS
from tests import environments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent


def _matched(*, left_out: Callable[[Any], bool] = lambda _: False) -> Iterator[tuple[str, str]]:
    """What the classes of the suite, and modules that are one class for themselves, say is matched."""
    for path in sorted(HERE.rglob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        module = importlib.import_module(".".join(("tests.contract", *path.relative_to(HERE).with_suffix("").parts)))
        for cls in (module, *(value for value in vars(module).values() if isinstance(value, type))):
            for name, targets in getattr(cls, "integrations", {}).items() if not left_out(cls) else ():
                yield from ((name, target) for target in targets)


def _forms(*, beside: bool) -> set[tuple[str, str]]:
    return {
        (integration.name, f"{candidate.module}:{candidate.wraps[0].target}")
        for integration in INTEGRATIONS
        for site in integration.whole().sites
        for candidate in site.candidates
        if bool(site.beside) is beside
    }


def test_each_form_of_each_framework_is_kept_to_the_contract() -> None:
    """Sites beside another package are in few environments; tests/system/coexistence has most of them."""
    assert _forms(beside=False) == set(_matched()) - _forms(beside=True)


def test_ci_runs_a_version_of_each_framework() -> None:
    weekly = environments.weekly()

    def left_out(cls: Any) -> bool:
        marks = [mark.name for mark in vars(cls).get("pytestmark", ())] if isinstance(cls, type) else []
        return getattr(cls, "environment", "") in weekly or "weekly" in marks

    assert {name for name, _ in _matched(left_out=left_out)} == {name for name, _ in _matched()}
