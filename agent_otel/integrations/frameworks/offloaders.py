"""Offloaders of frameworks, which store large results themselves: the bytes above which the one of a call does.

They count characters, or tokens of about 4 characters. A text has no more characters than bytes.
"""

from __future__ import annotations

import weakref
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.errors import suppressed
from agent_otel.core.plain import fields

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN_CHARACTERS: Final = 4
#: Values that a chain of middleware is searched for: each middleware has about five.
_MOST_VALUES: Final = 400

# By the node, whose middleware does not change.
_of_nodes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def of_deepagents(node: Any) -> int:
    """Return the limit of the middleware that is chained around the calls of a ``ToolNode``."""
    known = _of_nodes.get(node)
    if known is None:
        chain = fields(node).get("_wrap_tool_call")
        limits = [_limit(fields(owner).get("_tool_token_limit_before_evict")) for owner in _owners(chain)]
        known = _of_nodes[node] = _TOKEN_CHARACTERS * min(filter(None, limits), default=0)
    return known


def _owners(chain: Any) -> Iterator[Any]:
    """Yield the objects whose methods a chain of functions calls; the chain keeps them in closures."""
    pending, seen = [chain], set[int]()
    while pending and len(seen) < _MOST_VALUES:
        function = pending.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        if type(function) is MethodType:
            yield function.__self__
        elif type(function) is FunctionType:
            for cell in function.__closure__ or ():
                with suppressed(ValueError):  # an empty cell
                    pending.append(cell.cell_contents)


def of_strands(agent: Any) -> int:
    """Return the limit of the ``ContextOffloader`` among the plugins of an agent."""
    plugins = fields(fields(fields(agent).get("_plugin_registry")).get("_plugins"))
    limits = [_limit(fields(plugin).get("_max_result_tokens")) for plugin in plugins.values()]
    return _TOKEN_CHARACTERS * min(filter(None, limits), default=0)


def of_agno(owner: Any) -> int:
    """Return the limit of the ``ResultStore`` that an agent or a team runs with."""
    return _limit(fields(fields(owner).get("_result_store")).get("threshold_chars"))


def _limit(value: object) -> int:
    return value if type(value) is int else 0
