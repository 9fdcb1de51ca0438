"""However a process ends, with the documented setting no finished call is lost, and none arrives twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.processes.ends import CALLS, ENDS, LOST, PAGE, Arrived, End, measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_HANDLED = ("Python: SIGTERM", "Python: SIGHUP")


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.title)
def test_nothing_is_lost(environment: Callable[[str], Environment], end: End) -> None:
    assert Arrived(CALLS * end.spans, CALLS, 0) == measure(end, environment(end.environment), flush=True)


@pytest.mark.parametrize("end", [end for end in ENDS if end.title in _HANDLED], ids=lambda end: end.title)
def test_without_the_setting_signals_keep_their_action(environment: Callable[[str], Environment], end: End) -> None:
    assert Arrived(0, 0, 0) == measure(end, environment(end.environment), flush=False)


@pytest.mark.parametrize("end", [end for end in ENDS if end.environment == "celery"], ids=lambda end: end.title)
def test_celery_needs_no_setting(environment: Callable[[str], Environment], end: End) -> None:
    assert Arrived(CALLS * end.spans, CALLS, 0) == measure(end, environment(end.environment), flush=False)


def test_the_page_has_all_ends() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [end.title for end in (*ENDS, *LOST) if f"\n| {end.title} | " not in page] == []
