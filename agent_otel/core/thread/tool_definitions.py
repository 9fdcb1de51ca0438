"""Changes of the definitions of tools in model requests: properties, their types, and whether they are required.

A definition changes while a process runs when a server of tools is updated, or a tool is made anew with another schema.
A change across a deployment has no earlier definition in the process: a metric has a fingerprint of each definition,
which a rule compares with fingerprints of earlier processes. The process keeps the paths and types of a definition.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel._internal.object_kinds import declare, fields, is_dict, listed, text
from agent_otel.core import execution_context, tool_names
from agent_otel.core.payload_keys import path
from agent_otel.core.thread.request_parts import plain_print, portions, timeless
from agent_otel.measure.key_structure import MOST_KEYS, fold, key_structure
from agent_otel.measure.preview import clean
from agent_otel.measure.size import size
from agent_otel.telemetry.foreign_spans import add_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.core.thread.request_parts import Sized
    from agent_otel.core.types import ModelRequest
    from agent_otel.measure.key_structure import KeyStructure
    from agent_otel.telemetry.setup import Telemetry


_MOST_REQUESTS: Final = 256
_MOST_TOOLS: Final = 256
_MOST_VARIANTS: Final = 8
_MOST_PATHS: Final = 128
_MOST_SHOWN: Final = 16
_DEEPEST: Final = 4
_HEAD: Final = 64
#: Where definitions have their schema: OpenAI and others; Anthropic; Bedrock and MCP; Gemini.
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema")
_CHOICES: Final = ("anyOf", "any_of", "oneOf", "allOf")

#: The tool, a fingerprint of its definition, and the attributes of the change from the one before, if any.
NewDefinition = tuple[str, str, "dict[str, tuple[str, ...]] | None"]
#: Attributes of changes that no recording span of a request has shown, by tool, for the span of the tool's next call.
unshown: dict[str, dict[str, tuple[str, ...]]] = {}
#: The sets of definitions in the requests of this process, by their prints.
_sets: dict[int, ToolSet] = {}


class Definitions:
    """The definitions in the requests so far, by agent, the beginning of the system prompt, and tool.

    Two agents may each have a tool of the same name. Dates and times in the system prompt are left out.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all definitions and renew the lock, for a forked child."""
        self._lock = threading.Lock()
        self._requests: dict[tuple[Any, ...], None] = {}
        #: The schema in the last request, and the fingerprints of all schemas so far.
        self._tools: dict[tuple[Any, ...], tuple[dict[str, str], frozenset[str]]] = {}

    def compare(self, owner: tuple[Any, ...], definitions: object, fingerprint: int) -> list[NewDefinition]:
        """Return the new definitions of a request, without definitions that were compared before."""
        with self._lock:
            if (owner, fingerprint) in self._requests:
                return []
            tool_names.keep(self._requests, (owner, fingerprint), most=_MOST_REQUESTS)
        found: dict[str, dict[str, str]] = {}
        for name, known in tool_names.definitions_in(definitions):
            tool_names.keep(tool_names.seen, name)
            tool_names.note_description(name, known.get("description"))
            found[name] = _properties(known)
        with self._lock:
            new = [self._compared((*owner, name), name, schema) for name, schema in found.items()]
        return [definition for definition in new if definition is not None]

    def schema(self, tool: str) -> dict[str, str] | None:
        """Return the types of a tool's properties by path, as the latest request defined them; None without one."""
        with self._lock:
            return next((schema for key, (schema, _) in reversed(self._tools.items()) if key[-1] == tool), None)

    def _compared(self, key: tuple[Any, ...], name: str, schema: dict[str, str]) -> NewDefinition | None:
        before, variants = self._tools.pop(key, (schema, frozenset()))
        # 8 hex digits of a hash of paths and types, which is the same in all processes.
        lines = "\n".join(sorted(f"{path} {kind}" for path, kind in schema.items()))
        this = hashlib.blake2b(lines.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        all_variants = variants if len(variants) >= _MOST_VARIANTS else variants | {this}
        tool_names.keep(self._tools, key, (schema, all_variants), _MOST_TOOLS)
        if this in variants or len(variants) >= _MOST_VARIANTS:
            return None
        return name, this, _change(before, schema) if variants else None


def _change(before: dict[str, str], schema: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the attributes of a changed definition: properties added, removed, and of another type or need."""
    found = {
        semconv.PROPERTIES_ADDED: schema.keys() - before.keys(),
        semconv.PROPERTIES_REMOVED: before.keys() - schema.keys(),
        semconv.PROPERTIES_CHANGED: {path for path in schema.keys() & before.keys() if schema[path] != before[path]},
    }
    return {key: tuple(sorted(paths)[:_MOST_SHOWN]) for key, paths in found.items()}


def take(out: Telemetry, request: ModelRequest, sized: Sequence[Sized]) -> ToolSet | None:
    """Return the tools that a request offers, None without any; show new definitions, and count changes."""
    # The first part has all tools; only requests of old APIs have a further one.
    offered = next((one for one in sized if one.part.part == semconv.TOOLS), None)
    if offered is None:
        return None
    systems = (timeless(one.part.value)[:_HEAD] for one in sized if one.part.part == semconv.SYSTEM)
    owner = execution_context.agent_of(request.agent), next(systems, "")
    for name, this, change in definitions.compare(owner, offered.part.value, offered.print):
        tool = clean(name)
        out.metrics.defined(tool, this)
        if change is None:
            continue
        out.metrics.record(semconv.SCHEMA_CHANGES, 1, tool)
        span = trace.get_current_span()
        if span.is_recording():
            add_event(span, semconv.TOOL_SCHEMA_CHANGED, {semconv.GEN_AI_TOOL_NAME: tool, **change})
        else:
            tool_names.keep(unshown, tool, change, _MOST_TOOLS)
    tools = _sets.get(offered.print)
    if tools is None:
        tools = ToolSet(offered.part.value, offered.bytes)
        tool_names.keep(_sets, offered.print, tools, _MOST_SETS)
    return tools


def _properties(definition: dict[str, Any]) -> dict[str, str]:
    """Return the types of the properties by path; a required one's type ends with an exclamation mark."""
    schema = next((fields(definition[key]) for key in _SCHEMAS if definition.get(key) is not None), {})
    schema = fields(schema.get("json")) or schema  # Bedrock's
    found: dict[str, str] = {}
    _add(found, schema, "", schema, 0)
    return found


def _add(found: dict[str, str], schema: dict[str, Any], path: str, root: dict[str, Any], depth: int) -> None:
    if depth > _DEEPEST:
        return
    needed = [text(name) for name in listed(schema.get("required"))]
    for name, member in fields(schema.get("properties")).items():
        if len(found) >= _MOST_PATHS:
            return
        declare((name,))
        at = f"{path}.{fold(name)}" if path else fold(name)
        inner = _resolved(fields(member), root)
        kinds = [text(inner.get("type")), *(text(kind) for kind in listed(inner.get("type")))]
        choices = [choice for key in _CHOICES for choice in listed(inner.get(key))]
        kinds += [text(_resolved(fields(choice), root).get("type")) for choice in choices]
        found[at] = "|".join(sorted(kind.lower() for kind in kinds if kind)) + "!" * (name in needed)
        _add(found, inner, at, root, depth + 1)
    if is_dict(items := schema.get("items")):
        _add(found, _resolved(fields(items), root), f"{path}[]", root, depth + 1)
    for key in _CHOICES:
        for choice in listed(schema.get(key)):
            _add(found, _resolved(fields(choice), root), path, root, depth + 1)


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that another part of the root describes, or the schema itself."""
    _, _, name = (text(schema.get("$ref")) or "").rpartition("/")
    known = fields(root.get("$defs")) or fields(root.get("definitions"))
    return fields(known[name]) if name in known else schema


definitions = Definitions()
fork.after_fork(definitions.reset)

#: Keys of an object are learned from so many results with it; a change is reported only after them.
LEARNED_FROM: Final = 8
#: Results of a tool that are all compared; after them, one of so many.
ALL_OF: Final = 16
SHAPES_SAMPLED: Final = 8
_MOST_SHAPED_TOOLS: Final = 100
_MOST_OBJECTS: Final = 64
#: Keys of the result of a call that has failed, which is not compared.
_FAILURES: Final = frozenset({"error", "errors"})

# Detection of changes in the keys of a tool's results. Only names of keys are kept, never values.


class Change(NamedTuple):
    """Keys that no earlier result had, and keys that all earlier results had and this one lacks."""

    added: tuple[str, ...]
    removed: tuple[str, ...]

    def attributes(self) -> dict[str, tuple[str, ...]]:
        """Return the attributes of the event on the tool's span."""
        return {semconv.KEYS_ADDED: self.added, semconv.KEYS_REMOVED: self.removed}


class _Keys:
    """The keys of the objects at one path: the keys in all results, and the keys in any."""

    __slots__ = ("always", "ever", "seen")

    def __init__(self, keys: frozenset[str]) -> None:
        self.ever = self.always = keys
        self.seen = 1

    def compare(self, keys: frozenset[str], *, is_whole: bool) -> tuple[frozenset[str], frozenset[str]]:
        """Return the keys added and removed, none while the object's keys are learned.

        If the keys of an object have differed before, a further key is data or optional. A key that is reported as
        added is expected from then on.
        """
        self.seen += 1
        added, removed = keys - self.ever, self.always - keys if is_whole else frozenset()
        is_learned, is_fixed = self.seen > LEARNED_FROM, self.ever == self.always
        added_now = added if is_learned and is_fixed else frozenset()
        self.always = self.always & keys | added_now if is_whole else self.always | added_now
        if len(self.ever) + len(added) <= MOST_KEYS:
            self.ever |= added
        return added_now, removed if is_learned else frozenset()


class _Contract:
    """The keys of a tool's results so far, by the path of their objects."""

    __slots__ = ("objects", "seen")

    def __init__(self) -> None:
        self.objects: dict[tuple[str, bool], _Keys] = {}
        self.seen = 0

    def compare(self, found: KeyStructure) -> Change | None:
        added: set[str] = set()
        removed: set[str] = set()
        whole = self.objects.get(("", True))
        if whole is not None and not _FAILURES.isdisjoint(found.get(("", True), frozenset()) - whole.ever):
            return None
        for place, keys in found.items():
            known, (at, is_whole) = self.objects.get(place), place
            new, gone = frozenset[str](), frozenset[str]()
            if known is not None:
                new, gone = known.compare(keys, is_whole=is_whole)
            else:
                # A list of objects may have become an object, or an object a list.
                other = self.objects.get((at.removesuffix("[]") if at.endswith("[]") else f"{at}[]", is_whole))
                if len(self.objects) < _MOST_OBJECTS:
                    self.objects[place] = _Keys(keys)
                if other is not None and other.seen > LEARNED_FROM:
                    new = keys
            added.update(f"{at}.{key}" if at else key for key in new)
            removed.update(f"{at}.{key}" if at else key for key in gone)
        if not (added or removed):
            return None
        return Change(tuple(sorted(set(map(path, added)))), tuple(sorted(set(map(path, removed)))))


class Drift:
    """The contracts of the first hundred tools, by name."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all contracts and renew the lock, for a forked child."""
        self._lock = threading.Lock()
        self._contracts: dict[str, _Contract] = {}

    def note(self, tool: str, value: Any, structured: Any = None) -> Change | None:
        """Compare a result, and its structured copy, with the tool's earlier ones; return the change, or None."""
        with self._lock:
            contract = self._contracts.get(tool)
            if contract is None:
                if len(self._contracts) >= _MOST_SHAPED_TOOLS:
                    return None
                contract = self._contracts[tool] = _Contract()
            contract.seen += 1
            if contract.seen > ALL_OF and contract.seen % SHAPES_SAMPLED:
                return None
        found = key_structure(value, structured)
        with self._lock:
            return contract.compare(found) if found else None

    def keys(self, tool: str) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        """Return the keys of a tool's results by path: the keys in all results, and the keys in any."""
        with self._lock:
            contract = self._contracts.get(tool)
            return {} if contract is None else {at: (one.always, one.ever) for (at, _), one in contract.objects.items()}


drift = Drift()
fork.after_fork(drift.reset)


# Tools that model requests offer: the bytes and tokens of their definitions, and the tools without a call. A set of
# definitions is read when a request has it first.

_MOST_SETS: Final = 64
_MOST_OFFERED: Final = 1_024


class ToolSet:
    """The definitions that a request offers: their prints in order, and the bytes of each by the tool's name."""

    __slots__ = ("_seen_at", "bytes", "count", "prints", "sizes", "uncalled", "uncalled_bytes")

    def __init__(self, definitions: Any, whole_bytes: int) -> None:
        sizes: dict[str, int] = {}
        self.prints: list[tuple[str, int | None]] = []
        for name, definition in tool_names.definitions_in(definitions):
            self.prints.append((name, plain_print(definition)))
            if len(sizes) < _MOST_OFFERED:
                sizes[clean(name)] = sizes.get(clean(name), 0) + size(definition).bytes
        self.bytes, self.count = whole_bytes, len(listed(definitions))
        #: The bytes of a definition, with its share of the text around all.
        self.sizes = dict(zip(sizes, portions(whole_bytes, list(sizes.values())), strict=True))
        #: Tools that no call of this process has had so far.
        self.uncalled: frozenset[str] = frozenset(self.sizes)
        self.uncalled_bytes = sum(self.sizes.values())
        self._seen_at: tuple[int, int] = (-1, -1)

    def attributes(self, out: Telemetry) -> dict[str, Any]:
        """Return the span attributes of a request with these tools."""
        called = len(out.metrics.all_tools), len(tool_names.called)
        if called != self._seen_at:
            used = {name for name, *_ in list(out.metrics.all_tools)}
            self._seen_at = called
            self.uncalled = frozenset(
                name for name in self.sizes if name not in used and not tool_names.is_called(name)
            )
            self.uncalled_bytes = sum(self.sizes[name] for name in self.uncalled)
        found: dict[str, Any] = {
            semconv.CONTEXT_TOOLS: len(self.sizes),
            semconv.CONTEXT_TOOLS_BYTES: self.bytes,
            semconv.CONTEXT_UNCALLED_TOOLS: len(self.uncalled),
        }
        if self.uncalled:
            found[semconv.CONTEXT_UNCALLED_BYTES] = self.uncalled_bytes
        if self.sizes:
            found[semconv.CONTEXT_LARGEST_DEFINITION] = max(self.sizes, key=self.sizes.__getitem__)
        return found
