"""Tables: of labels with their numbers, and of spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grafana_foundation_sdk.builders import common, table, tempo
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as d
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.tempo import SearchTableType

from dashboards.panels import BYTES, COUNT, GREY, MONEY, NO_DATA, PROMETHEUS, REFS, SECONDS, SHARE, TRACES, instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboards.links import Link
    from dashboards.panels import Panel, Steps


@dataclass(frozen=True)
class Column:
    """One query of a table: a column beside those of the labels."""

    title: str
    expression: str
    unit: str
    steps: Steps = ()
    links: Sequence[Link] = ()


def table_of(  # noqa: PLR0913 - the ways in which tables differ
    title: str,
    description: str,
    keys: dict[str, str],
    columns: Sequence[Column],
    sort_by: Sequence[str],
    *,
    span: int = 24,
    height: int = 9,
    links: dict[str, Sequence[Link]] | None = None,
    widths: dict[str, int] | None = None,
    empty: str = NO_DATA,
) -> Panel:
    """Return a row for each combination of labels; ``keys`` names labels and their columns.

    ``sort_by`` are columns, of which a later one decides between rows that are equal in those before it. ``links`` and
    ``widths`` in pixels are of columns of keys, by the column's title; columns without a width share what is left.
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
        .no_value(empty)
        .sort_by([common.TableSortByFieldState().display_name(title).desc(True) for title in sort_by])
    )
    # With one query there is nothing to merge, and Grafana calls its column by no letter.
    values = ["Value"] if len(columns) == 1 else [f"Value #{ref}" for ref in REFS[: len(columns)]]
    for ref, column in zip(REFS, columns, strict=False):
        panel = panel.with_target(instant(ref, column.expression).format(PromQueryFormat.TABLE))
        panel = panel.override_by_name(column.title, _column(column, is_sorted=column.title in sort_by))
    for name in keys.values():
        # The text of an empty table would stand in the place of an empty label, and a name such as 1e9 as a number.
        properties = [
            d.DynamicConfigValue("custom.filterable", True),
            d.DynamicConfigValue("noValue", _NOTHING),
            d.DynamicConfigValue("unit", "string"),
        ]
        if given := (links or {}).get(name):
            properties.append(d.DynamicConfigValue("links", [_plain(link) for link in given]))
        if width := (widths or {}).get(name):
            properties.append(d.DynamicConfigValue("custom.width", width))
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


#: In the place of a value that a row does not have. Without the mapping, it has the colour of the lowest threshold.
_NOTHING = "-"
_MISSING = {"type": "special", "options": {"match": "null+nan", "result": {"text": _NOTHING, "color": GREY}}}
#: Pixels. Columns of values are as wide as their titles, so that a dozen fit on a small screen; labels share the rest.
_KEY_WIDTH = 110


def _plain(link: Link) -> dict[str, str]:
    return {"title": link.title, "url": link.url}


def _column(column: Column, *, is_sorted: bool) -> list[d.DynamicConfigValue]:
    letters = max(len(column.title), 10 if column.unit == BYTES else 7)
    properties: list[d.DynamicConfigValue] = [
        d.DynamicConfigValue("unit", column.unit),
        d.DynamicConfigValue("noValue", _NOTHING),
        d.DynamicConfigValue("mappings", [_MISSING]),
        d.DynamicConfigValue("custom.width", 12 + 8 * letters + (16 if is_sorted else 0)),
    ]
    if column.unit in {BYTES, SHARE, SECONDS}:
        properties.append(d.DynamicConfigValue("decimals", 1))
    if column.unit == MONEY:
        properties.append(d.DynamicConfigValue("decimals", 2))
    if column.links:
        properties.append(d.DynamicConfigValue("links", [_plain(link) for link in column.links]))
    if column.steps:
        steps: list[dict[str, Any]] = [{"value": value, "color": color} for value, color in column.steps]
        properties += [
            d.DynamicConfigValue("thresholds", {"mode": "absolute", "steps": steps}),
            d.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
        ]
    return properties


def _transformation(name: str, options: dict[str, Any]) -> d.DataTransformerConfig:
    return d.DataTransformerConfig(id_val=name, options=options)
