"""Public names that are loaded from their modules on first use (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

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
