"""The boxes of a flame graph: of a payload's turns, their kinds of parts and tools, and of its paths."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_otel.explain.conversation import Turn
from agent_otel.explain.tree import Node, by_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.explain.explanation import Explanation

_MOST_TURNS: Final = 150  # boxes of turns; with more turns, a box has several
_MOST_CHILDREN: Final = 24
_OUTSIDE: Final = "outside of the turns"
#: Lighter variants of the palette of Okabe and Ito, which colour-blind people can read.
_COLOURS: Final = {
    "result": "#f3b26b",
    "arguments": "#8cc5e8",
    "assistant": "#8fd0b8",
    "user": "#d9a9c8",
    "system": "#efe08a",
}
_PLAIN: Final = "#d5dbe1"


@dataclass(slots=True)
class Flames:
    """Boxes as Plotly takes them: columns, with the id of the box that each stands in."""

    ids: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    colours: list[str] = field(default_factory=list)
    hovers: list[str] = field(default_factory=list)

    def add(self, node: Node, parent: str, total: int, colour: str = _PLAIN) -> None:
        """Add a node and what stands in it; a box is never smaller than the boxes in it."""
        name, own = str(len(self.ids)), _COLOURS.get(node.name, colour)
        self.ids.append(name)
        self.parents.append(parent)
        # Plotly reads some markup in labels: a name of the payload is a text.
        self.labels.append(html.escape(node.name, quote=False))
        self.values.append(node.bytes)
        self.colours.append(own)
        share = 100 * node.bytes / max(1, total)
        self.hovers.append(f"{self.labels[-1]}<br>{node.bytes:,} bytes, {share:.1f} %")
        for child in node.children:
            self.add(child, name, total, own)


def of_turns(found: Explanation) -> Flames:
    """Return the boxes of the turns, from the first to the last."""
    groups = _grouped(found.turns)
    root = Node("payload", children=[_turn(name, turns) for name, turns in groups])
    rest = found.payload_bytes - sum(child.bytes for child in root.children)
    if rest > 0:
        root.children.append(Node(_OUTSIDE, rest))
    return _drawn(root)


def of_paths(found: Explanation) -> Flames:
    """Return the boxes of the paths, the largest first."""
    return _drawn(by_path(found.breakdown.paths, found.payload_bytes))


def _drawn(root: Node) -> Flames:
    flames = Flames()
    _fit(root)
    flames.add(root, "", root.bytes)
    return flames


def _fit(node: Node) -> None:
    """Add up the smallest of many children, and make each node as large as its children together."""
    if len(node.children) > _MOST_CHILDREN and not node.children[0].name.startswith("turn"):
        rest = node.children[_MOST_CHILDREN:]
        node.children[_MOST_CHILDREN:] = [Node(f"{len(rest):,} more", sum(child.bytes for child in rest))]
    for child in node.children:
        _fit(child)
    node.bytes = max(node.bytes, sum(child.bytes for child in node.children))


def _grouped(turns: Sequence[Turn]) -> list[tuple[str, Sequence[Turn]]]:
    size = -(-len(turns) // _MOST_TURNS)
    return [
        (f"turn {start + 1}" if size == 1 else f"turns {start + 1}-{start + len(group)}", group)
        for start in range(0, len(turns), size)
        for group in (turns[start : start + size],)
    ]


def _turn(name: str, turns: Sequence[Turn]) -> Node:
    whole = Turn()
    for turn in turns:
        whole.bytes += turn.bytes
        for (kind, tool), count in turn.parts.items():
            whole.add(kind, tool, count)
    kinds: dict[str, Node] = {}
    for (kind, tool), count in whole.parts.items():
        node = kinds.setdefault(kind, Node(kind))
        node.bytes += count
        if tool:
            node.children.append(Node(tool, count))
    for node in kinds.values():
        node.children.sort(key=lambda child: -child.bytes)
    return Node(name, whole.bytes, [kinds[kind] for kind in _COLOURS if kind in kinds])
