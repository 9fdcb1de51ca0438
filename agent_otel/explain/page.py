"""The explanation as one HTML page, with a flame graph of the turns. Plotly draws, and its script is in the page.

The page loads nothing: its policy for content forbids it, and so a name in the payload cannot either.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Final

from agent_otel.explain.carrying import CARRIED_HEAD, ESTIMATED, carried_rows, window_line
from agent_otel.explain.flames import Flames, of_paths, of_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_otel.explain.explanation import Explanation

_TURN_ROWS: Final = 200
_CAPS_ABOVE: Final = 4  # a cap so many times the payload would make its growth a flat line
_CAP_LINES: Final = 4
_FONT: Final = {"family": "system-ui, sans-serif", "size": 13}
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
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - an extra

    parts = [f"<p>{_summary(found)}</p>", *(f"<p>{html.escape(note)}</p>" for note in found.notes)]
    parts.append(f"<script>{get_plotlyjs()}</script>")
    if found.turns:
        parts += ["<h2>Turn by turn</h2>", "<p>Select a turn to see its parts; select it again to go back.</p>"]
        parts.append(_icicle(of_turns(found), "turns"))
    if len(found.sizes) > 1:
        parts += ["<h2>Growth</h2>", "<p>Bytes of the payload after each turn, and the nearest caps.</p>"]
        parts.append(_growth(found))
    parts += ["<h2>By path</h2>", _icicle(of_paths(found), "paths"), *_tables(found)]
    made = _PAGE.format(title=html.escape(f"{found.name}: {found.payload_bytes:,} bytes"), body="\n".join(parts))
    return made.encode("utf-8", "replace").decode()  # half a character in a name is no UTF-8


def _summary(found: Explanation) -> str:
    turns = f", {len(found.turns):,} turns" if found.turns else ""
    return html.escape(f"{found.kind}{turns}. All sizes are bytes.")


def _icicle(flames: Flames, name: str) -> str:
    from plotly import graph_objects  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - an extra

    trace = graph_objects.Icicle(
        ids=_texts(flames.ids),
        labels=_texts(flames.labels),
        parents=_texts(flames.parents),
        values=flames.values,
        hovertext=_texts(flames.hovers),
        hoverinfo="text",
        marker={"colors": flames.colours, "line": {"width": 1, "color": "#fff"}},
        branchvalues="total",
        sort=False,
        tiling={"orientation": "v"},
        textinfo="label",
        maxdepth=4,
    )
    return _figure(graph_objects.Figure(trace), name, 420)


def _texts(texts: Iterable[str]) -> list[str]:
    """Return texts for a figure, which takes no half a character: payloads have some in their names."""
    return [text.encode("utf-8", "replace").decode() for text in texts]


def _growth(found: Explanation) -> str:
    from plotly import graph_objects  # noqa: PLC0415 - an extra

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
    total = max(1, found.payload_bytes)
    rooms = [
        (room.runtime, room.boundary, f"{room.cap_bytes:,}", f"{room.left_bytes:,}", _number(room.turns_left))
        for room in found.rooms
    ]
    savings = [
        (saving.remedy, f"{saving.bytes:,}", "the payload" if saving.of_payload else "the next request", saving.setting)
        for saving in found.savings
    ]
    unread = found.breakdown.unread
    duplicates = [(one.path, one.other_path, one.bytes) for one in found.breakdown.duplicates]
    return [
        *_table("What each remedy saves", ("remedy", "bytes", "of", "setting"), savings),
        *_carried(found),
        *_table("Room", ("runtime", "boundary", "smallest cap", "room left", "turns left"), rooms),
        *_table("Tools", ("tool", "bytes of results", "share"), _shares(found.breakdown.tools.items(), total)),
        *_table(
            "Duplicates", ("path", "is also", "bytes"), [(one, other, f"{count:,}") for one, other, count in duplicates]
        ),
        *_table(
            "Read by no model request",
            ("path", "bytes", "share"),
            [] if unread is None else _shares(unread.paths.items(), total),
        ),
        *_table("Turns", ("turn", "messages", "bytes", "claim check saves", "trimming", "compaction"), _turns(found)),
    ]


def _carried(found: Explanation) -> list[str]:
    lines = _table("What carrying costs", CARRIED_HEAD, carried_rows(found.carried))
    texts = [ESTIMATED] if lines else []
    texts += [] if found.window is None else [window_line(found.window)]
    return [*lines, *(f"<p>{html.escape(text)}</p>" for text in texts)]


def _turns(found: Explanation) -> list[tuple[str, ...]]:
    first = max(0, len(found.turns) - _TURN_ROWS)
    return [
        (
            str(number),
            *(f"{count:,}" for count in (turn.messages, turn.bytes, turn.claim_check, turn.trimming, turn.compaction)),
        )
        for number, turn in enumerate(found.turns[first:], first + 1)
    ]


def _shares(rows: Iterable[tuple[str, int]], total: int) -> list[tuple[str, ...]]:
    ordered = sorted(rows, key=lambda row: -row[1])
    return [(name, f"{count:,}", f"{100 * count / total:.0f} %") for name, count in ordered]


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table, nothing without rows."""
    if not rows:
        return []
    lines = [f"<tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return [f"<h2>{html.escape(title)}</h2>", f"<table>{''.join(lines)}</table>"]
