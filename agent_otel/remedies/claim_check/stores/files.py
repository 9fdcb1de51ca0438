"""A folder with one file per key; file names are digests, so that no key can lead out of the folder.

Each of the store's own folders is opened by its descriptor and never through a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import time
from typing import TYPE_CHECKING, Final

from agent_otel._internal.errors import ours, suppressed
from agent_otel.remedies.claim_check.stores.base import (
    FRAME_BYTES,
    NotFoundError,
    StoreError,
    frame,
    group_of,
    sweeper,
    translated,
    unframe,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

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

#: Age of an unfinished file after which its writer counts as dead.
_UNFINISHED_SECONDS: Final = 3600.0

_SHARD: Final = re.compile(r"[0-9a-f]{2}", re.ASCII)
#: Digests of the group and of the whole key; an unfinished file has a random suffix.
_NAME: Final = re.compile(r"[0-9a-f]{32}-[0-9a-f]{64}(?P<unfinished>\.[0-9a-f]{16})?", re.ASCII)
_STAMP: Final = "swept"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Opening a FIFO without O_NONBLOCK waits for a writer.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_names: Final = os.listdir  # pathlib lists no descriptors
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileStore:
    """Files in a sub-folder of ``root`` that the store creates and owns; only this user may read it.

    Other files are not touched. A file gets its name when it is complete, and is not synced to disk.
    """

    def __init__(self, root: Path) -> None:
        path = os.path.realpath(root)
        if path in _SHARED or f"{path}/".startswith(_SYSTEM):
            raise StoreError(
                "files: others use this folder too; name a sub-folder, as in file:///var/lib/agent/results"
            )
        self._root = root

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        name = _name(key)
        with self._folder(name, make=True) as folder:
            unfinished = f"{name}.{secrets.token_hex(8)}"
            try:
                with os.fdopen(os.open(unfinished, _NEW_FILE, 0o600, dir_fd=folder), "wb") as file:
                    file.writelines((frame(ttl), data))
                os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppressed(FileNotFoundError):
                    os.unlink(unfinished, dir_fd=folder)
        sweeper.expect(self, ttl)

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        with self._open(key) as file:
            return file.read()

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        with self._open(key) as file:
            file.seek(FRAME_BYTES + start)
            return file.read(max(0, end - start))

    def delete(self, key: str) -> None:
        """Delete a key."""
        name = _name(key)
        with suppressed(NotFoundError), self._folder(name, key) as folder:
            _remove(folder, name)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group, including unfinished writes; return the number of values."""
        prefix = f"{_digest(group)[:32]}-"
        removed = 0
        with suppressed(NotFoundError), self._folder(prefix, group) as folder:
            for name in _names(folder):
                form = _NAME.fullmatch(name)
                if form is not None and name.startswith(prefix):
                    with suppressed(FileNotFoundError):  # the sweeper has just removed it
                        removed += _remove(folder, name) and not form["unfinished"]
        return removed

    def sweep(self) -> int:
        """Remove expired and unfinished files, and return their number."""
        with _own(self._root) as own:
            return sum(_sweep(own, shard) for shard in filter(_SHARD.fullmatch, _names(own)))

    def sweep_if_due(self, every: float) -> None:
        """Sweep, unless any process has done so within the last ``every`` seconds."""
        with suppressed(FileNotFoundError):
            with _own(self._root) as own:
                is_due = _is_sweep_due(own, every)
            if is_due:
                self.sweep()

    @contextlib.contextmanager
    def _folder(self, name: str, key: str = "", *, make: bool = False) -> Iterator[int]:
        with translated("files", key), _own(self._root, make=make) as own, _inner(own, name[:2], make=make) as folder:
            yield folder

    @contextlib.contextmanager
    def _open(self, key: str) -> Iterator[BinaryIO]:
        name = _name(key)
        with self._folder(name, key) as folder, _opened(folder, name) as file:
            unframe(file.read(FRAME_BYTES))
            yield file


def _name(key: str) -> str:
    return f"{_digest(group_of(key))[:32]}-{_digest(key)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@contextlib.contextmanager
