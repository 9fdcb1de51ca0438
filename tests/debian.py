"""Packages of Debian without a system-wide install: apt downloads and verifies them, with folders of its own."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: A suite whose packages are newer than those of the stable releases.
NEWEST = "forky"

_PUBLIC_ARCHIVE = "http://deb.debian.org/debian"  # packages are signed; this is the address that Debian names
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_APT = """
Dir::Etc "{root}/apt";
Dir::Etc::sourcelist "{root}/apt/suite.sources";
Dir::Etc::sourceparts "-";
Dir::State "{root}/apt/state";
Dir::State::status "{root}/apt/state/status";
Dir::Cache "{root}/apt/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false"; // a stored copy of a suite can be older than its promise; signatures still count
"""
_SOURCES = """
Types: {kind}
URIs: {uri}
Suites: {suite}
Components: main
Signed-By: {keyring}
"""


class UnavailableError(Exception):
    """Something that a test needs is not here; ``obtainable`` says whether this machine could have had it."""

    def __init__(self, reason: str, *, obtainable: bool) -> None:
        super().__init__(reason)
        self.obtainable = obtainable


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Let one process at a time through, among all that name this file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def release() -> dict[str, str]:
    """What this machine says of itself: ``ID``, ``VERSION_CODENAME`` and more, as in os-release(5)."""
    path = Path("/etc/os-release")
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: value.strip("\"'") for name, _, value in (line.partition("=") for line in lines)}


def is_reachable() -> bool:
    """Whether this machine has what it takes to get packages from Debian."""
    return all((shutil.which("apt-get"), shutil.which("dpkg-deb"), _KEYRING.exists()))


def archive() -> str:
    """Return where this machine gets the packages of its own Debian release from; else the archive's public address."""
    if not is_reachable():
        raise UnavailableError("apt, or the keyring of Debian's archive, is not on this machine", obtainable=False)
    facts = release()
    listed = call("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Identifier: Packages")
    for line in listed.splitlines() if facts.get("ID") == "debian" else ():
        suite, component, uri = line.split(" ", 2)
        if suite in (facts.get("VERSION_CODENAME"), "stable") and component == "main":
            return uri
    return _PUBLIC_ARCHIVE


def unpacked(folder: Path, suite: str, *packages: str) -> dict[str, Path]:
    """Return the folders that hold these packages of a suite, without what they depend on; download what is missing.

    A package is in ``{folder}/{suite}/{package}_{version}``, which is there only when it is complete. One that is there
    is used as it is: delete its folder to have the suite's present version. UnavailableError when it cannot be had.
    """
    here = folder / suite
    with lock(here / "lock"):
        for interrupted in here.glob("new-*"):
            shutil.rmtree(interrupted)
        missing = [package for package in packages if not _versions(here, package)]
        if missing:
            with (
                tempfile.TemporaryDirectory(prefix="new-", dir=here) as name,
                downloaded(Path(name), suite, *missing, alone=True) as archives,
            ):
                for path in archives:
                    package, version, _ = path.stem.split("_")
                    call("dpkg-deb", "--extract", str(path), f"{name}/{package}")
                    (Path(name) / package).rename(here / f"{package}_{version}")
    return {package: _versions(here, package)[-1] for package in packages}


def _versions(here: Path, package: str) -> list[Path]:
    return sorted(here.glob(f"{package}_*"), key=lambda path: path.stat().st_mtime)


@contextlib.contextmanager
def downloaded(folder: Path, suite: str, *packages: str, alone: bool = False) -> Iterator[list[Path]]:
    """Download packages of a suite and what they depend on, unless ``alone``; the files are gone after the block."""
    with _updated(folder, suite, "deb") as (get, archives):
        if alone:
            call(*get, "download", *packages, cwd=archives)
        else:
            call(*get, "--no-install-recommends", "--download-only", "install", *packages)
        yield sorted(archives.glob("*.deb"))


@contextlib.contextmanager
def source(folder: Path, suite: str, package: str) -> Iterator[Path]:
    """Download the authors' archive from which a package of a suite is built; it is gone after the block."""
    with _updated(folder, suite, "deb-src") as (get, archives):
        call(*get, "source", "--download-only", package, cwd=archives)
        yield next(path for path in archives.glob("*.orig.tar.*") if path.suffix != ".asc")


@contextlib.contextmanager
def _updated(folder: Path, suite: str, kind: str) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Yield apt's command with the list of a suite's packages, and the folder of what it downloads."""
    apt = folder / "apt"
    for each in ("apt.conf.d", "preferences.d", "state/lists/partial", "cache/archives/partial"):
        (apt / each).mkdir(parents=True)
    (apt / "apt.conf").write_text(_APT.format(root=folder))
    (apt / "suite.sources").write_text(_SOURCES.format(kind=kind, uri=archive(), suite=suite, keyring=_KEYRING))
    (apt / "state" / "status").touch()
    get = ("env", f"APT_CONFIG={apt / 'apt.conf'}", "apt-get", "-qq", "-y")
    try:
        call(*get, "update")
        yield get, apt / "cache" / "archives"
    finally:
        shutil.rmtree(apt)


def call(*command: str, cwd: Path | None = None) -> str:
    """Return what a command prints; UnavailableError with what it said when it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{_shown(command)}: {(done.stderr or done.stdout).strip()[-500:]}", obtainable=True)
    return done.stdout


def _shown(command: Sequence[str]) -> str:
    return " ".join(word for word in command if "=" not in word and word != "env")


def beside_installed(folder: Path, program: str, package: str) -> Path:
    """Unpack a package of this machine's release, with what it needs and the machine has not got; the root of it all.

    ``program`` is what a person knows it by. UnavailableError on a machine that is not Debian's.
    """
    machine = release()
    if machine.get("ID") != "debian":
        raise UnavailableError(f"no {program} is installed", obtainable=False)
    name = machine.get("VERSION_CODENAME", "unknown")
    folder /= f"debian-{name}"
    with lock(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            (folder / "root").mkdir(parents=True)
            with downloaded(folder, name, package) as packages:
                _unpack_missing(folder / "root", packages)
            (folder / "complete").touch()
    return folder / "root"


def _unpack_missing(root: Path, packages: Iterable[Path]) -> None:
    # What is installed stays in use, the C library above all: programs and their loader want one version of it.
    known = call("dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\n").splitlines()
    for package in packages:
        if f"installed {package.name.partition('_')[0]}" not in known:
            call("dpkg-deb", "--extract", str(package), str(root))
