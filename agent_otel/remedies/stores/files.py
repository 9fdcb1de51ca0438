"""A folder: one file for each key, named by a digest of it, so that no key can lead anywhere else."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from typing import TYPE_CHECKING

from agent_otel import _shield
from agent_otel.remedies.stores.base import Head, NotFoundError, StoreError, Threaded, translated
from agent_otel.remedies.stores.expiring import FRAME_BYTES, end, frame
from agent_otel.remedies.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

#: How often expired files are removed, by whichever process writes next, and how old an unfinished one has to be.
SWEEP_SECONDS = 600.0
_UNFINISHED_SECONDS = 3600.0

_sweepers = Workers("sweeper", 1)


class FileStore(Threaded):
    """Files below ``root``, which is made when first written to, readable by this user alone.

    A file appears under its name only when it is complete; a write that fails leaves nothing. It is not forced onto the
    disk: what a power cut takes is a result that can no longer be read, and the digest in it is checked.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        path = self._path(key)
        with translated("files"):
            try:
                self._write(path, frame(ttl), data)
            except FileNotFoundError:  # the first in this folder
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.parent.mkdir(mode=0o700, exist_ok=True)
                self._write(path, frame(ttl), data)
            if self._is_sweep_due():
                _sweepers.submit(_shield.shielded("remedies.sweep")(self.sweep))

    def get(self, key: str) -> bytes:
        """Return what is stored."""
        with self._open(key) as (file, _):
            return file.read()

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a part of what is stored."""
        with self._open(key) as (file, _):
            file.seek(FRAME_BYTES + start)
            return file.read(max(0, end - start))

    def head(self, key: str) -> Head:
        """Return the size of what is stored, and its end."""
        with self._open(key) as (file, expires_at):
            return Head(os.fstat(file.fileno()).st_size - FRAME_BYTES, expires_at)

    def delete(self, key: str) -> None:
        """Forget a key."""
        with translated("files"):
            self._path(key).unlink(missing_ok=True)

    def sweep(self) -> int:
        """Remove what has expired or was never finished, and return how many files that were."""
        removed = 0
        for folder in self._root.iterdir():
            for path in folder.iterdir() if folder.is_dir() else ():
                with contextlib.suppress(OSError, StoreError):  # somebody else's, or gone already
                    removed += _is_left_over(path) if path.suffix else _remove_if_expired(path)
        return removed

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self._root / name[:2] / name

    def _write(self, path: Path, *parts: bytes) -> None:
        unfinished = path.with_suffix(f".{secrets.token_hex(8)}")
        try:
            with open(unfinished, "xb", opener=_private) as file:
                file.writelines(parts)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _open(self, key: str) -> Iterator[tuple[BinaryIO, float]]:
        with translated("files"):
            try:
                file = self._path(key).open("rb")
            except FileNotFoundError:
                raise NotFoundError(key) from None
            with file:
                yield file, end(file.read(FRAME_BYTES))

    def _is_sweep_due(self) -> bool:
        """Whether nobody has swept for a while; whoever is told so is to do it."""
        stamp = self._root / "swept"
        try:
            if time.time() - stamp.stat().st_mtime < SWEEP_SECONDS:
                return False
        except FileNotFoundError:
            pass
        stamp.touch(mode=0o600)
        return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is_left_over(path: Path) -> bool:
    """Remove the beginning of a file whose writer has long died."""
    if time.time() - path.stat().st_mtime < _UNFINISHED_SECONDS:
        return False
    path.unlink()
    return True


def _remove_if_expired(path: Path) -> bool:
    if not _has_expired(path):
        return False
    # What has its name in this very moment may be new: it is taken aside, looked at again, and put back if so.
    aside = path.with_suffix(f".{secrets.token_hex(8)}")
    path.rename(aside)
    expired = _has_expired(aside)
    if not expired:
        with contextlib.suppress(FileExistsError):  # newer still
            os.link(aside, path)
    aside.unlink()
    return expired


def _has_expired(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            end(file.read(FRAME_BYTES))
        except NotFoundError:
            return True
    return False
