"""Reports of real runs are compared test by test; the page keeps the lines of suites that did not run."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.environments import Environment
from tests.suites import comparison, page, run, sources
from tests.suites.comparison import Difference
from tests.suites.page import Line

if TYPE_CHECKING:
    import pytest

_TESTS = """
import os
import pytest

ON = os.environ.get("SUITES_ON")

class TestTools:
    def test_passes(self): pass
    def test_fails_with_us(self): assert not ON

@pytest.fixture
def torn(): yield; assert not ON

def test_teardown(torn): pass
def test_fails_alone(): assert ON
@pytest.mark.xfail
def test_expected(): assert False
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.parametrize("value", [1], ids=["<object at 0x7f00%08x>" % os.getpid()])
def test_address(value): pass
if not ON:
    def test_only_without(): pass
"""


def _report(pytester: pytest.Pytester, folder: Path, name: str) -> dict[str, str]:
    report = folder / name
    pytester.runpytest_inprocess(f"--junit-xml={report}", "-o", "junit_family=xunit1", "-p", "no:cacheprovider")
    return comparison.outcomes(report)


def test_two_runs_differ_in_these_tests(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_some=_TESTS)
    off = _report(pytester, tmp_path, "off.xml")
    monkeypatch.setenv("SUITES_ON", "1")
    on = _report(pytester, tmp_path, "on.xml")

    assert {
        "test_some.py::TestTools::test_passes": "passed",
        "test_some.py::TestTools::test_fails_with_us": "passed",
        "test_some.py::test_some::test_teardown": "passed",
        "test_some.py::test_some::test_fails_alone": "failed",
        "test_some.py::test_some::test_expected": "skipped",
        "test_some.py::test_some::test_skipped": "skipped",
        "test_some.py::test_some::test_address[<object at 0x>]": "passed",
        "test_some.py::test_some::test_only_without": "passed",
    } == off
    assert {
        Difference("test_some.py::TestTools::test_fails_with_us", "on", "passed", "failed"),
        Difference("test_some.py::test_some::test_teardown", "on", "passed", "error"),
        Difference("test_some.py::test_some::test_fails_alone", "on", "failed", "passed"),
        Difference("test_some.py::test_some::test_only_without", "on", "passed", "missing"),
    } == comparison.differences("on", off, on)


_FIRST = """
import builtins
import agent_otel

def test_leaves_its_state(): builtins.state = True
def test_calls_a_tool(): assert agent_otel.tool(str)(1) == "1"
"""
_SECOND = """
import builtins, os
from pathlib import Path

ON = os.environ.get("AGENT_OTEL")
MARK = Path(__file__).with_name("once")

def test_differs(): assert not ON
def test_differs_behind_another(): assert not (ON and hasattr(builtins, "state"))
def test_differs_once():
    if ON and not MARK.exists():
        MARK.touch()
        raise AssertionError
"""


def test_a_difference_of_the_first_pass_alone_is_counted_apart(tmp_path: Path) -> None:
    root = tmp_path / "suite"
    root.mkdir()
    (root / "test_first.py").write_text(_FIRST)
    (root / "test_second.py").write_text(_SECOND)
    suite = sources.Suite("some", "some", "1", "3.12", (), ("*.py",), (), {}, [], "")
    environment = Environment("test", Path(sys.executable).parent.parent)

    runner = run.Runner(suite, environment, root, tmp_path / "kept")

    found = run.compare(runner, suite, ["off", "on"])

    test = "test_second.py::test_second::test_differs"
    assert {Difference(f"{test}{end}", "on", "passed", "failed") for end in ("", "_behind_another")} == found.repeated
    assert {Difference(f"{test}_once", "on", "passed", "failed")} == found.unstable
    assert Counter(passed=5) == Counter(found.first["off"].values())
    assert Counter(passed=2, failed=3) == Counter(found.first["on"].values())
    assert runner.counts["on"].measured["gen_ai_execute_tool_duration_seconds_count"] == 1


def test_a_difference_is_known_by_its_mode_and_its_test() -> None:
    rows = [{"tests": ["*::test_benchmark[[]*"], "modes": ["spans"], "reason": "measures time"}]

    assert comparison.is_known(Difference("a.py::T::test_benchmark[1]", "spans", "passed", "failed"), rows)
    assert not comparison.is_known(Difference("a.py::T::test_benchmark[1]", "on", "passed", "failed"), rows)
    assert not comparison.is_known(Difference("a.py::T::test_benchmarks", "spans", "passed", "failed"), rows)


def test_lines_of_suites_that_did_not_run_stay() -> None:
    older = Line("openai-agents", "0.24.0", "3.12", "2026-01-01", "9", "8", "9", "8", "8", "7", "0", "1", "3", "0")
    newer = older._replace(date="2026-02-01", spans="7", differences="1")
    other = older._replace(suite="strands", version="1.62.0")
    gone = older._replace(suite="no longer in the table")

    before = page.text("", [older, gone])
    line = "| `openai-agents` | 0.24.0 | 3.12 | 2026-01-01 | 9 | 8 | 9 | 8 | 8 | 7 | 0 | 1 | 3 | 0 |"
    assert line in before.splitlines()
    after = page.text(before, [other])
    assert page.text("", [older, other]) == after
    assert page.text("", [newer, other]) == page.text(after, [newer])


def test_each_row_of_the_table_can_be_run() -> None:
    suites = sources.suites()

    assert all(suite.version and suite.paths for suite in suites.values())
    assert not set(suites) & set(sources.table()["without"])
    for suite in suites.values():
        assert all({"tests", "modes", "reason"} == set(row) for row in suite.known)
