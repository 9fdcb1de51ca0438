"""The explanation as one HTML page, with a flame graph of the turns. Plotly draws, and its script is in the page.

The page loads nothing: its policy for content forbids it, and so a name in the payload cannot either.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_otel.explain.explanation import CARRIED_HEAD, ESTIMATED, Node, by_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_otel.explain.conversation import Turn
    from agent_otel.explain.explanation import Explanation

_TURN_ROWS: Final = 200
_CAPS_ABOVE: Final = 4  # a cap so many times the payload would make its growth a flat line
_CAP_LINES: Final = 4
_FONT: Final = {"family": "system-ui, sans-serif", "size": 13}
_MOST_TURNS: Final = 150  # boxes of turns
_MOST_CHILDREN: Final = 24
#: Lighter variants of the palette of Okabe and Ito, which colour-blind people can read.
_COLOURS: Final = {
    "result": "#f3b26b",
    "arguments": "#8cc5e8",
    "assistant": "#8fd0b8",
    "user": "#d9a9c8",
    "system": "#efe08a",
}
_PLAIN: Final = "#d5dbe1"
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem; color: #1b1f24;
  background: #fff; }}
h2 {{ margin: 2rem 0 .25rem; font-size: 1.2rem; }}
p {{ margin: .25rem 0; color: #57606a; }}
table {{ border-collapse: collapse; margin: .5rem 0; }}
th, td {{ border-bottom: 1px solid #d0d7de; padding: .25rem 1rem .25rem 0; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }}
td {{ font-variant-numeric: tabular-nums; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def page(found: Explanation) -> str:
    """Return the page.

    Raises:
        ImportError: Plotly is not installed.
    """
    from plotly import graph_objects, offline  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - an extra

    turns = f", {len(found.turns):,} turns" if found.turns else ""
    summary = f"{found.kind}{turns}. All sizes are bytes."
    parts = [f"<p>{html.escape(summary)}</p>", *(f"<p>{html.escape(note)}</p>" for note in found.notes)]
    parts.append(f"<script>{offline.get_plotlyjs()}</script>")
    if found.turns:
        parts += ["<h2>Turn by turn</h2>", "<p>Select a turn to see its parts; select it again to go back.</p>"]
        parts.append(_icicle(graph_objects, of_turns(found), "turns"))
    if len(found.sizes) > 1:
        parts += ["<h2>Growth</h2>", "<p>Bytes of the payload after each turn, and the nearest caps.</p>"]
        parts.append(_growth(graph_objects, found))
    parts += ["<h2>By path</h2>", _icicle(graph_objects, of_paths(found), "paths"), *_tables(found)]
    made = _PAGE.format(title=html.escape(f"{found.name}: {found.payload_bytes:,} bytes"), body="\n".join(parts))
    return made.encode("utf-8", "replace").decode()  # half a character in a name is no UTF-8


def _icicle(graph_objects: Any, flames: Flames, name: str) -> str:
    trace = graph_objects.Icicle(
        ids=flames.ids,
        labels=flames.labels,
        parents=flames.parents,
        values=flames.values,
        hovertext=flames.hovers,
        hoverinfo="text",
        marker={"colors": flames.colours, "line": {"width": 1, "color": "#fff"}},
        branchvalues="total",
        sort=False,
        tiling={"orientation": "v"},
        textinfo="label",
        maxdepth=4,
    )
    return _figure(graph_objects.Figure(trace), name, 420)


def _growth(graph_objects: Any, found: Explanation) -> str:
    largest = max(found.sizes)
    steps = list(range(1, len(found.sizes) + 1))
    figure = graph_objects.Figure(
        graph_objects.Scatter(x=steps, y=found.sizes, mode="lines+markers", name="payload", fill="tozeroy")
    )
    near = [room for room in found.rooms if room.cap_bytes <= _CAPS_ABOVE * largest]
    caps = sorted({room.cap_bytes for room in near}, key=lambda cap: abs(cap - found.sizes[-1]))[:_CAP_LINES]
    for number, cap in enumerate(sorted(caps)):
        names = [room.runtime for room in near if room.cap_bytes == cap]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        figure.add_hline(
            y=cap,
            line={"color": "#cf222e", "dash": "dash"},
            annotation_text=f"{names[0]}{more}: {cap:,}",
            annotation_position=("top left", "top right")[number % 2],
        )
    figure.update_layout(xaxis_title="turn", yaxis_title="bytes", yaxis_rangemode="tozero")
    return _figure(figure, "growth", 320)


def _figure(figure: Any, name: str, height: int) -> str:
    figure.update_layout(
        template="plotly_white", height=height, margin={"l": 10, "r": 10, "t": 20, "b": 30}, font=_FONT
    )
    drawn: str = figure.to_html(
        full_html=False, include_plotlyjs=False, include_mathjax=False, div_id=name, config={"displayModeBar": False}
    )
    return drawn


def _tables(found: Explanation) -> list[str]:
    breakdown, first = found.breakdown, max(0, len(found.turns) - _TURN_ROWS)
    rooms = [
        (
            *(room.runtime, room.boundary, f"{room.cap_bytes:,}", f"{room.left_bytes:,}"),
            "" if room.turns_left is None else f"{room.turns_left:,}",
        )
        for room in found.rooms
    ]
    unread = {} if breakdown.unread is None else breakdown.unread.paths
    duplicates = [(one.path, one.other_path, f"{one.bytes:,}") for one in breakdown.duplicates]
    sizes = [(turn.messages, turn.bytes, turn.claim_check, turn.trimming, turn.compaction) for turn in found.turns]
    turns = [(str(number), *map("{:,}".format, row)) for number, row in enumerate(sizes[first:], first + 1)]
    estimates = [ESTIMATED] if found.carried else []
    estimates += [] if found.window is None else [found.window.sentence()]
    return [
        *_table("What each remedy saves", ("remedy", "bytes", "of", "setting"), [one.row() for one in found.savings]),
        *_table("What carrying costs", CARRIED_HEAD, [one.row() for one in found.carried]),
        *(f"<p>{html.escape(text)}</p>" for text in estimates),
        *_table("Room", ("runtime", "boundary", "smallest cap", "room left", "turns left"), rooms),
        *_table("Tools", ("tool", "bytes of results", "share"), _shares(found, breakdown.tools)),
        *_table("Duplicates", ("path", "is also", "bytes"), duplicates),
        *_table("Read by no model request", ("path", "bytes", "share"), _shares(found, unread)),
        *_table("Turns", ("turn", "messages", "bytes", "claim check saves", "trimming", "compaction"), turns),
    ]


def _shares(found: Explanation, counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    ordered = sorted(counts.items(), key=lambda row: -row[1])
    return [(name, f"{count:,}", f"{100 * count / max(1, found.payload_bytes):.0f} %") for name, count in ordered]


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table, nothing without rows."""
    if not rows:
        return []
    lines = [f"<tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return [f"<h2>{html.escape(title)}</h2>", f"<table>{''.join(lines)}</table>"]


# The boxes of the flame graphs: of the turns with their kinds of parts and tools, and of the paths.


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
        # Plotly reads some markup in labels, and takes no half a character: a name of the payload is a text.
        label = html.escape(node.name, quote=False).encode("utf-8", "replace").decode()
        self.ids.append(name)
        self.parents.append(parent)
        self.labels.append(label)
        self.values.append(node.bytes)
        self.colours.append(own)
        self.hovers.append(f"{label}<br>{node.bytes:,} bytes, {100 * node.bytes / max(1, total):.1f} %")
        for child in node.children:
            self.add(child, name, total, own)


def of_turns(found: Explanation) -> Flames:
    """Return the boxes of the turns, from the first to the last; with many turns, a box has several."""
    root = Node("payload")
    size = max(1, -(-len(found.turns) // _MOST_TURNS))
    for start in range(0, len(found.turns), size):
        group = found.turns[start : start + size]
        name = f"turn {start + 1}" if size == 1 else f"turns {start + 1}-{start + len(group)}"
        root.children.append(_turn(name, group))
    rest = found.payload_bytes - sum(child.bytes for child in root.children)
    if rest > 0:
        root.children.append(Node("outside of the turns", rest))
    return _drawn(root)


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
        node.children.sort(key=lambda child: -child.bytes)
    return Node(name, sum(turn.bytes for turn in turns), [kinds[kind] for kind in _COLOURS if kind in kinds])


def of_paths(found: Explanation) -> Flames:
    """Return the boxes of the paths, the largest first."""
    return _drawn(by_path(found.breakdown.paths, found.payload_bytes))


def _drawn(root: Node) -> Flames:
    _fit(root)
    flames = Flames()
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
