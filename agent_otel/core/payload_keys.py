"""The keys of payloads and results that telemetry may show; a key may be data, such as the name of a customer.

Three kinds of keys are shown in paths, and ``*`` stands for all others:

- fields, which consist of the words of `agent_otel.core.field_words`;
- identifiers that occurred in the payloads of several executions, and whose value has a shape that no other member of
  the object has: an object with two members of the same shape is a map, and its keys are data;
- all keys, if ``AGENT_OTEL_SHOW_KEYS`` is on.
"""

from __future__ import annotations

import itertools
import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_otel import settings
from agent_otel._internal import fork
from agent_otel.core.field_words import is_field
from agent_otel.measure.breakdown.paths import ANY, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_otel.measure.breakdown.report import Breakdown, Duplicate

#: Executions in whose payloads a key must occur before it is shown.
SEVERAL: Final = 5
_MOST_KEYS: Final = 1024  # that are counted at a time; the oldest is dropped
_MOST_SHOWN: Final = 256
_SHAPE_DEPTH: Final = 3
# Lower-case words with underscores between them, or camelCase. A key with digits is usually data.
# Texts: most processes look at no key.
_IDENTIFIER: Final = r"_{0,2}[a-z]{2,16}(_[a-z]{2,16}){0,4}_{0,2}|[a-z]{2,16}([A-Z][a-z]{1,15}){1,4}"
_OF_A_SERVICE: Final = r"(?i:sk|pk|rk|gh[a-z]|github|glpat|hf|npm|pypi|xox[a-z]|shpat|key|token)_"
_UNSPEAKABLE: Final = r"(?i:[bcdfghjklmnpqrstvwxz]{6})"

_lock = threading.Lock()
_payloads = itertools.count(1)
_shown: set[str] = set()
_seen: dict[int, set[int]] = {}  # hash of a key -> hashes of executions, so that no key that may be data is kept


class _Place:
    """A place in a payload with the places below it, by key; elements of an array have the key ``[]``."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members: dict[str, _Place] = {}

    def shape(self, depth: int = _SHAPE_DEPTH) -> tuple[object, ...]:
        """Return the nested keys, which are equal for two places that hold the same kind of value."""
        if not depth:
            return ()
        return tuple((key, place.shape(depth - 1)) for key, place in sorted(self.members.items()))


def learn(paths: Iterable[str], execution: str | None) -> None:
    """Count the keys of one payload; without an ``execution`` the payload counts as a separate one."""
    root = _Place()
    for path in paths:
        place = root
        for key in _keys(path):
            place = place.members.setdefault(key, _Place())
    who = hash(execution) if execution is not None else -next(_payloads)
    with _lock:
        for key in _fields_of(root, is_element=False):
            _count(key, who)


def path(text: str) -> str:
    """Return a path with ``*`` for each key that is not shown."""
    if settings.current().show_keys or text == OTHER:
        return text
    shown = (key if key == "[]" else f".{key if _is_shown(key) else ANY}" for key in _keys(text))
    return "".join(shown).removeprefix(".")


def shown(found: Breakdown, execution: str | None) -> Breakdown:
    """Return a breakdown with the paths that may be shown; the bytes of paths that become equal are added up."""
    learn(found.paths, execution)
    paths: dict[str, int] = {}
    for text, size in found.paths.items():
        name = path(text)
        paths[name] = paths.get(name, 0) + size
    copies: dict[tuple[str, str], Duplicate] = {}
    for one in found.duplicates:
        pair = path(one.path), path(one.other_path)
        size = copies[pair].bytes + one.bytes if pair in copies else one.bytes
        copies[pair] = replace(one, path=pair[0], other_path=pair[1], bytes=size)
    unread: dict[str, int] = {}
    for text, size in (found.unread.paths if found.unread is not None else {}).items():
        name = path(text)
        unread[name] = unread.get(name, 0) + size
    largest = max((name for name in paths if name != OTHER), key=lambda name: paths[name], default="")
    return replace(
        found,
        paths=dict(sorted(paths.items(), key=lambda item: -item[1])),
        largest_path=largest,
        largest_path_bytes=paths.get(largest, 0),
        unread=found.unread._replace(paths=unread) if found.unread is not None else None,
        duplicates=tuple(sorted(copies.values(), key=lambda copy: -copy.bytes)),
    )


def always_seen(text: str) -> str:
    """Return the path to show for a key that all results of a tool had; in the elements of a list it is a field."""
    before, dot, key = text.rpartition(".")
    is_column = before.endswith("[]") and _is_identifier(key) and not settings.current().show_keys
    return f"{path(before)}{dot}{key}" if is_column else path(text)


def reset() -> None:
    """Renew the lock, for a forked child."""
    global _lock  # noqa: PLW0603 - renewed in the child
    _lock = threading.Lock()


def _is_shown(key: str) -> bool:
    return key in {ANY, "$"} or key in _shown or is_field(key)


def _is_identifier(key: str) -> bool:
    return bool(re.fullmatch(_IDENTIFIER, key)) and not (re.match(_OF_A_SERVICE, key) or re.search(_UNSPEAKABLE, key))


def _keys(text: str) -> Iterator[str]:
    """Yield the keys of a path; the breakdown has replaced keys with dots or brackets by ``*``."""
    for part in text.split("."):
        key, *elements = part.split("[]")
        if key:
            yield key
        yield from ["[]"] * len(elements)


def _fields_of(place: _Place, *, is_element: bool) -> Iterator[str]:
    """Yield the identifiers whose value has a shape of its own in its object, except fields, which are always shown.

    Scalars have the same shape. In the elements of an array they are accepted, because those are usually rows.
    """
    others = {key: member.shape() for key, member in place.members.items() if key != "[]" and not is_field(key)}
    shapes = list(others.values())
    for key, shape in others.items():
        if _is_identifier(key) and (shapes.count(shape) == 1 or (is_element and not shape)):
            yield key
    for key, member in place.members.items():
        yield from _fields_of(member, is_element=key == "[]")


def _count(key: str, who: int) -> None:
    if key in _shown or len(_shown) >= _MOST_SHOWN:
        return
    seen = _seen.setdefault(hash(key), set())
    seen.add(who)
    if len(seen) >= SEVERAL:
        _shown.add(key)
        del _seen[hash(key)]
    elif len(_seen) > _MOST_KEYS:
        del _seen[next(iter(_seen))]


fork.after_fork(reset)
