"""The panels that all four dashboards are made of, so that they look and read alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, prometheus, stat, table, tempo
from grafana_foundation_sdk.builders import timeseries as graph
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as d
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.tempo import SearchTableType

from dashboards.links import TEMPO, Link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grafana_foundation_sdk.cog.builder import Builder

    Panel = Builder[d.Panel]

#: Units by Grafana's ids. `bytes` is in powers of 1024, and `percentunit` is for shares from 0 to 1.
BYTES = "bytes"
BYTES_A_SECOND = "binBps"
#: Whole numbers: `short` would say "1 K" of 1,420.
COUNT = "locale"
A_SECOND = "ops"
SECONDS = "s"
SHARE = "percentunit"

#: Colours from a value up; the first one is that of everything below.
Steps = tuple[tuple[float | None, str], ...]
PLAIN: Steps = ((None, "text"),)
NONE_IS_GOOD: Steps = ((None, "green"), (1, "red"))
FEW_IS_GOOD: Steps = ((None, "green"), (1, "orange"))

PROMETHEUS = c.DataSourceRef(type_val="prometheus", uid="${datasource}")
TRACES = c.DataSourceRef(type_val="tempo", uid=f"${{{TEMPO}}}")

_NO_VALUE = "no data"
_GREY = "#8e8e8e"


@dataclass(frozen=True)
class Line:
    """One query of a graph. A ``limit`` is drawn dashed and in red, and has no link."""

    expression: str
    legend: str
    exemplars: bool = False
    limit: bool = False


@dataclass(frozen=True)
class Column:
    """One query of a table: a column beside those of the labels."""

    title: str
    expression: str
    unit: str
    steps: Steps = ()


def stat_of(title: str, description: str, expression: str, unit: str, steps: Steps = PLAIN) -> stat.Panel:
    """Return one number for the whole time range, a quarter of the width, so that its title is read."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .span(6)
        .height(3)
        .unit(unit)
        .no_value(_NO_VALUE)
        .mappings([_no_data()])
        .thresholds(_thresholds(steps))
        .color_mode(c.BigValueColorMode.VALUE)
        .graph_mode(c.BigValueGraphMode.NONE)
        .text_mode(c.BigValueTextMode.VALUE)
        .reduce_options(_last())
        .with_target(_instant("A", expression))
    )
    # Prometheus extrapolates: what was counted is not always a whole number.
    return panel.decimals(0) if unit == COUNT else panel


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
) -> Panel:
    """Return a graph over time; ``steps`` are drawn as dashed lines, and what is ``whole`` has no decimals."""
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
    for ref, line in zip(_REFS, lines, strict=False):
        query = prometheus.Dataquery().ref_id(ref).expr(line.expression).range().legend_format(line.legend)
        panel = panel.with_target(query.exemplar(line.exemplars).datasource(PROMETHEUS))
        if line.limit:
            panel = panel.override_by_query(ref, _LIMIT)
    return panel


def events_of(
    title: str, description: str, lines: Sequence[Line], *, span: int = 12, links: Sequence[Link] = ()
) -> Panel:
    """Return bars of what was counted in the window before each of them."""
    return graph_of(
        f"{title}, in the last $window",
        description,
        lines,
        COUNT,
        span=span,
        whole=True,
        bars=True,
        stacked=c.StackingMode.NORMAL,
        links=links,
    )


def heatmap_of(title: str, description: str, expression: str, unit: str, *, exemplars: bool = False) -> Panel:
    """Return the buckets of a histogram over time."""
    query = prometheus.Dataquery().ref_id("A").expr(expression).range().legend_format("{{le}}")
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .span(12)
        .height(8)
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
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(c.AxisPlacement.LEFT).reverse(False))
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
) -> Panel:
    """Return a bar for each series, of the whole time range; ``most`` is where a bar ends."""
    panel = (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .span(span)
        .height(8)
        .unit(unit)
        .min(0)
        .no_value(_NO_VALUE)
        .mappings([_no_data()])
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
        .with_target(_instant("A", expression).legend_format(legend))
    )
    if unit == COUNT:
        panel = panel.decimals(0)
    return panel if most is None else panel.max(most)


