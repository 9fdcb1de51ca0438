"""Snapshots of tools: the keys of their results and the properties of their arguments, one JSON file for each tool.

A file holds names and types, no value. Keys that are data (numbers, ids) are ``*``.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from agent_otel.core.tool_definitions import definitions, drift

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_UNSAFE: Final = re.compile(r"[^\w.-]")
_ROOT: Final = "$"


class Contracts:
    """The snapshots in a folder; ``update`` writes those that tests compare with."""

    def __init__(self, folder: Path | None, *, update: bool) -> None:
        self._folder = folder
        self._update = update

    def file(self, tool: str) -> Path:
        """Return the file of a tool's snapshot.

        Raises:
            ValueError: the recording was made without a folder.
        """
        if self._folder is None:
            raise ValueError("name the folder of the snapshots: record(contracts=Path(...))")
        return self._folder / f"{_UNSAFE.sub('_', tool)}.json"

    def differences(self, tool: str) -> list[str] | None:
        """Return how the tool differs from its snapshot; None without a snapshot. With ``update``, write it."""
        file, now = self.file(tool), _contract(tool)
        if self._update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            return []
        if not file.exists():
            return None
        before: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return [*_arguments(before["arguments"], now["arguments"]), *_results(before["result"], now["result"])]


def _contract(tool: str) -> dict[str, Any]:
    keys = drift.keys(tool)
    return {
        "tool": tool,
        "arguments": definitions.schema(tool),
        "result": {
            at or _ROOT: {"always": sorted(always), "sometimes": sorted(ever - always)}
            for at, (always, ever) in keys.items()
        },
    }


def _arguments(before: dict[str, str] | None, now: dict[str, str] | None) -> Iterator[str]:
    """Yield the differences of a definition; a test whose requests define no tool has none to compare."""
    if before is None or now is None:
        if before is not None:
            yield "no model request of this test defined it, the snapshot has its arguments"
        elif now is not None:
            yield "the snapshot has no arguments, a model request of this test defined them"
        return
    for path in sorted(before.keys() | now.keys()):
        if path not in now:
            yield f"argument {path!r} is gone"
        elif path not in before:
            yield f"argument {path!r} is new ({_type(now[path])})"
        elif before[path] != now[path]:
            yield f"argument {path!r} was {_type(before[path])} and is {_type(now[path])}"


def _type(kind: str) -> str:
    name = kind.removesuffix("!") or "of any type"
    return f"{name}, required" if kind.endswith("!") else name


def _results(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Yield the keys that every result had and one lacks, and the keys that no result had.

    An object that no result of this test holds, such as the elements of an empty list, is not compared.
    """
    if before and not now:
        yield "its results have no keys, those of the snapshot had"
    for at, keys in now.items():
        known = before.get(at)
        place = "" if at == _ROOT else f"{at}."
        if known is None:
            yield f"the object {at!r} is new, with {', '.join(keys['always'])}"
            continue
        allowed = {*known["always"], *known["sometimes"]}
        yield from (f"key {place + key!r} is missing" for key in known["always"] if key not in keys["always"])
        yield from (
            f"key {place + key!r} is new" for key in (*keys["always"], *keys["sometimes"]) if key not in allowed
        )
