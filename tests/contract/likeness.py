"""What programs do with functions that they find: copy, pickle, inspect, subclass, bind, imitate.

Called in child processes with the switch off and on, which must say the same.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import pickle
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


class Holder:
    """Something that has the method, and can be copied and pickled whatever the method's own class can."""


def of_place(parent: Any, attribute: str) -> Json:
    """Return what can be said of a function in its module, or of a method in its class."""
    found = of_function(getattr(parent, attribute))
    if not isinstance(parent, type) or attribute == "__init__":  # nothing else can be made with a method of that name
        return found
    stored = inspect.getattr_static(parent, attribute)
    name = getattr(stored, "__name__", attribute)  # by which methods are pickled
    setattr(Holder, name, stored)
    try:
        return found | {f"bound {key}": said for key, said in of_method(Holder, name).items()}
    finally:
        delattr(Holder, name)


def of_function(function: Any) -> Json:
    """Return what can be said of a function, bound or not."""
    return {
        "signature": _outcome(lambda: str(inspect.signature(function))),
        "coroutine": inspect.iscoroutinefunction(function),
        "asyncio": asyncio.iscoroutinefunction(function),
        "generator": inspect.isgeneratorfunction(function),
        "async generator": inspect.isasyncgenfunction(function),
        "kind": [isinstance(function, kind) for kind in (FunctionType, MethodType)],
        "names": [getattr(function, name, None) for name in ("__name__", "__qualname__", "__module__", "__doc__")],
        "source": _outcome(lambda: inspect.getsource(function)),
        "copy": _outcome(lambda: copy.copy(function) == function),
        "deepcopy": _outcome(lambda: type(copy.deepcopy(function)) is type(function)),
        "pickle": _outcome(lambda: type(pickle.loads(pickle.dumps(function))) is type(function)),  # noqa: S301 - its own
        "partial": _outcome(lambda: str(inspect.signature(copy.deepcopy(functools.partial(function))))),
        "autospec": _outcome(lambda: str(inspect.signature(mock.create_autospec(function)))),
    }


def of_method(cls: Any, name: str) -> Json:
    """Return what can be said of a method of an instance."""
    instance = cls()
    method = getattr(instance, name)
    sub: Any = type("Sub", (cls,), {})
    return {
        **of_function(method),
        "owner": _outcome(lambda: type(method.__self__).__name__),
        "of a copy": _outcome(lambda: copy.deepcopy(method).__self__ is instance),
        "in a list": _outcome(lambda: len(copy.deepcopy([instance, method, instance]))),
        "of super()": _outcome(lambda: type(getattr(super(sub, sub()), name).__self__).__name__),
        "of the mock of the class": _outcome(lambda: str(inspect.signature(getattr(mock.create_autospec(cls), name)))),
    }


def _outcome(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the class of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__
