"""The dashboards and rules that the package ships, and writing files of ours into a user's folder."""

from __future__ import annotations

import json
import os
import re
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.cli import console
from agent_otel.cli.console import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITTEN: Final = "written"
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"
_OUR_NAMES: Final = ("agent-otel", "agent_otel")
PACKED: Final = Path(__file__).resolve().parent / "files.zip"
CHECKOUT: Final = Path(__file__).resolve().parent.parent.parent
_SECTION: Final = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FIRST: Final = re.compile(r"^First: (.*)$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
#: Line end inside a paragraph or a list item.
_WRAPPED: Final = re.compile(r"(?<!\n)\n(?!\n|\d+\. |- ) *")


class Dashboard(NamedTuple):
    """A dashboard: its shipped file, Grafana's JSON model, and its id, the same on every server."""

    file: str
    text: str
    model: dict[str, Any]
    uid: str


def texts(name: str, pattern: str) -> dict[str, str]:
    """Return path -> text of the shipped files below ``dashboards`` or ``alerts`` that match a glob.

    They are in the wheel's archive, else in the checkout.
    """
    if PACKED.is_file():
        with zipfile.ZipFile(PACKED) as packed:
            wanted = re.compile(re.escape(f"{name}/{pattern}").replace(r"\*", "[^/]*"))
            found = filter(wanted.fullmatch, packed.namelist())
            return {entry.partition("/")[2]: packed.read(entry).decode() for entry in found}
    root = CHECKOUT / name
    if not (CHECKOUT / "pyproject.toml").is_file() or not root.is_dir():
        raise Failure(f"this installation of agent-otel has no {name}; install it from a wheel or run it in a checkout")
    paths = (path for path in root.glob(pattern) if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


def runbooks() -> dict[str, str]:
    """Return the short form of each alert's runbook by the alert's name: first step, meaning and remedy, as text."""
    found = {}
    for file, runbook in texts("alerts", "runbooks/*.md").items():
        sections = {title: text.strip() for title, text in _SECTION.findall(runbook)}
        text = _LINK.sub(r"\1", f"{_FIRST.findall(runbook)[0]}\n\n{sections['Meaning']}\n\n{sections['Remedy']}")
        # Prometheus would parse these as the beginning of an expression.
        found[Path(file).stem] = _WRAPPED.sub(" ", text).replace("{{", "{ {")
    return found


def dashboards(uids: tuple[str, ...] = ()) -> list[Dashboard]:
    """Return the shipped dashboards, or those with these uids."""
    models = {file: (text, json.loads(text)) for file, text in texts("dashboards", "*.json").items()}
    boards = (Dashboard(file, text, model, str(model["uid"])) for file, (text, model) in models.items())
    every = {board.uid: board for board in boards}
    if not every:
        raise Failure("this installation of agent-otel is broken: it has no dashboard")
    unknown = sorted(set(uids) - every.keys())
    if unknown:
        raise Failure(f"no dashboard of ours: {', '.join(unknown)}. There are {', '.join(every)}.")
    return [board for uid, board in every.items() if not uids or uid in uids]


def export(target: Path, files: Mapping[str, str], *, overwrite: bool, is_json: bool) -> None:
    """Write files, path below the folder -> text, and print the state of each.

    Other files in the folder are neither read nor changed. If a file would replace one that is not this package's,
    nothing is written.
    """
    states = [(*_state(target / name, text, overwrite=overwrite), name) for name, text in files.items()]
    refused = sum(state == REFUSED for state, *_ in states)
    if refused:
        rows = [("would be written" if state == WRITTEN else state, name, why) for state, why, name in states]
        console.table(("state", "file", "why"), rows, is_json=is_json)
        raise Failure(f"nothing was written to {target}: {refused} of the files there are not ours")
    try:
        for state, _, name in states:
            if state == WRITTEN:
                _write(target / name, files[name])
    except OSError as error:
        raise Failure(f"{error.filename or target} cannot be written: {error.strerror}") from None
    console.table(("state", "file"), [(state, str(target / name)) for state, _, name in states], is_json=is_json)


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


def is_ours(path: Path, text: str) -> bool:
    """Return True for a file of this package: a dashboard with its uid, or its name in a comment on the first line."""
    if path.suffix == ".json":
        try:
            model = json.loads(text)
        except ValueError:
            return False
        return isinstance(model, dict) and str(model.get("uid") or "").startswith(_OUR_NAMES)
    head = text.lstrip().partition("\n")[0]
    return head.startswith(("#", "<!--")) and any(name in head for name in _OUR_NAMES)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    umask = os.umask(0)
    os.umask(umask)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    written = Path(temporary)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        written.chmod(0o666 & ~umask)
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
