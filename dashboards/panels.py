"""The panels that all dashboards are made of, so that they look and read alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, prometheus, stat
from grafana_foundation_sdk.builders import timeseries as graph
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as d
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.links import TEMPO, Link, to_alert
from dashboards.queries import WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grafana_foundation_sdk.cog.builder import Builder

    Panel = Builder[d.Panel]

#: Units by Grafana's ids. `bytes` is in powers of 1024, and `percentunit` is for shares from 0 to 1.
BYTES = "bytes"
BYTES_A_SECOND = "binBps"
#: Whole numbers: `short` would say "1 K" of 1,420.
COUNT = "locale"
#: Millions of tokens: a table has no room for their digits.
TOKENS = "short"
A_SECOND = "ops"
SECONDS = "s"
SHARE = "percentunit"
MONEY = "currencyUSD"

#: Colours from a value up; the first one is that of everything below.
Steps = tuple[tuple[float | None, str], ...]
PLAIN: Steps = ((None, "text"),)
NONE_IS_GOOD: Steps = ((None, "green"), (1, "red"))
FEW_IS_GOOD: Steps = ((None, "green"), (1, "orange"))

PROMETHEUS = c.DataSourceRef(type_val="prometheus", uid="${datasource}")
TRACES = c.DataSourceRef(type_val="tempo", uid=f"${{{TEMPO}}}")

#: Colours of what is wrong, the same everywhere. Series of one state have shades of its colour.
COLOURS = {
    "near": "orange",
    "over": "red",
    "rejected": "dark-red",
    "refused": "dark-red",
    "stuck": "purple",
    "ignored": "red",
    "error": "red",
    "failed": "red",
}

#: Texts in the place of a missing value.
NO_DATA = "no data"
NO_RUNTIME = "no durable runtime seen"
GREY = "#8e8e8e"


def none_of(state: str) -> Steps:
    """Return green for nothing, and a state's own colour from 1 up."""
    return ((None, "green"), (1, COLOURS[state]))


@dataclass(frozen=True)
class Line:
    """One query of a graph. A ``limit`` is drawn dashed and in red, and has no link.

    The series of a ``state`` have its colour; it is the first word of the legend where it is not given.
    """

    expression: str
    legend: str
    exemplars: bool = False
    limit: bool = False
    state: str = ""

    @property
    def color(self) -> str:
        """The fixed colour of its series, or none."""
        return COLOURS.get(self.state or self.legend.partition(" ")[0], "")


def stat_of(  # noqa: PLR0913 - the ways in which tiles differ
    title: str,
    description: str,
    expression: str,
    unit: str,
    steps: Steps = PLAIN,
    *,
    who: str = "",
    alerts: Sequence[str] = (),
    links: Sequence[Link] = (),
    empty: str = NO_DATA,
) -> stat.Panel:
    """Return one number for the whole time range, a quarter of the width, so that its title is read.

    ``who`` is the legend of the query: the tile shows the name beside the number. ``alerts`` are those that say the
    same; a click leads to them.
    """
    query = instant("A", expression)
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .span(6)
        .height(3)
        .unit(unit)
        .no_value(empty)
        .mappings([_missing(empty)])
        .thresholds(_thresholds(steps))
        .color_mode(c.BigValueColorMode.VALUE)
        .graph_mode(c.BigValueGraphMode.NONE)
        .text_mode(c.BigValueTextMode.VALUE_AND_NAME if who else c.BigValueTextMode.VALUE)
        .reduce_options(_last())
        .data_links(_links([*map(to_alert, alerts), *links]))
        .with_target(query.legend_format(who) if who else query)
    )
    # Prometheus extrapolates: what was counted is not always a whole number.
    panel = panel.decimals(0) if unit == COUNT else panel
    # Grafana by itself makes a long name too small to read.
    return panel.text(common.VizTextDisplayOptions().title_size(_NAME).value_size(_NUMBER)) if who else panel