def _own(given: Path, *, make: bool = False) -> Iterator[int]:
    """Open the store's own folder. Raises FileNotFoundError when absent, StoreError when another may write to it."""
    if make:
        given.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _closing(os.open(given, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as parent:
        status = os.fstat(parent)
        if status.st_mode & stat.S_IWOTH and not (status.st_mode & stat.S_ISVTX and status.st_uid == os.geteuid()):
            raise StoreError("files: every user may write to the folder; take that right away, or name a sub-folder")
        with _inner(parent, OWN, make=make) as folder:
            yield folder


@contextlib.contextmanager
def _inner(parent: int, name: str, *, make: bool = False) -> Iterator[int]:
    """Open one of the store's folders inside another folder. Raises FileNotFoundError and StoreError as `_own`."""
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except ours(FileNotFoundError):
        if not make:
            raise
        with suppressed(FileExistsError):  # another process has created it
            os.mkdir(name, 0o700, dir_fd=parent)
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    with _closing(descriptor) as folder:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid():
            raise StoreError(f"files: {name} belongs to user {status.st_uid}, this process to {os.geteuid()}")
        if status.st_mode & stat.S_IWOTH:
            raise StoreError(f"files: every user may write to {name}; remove it, the store makes it anew")
        if status.st_mode & stat.S_IWGRP:  # Kubernetes makes a volume group-writable at each mount
            os.fchmod(folder, 0o700)
        yield folder


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(folder: int, name: str) -> BinaryIO:
    """Open a file for reading without blocking. Raises FileNotFoundError, or StoreError unless it is a regular file."""
    file = os.open(name, _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise StoreError("files: not a regular file")
    return os.fdopen(file, "rb")


def _regular(folder: int, name: str) -> os.stat_result | None:
    """Return the status of a regular file; None for anything else."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return status if stat.S_ISREG(status.st_mode) else None


def _remove(folder: int, name: str) -> bool:
    is_ours = _regular(folder, name) is not None
    if is_ours:
        os.unlink(name, dir_fd=folder)
    return is_ours


def _is_sweep_due(own: int, every: float) -> bool:
    """Return True once per ``every`` seconds, across all processes."""
    now = time.time()
    try:
        stamp = _regular(own, _STAMP)
    except ours(FileNotFoundError):
        with suppressed(FileExistsError):
            os.close(os.open(_STAMP, _NEW_FILE, 0o600, dir_fd=own))
        return True
    if stamp is not None:
        if 0 <= now - stamp.st_mtime < every:
            return False
        os.utime(_STAMP, (now, now), dir_fd=own, follow_symlinks=False)
    return True


def _sweep(own: int, shard: str) -> int:
    """Sweep one folder; files that cannot be read or removed stay."""
    removed = 0
    with suppressed(OSError, StoreError), _inner(own, shard) as folder:
        for name in _names(folder):
            form = _NAME.fullmatch(name)
            if form is not None and name[:2] == shard:
                with suppressed(OSError, StoreError):  # removed already, no regular file, or unreadable
                    if not form["unfinished"]:
                        removed += _remove_if_expired(folder, name)
                        continue
                    status = _regular(folder, name)
                    is_left_over = status is not None and time.time() - status.st_mtime >= _UNFINISHED_SECONDS
                    removed += is_left_over and _remove(folder, name)
    return removed


def _remove_if_expired(folder: int, name: str) -> bool:
    if not _has_expired(folder, name):
        return False
    # A writer may replace the file between check and removal. So the file is renamed, checked again, and renamed back
    # when it is new.
    aside = f"{name}.{secrets.token_hex(8)}"
    os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    expired = _has_expired(folder, aside)
    if not expired:
        with suppressed(FileExistsError):  # a still newer file has the name
            os.link(aside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(aside, dir_fd=folder)
    return expired


def _has_expired(folder: int, name: str) -> bool:
    with _opened(folder, name) as file:
        try:
            unframe(file.read(FRAME_BYTES))
        except NotFoundError:
            return True
    return False
