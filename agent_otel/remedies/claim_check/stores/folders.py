"""The file store's own folders, inside a folder of the program that may hold other files.

Each is opened by its descriptor and never through a link: files are removed from the opened folder even if its path
changes meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING, Final

from agent_otel._internal.errors import ours, suppressed
from agent_otel.remedies.claim_check.stores.base import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: The sub-folder that the store creates and owns.
OWN: Final = "agent-otel-claims-v1"

#: Folders of the system, and folders that users and programs share.
_SYSTEM: Final = tuple(
    """
    /bin/ /boot/ /etc/ /lib/ /lib32/ /lib64/ /private/etc/ /proc/ /sbin/ /sys/ /usr/bin/ /usr/lib /usr/sbin/
    """.split()  # noqa: SIM905 - as below
)
_SHARED: Final = frozenset(
    """
    / /Users /dev /dev/shm /home /media /mnt /opt /private /private/tmp /run /run/lock /run/shm /run/user /srv /tmp /usr
    /usr/local /usr/share /var /var/cache /var/lib /var/local /var/log /var/mail /var/spool /var/tmp
    """.split()  # noqa: SIM905 - to be read as a list of paths
)

_SHARD: Final = re.compile(r"[0-9a-f]{2}", re.ASCII)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Opening a FIFO without O_NONBLOCK waits for a writer.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def refuse_shared(given: Path) -> None:
    """Raise StoreError for a folder of the system, and for one that users and programs share."""
    path = os.path.realpath(given)
    if path in _SHARED or f"{path}/".startswith(_SYSTEM):
        raise StoreError("files: others use this folder too; name a sub-folder, as in file:///var/lib/agent/results")


@contextlib.contextmanager
def own(given: Path, *, make: bool = False) -> Iterator[int]:
    """Open the store's own folder in the given one; ``make`` creates both.

    Raises FileNotFoundError when it is absent, StoreError when another user may write to it or replace it.
    """
    if make:
        given.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _closing(os.open(given, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as parent:
        status = os.fstat(parent)
        if status.st_mode & stat.S_IWOTH and not (status.st_mode & stat.S_ISVTX and status.st_uid == os.geteuid()):
            raise StoreError("files: every user may write to the folder; take that right away, or name a sub-folder")
        with inner(parent, OWN, make=make) as folder:
            yield folder


@contextlib.contextmanager
def inner(parent: int, name: str, *, make: bool = False) -> Iterator[int]:
    """Open one of the store's folders inside another folder. Raises FileNotFoundError and StoreError as `own`."""
    with _closing(_open(parent, name, make=make)) as folder:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid():
            raise StoreError(f"files: {name} belongs to user {status.st_uid}, this process to {os.geteuid()}")
        if status.st_mode & stat.S_IWOTH:
            raise StoreError(f"files: every user may write to {name}; remove it, the store makes it anew")
        if status.st_mode & stat.S_IWGRP:  # Kubernetes makes a volume group-writable at each mount
            os.fchmod(folder, 0o700)
        yield folder


def shards(folder: int) -> Iterator[str]:
    """Return the names of the sub-folders that have the form of the store's."""
    return filter(_SHARD.fullmatch, names(folder))


def names(folder: int) -> list[str]:
    """Return the names of all entries of a folder."""
    return os.listdir(folder)


def open_file(folder: int, name: str) -> int:
    """Open a file for reading without blocking. Raises FileNotFoundError, or StoreError unless it is a regular file."""
    file = os.open(name, _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise StoreError("files: not a regular file")
    return file


def new_file(folder: int, name: str) -> int:
    """Create a file that only this user may read, and open it for writing."""
    return os.open(name, _NEW_FILE, 0o600, dir_fd=folder)


def regular(folder: int, name: str) -> os.stat_result | None:
    """Return the status of a regular file; None for anything else."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return status if stat.S_ISREG(status.st_mode) else None


def _open(parent: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except ours(FileNotFoundError):
        if not make:
            raise
    with suppressed(FileExistsError):  # another process has created it
        os.mkdir(name, 0o700, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
