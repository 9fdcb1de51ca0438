"""The status file replaces a status that this user has written, and nothing else; it follows no link."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from agent_otel._internal import errors
from agent_otel.doctor import findings
from agent_otel.telemetry.setup import write_status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write(path: object) -> list[str]:
    """Write the status to a path twice, without the thread that does so every ten seconds; return what is logged."""
    before = len(errors.warnings())
    for _ in range(2):
        write_status(str(path), lambda: {"integrations": {}, "spans": "", "metrics": "", "warnings": []})
    return errors.warnings()[before:]


def test_a_status_replaces_a_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "status-{pid}.json"
    assert [] == write(path)
    (found,) = tmp_path.iterdir()
    assert f"status-{os.getpid()}.json" == found.name
    assert 0o600 == stat.S_IMODE(found.stat().st_mode)
    status = findings.read_status(found)
    assert status is not None
    assert os.getpid() == status["pid"] == json.loads(found.read_text())["pid"]
    monkeypatch.chdir(tmp_path)
    assert [] == write("relative.json")
    assert (tmp_path / "relative.json").is_file()


def test_what_is_no_status_is_left_alone(tmp_path: Path) -> None:
    """Also what resembles one, what a link leads to, and what would hang or be endless."""
    path, folder, elsewhere = tmp_path / "status", tmp_path / "folder", tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert [] == write(elsewhere / "status")
    for content in ("", "theirs", '{\n  "pid": 7,\n  "name": "theirs"\n}', '{"agent_otel_status": "1"}', "{}"):
        path.write_text(content)
        assert [f"AGENT_OTEL_STATUS_FILE: {path} is not a status: it is left alone, and nothing is written."] == write(
            path
        )
        errors._said.clear()
        assert content == path.read_text()
    path.unlink()
    kinds: tuple[Callable[[], object], ...] = (
        lambda: path.symlink_to(elsewhere / "status"),
        lambda: path.symlink_to(elsewhere / "nothing"),
        lambda: path.symlink_to("/dev/zero"),
        lambda: os.mkfifo(path),
        path.mkdir,
        lambda: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5)),
    )
    for make in kinds:
        try:
            make()
        except PermissionError:  # a device, where that is not allowed
            continue
        before = path.lstat()
        (line,) = write(path)
        errors._said.clear()
        assert "is left alone" in line
        assert (before.st_ino, before.st_mode) == (path.lstat().st_ino, path.lstat().st_mode)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    folder.symlink_to(elsewhere)
    (elsewhere / "inner").mkdir()
    for below in (folder / "status", folder / "new", folder / "inner" / "status", path / ".." / "folder" / "new"):
        path.mkdir(exist_ok=True)
        (line,) = write(below)
        errors._said.clear()
        assert "a folder of its path is a link or no folder" in line
    assert ["inner", "status"] == sorted(one.name for one in elsewhere.iterdir())
    assert [] == list((elsewhere / "inner").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_status_of_another_user_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "status"
    assert [] == write(path)
    os.chown(path, 65534, 65534)
    before = path.read_text()
    (line,) = write(path)
    assert "is left alone" in line
    assert before == path.read_text()


def test_doctor_reads_no_endless_status(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "deep").write_text("[" * 1_000_000)
    for path in (pipe, "/dev/zero", tmp_path / "deep", tmp_path):
        assert findings.read_status(path) is None  # type: ignore[arg-type]
