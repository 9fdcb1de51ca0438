"""The file store touches nothing but its own files, whatever else lies in the folder that it is given."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from agent_otel.remedies.claim_check.stores import StoreError, files, open_store
from agent_otel.remedies.claim_check.stores.base import frame
from agent_otel.remedies.claim_check.stores.files import OWN, FileStore
from tests.environments import ROOT
from tests.unit.remedies.claim_check.stores import contract

LONG_AGO = (1, 1)
DIGEST = hashlib.sha256(b"of nothing").hexdigest()
IS_ROOT = os.geteuid() == 0


def _path(root: Path, key: str) -> Path:
    name = files._name(key)
    return root / OWN / name[:2] / name


def _leave(root: Path, key: str, ttl: float) -> None:
    """Write a result as another process does: a write of this one has the sweeper's thread look at the folder."""
    path = _path(root, key)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(frame(ttl) + b"x")


def _everything(root: Path) -> dict[Path, int]:
    """Each path below a folder, links not followed, with its inode."""
    return {path: path.lstat().st_ino for path in root.rglob("*")}


def test_files_of_others_stay(tmp_path: Path) -> None:
    """Each looks, to some degree, like one of the store's; a link leads out of the folder that the store is given."""
    given, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (elsewhere, given / "project", given / "ab", given / OWN / "project", given / OWN / "ab"):
        folder.mkdir(parents=True, mode=0o700)
        for name in ("main.py", "ledger.sqlite3", "keys.pem", DIGEST, f"{DIGEST}.{'0' * 16}", "swept.old"):
            (folder / name).write_bytes(b"x")
            os.utime(folder / name, LONG_AGO)
    (given / "linked").symlink_to(elsewhere)
    before = _everything(tmp_path)

    store = open_store(given.as_uri())
    store.put("a", b"x", 60)
    assert 0 == FileStore(given).sweep()
    time.sleep(0.2)  # as the sweep that a first write begins does

    after = _everything(tmp_path)
    assert before == {path: inode for path, inode in after.items() if path in before}
    assert {given / OWN / "swept", _path(given, "a"), _path(given, "a").parent} == set(after) - set(before)


