"""Replacements for wrapped functions, which look like the functions themselves to all other code.

Programs copy, pickle, inspect and subclass the attributes of a class. A plain function does all of that as its original
does. A plain function cannot replace an original of another kind (a generator function calls its body at the first
step); there a proxy is used, which copies and pickles as the original does.
"""

from __future__ import annotations

import inspect
import pkgutil
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import wrapt

from agent_otel.integrations.wrappers import as_function, as_method

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.integrations.hooks import Wrapper


class Proxy(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A function in all but what it does: ``call`` is run instead, with the same arguments."""

    def __init__(self, function: Any, call: Callable[..., Any], place: str = "") -> None:
        super().__init__(function)
        self._self_call = call
        self._self_place = place

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: D102 - the function's own
        return self._self_call(*args, **kwargs)

    def __get__(self, instance: Any, _: Any = None) -> Any:
        """Bind as functions do, into a method that copies and pickles."""
        return self if instance is None else MethodType(self, instance)

    def __copy__(self) -> Proxy:
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Proxy:
        return self

    def __reduce_ex__(self, _: Any) -> str | tuple[Any, ...]:
        """Pickle as functions do: by name, or by the place of a function that another module has imported."""
        if self._self_place:
            return pkgutil.resolve_name, (self._self_place,)
        name: str = self.__wrapped__.__qualname__
        return name


def stand_in(original: Any, wrapper: Wrapper, parent: Any, attribute: str) -> Any:
    """Return what stands in the place of a function in its module, or of a method in its class."""
    kind: type = type(original)  # not isinstance(), which the proxies of others answer for what they stand for
    if kind is FunctionType and isinstance(parent, type):
        return _made(as_method, original, wrapper)
    if kind is FunctionType:
        function = _made(as_function, original, wrapper)
        module = getattr(parent, "__name__", original.__module__)
        # A plain function is pickled by the name of its own module, where the original stands.
        is_alias = original.__module__ != module and type(function) is FunctionType
        return Proxy(original, function, f"{module}:{attribute}") if is_alias else function
    if kind is staticmethod and type(original.__func__) is FunctionType:
        return staticmethod(_made(as_function, original.__func__, wrapper))
    if kind is classmethod and type(original.__func__) is FunctionType:
        return classmethod(_made(as_method, original.__func__, wrapper))
    if kind is MethodType and type(original.__func__) is FunctionType:  # of an object
        return MethodType(_made(as_method, original.__func__, wrapper), original.__self__)
    return wrapt.FunctionWrapper(original, wrapper)  # knows how anything is bound


def _made(make: Callable[..., Any], original: FunctionType, wrapper: Wrapper) -> Any:
    """Return what stands in for a function: a plain function, or a proxy where that is not of the original's kind."""
    call = make(original, wrapper)
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return call if all(is_kind(call) or not is_kind(original) for is_kind in kinds) else Proxy(original, call)
