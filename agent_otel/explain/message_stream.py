"""Messages in JSON text of any size, one after another: long texts are cut, and their full bytes stay on record.

The breakdown's reader reads the text. Memory is bounded by a turn, not by the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.core.execution_state import ReadTexts
from agent_otel.measure.breakdown.json_reader import Reader
from agent_otel.measure.breakdown.json_window import PLAIN, Form, Window, unescaped
from agent_otel.measure.breakdown.passages import LONGEST, hashes, passages, prints
from agent_otel.measure.size import json_size, text_bytes
from agent_otel.messages.formats import transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent_otel.messages.base import Transcript
    from agent_otel.messages.fields import Path

#: Characters of a text that are kept: more than the view of a claim check has.
KEPT_CHARACTERS: Final = 48 * 1024
_FEW_CHARACTERS: Final = 512
#: Bytes of one object that are kept, and of one that is no message so far.
_ROOM: Final = 256 * 1024
_ROOM_OUTSIDE: Final = 64 * 1024
_NODES: Final = 20_000
_LEVELS: Final = 12
_ROLES: Final = frozenset(
    (
        *("user", "assistant", "system", "developer", "tool", "function", "model", "human", "ai"),
        *("AIMessageChunk", "HumanMessageChunk", "ToolMessageChunk", "SystemMessageChunk"),
    )
)
_ITEMS: Final = frozenset(
    ("message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
)
#: Fields around a message: LangChain's dictionaries and serialised objects, lines of coding agents' transcripts.
_AROUND: Final = ("data", "kwargs", "message")
#: Fields of a message that a model request holds; others, such as LangChain's ``artifact``, stay with the program.
_REQUESTED: Final = ("content", "parts", "tool_calls", "function_call", "arguments", "input", "output", "summary")


class Rest(NamedTuple):
    """The part of a text behind the characters that are kept: its bytes, and the hashes of the whole text."""

    container: Any
    key: str | int
    bytes: int
    texts: ReadTexts


class Message(NamedTuple):
    """A message, the bytes of its compact JSON, the bytes of its texts that are not kept, and its calls and results."""

    value: dict[str, Any]
    bytes: int
    rests: dict[Path, int]
    transcript: Transcript


class Conversation:
    """A list of messages in the text; the number distinguishes it from the other lists."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def read_messages(
    chunks: Iterator[str], take: Callable[[Conversation, Message], None], held: ReadTexts, steps: int
) -> None:
    """Pass each message in the text to ``take``, and add the texts that a model request would hold to ``held``."""
    visitor = _Visitor(take, held)
    Reader(Window(chunks), visitor, steps=steps).read(_Spot(visitor.root, None))


class _Spot(NamedTuple):
    """A place in an open container; the elements of a list have no key."""

    around: _Open
    key: str | None


class _Open:
    """An open object or list."""

    __slots__ = ("around", "conversation", "is_list", "kept", "key", "rests", "value")

    def __init__(self, spot: _Spot | None) -> None:
        self.around = spot.around if spot is not None else None
        self.key = spot.key if spot is not None else None
        self.value: Any = {}
        self.is_list = False
        self.kept = 0
        self.rests: list[Rest] = []
        self.conversation: Conversation | None = None

    def owner(self) -> _Open | None:
        """Return the object that keeps what stands here."""
        node: _Open | None = self
        while node is not None and node.is_list:
            node = node.around
        return node

    def is_in_message(self) -> bool:
        """Return True inside of an object that is a message by what was read of it so far."""
        node: _Open | None = self
        while node is not None:
            if not node.is_list and _is_like_message(node.value):
                return True
            node = node.around
        return False


