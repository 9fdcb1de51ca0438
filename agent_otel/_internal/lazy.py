"""Public names that are loaded from their modules on first use (PEP 562), and patterns that are compiled then."""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def load(package: str, exports: Mapping[str, str], name: str) -> object:
    """Return a public name of a package, and set it on the package.

    The caller holds ``fork.loading``. ``exports`` maps each name to its module, followed by a colon and the attribute
    where that has another name.

    Raises:
        AttributeError: the package has no such name.
    """
    module, _, attribute = exports.get(name, "").partition(":")
    if not module:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    loaded = importlib.import_module(module)
    value = loaded if module == f"{package}.{name}" else getattr(loaded, attribute or name)
    setattr(sys.modules[package], name, value)
    return value


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
