"""Truncation between two stages: whether a result lost bytes on the way, and the reason that names it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel.measure.truncation.detect import find_cut, has_shrunk
from agent_otel.telemetry import spans

if TYPE_CHECKING:
    from collections.abc import Collection

    from opentelemetry.trace import Span

    from agent_otel.measure.size import Size
    from agent_otel.measure.truncation.detect import Cut
    from agent_otel.telemetry.setup import Telemetry


def compare(before_bytes: int, after: Size, value: object, known: Collection[str] = ()) -> str | None:
    """Return why a result has fewer bytes at the later stage, None when it arrived whole.

    ``value`` is the result at the later stage and ``after`` its size. ``known`` are the reasons of truncations that the
    earlier stage had already. An estimated size proves nothing.
    """
    if not after.exact or not has_shrunk(before_bytes, after.bytes, value):
        return None
    return reason(find_cut(value, after.bytes), known)


def reason(cut: Cut | None, known: Collection[str] = ()) -> str:
    """Return the reason that a truncated text itself gives, or that it has shrunk."""
    gives_one = cut is not None and cut.reason != semconv.SUSPECTED and cut.reason not in known
    return cut.reason if cut is not None and gives_one else semconv.SHRUNK


def show(  # noqa: PLR0913, PLR0917 - the fields of a span
    out: Telemetry, parent: Span, tool: str, produced_bytes: int, later: tuple[str, int], layer: str, why: str
) -> None:
    """Add a child span to the tool's span, so that one query finds the truncations of all layers.

    ``later`` is the attribute of the later stage's size, and that size.
    """
    if out.tracer is None:
        return
    attribute, later_bytes = later
    attributes: dict[str, Any] = {
        semconv.TOOL_NAME: tool,
        semconv.RESULT_BYTES: produced_bytes,
        attribute: later_bytes,
        semconv.RESULT_TRUNCATED: True,
        semconv.TRUNCATION_LAYER: layer,
        semconv.TRUNCATION_REASON: why,
        **out.label_attributes,
    }
    spans.open_cut_span(out.tracer, parent, tool, attributes, time.time_ns())
