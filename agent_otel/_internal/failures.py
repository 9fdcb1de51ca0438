"""What an exception says of itself."""

from __future__ import annotations


def text_of(error: BaseException, limit: int) -> str:
    """What an exception says, if it can, up to so many characters."""
    try:
        return str(error)[:limit]
    except Exception:
        return ""


def error_type(error: BaseException) -> str:
    """The conventions' ``error.type``: what the exception says of itself, else its qualified class name."""
    own = getattr(type(error), "_gen_ai_error_type", None)
    if isinstance(own, str):
        return own
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