def graph_of(  # noqa: PLR0913 - the ways in which graphs differ
    title: str,
    description: str,
    lines: Sequence[Line],
    unit: str,
    *,
    span: int = 12,
    steps: Steps = (),
    logarithmic: bool = False,
    whole: bool = False,
    stacked: c.StackingMode = c.StackingMode.NONE,
    bars: bool = False,
    links: Sequence[Link] = (),
    states: Sequence[str] = (),
    empty: str = NO_DATA,
) -> Panel:
    """Return a graph over time; ``steps`` are drawn as dashed lines, and what is ``whole`` has no decimals.

    ``states`` are words in the names of series that have a fixed colour.
    """
    panel = (
        graph.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .span(span)
        .height(8)
        .unit(unit)
        .line_width(1)
        .fill_opacity(_fill(bars=bars, stacked=stacked))
        .show_points(c.VisibilityMode.AUTO)
        .span_nulls(False)
        .stacking(common.StackingConfig().mode(stacked).group("A"))
        .draw_style(c.GraphDrawStyle.BARS if bars else c.GraphDrawStyle.LINE)
        .color_scheme(dashboard.FieldColor().mode(d.FieldColorModeId.PALETTE_CLASSIC))
        .tooltip(common.VizTooltipOptions().mode(c.TooltipDisplayMode.MULTI).sort(c.SortOrder.DESCENDING))
        .legend(_legend())
        .data_links(_links(links))
        .no_value(empty)
    )
    if logarithmic:
        # It has no 0, and begins below the smallest value.
        panel = panel.scale_distribution(common.ScaleDistributionConfig().type(c.ScaleDistribution.LOG).log(2))
    else:
        panel = panel.min(0)
    if whole:
        panel = panel.decimals(0)
    if steps:
        dashed = common.GraphThresholdsStyleConfig().mode(c.GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds(_thresholds(steps)).thresholds_style(dashed)
    for ref, line in zip(REFS, lines, strict=False):
        query = prometheus.Dataquery().ref_id(ref).expr(line.expression).range().legend_format(line.legend)
        # A bar for each window, and none twice.
        query = query.interval(WINDOW) if bars else query
        panel = panel.with_target(query.exemplar(line.exemplars).datasource(PROMETHEUS))
        if line.limit:
            panel = panel.override_by_query(ref, _LIMIT)
        elif line.color:
            panel = panel.override_by_query(ref, _fixed(line.color))
    for state in states:
        panel = panel.override_by_regexp(rf"/\b{state}\b/", _fixed(COLOURS[state]))
    return panel


def events_of(  # noqa: PLR0913 - the ways in which graphs of events differ
    title: str,
    description: str,
    lines: Sequence[Line],
    *,
    span: int = 12,
    links: Sequence[Link] = (),
    states: Sequence[str] = (),
    empty: str = NO_DATA,
) -> Panel:
    """Return bars of what was counted in the window before each of them. Their sum is what a tile shows."""
    return graph_of(
        f"{title}, in each {WINDOW}",
        description,
        lines,
        COUNT,
        span=span,
        whole=True,
        bars=True,
        stacked=c.StackingMode.NORMAL,
        links=links,
        states=states,
        empty=empty,
    )


def heatmap_of(  # noqa: PLR0913 - the ways in which heatmaps differ
    title: str, description: str, expression: str, unit: str, *, exemplars: bool = False, empty: str = NO_DATA
) -> Panel:
    """Return the buckets of a histogram over time."""
    axis = heatmap.YAxisConfig().unit(unit).axis_placement(c.AxisPlacement.LEFT).axis_width(_AXIS).reverse(False)
    # The bound of a bucket of bytes keeps its decimals: 1.5 MiB is not 2 MiB.
    axis = axis if unit == BYTES else axis.decimals(0)
    query = prometheus.Dataquery().ref_id("A").expr(expression).range().legend_format("{{le}}")
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .span(12)
        .height(9)
        .unit(unit)
        .calculate(False)
        .cell_gap(1)
        .show_value(c.VisibilityMode.NEVER)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .fill("dark-orange")
            .scale(HeatmapColorScale.EXPONENTIAL)
            .exponent(0.5)
            .steps(64)
            .reverse(False)
        )
        .no_value(empty)
        .y_axis(axis)
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .rows_frame(heatmap.RowsHeatmapOptions().layout(c.HeatmapCellLayout.AUTO))
        .tooltip(heatmap.HeatmapTooltip().mode(c.TooltipDisplayMode.SINGLE).y_histogram(True))
        .show_legend()
        .exemplars_color("rgba(255,0,255,0.7)")
        .with_target(query.format(PromQueryFormat.HEATMAP).exemplar(exemplars).datasource(PROMETHEUS))
    )