def test_links_in_the_stores_own_folder_are_not_followed(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    _leave(tmp_path / "store", "expired", -1)
    expired = _path(tmp_path / "store", "expired")
    elsewhere = tmp_path / "elsewhere"
    expired.parent.rename(elsewhere)  # its form is right, its place is not
    expired.parent.symlink_to(elsewhere)
    left_over = elsewhere / f"{expired.name}.{'0' * 16}"
    left_over.write_bytes(b"x")
    os.utime(left_over, LONG_AGO)
    before = _everything(tmp_path)

    assert 0 == store.sweep()
    with pytest.raises(StoreError, match=r"^files: "):
        store.put("expired", b"x", 60)
    with pytest.raises(StoreError, match=r"^files: "):
        store.get("expired")
    with pytest.raises(StoreError, match=r"^files: "):
        store.delete("expired")

    assert before == _everything(tmp_path)


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for key in ("expired", "target"):
        _leave(tmp_path, key, -1)
    path, target = _path(tmp_path, "expired"), tmp_path / "target"
    _path(tmp_path, "target").rename(target)
    path.unlink()
    path.symlink_to(target)
    (tmp_path / OWN / "swept").symlink_to(target)
    os.utime(target, LONG_AGO)
    before = _everything(tmp_path), target.stat().st_mtime

    assert 0 == store.sweep()
    with pytest.raises(StoreError, match=r"^files: OSError: "):
        store.get("expired")
    store.delete("expired")

    assert before == (_everything(tmp_path), target.stat().st_mtime)


def test_what_is_no_file_is_left_alone_and_hangs_nobody(tmp_path: Path) -> None:
    """In a process of its own, which is ended if it hangs."""
    code = f"""
        import os, sys
        from pathlib import Path
        from agent_otel.remedies.claim_check.stores import StoreError, files, open_store
        from agent_otel.remedies.claim_check.stores.files import OWN

        given = Path({str(tmp_path)!r})
        (given / OWN).mkdir(mode=0o700)
        (given / OWN / "swept").touch()
        store = open_store(given.as_uri())
        for key in ("fifo", "folder"):
            store.put(key, b"x", 60)
            name = files._name(key)
            path = given / OWN / name[:2] / name
            path.unlink()
            make = os.mkfifo if key == "fifo" else os.mkdir
            for each in (path, path.with_name(name + "." + "0" * 16)):
                make(each)
                os.utime(each, (1, 1))
        print(store.sweep())
        for key in ("fifo", "folder"):
            try:
                store.get(key)
            except StoreError as error:
                print(error)
            store.delete(key)
        print(len([path for path in (given / OWN).glob("*/*")]))
    """.replace("\n        ", "\n")

    said = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=False)

    assert ["0", *2 * ["files: not a regular file"], "4"] == said.stdout.splitlines(), said.stderr


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a process another user")
def test_folders_that_may_not_be_read_end_no_sweep() -> None:
    """As a user for whom `lost+found` and some of the store's own folders are closed."""
    code = """
        import os, sys
        from pathlib import Path
        from agent_otel.remedies.claim_check.stores import files
        from agent_otel.remedies.claim_check.stores.files import OWN
        from agent_otel.remedies.claim_check.stores.base import frame

        given = Path(sys.argv[1])
        os.setuid(65534)
        (given / OWN).mkdir(mode=0o700)
        for number in range(300):  # without the store, whose own sweeper would begin after a second
            name = files._name(f"tool-result/{number}/n/c")
            (given / OWN / name[:2]).mkdir(mode=0o700, exist_ok=True)
            (given / OWN / name[:2] / name).write_bytes(frame(-1) + b"x")
        closed = sorted((given / OWN).glob("??"))[::2]
        inside = sum(len(list(folder.iterdir())) for folder in closed)
        for folder in closed:
            folder.chmod(0)
        print(files.FileStore(given).sweep() + inside)
    """.replace("\n        ", "\n")
    with tempfile.TemporaryDirectory() as open_to_all:  # pytest's own folders are not
        Path(open_to_all).chmod(0o755)
        given = Path(open_to_all, "volume")
        given.mkdir()
        (given / "lost+found").mkdir(mode=0o700)
        os.chown(given, 65534, 65534)

        said = subprocess.run(
            (sys.executable, "-c", code, str(given)), cwd=ROOT, capture_output=True, text=True, check=False
        )

        assert (given / "lost+found").is_dir()
    assert "300\n" == said.stdout, said.stderr


def test_a_folder_that_every_user_may_write_to_is_refused(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError, match="every user may write to the folder"):
        store.put("a", b"x", 60)
    assert [] == list(tmp_path.iterdir())

    tmp_path.chmod(0o1777)  # nobody else can replace our folder in a sticky one that is ours
    store.put("a", b"x", 60)
    assert 0o700 == stat.S_IMODE((tmp_path / OWN).stat().st_mode)

    (tmp_path / OWN).chmod(0o777)
    for ask in (lambda: store.put("b", b"x", 60), lambda: store.get("a"), lambda: store.delete("a"), store.sweep):
        with pytest.raises(StoreError, match=f"every user may write to {OWN}"):
            ask()

    (tmp_path / OWN).chmod(0o2770)  # as Kubernetes leaves a volume that has an fsGroup
    assert b"x" == store.get("a")
    assert 0o700 == stat.S_IMODE((tmp_path / OWN).stat().st_mode) & 0o777


def test_a_folder_that_others_share_is_refused(tmp_path: Path) -> None:
    """Also for root, by any spelling, and through a link; a folder of ours inside of it is not."""
    (tmp_path / "link").symlink_to("/tmp")  # noqa: S108 - refused
    for url in (
        *("file:///tmp", "file:///tmp/", "file://localhost/tmp/.", "file:///tmp/../tmp", "file:////tmp", "file:/tmp"),
        *("file:///%74mp", (tmp_path / "link").as_uri(), "file:///var/tmp", "file:///dev/shm", "file:///"),
        *(
            "file:///etc",
            "file:///etc/agent",
            "file:///home",
            "file:///usr",
            "file:///lib/agent",
            "file:///proc/self",
            "file:///var/lib",
        ),
    ):
        with pytest.raises(StoreError, match="name a sub-folder, as in file:///"):
            open_store(url)
    assert not Path("/tmp", OWN).exists()  # noqa: S108
    for around in ("/tmp", "/var/tmp"):  # noqa: S108
        # The store's own sweeper may make a file while the folder is removed.
        with tempfile.TemporaryDirectory(dir=around, ignore_cleanup_errors=True) as folder:
            store = open_store(Path(folder, "claims").as_uri())
            store.put("a", b"x", 60)
            assert b"x" == store.get("a")


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a folder to another user")
def test_a_sticky_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(StoreError, match="every user may write to the folder"):
        FileStore(tmp_path).put("a", b"x", 60)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / OWN).mkdir(mode=0o700)
    os.chown(tmp_path / OWN, 65534, 65534)

    with pytest.raises(StoreError, match=f"{OWN} belongs to user 65534, this process to 0"):
        FileStore(tmp_path).put("a", b"x", 60)


