"""A real Chromium: the installed one, or Debian's headless one, unpacked into the user's cache; it needs no root."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests import debian
from tests.system.engines import starting

_INSTALLED = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")


@dataclass(frozen=True)
class Browser:
    """A program that draws pages without a screen, and the variables that it wants."""

    program: Path
    environ: dict[str, str] = field(default_factory=dict)


def find() -> Browser:
    """Return the installed Chromium, or Debian's, unpacked if it is not there yet: 200 MB, and half a minute.

    UnavailableError when it is not to be had.
    """
    for name in _INSTALLED:
        if found := shutil.which(name):
            return Browser(Path(found))
    return unpacked()


def unpacked() -> Browser:
    """Return Debian's headless Chromium with the libraries that the machine has not got."""
    root = debian.beside_installed(starting.cache("chromium"), "Chromium", "chromium-headless-shell")
    # PulseAudio's client looks for its own library in the folder of an installation.
    folders = (f"{lib}/*-linux-gnu*{part}" for part in ("", "/pulseaudio") for lib in ("lib", "usr/lib"))
    libraries = [str(path) for folder in folders for path in root.glob(folder)]
    # The packaged start script has the paths of an installation.
    program = root / "usr/lib/chromium/chromium-headless-shell"
    return Browser(program, {"LD_LIBRARY_PATH": os.pathsep.join(libraries)})