def table_of(  # noqa: PLR0913 - the ways in which tables differ
    title: str,
    description: str,
    keys: dict[str, str],
    columns: Sequence[Column],
    sort_by: str,
    *,
    span: int = 24,
    height: int = 10,
    links: dict[str, Sequence[Link]] | None = None,
) -> Panel:
    """Return a row for each combination of labels; ``keys`` names labels and their columns.

    ``links`` hang on columns of keys, by the column's title.
    """
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .span(span)
        .height(height)
        .unit(COUNT)
        .decimals(0)
        .min_width(_KEY_WIDTH)
        .cell_height(c.TableCellHeight.SM)
        .cell_options(c.TableAutoCellOptions())
        .sort_by([common.TableSortByFieldState().display_name(sort_by).desc(True)])
    )
    # With one query there is nothing to merge, and Grafana calls its column by no letter.
    values = ["Value"] if len(columns) == 1 else [f"Value #{ref}" for ref in _REFS[: len(columns)]]
    for ref, column in zip(_REFS, columns, strict=False):
        panel = panel.with_target(_instant(ref, column.expression).format(PromQueryFormat.TABLE))
        panel = panel.override_by_name(column.title, _column(column, is_sorted=column.title == sort_by))
    for name in keys.values():
        properties = [d.DynamicConfigValue("custom.filterable", True)]
        if given := (links or {}).get(name):
            properties.append(d.DynamicConfigValue("links", [_plain(link) for link in given]))
        panel = panel.override_by_name(name, properties)
    order = [*keys, *values]
    names = keys | dict(zip(values, (column.title for column in columns), strict=True))
    return panel.with_transformation(_transformation("merge", {})).with_transformation(
        _transformation(
            "organize",
            {
                "excludeByName": {"Time": True},
                "indexByName": {name: index for index, name in enumerate(order)},
                "renameByName": names,
            },
        )
    )


def traces_of(title: str, description: str, query: str) -> Panel:
    """Return a table of spans that TraceQL finds in Tempo; empty without one."""
    target = tempo.Dataquery().ref_id("A").query_type("traceql").query(query).limit(20).filters([])
    return (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(TRACES)
        .span(24)
        .height(9)
        .unit(COUNT)
        .cell_height(c.TableCellHeight.SM)
        .cell_options(c.TableAutoCellOptions())
        .with_target(target.table_type(SearchTableType.SPANS).datasource(TRACES))
    )


#: Pixels. Columns of values are as wide as their titles, so that a dozen fit on a small screen; labels share the rest.
_KEY_WIDTH = 110

_REFS = "ABCDEFGHIJKLMNOP"
_LIMIT = [
    d.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "red"}),
    d.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]}),
    d.DynamicConfigValue("custom.fillOpacity", 0),
    d.DynamicConfigValue("custom.showPoints", "never"),
    d.DynamicConfigValue("links", []),
]


def _no_data() -> d.SpecialValueMap:
    """Show a missing value in grey: without a mapping it has the colour of the lowest threshold."""
    result = d.ValueMappingResult(text=_NO_VALUE, color=_GREY)
    return d.SpecialValueMap(d.DashboardSpecialValueMapOptions(match=d.SpecialValueMatch.NULL_AND_NAN, result=result))


def _fill(*, bars: bool, stacked: c.StackingMode) -> int:
    if bars:
        return 70
    return 0 if stacked is c.StackingMode.NONE else 40


def _instant(ref: str, expression: str) -> prometheus.Dataquery:
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


def _plain(link: Link) -> dict[str, str]:
    return {"title": link.title, "url": link.url}


def _column(column: Column, *, is_sorted: bool) -> list[d.DynamicConfigValue]:
    letters = max(len(column.title), 7 if column.unit == COUNT else 10)
    properties: list[d.DynamicConfigValue] = [
        d.DynamicConfigValue("unit", column.unit),
        d.DynamicConfigValue("custom.width", 12 + 8 * letters + (16 if is_sorted else 0)),
    ]
    if column.unit in {BYTES, SHARE, SECONDS}:
        properties.append(d.DynamicConfigValue("decimals", 1))
    if column.steps:
        steps: list[dict[str, Any]] = [{"value": value, "color": color} for value, color in column.steps]
        properties += [
            d.DynamicConfigValue("thresholds", {"mode": "absolute", "steps": steps}),
            d.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
        ]
    return properties


def _transformation(name: str, options: dict[str, Any]) -> d.DataTransformerConfig:
    return d.DataTransformerConfig(id_val=name, options=options)
