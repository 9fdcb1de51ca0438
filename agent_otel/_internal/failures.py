"""Text and type of exceptions for spans and metrics."""

from __future__ import annotations


def text_of(error: BaseException, limit: int) -> str:
    """Return the text of an exception, cut at ``limit`` characters; empty when its ``__str__`` raises."""
    try:
        return str(error)[:limit]
    except Exception:
        return ""


def error_type(error: BaseException) -> str:
    """Return the conventions' ``error.type``: the class's ``_gen_ai_error_type``, else its qualified name."""
    own = getattr(type(error), "_gen_ai_error_type", None)
    if isinstance(own, str):
        return own
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
