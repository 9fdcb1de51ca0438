"""Tools that model requests offer: the bytes and tokens of their definitions, and those that are never called.

A set of definitions is read when a request has it first, and again from time to time. By tool, its bytes and tokens are
counted for several requests at once, because a request may offer hundreds of tools.
"""

from __future__ import annotations

import atexit
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel.core import tool_names
from agent_otel.core.plain import listed
from agent_otel.core.request_parts import of_kind
from agent_otel.core.shares import divided, portions
from agent_otel.measure.preview import clean
from agent_otel.measure.size import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.core.request_parts import Sized
    from agent_otel.telemetry.setup import Telemetry

#: Requests of a set after which its definitions are read again: others may have the same size.
READ_AGAIN: Final = 64
#: Requests and seconds after which what a set has sent is counted by tool.
COUNTED_AFTER: Final = 16
_SECONDS: Final = 5.0
_MOST_SETS: Final = 64
_MOST_TOOLS: Final = 1_024


class ToolSet:
    """The definitions that a request offers: the bytes of each by the tool's name."""

    __slots__ = (
        *("_counted_at", "_requests", "_seen_at", "_tokens", "bytes", "sizes", "uncalled", "uncalled_bytes"),
        "uses",
    )

    def __init__(self, definitions: Any, whole_bytes: int) -> None:
        sizes: dict[tuple[str, str], int] = {}
        for name, definition in tool_names.definitions_in(definitions):
            if len(sizes) < _MOST_TOOLS:
                key = (semconv.TOOLS, clean(name))
                sizes[key] = sizes.get(key, 0) + size(definition).bytes
        self.bytes = whole_bytes
        #: The bytes of a definition, with its share of what stands around all.
        self.sizes = {name: part for (_, name), part in divided(whole_bytes, sizes).items()}
        #: Tools that no call of this process has had so far.
        self.uncalled: frozenset[str] = frozenset(self.sizes)
        self.uncalled_bytes = sum(self.sizes.values())
        self.uses = 0
        self._seen_at: tuple[int, int] = (-1, -1)
        self._requests = self._tokens = 0
        self._counted_at = 0.0

    def attributes(self, out: Telemetry) -> dict[str, Any]:
        """Return the span attributes of a request with these tools."""
        called = len(out.metrics.tools), len(tool_names.called)
        if called != self._seen_at:
            used = {name for name, _ in list(out.metrics.tools)}
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

    def add(self, tokens: int) -> bool:
        """Add a request and its tokens for definitions; return true when they are due to be counted by tool."""
        self._requests += 1
        self._tokens += tokens
        return self._requests >= COUNTED_AFTER or time.monotonic() - self._counted_at > _SECONDS

    def take(self, now: float) -> tuple[int, int]:
        """Return the requests and their tokens since the last time."""
        found = self._requests, self._tokens
        self._requests = self._tokens = 0
        self._counted_at = now
        return found


class ToolSets:
    """The sets of definitions in the requests of this process; the least recently read is dropped first."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all sets and renew the lock, for a forked child; the parent counts what they have sent."""
        self._lock = threading.Lock()
        self._sets: dict[tuple[int, int], ToolSet] = {}
        self._out: Telemetry | None = None
        self._counts_at_exit = False

    def of(self, out: Telemetry, sized: Sequence[Sized]) -> ToolSet | None:
        """Return the tools that a request offers; None without any."""
        parts = of_kind(sized, semconv.TOOLS)
        if not parts:
            return None
        # The first part has all tools; only requests of old APIs have a further one.
        value, whole_bytes = parts[0].part.value, parts[0].bytes
        key = parts[0].print, len(listed(value))
        found = self._sets.get(key)
        if found is None or found.uses >= READ_AGAIN:
            found = self._read(out, key, value, whole_bytes)
        found.uses += 1
        return found

    def _read(self, out: Telemetry, key: tuple[int, int], value: Any, whole_bytes: int) -> ToolSet:
        new = ToolSet(value, whole_bytes)
        with self._lock:
            before = self._sets.pop(key, None)
            if before is not None and before.sizes == new.sizes:
                new, before = before, None
                new.uses = 0
            self._sets[key] = new
            dropped = self._sets.pop(next(iter(self._sets))) if len(self._sets) > _MOST_SETS else None
            self._out = out
            if not self._counts_at_exit:
                # Registered after the provider's own, this runs before it.
                atexit.register(self.count_all)
                self._counts_at_exit = True
        for left in (before, dropped):
            if left is not None:
                self._count(out, left)
        return new

    def sent(self, out: Telemetry, tools: ToolSet, tokens: int) -> None:
        """Add a request with these tools, and the tokens of their definitions."""
        with self._lock:
            is_due = tools.add(tokens)
        if is_due:
            self._count(out, tools)

    def _count(self, out: Telemetry, tools: ToolSet) -> None:
        with self._lock:
            requests, tokens = tools.take(time.monotonic())
        if requests:
            out.metrics.offered(requests, tools.sizes, portions(tokens, list(tools.sizes.values())))

    @errors.guarded("offered_tools.exit")
    def count_all(self) -> None:
        """Count by tool what all sets have sent: before a flush, and when the interpreter exits."""
        with self._lock:
            out, sets = self._out, list(self._sets.values())
        if out is not None:
            for tools in sets:
                self._count(out, tools)


tool_sets = ToolSets()
fork.after_fork(tool_sets.reset)
