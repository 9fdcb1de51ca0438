"""The tree of a payload's paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class Node:
    """A place in a payload: its name, the bytes at and below it, and its children, largest first."""

    name: str
    bytes: int = 0
    children: list[Node] = field(default_factory=list)


def by_path(paths: Mapping[str, int], total_bytes: int) -> Node:
    """Return the tree of the paths; the root has all bytes, the punctuation included."""
    root = Node("payload")
    places: dict[str, Node] = {"": root}
    for path, count in paths.items():
        at = ""
        node = root
        node.bytes += count
        for part in path.split("."):
            at = f"{at}.{part}" if at else part
            if at not in places:
                places[at] = Node(part)
                node.children.append(places[at])
            node = places[at]
            node.bytes += count
    for node in places.values():
        node.children.sort(key=lambda child: -child.bytes)
    rest = total_bytes - root.bytes
    if rest > 0:
        root.children.append(Node("keys and punctuation", rest))
    root.bytes = total_bytes
    return root
