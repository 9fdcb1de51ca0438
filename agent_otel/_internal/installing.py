"""Commands for messages that install what is missing, from where this package itself was installed.

The name of the package is not given to an index that does not have it: another project could have it there.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Final

from agent_otel._internal.errors import ours

NAME: Final = "agent-otel"
_EXTRA: Final = re.compile(r"extra == ['\"]([\w-]+)['\"]")
_SELF: Final = re.compile(rf"{NAME}\[([\w,-]+)\]")


def installed_with(extra: str) -> str:
    """Return the command that installs the packages of an extra; these are on every index."""
    found = requirements(extra)
    if not found:
        return f"install the packages of the extra {extra!r} of {NAME}"
    return "pip install " + " ".join(map(shlex.quote, found))


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, those of extras that it includes among them; empty when unknown."""
    from importlib import metadata  # noqa: PLC0415 - only for a message

    try:
        declared = metadata.requires(NAME) or []
    except ours(metadata.PackageNotFoundError):  # on PYTHONPATH, without metadata
        return []
    found: list[str] = []
    for line in declared:
        requirement, _, marker = line.partition(";")
        if extra not in _EXTRA.findall(marker):
            continue
        inner = _SELF.fullmatch(requirement.strip())
        names = inner[1].split(",") if inner else []
        found += [each for name in names for each in requirements(name)] if inner else [requirement.strip()]
    return found


def source() -> str:
    """Return what ``pip install`` takes to install this package as it is installed here.

    That is a folder, an address or a name; PEP 610 keeps the origin of an installation that is not from an index.
    """
    from importlib import metadata  # noqa: PLC0415 - only for a message

    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
    except ours(metadata.PackageNotFoundError):
        return NAME
    if not text:
        return NAME
    origin = json.loads(text)
    url = str(origin.get("url") or NAME)
    system = origin.get("vcs_info", {}).get("vcs")
    return shlex.quote(f"{NAME} @ {system}+{url}" if system else url.removeprefix("file://"))
