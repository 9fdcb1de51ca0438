"""Bytecode that environments share: what one of them has compiled is linked into the next that has the same version.

An import takes bytecode for its own when the time and the size in it are those of the source, and writes the place of
the source into it. uv links sources, so that they are the same file in all environments.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def share(packages: Path, environments: Path) -> None:
    """Link the bytecode of what is installed in ``packages`` from other environments of this folder that have it.

    What cannot be linked is compiled at its first import, as ever.
    """
    others = [other for other in environments.glob(f"*/lib/{packages.parent.name}/site-packages") if other != packages]
    for record in packages.glob("*.dist-info/RECORD"):
        having = [other for other in others if (other / record.parent.name).is_dir()]
        for folder in _folders(record) if having else ():
            found = next((cache for other in having if (cache := other / folder / "__pycache__").is_dir()), None)
            if found is not None:
                _link(found, packages / folder / "__pycache__")


def _folders(record: Path) -> set[str]:
    """Return the folders of a distribution's sources."""
    paths = (line.partition(".py,")[0] for line in record.read_text(encoding="utf-8").splitlines() if ".py," in line)
    return {path.rpartition("/")[0] for path in paths if not path.startswith(("/", '"', "."))}


def _link(found: Path, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    there = {file.name for file in place.iterdir()}
    with contextlib.suppress(OSError):  # a file that is written meanwhile, or a file system without links
        for file in found.iterdir():
            if file.name not in there:
                (place / file.name).hardlink_to(file)
