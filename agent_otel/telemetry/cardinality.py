"""Limits on distinct label values: the first names are kept, all further ones become ``_other``.

A model can invent ten thousand tool names, and each would add a set of series in every process.
"""

from __future__ import annotations

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.measure.preview import clean


class NameLimiter:
    """A function that maps a name to itself below the limit, else to ``_other``."""

    def __init__(self, label: str, limit: int) -> None:
        self._label = label
        self._limit = limit
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        """Return the label value for a name."""
        if name in self._known:
            return name
        name = clean(name)
        if name in self._known:
            return name
        if len(self._known) >= self._limit:
            errors.warn_once(
                f"limit of {self._label}",
                f"More than {self._limit} distinct values of {self._label}; further ones are counted as "
                f"{semconv.OTHER!r}. Are names being made up?",
            )
            return semconv.OTHER
        self._known.add(name)
        return name


def limiters() -> dict[str, NameLimiter]:
    """Return a limiter for each limited label."""
    return {label: NameLimiter(label, limit) for label, limit in semconv.NAME_LIMITS.items()}
