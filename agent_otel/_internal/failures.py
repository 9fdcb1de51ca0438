"""Text and type of exceptions for spans and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import TracebackType

# A metaclass may define attributes of the same names, and they would run its code.
classes_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
members_of: Callable[[type], dict[str, Any]] = type.__dict__["__dict__"].__get__
class_name: Callable[[type], str] = type.__dict__["__qualname__"].__get__
# An exception's class may have properties of these names.
arguments_of: Callable[[BaseException], tuple[Any, ...]] = vars(BaseException)["args"].__get__
put_arguments: Callable[[BaseException, tuple[Any, ...]], None] = vars(BaseException)["args"].__set__
fields_of: Callable[[BaseException], dict[str, Any]] = vars(BaseException)["__dict__"].__get__
cause_of: Callable[[BaseException], BaseException | None] = vars(BaseException)["__cause__"].__get__
context_of: Callable[[BaseException], BaseException | None] = vars(BaseException)["__context__"].__get__
traceback_of: Callable[[BaseException], TracebackType | None] = vars(BaseException)["__traceback__"].__get__
_FILES: Final = tuple(vars(OSError)[name].__get__ for name in ("filename", "filename2"))
#: The ways of the built-in classes to make a text of their arguments.
_TEXTS: Final = tuple(vars(kind)["__str__"] for kind in (BaseException, KeyError, OSError))


#: Packages whose functions stand between a framework and its tools' handlers.
_BETWEEN: Final = frozenset({"agent_otel", "anyio", "asyncio", "concurrent", "contextvars", "pydantic", "wrapt"})


def is_raised_within(error: BaseException, *packages: str) -> bool:
    """Return true for an exception that came out of functions of these packages alone, and of no tool's handler."""
    step = traceback_of(error)
    while step is not None:
        module = step.tb_frame.f_globals.get("__name__")
        package = module.partition(".")[0] if type(module) is str else ""
        if package not in packages and package not in _BETWEEN:
            return False
        step = step.tb_next
    return True


def text_of(error: BaseException, limit: int, trusted: Collection[str] = ()) -> str:
    """Return the text of an exception, cut at ``limit`` characters, without running its code or its arguments'.

    Where its class has a ``__str__`` of its own, the texts among its arguments stand for it, unless this function is
    of a package in ``trusted``.
    """
    arguments = arguments_of(error)
    owner = next(cls for cls in classes_of(type(error)) if members_of(cls).get("__str__") is not None)
    module = members_of(owner).get("__module__")
    if type(module) is str and module.partition(".")[0] in trusted:
        return str(error)[:limit]
    made = members_of(owner)["__str__"]
    parts = arguments
    if issubclass(type(error), OSError):
        parts = (*arguments, *(file(error) for file in _FILES))
    if any(made is known for known in _TEXTS) and all(map(_is_plain, parts)):
        text: str = made(error)
        return text[:limit]
    return ", ".join(part for part in arguments if type(part) is str)[:limit]


def _is_plain(value: object) -> bool:
    kind = type(value)
    return value is None or kind is str or kind is int or kind is float or kind is bool or kind is bytes


def error_type(error: BaseException) -> str:
    """Return the conventions' ``error.type``: the class's ``_gen_ai_error_type``, else its qualified name."""
    kind = type(error)
    for owner in classes_of(kind):
        own = members_of(owner).get("_gen_ai_error_type")
        if type(own) is str:
            return own
    module = members_of(kind).get("__module__", "builtins")
    name = class_name(kind)
    return name if type(module) is not str or module == "builtins" else f"{module}.{name}"
