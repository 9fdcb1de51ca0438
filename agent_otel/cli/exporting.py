"""Writing this package's files into a user's folder: all or none, and over no other program's files."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_otel.cli.console import Failure, rows_as_json, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WRITTEN: Final = "written"
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"
_OUR_NAMES: Final = ("agent-otel", "agent_otel")


def export(folder: Path, files: Mapping[str, str], *, overwrite: bool, is_json: bool = False) -> None:
    """Write files, path below the folder -> text, and print the state of each.

    Other files in the folder are neither read nor changed. If a file would replace one that is not this package's,
    nothing is written.

    Raises:
        Failure: a file was refused, or could not be written.
    """
    states = {name: _state(folder / name, text, overwrite=overwrite) for name, text in files.items()}
    refused = [name for name, (state, _) in states.items() if state == REFUSED]
    if refused:
        rows = [("would be written" if state == WRITTEN else state, name, why) for name, (state, why) in states.items()]
        _print(("state", "file", "why"), rows, is_json=is_json)
        raise Failure(f"nothing was written to {folder}: {len(refused)} of the files there are not ours")
    try:
        for name, (state, _) in states.items():
            if state == WRITTEN:
                _write(folder / name, files[name])
    except OSError as error:
        raise Failure(f"{error.filename or folder} cannot be written: {error.strerror}") from None
    _print(("state", "file"), [(state, str(folder / name)) for name, (state, _) in states.items()], is_json=is_json)


def _print(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, is_json: bool) -> None:
    (rows_as_json if is_json else table)(head, rows)


def is_ours(path: Path, text: str) -> bool:
    """Return True for a file of this package: a dashboard with its uid, or its name in a comment on the first line."""
    if path.suffix == ".json":
        return bool(_uid(text)) and _uid(text).startswith(_OUR_NAMES)
    head = text.lstrip().partition("\n")[0]
    return head.startswith(("#", "<!--")) and any(name in head for name in _OUR_NAMES)


def _state(path: Path, text: str, *, overwrite: bool) -> tuple[str, str]:
    try:
        there = path.read_bytes()
    except FileNotFoundError:
        return WRITTEN, ""
    except OSError as error:
        return REFUSED, str(error.strerror)
    if there == text.encode():
        return UNCHANGED, ""
    if overwrite or is_ours(path, there.decode(errors="replace")):
        return WRITTEN, ""
    return REFUSED, "is not ours; --overwrite replaces it"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    umask = os.umask(0)
    os.umask(umask)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    finally:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()


def _uid(text: str) -> str:
    try:
        model = json.loads(text)
    except ValueError:
        return ""
    return str(model.get("uid") or "") if isinstance(model, dict) else ""
