"""Cuts of eight kinds, as programs make them, and which calls of two hundred they are planted in.

A tool makes the first five itself; what comes after it makes the others, where a loop has a place for that.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

LINES: Final = "".join(f"line {number:05} of the whole result\n" for number in range(2_000))
"""What the tool has before it cuts: 2,000 lines of 31 characters."""
ROWS: Final = [{"id": number, "name": f"name {number}", "tags": ["a", None]} for number in range(400)]
SIGNS: Final = "漢字かな交じり文\n" * 4_000
"""4,000 lines of 9 characters and 25 bytes."""


class Kind(NamedTuple):
    """One kind of cut: what the telemetry must say of it."""

    layer: str
    reason: str


KINDS: Final = {
    "a notice at the end": Kind("tool", "marker"),
    "head and tail": Kind("tool", "marker"),
    "half a document": Kind("tool", "cut_json"),
    "some of the rows": Kind("tool", "marker"),
    "stored elsewhere": Kind("tool", "offloaded"),
    "cut by the framework": Kind("framework", "shrunk"),
    "cut for the model": Kind("model_request", "shrunk"),
    "cleared later": Kind("model_request", "cleared"),
}
BY_THE_TOOL: Final = tuple(KINDS)[:5]

#: Numbers of the calls that have them, twice each kind; the second time in another form.
PLANTED: Final = {
    14: "a notice at the end", 133: "a notice at the end",
    28: "head and tail", 142: "head and tail",
    41: "half a document", 158: "half a document",
    57: "some of the rows", 165: "some of the rows",
    66: "stored elsewhere", 176: "stored elsewhere",
    78: "cut by the framework", 183: "cut by the framework",
    89: "cut for the model", 192: "cut for the model",
    103: "cleared later", 118: "cleared later",
}  # fmt: skip


def by_the_tool(number: int) -> Any:
    """Return what the tool hands over in this call."""
    return {
        14: LINES[:30_000] + "\n... [output truncated at 30000 characters]",
        133: SIGNS[:20_000] + "...[truncated]",
        28: f"{LINES[:4_500]}\n..._This content has been truncated to stay below 9000 characters_...\n{LINES[-4_500:]}",
        142: f"{LINES[:4_000]}…8123 tokens truncated…{LINES[-4_000:]}",
        41: json.dumps({"total": 400, "rows": ROWS})[:9_000],
        158: json.dumps(ROWS, indent=2)[:12_345],
        57: {"rows": ROWS[:50], "truncated": True},
        165: json.dumps({"rows": ROWS[:50], "total": 400, "truncated": True}),
        66: "Tool result too large, the result of this tool call 66 was saved in the filesystem at this path: /66\n\n"
        f"{LINES[:990]}\n... [1,940 lines truncated] ...\n{LINES[-990:]}",
        176: f"Output too large (64.5KB). Full output saved to: /tmp/out-176.txt\n\nPreview:\n{LINES[:1_000]}",
    }.get(number, f"result {number}\n{SIGNS if number % 2 else LINES}")


def number_of(text: str) -> int | None:
    """Return the number of the call whose result this is, if it is to be cut on its way."""
    found = _NUMBERED.match(text)
    return int(found[1]) if found else None


def by_the_framework(text: str) -> str:
    """Return what a middleware makes of a result: the beginning of those that it is to cut."""
    number = number_of(text)
    if number is None or PLANTED[number] != "cut by the framework":
        return text
    return text[:5_000]


class Sender:
    """What an application makes of the results when it sends them: for one run."""

    def __init__(self) -> None:
        self._sent: set[int] = set()

    def __call__(self, text: str) -> str:
        """Return what is sent of a result: the head, or head and tail, or once it has been sent, a placeholder."""
        number = number_of(text)
        kind = PLANTED[number] if number is not None else None
        if number is None or kind == "cut by the framework":
            return text
        if kind == "cut for the model":
            return text[:10_001] if number % 2 else f"{text[:3_000]}{text[-3_000:]}"
        if number in self._sent:
            return CLEARED
        self._sent.add(number)
        return text


CLEARED: Final = "[Old tool result content cleared]"
_NUMBERED: Final = re.compile(r"result (\d+)\n")
