"""The keys of payloads and results that telemetry may show; a key may be data, such as the name of a customer.

Three kinds of keys are shown in paths, and ``*`` replaces all others:

- fields, which consist of the words of `agent_otel.core.field_words`;
- identifiers that a schema names: the parameters of a tool, the properties in its definition, and the fields of a
  dataclass or a pydantic model that this process has measured;
- the names that ``AGENT_OTEL_SHOW_KEYS`` has, or all keys if it is on.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_otel import settings
from agent_otel._internal.object_kinds import declared
from agent_otel.core.field_words import is_field
from agent_otel.measure.breakdown.paths import ANY, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_otel.measure.breakdown.report import Breakdown, Duplicate

# Lower-case words with underscores between them, or camelCase. A key with digits is usually data.
# Texts: most processes look at no key.
_IDENTIFIER: Final = r"_{0,2}[a-z]{2,16}(_[a-z]{2,16}){0,4}_{0,2}|[a-z]{2,16}([A-Z][a-z]{1,15}){1,4}"
_OF_A_SERVICE: Final = r"(?i:sk|pk|rk|gh[a-z]|github|glpat|hf|npm|pypi|xox[a-z]|shpat|key|token)_"
_UNSPEAKABLE: Final = r"(?i:[bcdfghjklmnpqrstvwxz]{6})"


def path(text: str) -> str:
    """Return a path with ``*`` for each key that is not shown."""
    named = settings.current().show_keys
    if named is True or text == OTHER:
        return text
    own = named or ()
    shown = (key if key == "[]" else f".{key if key in own or _is_shown(key) else ANY}" for key in _keys(text))
    return "".join(shown).removeprefix(".")


def shown(found: Breakdown) -> Breakdown:
    """Return a breakdown with the paths that may be shown; the bytes of paths that become equal are added up."""
    paths = _summed(found.paths)
    copies: dict[tuple[str, str], Duplicate] = {}
    for one in found.duplicates:
        pair = path(one.path), path(one.other_path)
        size = copies[pair].bytes + one.bytes if pair in copies else one.bytes
        copies[pair] = replace(one, path=pair[0], other_path=pair[1], bytes=size)
    largest = max((name for name in paths if name != OTHER), key=lambda name: paths[name], default="")
    return replace(
        found,
        paths=dict(sorted(paths.items(), key=lambda item: -item[1])),
        largest_path=largest,
        largest_path_bytes=paths.get(largest, 0),
        unread=found.unread._replace(paths=_summed(found.unread.paths)) if found.unread is not None else None,
        duplicates=tuple(sorted(copies.values(), key=lambda copy: -copy.bytes)),
    )


def _summed(paths: Mapping[str, int]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for text, size in paths.items():
        name = path(text)
        sums[name] = sums.get(name, 0) + size
    return sums


def _is_shown(key: str) -> bool:
    return key in {ANY, "$"} or is_field(key) or (key in declared and _is_identifier(key))


def _is_identifier(key: str) -> bool:
    return bool(re.fullmatch(_IDENTIFIER, key)) and not (re.match(_OF_A_SERVICE, key) or re.search(_UNSPEAKABLE, key))


def _keys(text: str) -> Iterator[str]:
    """Yield the keys of a path; the breakdown has replaced keys with dots or brackets by ``*``."""
    for part in text.split("."):
        key, *elements = part.split("[]")
        if key:
            yield key
        yield from ["[]"] * len(elements)
