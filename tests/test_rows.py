"""The loop over rows: all rows run, and a failure names its row."""

from __future__ import annotations

import pytest

from tests.rows import each_row

_FILE = """
import contextlib, os, pytest
from tests.rows import each_row

seen = []
ended = []

@contextlib.contextmanager
def around():
    yield
    ended.append(len(seen))

@each_row("number", [1, 2, pytest.param(3, id="three"), 4], around=around)
@each_row(("text", "length"), {"a": 1, "bb": 2}.items(), ids=["short", "long"])
def test_a_product(number, text, length, monkeypatch, tmp_path):
    seen.append((number, text))
    assert "HELD" not in os.environ and not list(tmp_path.iterdir())
    monkeypatch.setenv("HELD", "1")
    (tmp_path / "file").touch()
    assert length == len(text)
    if number == 4:
        pytest.skip("four")
    assert number != 3 or text == "a", f"three and {text}"

def test_after():
    assert [(n, t) for t in ("a", "bb") for n in (1, 2, 3, 4)] == seen
    assert [1, 2, 3, 5, 6] == ended

class TestMethods:
    @pytest.mark.parametrize("other", ["x", "y"])
    @each_row("value", [object, "\\u00e9" * 9], ids=str)
    def test_a_method(self, value, other, subtests, request):
        with subtests.test("inside"):
            assert value and other in request.node.name
"""


def test_all_rows_run_and_a_failure_names_its_row(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_FILE)
    done = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider", "-rA")
    done.assert_outcomes(failed=2, passed=3)  # the row, and the test that it is in
    done.stdout.fnmatch_lines(["E *AssertionError: three and bb", "SUBFAILED[[]long-three]*::test_a_product*"])
    assert 1 == done.stdout.str().count("SUBFAILED")


def test_rows_are_chosen_by_name(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests import rows\nrows.only = 'long'")
    pytester.makepyfile(_FILE.replace("def test_after", "def test_number():\n    print('SAW', len(seen))\n\ndef after"))
    done = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider", "-s")
    done.stdout.fnmatch_lines(["*SAW 4*"])


@each_row("value", ["text", b"bytes", 1.5, None, str, pytest.param([1], id="own")])
def test_a_value_arrives_as_it_is(value: object) -> None:
    assert value in ("text", b"bytes", 1.5, None, str, [1])


def test_wrong_rows_are_refused_where_they_are_written() -> None:
    def one(value: int) -> None: ...

    for names, values in (("other", [1]), ("value", []), ("value, second", [(1,)]), ("value", [pytest.param(1, 2)])):
        with pytest.raises(AssertionError):
            each_row(names, values)(one)
