"""Names of tools that this process has seen in use: called here, or offered to a model.

What stands as a tool's name in a payload may be a value, such as the name of a patient. It leaves the process only if
it is the name of a tool that was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal.object_kinds import fields, listed, text
from agent_otel.measure.preview import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST: Final = 2_048
_DEEPEST: Final = 3
#: Where definitions of tools have what is named: OpenAI, Bedrock, Gemini, Mistral.
_INNER: Final = ("function", "custom", "toolSpec", "functionDeclarations", "function_declarations", "tools")


seen: dict[str, None] = {}
#: Names of tools that model requests have offered, where limits count calls.
offered: dict[str, None] = {}
#: Names of tools that adapters have called; read for each call, so without a function.
called: dict[str, None] = {}
#: The beginnings of the tools' descriptions, as the last request or MCP server with another definition had them.
descriptions: dict[str, str] = {}


def reset() -> None:
    """Forget all names."""
    for names in (seen, offered, called, descriptions):
        names.clear()


def is_called(name: str) -> bool:
    """Return whether an adapter has called a tool of this name; clients prefix it with the name of its server."""
    if name in called:
        return True
    return any(name.endswith(known) and not name[-len(known) - 1].isalnum() for known in tuple(called) if known)


def note_description(name: str, description: object) -> None:
    """Remember the description of a tool, if it has one."""
    plain = text(description)
    if plain:
        keep(descriptions, clean(name), clean(plain))


def definitions_in(value: Any, depth: int = _DEEPEST) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names and fields of definitions: dictionaries or an SDK's objects, or lists of such inside of one."""
    if not depth:
        return
    for definition in listed(value)[:_MOST] or (value,):
        known = fields(definition)
        name = text(known.get("name"))
        if name and name not in semconv.OWN_TOOLS:
            yield name, known
        for key in _INNER:
            if key in known:
                yield from definitions_in(known[key], depth - 1)


def keep(kept: dict[Any, Any], key: Any, value: Any = None, most: int = _MOST) -> None:
    """Keep a value; of too many the first is forgotten."""
    kept[key] = value
    if len(kept) > most:
        kept.pop(next(iter(kept), None), None)
