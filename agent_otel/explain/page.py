"""The explanation as one HTML page without scripts: boxes of turns and paths that open, the growth, and the tables.

The page loads nothing. Its content security policy forbids it, whatever names the payload has.
"""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_otel.explain.explanation import Node, by_path, tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.explain.conversation import Turn
    from agent_otel.explain.explanation import Explanation

_MOST_ROWS: Final = 100
_MOST_TURNS: Final = 60  # boxes of turns
_MOST_CHILDREN: Final = 12
_LONGEST_NAME: Final = 120
_CAPS_ABOVE: Final = 4  # a cap so many times the payload would make its growth a flat line
_WIDTH, _HEIGHT = 900, 240
#: Lighter variants of the palette of Okabe and Ito, which colour-blind people can read.
_COLOURS: Final = {
    "result": "#f3b26b",
    "arguments": "#8cc5e8",
    "assistant": "#8fd0b8",
    "user": "#d9a9c8",
    "system": "#efe08a",
}
_PLAIN: Final = "#d5dbe1"
_PAGE: Final = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")


def page(found: Explanation) -> str:
    """Return the page, which has less than 1 MB."""
    turns = f", {len(found.turns):,} turns" if found.turns else ""
    texts = [f"{found.kind}{turns}. All sizes are bytes.", *found.notes]
    parts = [f"<p>{html.escape(text)}</p>" for text in texts]
    if found.turns:
        parts += ["<h2>Turn by turn</h2>", _boxes(of_turns(found), found.payload_bytes)]
    if len(found.sizes) > 1:
        parts += [
            "<h2>Growth</h2>",
            "<p>Bytes of the payload after each turn, and the nearest caps.</p>",
            _growth(found),
        ]
    parts += ["<h2>By path</h2>", _boxes(of_paths(found), found.payload_bytes)]
    for title, head, rows, notes in tables(found):
        cells = [f"<tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr>"]
        shown = [[html.escape(cell[:_LONGEST_NAME]) for cell in row] for row in rows[:_MOST_ROWS]]
        cells += [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in shown]
        more = [f"{len(rows) - _MOST_ROWS:,} more."] if len(rows) > _MOST_ROWS else []
        parts += [f"<h2>{html.escape(title)}</h2>", f"<table>{''.join(cells)}</table>"]
        parts += [f"<p>{html.escape(note)}</p>" for note in (*more, *notes)]
    made = _PAGE.format(title=html.escape(f"{found.name}: {found.payload_bytes:,} bytes"), body="\n".join(parts))
    return made.encode("utf-8", "replace").decode()  # half a character in a name is no UTF-8


def _boxes(node: Node, total: int, colour: str = _PLAIN, *, is_open: bool = True) -> str:
    """Return a node and those in it, each with a bar as long as its share."""
    colour, share = _COLOURS.get(node.name, colour), 100 * node.bytes / max(1, total)
    name = html.escape(node.name[:_LONGEST_NAME])
    bar = f'<i style="width:{share / 2:.1f}%;background:{colour}"></i>{name}: {node.bytes:,}, {share:.1f} %'
    if not node.children:
        return f"<div>{bar}</div>"
    inner = "".join(_boxes(child, total, colour, is_open=False) for child in node.children)
    return f"<details{' open' * is_open}><summary>{bar}</summary>{inner}</details>"


def _growth(found: Explanation) -> str:
    """Return a drawing of the sizes, with the caps that are near."""
    sizes, largest = found.sizes, max(1, *found.sizes)
    caps = sorted({room.cap_bytes for room in found.rooms if room.cap_bytes <= _CAPS_ABOVE * largest})
    top = max(largest, *caps[:1]) if caps else largest

    def height(size: int) -> str:
        return f"{_HEIGHT - _HEIGHT * size / top:.1f}"

    points = " ".join(f"{_WIDTH * at / (len(sizes) - 1):.1f},{height(size)}" for at, size in enumerate(sizes))
    lines = [
        f'<line x1="0" x2="{_WIDTH}" y1="{height(cap)}" y2="{height(cap)}" stroke="#cf222e" stroke-dasharray="6"/>'
        f'<text x="4" y="{height(cap)}" dy="14" font-size="13">{cap:,}</text>'
        for cap in caps
        if cap <= top
    ]
    line = f'<polyline points="{points}" fill="none" stroke="#0969da" stroke-width="2"/>'
    return f'<svg viewBox="0 -4 {_WIDTH} {_HEIGHT + 8}" role="img">{line}{"".join(lines)}</svg>'


def of_turns(found: Explanation) -> Node:
    """Return the boxes of the turns, from the first to the last; with many turns, a box has several."""
    root = Node("payload", found.payload_bytes)
    size = max(1, -(-len(found.turns) // _MOST_TURNS))
    for start in range(0, len(found.turns), size):
        group = found.turns[start : start + size]
        name = f"turn {start + 1}" if size == 1 else f"turns {start + 1}-{start + len(group)}"
        root.children.append(_turn(name, group))
    rest = found.payload_bytes - sum(child.bytes for child in root.children)
    if rest > 0:
        root.children.append(Node("outside of the turns", rest))
    root.bytes = sum(child.bytes for child in root.children)
    return root


def _turn(name: str, turns: Sequence[Turn]) -> Node:
    whole: Counter[tuple[str, str]] = Counter()
    for turn in turns:
        whole.update(turn.parts)
    kinds: dict[str, Node] = {}
    for (kind, tool), count in whole.items():
        node = kinds.setdefault(kind, Node(kind))
        node.bytes += count
        if tool:
            node.children.append(Node(tool, count))
    for node in kinds.values():
        _fit(node)
    found = Node(name, sum(turn.bytes for turn in turns), [kinds[kind] for kind in _COLOURS if kind in kinds])
    found.bytes = max(found.bytes, sum(child.bytes for child in found.children))
    return found


def of_paths(found: Explanation) -> Node:
    """Return the boxes of the paths, the largest first."""
    root = by_path(found.breakdown.paths, found.payload_bytes)
    _fit(root)
    return root


def _fit(node: Node) -> None:
    """Add up the smallest of many children, and make each node as large as its children together."""
    node.children.sort(key=lambda child: -child.bytes)
    rest = node.children[_MOST_CHILDREN:]
    if rest:
        node.children[_MOST_CHILDREN:] = [Node(f"{len(rest):,} more", sum(child.bytes for child in rest))]
    for child in node.children:
        _fit(child)
    node.bytes = max(node.bytes, sum(child.bytes for child in node.children))
