"""Functions of the program that a setting or a policy names."""

from __future__ import annotations

import importlib
import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def function_named(name: str) -> Callable[..., Any]:
    """Return the function of ``module:function``, whose module is imported for it."""
    module, _, path = name.partition(":")
    function: Callable[..., Any] = operator.attrgetter(path)(importlib.import_module(module))
    return function