def test_a_link_in_the_place_of_the_stores_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / OWN).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreError, match=r"^files: NotADirectoryError|^files: OSError"):
        FileStore(tmp_path).put("a", b"x", 60)
    with pytest.raises(OSError, match=OWN):
        FileStore(tmp_path).sweep()

    assert [] == list((tmp_path / "elsewhere").iterdir())


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        FileStore(tmp_path / "store").put("a", b"x", 60)
    finally:
        os.umask(before)

    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "store").rglob("*") if path.is_dir()}
    assert {0o700} == modes
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()}


def test_files_stay_in_their_folder_and_are_nobody_elses(tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = FileStore(root)
    before = {path for path in tmp_path.rglob("*") if root not in path.parents}

    for key in contract.HOSTILE:
        store.put(key, b"x", 60)

    outside = {path for path in tmp_path.rglob("*") if root not in path.parents and path != root}
    assert before == outside
    written = [path for path in root.rglob("*") if path.is_file()]
    # The sweeper's thread may have written its stamp by now.
    assert len(contract.HOSTILE) == len([path for path in written if path.name != "swept"])
    assert {0o600} == {path.stat().st_mode & 0o777 for path in written}
    assert 0o700 == root.stat().st_mode & 0o777


def test_files_sweep_what_has_expired_and_what_was_never_finished(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    _leave(tmp_path, "short", -1)
    _leave(tmp_path, "long", 60)
    long = _path(tmp_path, "long")
    left_over, fresh, other = (long.with_name(f"{long.name}{end}") for end in (f".{0:016}", f".{1:016}", ".0123"))
    for path in (left_over, fresh, other):
        path.write_bytes(b"begun")
    os.utime(left_over, (1, 1))

    assert 2 == store.sweep()

    assert {long, fresh, other} == {path for path in tmp_path.glob("*/??/*") if path.is_file()}


def test_one_process_sweeps_for_all(tmp_path: Path) -> None:
    _leave(tmp_path, "expired", -1)
    stamp = tmp_path / OWN / "swept"
    stamp.touch()

    os.utime(stamp, times=(time.time() - 50,) * 2)
    FileStore(tmp_path).sweep_if_due(60)
    assert _path(tmp_path, "expired").exists()

    for age in (70, -70):  # the clock was set back
        _leave(tmp_path, "expired", -1)
        os.utime(stamp, times=(time.time() - age,) * 2)
        FileStore(tmp_path).sweep_if_due(60)
        assert not _path(tmp_path, "expired").exists()
        assert 30 > abs(time.time() - stamp.stat().st_mtime)


def test_a_store_that_was_never_written_to_is_not_swept(tmp_path: Path) -> None:
    FileStore(tmp_path / "absent").sweep_if_due(60)

    assert [] == list(tmp_path.iterdir())


def test_a_full_disk_is_said_and_leaves_the_old_value(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("a", b"old", 60)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with pytest.raises(StoreError, match=r"^files: OSError: .*File too large"):
            store.put("a", b"x" * 1_000_000, 60)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)

    assert b"old" == store.get("a")
    assert [_path(tmp_path, "a")] == [path for path in tmp_path.glob("*/??/*") if path.is_file()]


def test_a_file_of_somebody_else_is_an_error(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("a", b"x", 60)
    for content in (b"", b"aot1", b"something else entirely"):
        _path(tmp_path, "a").write_bytes(content)
        with pytest.raises(StoreError, match="written by somebody else"):
            store.get("a")