class _Visitor:
    """Builds the objects that may be messages, and drops everything else."""

    form: Form = PLAIN

    def __init__(self, take: Callable[[Conversation, Message], None], held: ReadTexts) -> None:
        self._take = take
        self._held = held
        self._conversations = 0
        self.root = _Open(None)  # texts that stand one after another are its elements
        self.root.is_list, self.root.value = True, []
        self._latest = self.root

    def fields(self, spot: _Spot) -> _Open:
        """Begin a container."""
        self._latest = _Open(spot)
        return self._latest

    def element(self, spot: _Spot) -> _Spot:
        """Return the spot of the elements of the list that has just begun."""
        node = self._latest
        node.is_list, node.value = True, []
        self._put(spot, node.value, 2)
        return _Spot(node, None)

    def member(self, spot: _Spot, fields: _Open, key: str, beginning: str) -> _Spot:  # noqa: ARG002 - the reader's
        """Return the spot of a member."""
        return _Spot(fields, key)

    def members(self, spot: _Spot, fields: _Open, members: dict[str, Any]) -> None:  # noqa: ARG002 - the reader's
        """Take some members of an object."""
        for key, value in members.items():
            self._decoded(_Spot(fields, key), value)

    def values(self, spot: _Spot, values: Sequence[Any]) -> None:
        """Take decoded values."""
        for value in values:
            self._decoded(spot, value)

    def text(self, spot: _Spot, pieces: Iterable[str], written: Callable[[], int]) -> None:
        """Take a long text."""
        texts, kept, length, kept_bytes, full_bytes, tail = ReadTexts(), [], 0, 0, 0, ""
        owner = spot.around.owner()
        room = KEPT_CHARACTERS if owner is None or owner.kept < _ROOM else _FEW_CHARACTERS
        for raw in pieces:
            piece = unescaped(raw, is_whole=True)
            full_bytes += text_bytes(piece)
            if length < room:
                kept.append(piece[: room - length])
                length += len(kept[-1])
                kept_bytes += text_bytes(kept[-1])
            tail = _hash(texts, tail + piece)
        texts.add(prints((tail,)))
        written()
        kept_text = "".join(kept)
        if self._put(spot, kept_text, kept_bytes) and owner is not None and full_bytes > kept_bytes:
            key = len(spot.around.value) - 1 if spot.key is None else spot.key
            owner.rests.append(Rest(spot.around.value, key, full_bytes - kept_bytes, texts))

    def after(self, spot: _Spot, fields: _Open, key: str, value: Any, written: int) -> None:
        """End a member."""

    def close(self, fields: _Open) -> None:
        """End an object: a message is passed on, and another object is kept for the object around it."""
        spot = _Spot(fields.around or self.root, fields.key)
        if spot.key is None and not spot.around.is_in_message() and self._emit(spot.around, fields.value, fields.rests):
            return
        owner = spot.around.owner()
        if self._put(spot, fields.value, fields.kept) and owner is not None:
            owner.rests += fields.rests

    def partly(self) -> None:
        """Skip what cannot be read."""

    def _decoded(self, spot: _Spot, value: Any) -> None:
        cls = type(value)
        if cls is dict or cls is list:
            if not spot.around.is_in_message():
                if cls is dict and spot.key is None and self._emit(spot.around, value, ()):
                    return
                self._search(value, _LEVELS)
            self._put(spot, value, 64)
        else:
            self._put(spot, value, 16)

    def _search(self, value: Any, levels: int) -> None:
        """Look for lists of messages in a decoded value."""
        if type(value) is dict:
            for member in value.values():
                if (type(member) is dict or type(member) is list) and levels:
                    self._search(member, levels - 1)
            return
        node = _Open(None)
        for element in value:
            if type(element) is dict and not self._emit(node, element, ()) and levels:
                self._search(element, levels - 1)

    def _put(self, spot: _Spot, value: Any, size: int) -> bool:
        """Keep a value in its container while there is room; return False where there is none."""
        around = spot.around
        owner = around.owner()
        if owner is None or owner.kept + size > (_ROOM if owner.is_in_message() else _ROOM_OUTSIDE) + KEPT_CHARACTERS:
            return False
        owner.kept += size
        if around.is_list:
            around.value.append(value)
        else:
            around.value[spot.key] = value
        return True

    def _emit(self, around: _Open, value: dict[str, Any], rests: Iterable[Rest]) -> bool:
        """Pass on an element that is a message."""
        message = message_of(value)
        if message is None:
            return False
        if around.conversation is None:
            self._conversations += 1
            around.conversation = Conversation(self._conversations)
        by_place = {(id(rest.container), rest.key): rest for rest in rests}
        cut: dict[Path, int] = {}
        for name in _REQUESTED:
            if name in message:
                self._hold(message, name, (), by_place, cut)
        beyond = sum(rest.bytes for rest in rests)
        size = json_size(value, _NODES).bytes + beyond
        self._take(around.conversation, Message(message, size, cut, transcript(message)))
        return True

    def _hold(
        self,
        container: Any,
        key: Any,
        around: Path,
        rests: dict[tuple[int, Any], Rest],
        cut: dict[Path, int],
    ) -> None:
        """Add the texts at and below a place to those that a request holds, and record those that are cut."""
        value, path = container[key], (*around, key)
        cls = type(value)
        if cls is str:
            rest = rests.get((id(container), key))
            if rest is None:
                self._held.add(prints((value,)))
            else:
                cut[path] = rest.bytes
                self._held.modulus = max(self._held.modulus, rest.texts.modulus)
                self._held.add(set(rest.texts.prints))
        elif (cls is dict or cls is list) and len(path) < _LEVELS:
            for inner in value if cls is dict else range(len(value)):
                self._hold(value, inner, path, rests, cut)


def message_of(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the message that an object is or has around it, else None."""
    for name in _AROUND:
        inner = value.get(name)
        if type(inner) is dict and "content" not in value:
            if name == "data" and type(value.get("type")) is str and value["type"] in _ROLES:
                inner.setdefault("type", value["type"])
            if _is_message(inner):
                return inner
    return value if _is_message(value) else None


def _is_like_message(value: dict[str, Any]) -> bool:
    role = value.get("role")
    kind = value.get("type")
    if type(role) is str:
        return role in _ROLES
    return "parts" in value or (type(kind) is str and (kind in _ROLES or kind in _ITEMS))


def _is_message(value: dict[str, Any]) -> bool:
    """Return True for a message: it has a role or type, and content, calls, parts or a result."""
    return _is_like_message(value) and any(name in value for name in _REQUESTED)


def _hash(texts: ReadTexts, text: str) -> str:
    """Add the passages of a text up to the last one, which may go on; return its rest, aligned to a block."""
    *whole, last = passages(text)
    done = len(last) // LONGEST * LONGEST
    texts.add(hashes([*whole, last[:done]]))
    return last[done:]
