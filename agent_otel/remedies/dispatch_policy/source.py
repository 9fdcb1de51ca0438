"""The policy in force: of the file that ``AGENT_OTEL_TOOL_POLICY`` names, or of the program.

The file is read at start-up. Later a call that finds it changed reads it again; this is checked at most every 5
seconds. A changed file that cannot be read leaves the last policy in force: an operator approved that one, while a
half-written file is approved by none. Without a last policy every call is denied.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import re
import stat
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from agent_otel import settings
from agent_otel._internal import errors, fork
from agent_otel._internal.installing import installed_with
from agent_otel.remedies.dispatch_policy.rules import PolicyError, read_policy

if TYPE_CHECKING:
    from agent_otel.remedies.dispatch_policy.rules import ToolPolicy

CODE: Final = "code"
_RECHECK_SECONDS: Final = 5.0
#: An edited file is read when it has not changed for this long: half of a policy may allow more than the whole.
_SETTLED_SECONDS: Final = 1.0
_LARGEST_BYTES: Final = 1024 * 1024
#: Dots in a line outside of texts, above which tomllib takes seconds for a key.
_MOST_DOTS: Final = 64
_TEXTS: Final = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|#.*")


class PolicySource:
    """A policy and the file that it comes from; ``policy`` is None when there is none to apply."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._version: tuple[int, ...] = ()
        self.policy: ToolPolicy | None = None
        self._due = float("inf")
        self._renew()
        if place != CODE:
            self._read()
            self._due = time.monotonic() + _RECHECK_SECONDS

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def use(self, policy: ToolPolicy) -> None:
        """Put a policy of the program in force; the file is no longer read."""
        self._due = float("inf")
        self.policy = policy

    @property
    def is_due(self) -> bool:
        """Return true when the file is to be checked again."""
        return time.monotonic() >= self._due

    def refresh(self) -> None:
        """Read the file again when it has changed; threads do not wait for one that does so already."""
        if self._lock.acquire(blocking=False):
            try:
                self._due = time.monotonic() + _RECHECK_SECONDS
                self._read()
            finally:
                self._lock.release()

    def _read(self) -> None:
        version: tuple[int, ...] = ()
        try:
            found = os.stat(self._place)  # noqa: PTH116 - a setting's text
            version = _version_of(found)
            if version == self._version:
                return
            if self.policy is not None and not _is_settled(found):  # an edited file may be half-written
                self._due = time.monotonic() + _SETTLED_SECONDS
                return
            content, found = _contents(self._place)
            version = _version_of(found)
            self.policy = read_policy(_parsed(content))
            # A later change within the same tick of the clock would show the same version.
            self._version = version if _is_settled(found) else ()
        except errors.ours(Exception) as error:  # of the file system, of the parser
            reason = str(error) if isinstance(error, PolicyError) else errors.described(error)
            is_without = self.policy is None
            effect = "every tool call is denied" if is_without else "the last policy that could be read stays"
            errors.warn_once(
                f"policy {version} {reason}",
                f"AGENT_OTEL_TOOL_POLICY={self._place} cannot be read, {effect}: {reason}",
                level=logging.ERROR if is_without else logging.WARNING,
            )
            return
        if not self.policy.rules:
            errors.warn_once(
                "policy empty", f"AGENT_OTEL_TOOL_POLICY={self._place} has no rules: no tool may be called."
            )


def _version_of(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _is_settled(found: os.stat_result) -> bool:
    return not 0 <= time.time() - found.st_mtime < _SETTLED_SECONDS


def _contents(place: str) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a file and what describes these, without blocking; raise PolicyError for an unsafe one."""
    descriptor = os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(descriptor)
        content, is_same = b"", True
        if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_BYTES:
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(_LARGEST_BYTES + 1)
                is_same = _version_of(os.fstat(descriptor)) == _version_of(found)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_BYTES:
        raise PolicyError("it is no file of at most 1 MiB")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or found.st_uid not in (0, getattr(os, "geteuid", int)()):
        raise PolicyError("another user than root and the one of this process can write to it")
    if not is_same or len(content) != found.st_size:
        raise PolicyError("it changed while it was read")
    return content, found


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except errors.ours(ModuleNotFoundError):
        raise PolicyError(f"Python 3.10 needs tomli to read TOML: {installed_with('policy')}") from None
    try:
        text = content.decode("utf-8-sig")
        if any(line.count(".") > _MOST_DOTS for line in _TEXTS.sub("", text).splitlines()):
            raise PolicyError(f"a key in it has more than {_MOST_DOTS} parts")
        tables: dict[str, Any] = toml.loads(text)
    except errors.ours(UnicodeDecodeError):
        raise PolicyError("it is not UTF-8") from None
    except errors.ours(toml.TOMLDecodeError) as error:
        _, found, position = str(error).rpartition("(at ")  # the position alone, without the text of the file
        where = f"at {position.rstrip(')')}" if found else "an error"
        raise PolicyError(f"it is not TOML: {where}") from None
    return tables


@functools.lru_cache(maxsize=1)
def current() -> PolicySource | None:
    """Return the source of this process's policy; None when ``AGENT_OTEL_TOOL_POLICY`` is unset."""
    place = settings.current().tool_policy
    if not place:
        return None
    source = PolicySource(place)
    fork.after_fork(source._renew)  # noqa: SLF001 - the lock is the source's own
    return source


def use_policy(policy: object) -> None:
    """Put a policy of the program in force: a dictionary with the keys of the file, and functions as values.

    ``AGENT_OTEL_TOOL_POLICY=code`` must be set; until the first policy every call is denied. A later one replaces it.
    Raises PolicyError for an unknown key or a value of a wrong type, and the policy before stays in force; RuntimeError
    when ``AGENT_OTEL_TOOL_POLICY`` is unset.
    """
    source = current()
    if source is None:
        raise RuntimeError(f"AGENT_OTEL_TOOL_POLICY is unset; set it to {CODE}")
    source.use(read_policy(policy))
