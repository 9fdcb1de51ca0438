"""A folder with one file per key; file names are digests, so that no key can lead out of the folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from typing import TYPE_CHECKING, Final

from agent_otel._internal.errors import ours, suppressed
from agent_otel.remedies.claim_check.stores import folders
from agent_otel.remedies.claim_check.stores.base import (
    FRAME_BYTES,
    Head,
    NotFoundError,
    StoreError,
    end,
    frame,
    group_of,
    translated,
)
from agent_otel.remedies.claim_check.stores.sweeper import sweeper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

#: Age of an unfinished file after which its writer counts as dead.
_UNFINISHED_SECONDS: Final = 3600.0

#: Digests of the group and of the whole key; an unfinished file has a random suffix.
_NAME: Final = re.compile(r"[0-9a-f]{32}-[0-9a-f]{64}(?P<unfinished>\.[0-9a-f]{16})?", re.ASCII)
_STAMP: Final = "swept"


class FileStore:
    """Files in a sub-folder of ``root`` that the store creates and owns; only this user may read it.

    A folder of the system, and one that users share, such as ``/tmp``, is a StoreError. The store does not touch other
    files in ``root``, nor files whose names have another form than its own. A file gets its name only when it is
    complete; a failed write leaves no file. Writes are not synced to disk: after a power cut a result may be
    unreadable, which its digest reveals.
    """

    def __init__(self, root: Path) -> None:
        folders.refuse_shared(root)
        self._root = root

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        name = _name(key)
        with translated("files"):
            with (
                folders.own(self._root, make=True) as own,
                folders.inner(own, _shard(name), make=True) as folder,
            ):
                _write(folder, name, frame(ttl), data)
            sweeper.expect(self, ttl)

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        with self._open(key) as (file, _):
            return file.read()

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        with self._open(key) as (file, _):
            file.seek(FRAME_BYTES + start)
            return file.read(max(0, end - start))

    def head(self, key: str) -> Head:
        """Return the size and the expiry of a value."""
        with self._open(key) as (file, expires_at):
            return Head(os.fstat(file.fileno()).st_size - FRAME_BYTES, expires_at)

    def delete(self, key: str) -> None:
        """Delete a key."""
        name = _name(key)
        with translated("files"), suppressed(FileNotFoundError), self._folder(name) as folder:
            _remove(folder, name)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group, including unfinished writes; return the number of values."""
        prefix = f"{_group_digest(group)}-"
        removed = 0
        with translated("files"), suppressed(FileNotFoundError), self._folder(prefix) as folder:
            for name in folders.names(folder):
                form = _NAME.fullmatch(name)
                if form is not None and name.startswith(prefix):
                    with suppressed(FileNotFoundError):  # the sweeper has just removed it
                        removed += _remove(folder, name) and not form["unfinished"]
        return removed

    def sweep(self) -> int:
        """Remove expired and unfinished files, and return their number."""
        with folders.own(self._root) as own:
            return sum(_sweep(own, shard) for shard in folders.shards(own))

    def sweep_if_due(self, every: float) -> None:
        """Sweep, unless any process has done so within the last ``every`` seconds."""
        with suppressed(FileNotFoundError):
            with folders.own(self._root) as own:
                is_due = _is_sweep_due(own, every)
            if is_due:
                self.sweep()

    @contextlib.contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        with folders.own(self._root) as own, folders.inner(own, _shard(name)) as folder:
            yield folder

    @contextlib.contextmanager
    def _open(self, key: str) -> Iterator[tuple[BinaryIO, float]]:
        name = _name(key)
        with translated("files"):
            try:
                with self._folder(name) as folder:
                    file = os.fdopen(folders.open_file(folder, name), "rb")
            except ours(FileNotFoundError):
                raise NotFoundError(key) from None
            with file:
                yield file, end(file.read(FRAME_BYTES))


def _name(key: str) -> str:
    return f"{_group_digest(group_of(key))}-{_digest(key)}"


def _group_digest(group: str) -> str:
    return _digest(group)[:32]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _shard(name: str) -> str:
    return name[:2]


def _write(folder: int, name: str, *parts: bytes) -> None:
    unfinished = _beside(name)
    try:
        with os.fdopen(folders.new_file(folder, unfinished), "wb") as file:
            file.writelines(parts)
        os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppressed(FileNotFoundError):
            os.unlink(unfinished, dir_fd=folder)


def _remove(folder: int, name: str) -> bool:
    if folders.regular(folder, name) is None:
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _is_sweep_due(own: int, every: float) -> bool:
    """Return True once per ``every`` seconds, across all processes."""
    now = time.time()
    try:
        stamp = folders.regular(own, _STAMP)
    except ours(FileNotFoundError):
        with suppressed(FileExistsError):
            os.close(folders.new_file(own, _STAMP))
        return True
    if stamp is not None:
        if 0 <= now - stamp.st_mtime < every:
            return False
        os.utime(_STAMP, (now, now), dir_fd=own, follow_symlinks=False)
    return True


def _sweep(own: int, shard: str) -> int:
    """Sweep one folder; files that cannot be read or removed stay."""
    removed = 0
    with suppressed(OSError, StoreError), folders.inner(own, shard) as folder:
        for name in folders.names(folder):
            form = _NAME.fullmatch(name)
            if form is not None and _shard(name) == shard:
                remove = _remove_if_left_over if form["unfinished"] else _remove_if_expired
                with suppressed(OSError, StoreError):  # removed already, no regular file, or unreadable
                    removed += remove(folder, name)
    return removed


def _remove_if_left_over(folder: int, name: str) -> bool:
    """Remove an unfinished file whose writer is dead."""
    status = folders.regular(folder, name)
    return status is not None and time.time() - status.st_mtime >= _UNFINISHED_SECONDS and _remove(folder, name)


def _remove_if_expired(folder: int, name: str) -> bool:
    if not _has_expired(folder, name):
        return False
    # A writer may replace the file between check and removal. So the file is renamed, checked again, and renamed back
    # when it is new.
    aside = _beside(name)
    os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    expired = _has_expired(folder, aside)
    if not expired:
        with suppressed(FileExistsError):  # a still newer file has the name
            os.link(aside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(aside, dir_fd=folder)
    return expired


def _beside(name: str) -> str:
    return f"{name}.{secrets.token_hex(8)}"


def _has_expired(folder: int, name: str) -> bool:
    with os.fdopen(folders.open_file(folder, name), "rb") as file:
        try:
            end(file.read(FRAME_BYTES))
        except NotFoundError:
            return True
    return False
