"""Reading the fields of messages, and putting values in their place without touching the message itself."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_otel.measure.object_kinds import fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    #: Where a value stands in a message: keys, names of attributes and places in lists, from the outside in.
    Path: TypeAlias = tuple[str | int, ...]

__all__ = ["changed", "fields", "is_list", "listed", "text"]


def is_list(value: Any) -> bool:
    """Whether it is a list or a tuple; asked so that no code of its class runs."""
    cls = type(value)
    return cls is list or cls is tuple


def listed(value: Any) -> list[Any] | tuple[Any, ...]:
    """A list or a tuple, else nothing."""
    return value if is_list(value) else ()


def text(value: Any) -> str | None:
    """A text that says something, else nothing."""
    return value if type(value) is str and value else None


def changed(value: Any, changes: Mapping[Path, Any]) -> Any:
    """Return a copy with new values at these paths; whatever is not on the way to one is shared."""
    tree: dict[Any, Any] = {}
    for path, new in changes.items():
        *around, last = path
        branch = tree
        for step in around:
            branch = branch.setdefault(step, _Branch())
        branch[last] = new
    return _copied(value, tree)


class _Branch(dict[Any, Any]):
    """Changes further inside, as opposed to a new value that is a dictionary."""


def _copied(value: Any, tree: Mapping[Any, Any]) -> Any:
    cls = type(value)
    if cls is list or cls is tuple:
        items = list(value)
        for place, new in tree.items():
            items[place] = _copied(items[place], new) if type(new) is _Branch else new
        return items if cls is list else tuple(items)
    known = fields(value)
    news = {name: _copied(known.get(name), new) if type(new) is _Branch else new for name, new in tree.items()}
    if cls is dict:
        return {**value, **news}
    if issubclass(cls, dict):
        made = copy.copy(value)
        dict.update(made, news)
        return made
    if hasattr(cls, "model_copy"):  # pydantic
        return value.model_copy(update=news)
    made = copy.copy(value)
    made.__dict__.update(news)  # as frozen classes want it, too
    return made
