"""Signatures and annotations of the program's functions.

From Python 3.14 on, annotations are computed when they are read. They may name what is defined further below, or what
only a type checker imports; such a name is a ``ForwardRef`` here.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import sys
from typing import TYPE_CHECKING, Any

from agent_otel._internal.errors import ours

if TYPE_CHECKING:
    from collections.abc import Callable


if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function; ValueError or TypeError for one that has none."""
    if sys.version_info >= (3, 14):
        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function; empty for a callable without any, such as a partial one or a mock."""
    try:
        if sys.version_info >= (3, 14):
            return get_annotations(function, format=Format.FORWARDREF)
        return dict(function.__annotations__)
    except ours(Exception):  # computing them is the program's code
        return {}


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters; empty for built-in functions without a signature."""
    try:
        return tuple(signature_of(function).parameters)
    except ours(Exception):  # computing annotations is the program's code
        return ()


def star_at(function: Callable[..., Any]) -> int:
    """Return the position of the parameter ``*args``. Without one, return a position that no argument has."""
    try:
        kinds = [parameter.kind for parameter in signature_of(function).parameters.values()]
        return kinds.index(inspect.Parameter.VAR_POSITIONAL)
    except ours(Exception):  # as above, or there is none
        return sys.maxsize


# Functions of the program that a setting or a policy names.


def function_named(name: str) -> Callable[..., Any]:
    """Return the function of ``module:function``, whose module is imported for it."""
    module, _, path = name.partition(":")
    function: Callable[..., Any] = operator.attrgetter(path)(importlib.import_module(module))
    return function
