"""A terminal with a program in it: a pty, its screen as pyte draws it, and keys."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING, TypeVar

import pyte

from tests.patience import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_T = TypeVar("_T")


class Terminal:
    """The terminal of a program that runs."""

    def __init__(self, child: subprocess.Popen[bytes], file: int, columns: int, lines: int) -> None:
        self.child = child
        self._file = file
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._file, keys.encode())

    def shows(self, *texts: str) -> str:
        """Wait until the screen has all of these texts, and return it."""
        deadline = Deadline(120)
        while not all(text in self.text for text in texts):
            assert not deadline.has_passed(), self.text
            self._draw()
        return self.text

    def becomes(self, expected: _T, read: Callable[[], _T]) -> None:
        """Wait until what is read from the screen is what is expected; a screen is drawn in parts."""
        deadline = Deadline(120)
        while read() != expected:
            assert not deadline.has_passed(), f"{read()} is not {expected} in\n{self.text}"
            self._draw()

    def lacks(self, text: str) -> str:
        """Wait until the screen does not have this text any more, and return it."""
        deadline = Deadline(120)
        while text in self.text:
            assert not deadline.has_passed(), self.text
            self._draw()
        return self.text

    def ends(self) -> int:
        """Wait until the program has ended, and return its exit code."""
        deadline = Deadline(120)
        while self.child.poll() is None:
            assert not deadline.has_passed(), self.text
            self._draw()
        return self.child.returncode

    @property
    def text(self) -> str:
        """The screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def _draw(self) -> None:
        ready, _, _ = select.select([self._file], [], [], 0.1)
        if not ready:
            return
        try:
            self._stream.feed(os.read(self._file, 65536))
        except OSError:  # the program has closed it
            time.sleep(0.05)


@contextlib.contextmanager
def terminal(
    *command: str, columns: int = 100, lines: int = 30, env: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Run a command in a terminal of this size, until the block is left."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environ = {**os.environ, "TERM": "xterm-256color", "NO_PROXY": "*", **(env or {})}
    environ = {name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, start_new_session=True
    ) as child:
        os.close(theirs)
        try:
            yield Terminal(child, ours, columns, lines)
        finally:
            child.kill()
            os.close(ours)
