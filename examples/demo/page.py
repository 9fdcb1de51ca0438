"""The page of the demo: the growth of both runs below the cap, and what the terminal shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plotly import graph_objects
from plotly.offline import get_plotlyjs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from examples.demo.__main__ import Row

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>agent_otel: the demo</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 1.5rem auto; padding: 0 1rem }}
pre {{ font: 13px/1.4 monospace; overflow-x: auto }}</style></head>
<body><h1>An agent that dies of bytes, and lives with one variable more</h1>
<script>{script}</script>
{picture}
<pre>{{code}}</pre>
</body></html>
"""
_NAMES = ("AGENT_OTEL=1", "and AGENT_OTEL_CLAIM_CHECK=memory:")


def page(runs: Sequence[Sequence[Row]], cap: int, console: Console) -> str:
    """Return the page, which loads nothing."""
    figure = graph_objects.Figure()
    for name, rows, colour in zip(_NAMES, runs, ("#cf222e", "#1a7f37"), strict=True):
        sizes = [row.state for row in rows] + ([rows[-1].refused] if rows and rows[-1].refused else [])
        figure.add_scatter(
            x=list(range(1, len(sizes) + 1)), y=sizes, mode="lines+markers", name=name, line={"color": colour}
        )
    figure.add_hline(y=cap, line={"dash": "dash"}, annotation_text=f"the database takes {cap:,} bytes")
    figure.update_layout(template="plotly_white", height=380, xaxis_title="turn", yaxis_title="bytes of the state")
    picture = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        include_mathjax=False,
        div_id="growth",
        config={"displayModeBar": False},
    )
    lines = console.export_html(inline_styles=True, code_format="{code}", clear=False)
    return _PAGE.format(script=get_plotlyjs(), picture=picture).replace("{code}", lines)
