"""Forks of a child keep apart what programs do, and a failure is that of one program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.forks import Forks


def test_a_program_sees_nothing_of_another(forks: Forks) -> None:
    for number in range(2):
        done = forks.run("bare", "seen = []", f"seen.append({number}); print(seen)", {})
        assert (f"[{number}]\n", "") == (done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('begun'); 1 / 0", r"(?s)exit 1\nbegun\n.*line 1, in <module>\nZeroDivisionError"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "exit -9"),
        ("sys.exit()", "SystemExit"),
    ],
)
def test_a_program_that_fails_leaves_the_next_alone(forks: Forks, program: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        forks.run("bare", "seen = []", program, {})
    assert "[]\n" == forks.run("bare", "seen = []", "print(seen)", {}).stdout


def test_a_child_that_cannot_begin_says_why(forks: Forks) -> None:
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"(?s)exit 1 before any program\n.*ZeroDivisionError"):
            forks.run("bare", "1 / 0", "print()", {})


def test_a_child_begins_without_threads(forks: Forks) -> None:
    begin = "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    with pytest.raises(AssertionError, match=r"(?s)exit 1 before any program\n.*AssertionError: .*Thread-1"):
        forks.run("bare", begin, "print()", {})
