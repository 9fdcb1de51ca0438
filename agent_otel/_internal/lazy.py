"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re
from typing import Any

_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


class _Pattern:
    """The methods of a compiled pattern; the first one that is looked up compiles it and sets all."""

    __slots__ = (*_METHODS, "_flags", "_text")

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._text, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled at its first use.

    An import of a framework would otherwise compile fifty of them, 0.1 ms each, of which most programs use a few.
    """
    return _Pattern(text, flags)  # type: ignore[return-value]
