"""Text and type of exceptions for spans and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# A metaclass may define attributes of the same names, and they would run its code.
_mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_members: Callable[[type], dict[str, Any]] = type.__dict__["__dict__"].__get__
_qualname: Callable[[type], str] = type.__dict__["__qualname__"].__get__


def text_of(error: BaseException, limit: int) -> str:
    """Return the text of an exception, cut at ``limit`` characters; empty when its ``__str__`` raises."""
    try:
        return str(error)[:limit]
    except Exception:
        return ""


def error_type(error: BaseException) -> str:
    """Return the conventions' ``error.type``: the class's ``_gen_ai_error_type``, else its qualified name."""
    kind = type(error)
    for owner in _mro(kind):
        own = _members(owner).get("_gen_ai_error_type")
        if type(own) is str:
            return own
    module = _members(kind).get("__module__", "builtins")
    name = _qualname(kind)
    return name if type(module) is not str or module == "builtins" else f"{module}.{name}"
