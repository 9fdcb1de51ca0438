"""The table ``suites.toml``, and source distributions from PyPI, which are kept in ``.environments/``."""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import environments
from tests.environments import FOLDER

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLE = Path(__file__).parent / "suites.toml"
_FOLDER = FOLDER / "suite-sources"
_SECONDS = 300


@dataclass(frozen=True)
class Suite:
    """The tests of one framework."""

    name: str
    #: The requirement of the distribution, which may name extras; its version, or nothing for the newest.
    requirement: str
    version: str
    python: str
    install: tuple[str, ...]
    paths: tuple[str, ...]
    arguments: tuple[str, ...]
    env: dict[str, str]
    known: list[dict[str, Any]]
    left_out: str

    @property
    def distribution(self) -> str:
        """The name of the distribution."""
        return self.requirement.partition("[")[0]


@dataclass(frozen=True)
class Source:
    """An unpacked source distribution."""

    version: str
    folder: Path


def table() -> dict[str, Any]:
    """Return the content of ``suites.toml``."""
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def suites(*, newest: bool = False) -> dict[str, Suite]:
    """Return the suites by their names."""
    found = {}
    for name, row in table()["suite"].items():
        requirement, _, version = row["distribution"].partition("==")
        found[name] = Suite(
            name,
            requirement,
            "" if newest else version,
            row.get("python", "3.12"),
            tuple(row["install"]),
            tuple(row["paths"]),
            tuple(row.get("arguments", ())),
            row.get("env", {}),
            row.get("known", []),
            row.get("left_out", ""),
        )
    return found


def fetch(suite: Suite) -> Source:
    """Return the source distribution of a suite, downloaded if need be: uv resolves its version and address."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    # A distribution without a configuration of pytest would run with the one of this repository, which is above it.
    (_FOLDER / "pytest.ini").write_text("[pytest]\n")
    wanted, lock = _FOLDER / f"{suite.name}.in", _FOLDER / f"pylock.{suite.name}.toml"
    wanted.write_text(suite.distribution + (f"=={suite.version}" if suite.version else ""))
    lock.unlink(missing_ok=True)
    options = ("--no-deps", "--format", "pylock.toml", "--python-version", suite.python)
    environments.uv("pip", "compile", *options, "--output-file", str(lock), str(wanted))
    (package,) = tomllib.loads(lock.read_text(encoding="utf-8"))["packages"]
    folder = _FOLDER / f"{suite.name}-{package['version']}"
    if not folder.exists():
        _unpack(package["sdist"]["url"], package["sdist"]["hashes"]["sha256"], folder)
    return Source(package["version"], folder)


def _unpack(url: str, sha256: str, folder: Path) -> None:
    with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310 - the address is PyPI's
        content = response.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RuntimeError(f"{url} is not what PyPI announced")
    unpacked = folder.with_suffix(".unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(unpacked, filter="data")
    (inner,) = unpacked.iterdir()
    inner.rename(folder)
    unpacked.rmdir()
