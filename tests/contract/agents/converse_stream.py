"""The message of a stream of Bedrock's Converse API, for loops of the program's own over several SDKs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def blocks(events: Iterable[Any]) -> list[Any]:
    """Return the blocks of a streamed message."""
    said: list[Any] = []
    for event in events:
        if "contentBlockStart" in event:
            said.append({"toolUse": {**event["contentBlockStart"]["start"]["toolUse"], "input": ""}})
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]["delta"]
            if "toolUse" in delta:
                said[-1]["toolUse"]["input"] += delta["toolUse"]["input"]
            else:
                said.append({"text": delta["text"]})
    for block in said:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return said