def bars_of(  # noqa: PLR0913 - the ways in which bar gauges differ
    title: str,
    description: str,
    expression: str,
    legend: str,
    unit: str,
    *,
    steps: Steps = PLAIN,
    span: int = 12,
    most: float | None = None,
    links: Sequence[Link] = (),
    height: int = 8,
    empty: str = NO_DATA,
) -> Panel:
    """Return a bar for each series, of the whole time range; ``most`` is where a bar ends."""
    panel = (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .span(span)
        .height(height)
        .unit(unit)
        .min(0)
        .no_value(empty)
        .mappings([_missing(empty)])
        # Grafana leaves out the name of a single bar, unless it is set.
        .display_name(re.sub(r"{{(\w+)}}", r"${__field.labels.\1}", legend))
        .thresholds(_thresholds(steps))
        .orientation(c.VizOrientation.HORIZONTAL)
        .display_mode(c.BarGaugeDisplayMode.BASIC)
        .value_mode(c.BarGaugeValueMode.COLOR)
        .show_unfilled(True)
        # A single bar is as thick as one of many.
        .sizing(c.BarGaugeSizing.MANUAL)
        .min_viz_width(8)
        .min_viz_height(16)
        .max_viz_height(50)
        .text(common.VizTextDisplayOptions().title_size(12).value_size(16))
        .reduce_options(_last())
        .data_links(_links(links))
        .with_target(instant("A", expression).legend_format(legend))
    )
    if unit in {COUNT, SHARE}:
        panel = panel.decimals(0)
    return panel if most is None else panel.max(most)


REFS = "ABCDEFGHIJKLMNOP"
#: Pixels of the letters of a tile that names somebody.
_NAME, _NUMBER = 14, 26
#: Pixels of the longest bound of a bucket.
_AXIS = 72
_LIMIT = [
    d.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "red"}),
    d.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]}),
    d.DynamicConfigValue("custom.fillOpacity", 0),
    d.DynamicConfigValue("custom.showPoints", "never"),
    d.DynamicConfigValue("links", []),
]


def _fixed(color: str) -> list[d.DynamicConfigValue]:
    return [d.DynamicConfigValue("color", {"mode": "shades", "fixedColor": color})]


def _missing(text: str) -> d.SpecialValueMap:
    """Show a missing value in grey: without a mapping it has the colour of the lowest threshold."""
    result = d.ValueMappingResult(text=text, color=GREY)
    return d.SpecialValueMap(d.DashboardSpecialValueMapOptions(match=d.SpecialValueMatch.NULL_AND_NAN, result=result))


def _fill(*, bars: bool, stacked: c.StackingMode) -> int:
    if bars:
        return 70
    return 0 if stacked is c.StackingMode.NONE else 40


def instant(ref: str, expression: str) -> prometheus.Dataquery:
    """Return a query of one moment."""
    return prometheus.Dataquery().ref_id(ref).expr(expression).instant().datasource(PROMETHEUS)


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields("")


def _thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    given = [d.Threshold(value=value, color=color) for value, color in steps]
    return dashboard.ThresholdsConfig().mode(d.ThresholdsMode.ABSOLUTE).steps(given)


def _legend() -> common.VizLegendOptions:
    # A table of names takes the height of the graph and shows three of them.
    return (
        common.VizLegendOptions()
        .display_mode(c.LegendDisplayMode.LIST)
        .placement(c.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )


def _links(links: Sequence[Link]) -> list[Builder[d.DashboardLink]]:
    return [dashboard.DashboardLink(link.title).url(link.url) for link in links]
