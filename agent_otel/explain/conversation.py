"""Turns of a conversation in JSON text: their bytes by tool, and the bytes that remedies save on each turn.

The breakdown's reader reads the text, one message after another. Long texts are cut, and their full bytes stay on
record. Memory is bounded by a turn, not by the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import settings
from agent_otel.core.execution_state import ReadTexts, Totals
from agent_otel.core.thread.refusals import reason_of
from agent_otel.core.thread.request_parts import outcome
from agent_otel.measure.breakdown.json_reader import PLAIN, Form, Reader, Window, unescaped
from agent_otel.measure.json_pieces import WORKER_STEPS
from agent_otel.measure.passages import LONGEST, hashes, passages, prints
from agent_otel.measure.preview import preview
from agent_otel.measure.size import Size, json_size, size, text_bytes
from agent_otel.measure.truncation import SUSPECTED, find_cut
from agent_otel.messages.formats import transcript
from agent_otel.remedies.claim_check import envelope
from agent_otel.remedies.claim_check.policy import view
from agent_otel.remedies.claim_check.serialization import raw_of
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.argument_compaction import ABOVE_BYTES, FAILURE_BYTES, bounding, compacting
from agent_otel.remedies.history.trimming import LineForm, trimming
from agent_otel.remedies.history.turns import Changes, History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent_otel.messages import Transcript
    from agent_otel.messages.fields import Path

#: Characters of a text that are kept: more than the view of a claim check has.
KEPT_CHARACTERS: Final = 48 * 1024
_FEW_CHARACTERS: Final = 512
#: Bytes of a message that are kept, and of another object.
_ROOM: Final = 256 * 1024
_ROOM_OUTSIDE: Final = 64 * 1024
_NODES: Final = 20_000
_LEVELS: Final = 12
_LONGEST_GROUP: Final = 512  # messages of one turn
_MISSING: Final = object()
_UNANSWERED: Final = "has no result: providers refuse the request (call_without_result)"
_UNASKED: Final = "has no call: providers refuse the request (result_without_call)"
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
#: Fields of a model request: its messages, and the texts beside them that the model reads as well.
_LISTS: Final = frozenset({"contents", "input", "messages"})
_BESIDE: Final = frozenset(
    (
        *("handoffs", "instructions", "model_request_parameters", "system", "systemInstruction", "system_instruction"),
        *("system_instructions", "tools"),
    )
)
#: Fields of the definition of a tool.
_SCHEMAS: Final = frozenset(
    {"function", "functionDeclarations", "inputSchema", "input_schema", "parameters", "toolSpec"}
)
#: Fields of a message that a model request holds; others, such as LangChain's ``artifact``, stay with the program.
_REQUESTED: Final = frozenset(
    ("arguments", "content", "function_call", "input", "instructions", "output", "parts", "summary", "tool_calls")
)


#: Fields in which exports keep what a provider said: of runs, events and items.
_FAILURES: Final = frozenset(
    (
        *("detail", "error", "errorMessage", "error_message", "exception", "exception.message", "exit_status"),
        *("failure", "lastFailure", "reason", "statusMessage", "status_message"),
    )
)


#: By container and key, the bytes of a text that are not kept, the hashes of the whole text, and the container.
_Rests = dict[tuple[int, Any], tuple[int, ReadTexts, Any]]


class Message(NamedTuple):
    """A message, the bytes of its compact JSON, the bytes of its texts that are not kept, and its calls and results."""

    value: dict[str, Any]
    bytes: int
    rests: dict[Path, int]
    transcript: Transcript

    @property
    def sender(self) -> str:
        """The kind of sender: system, user or assistant."""
        role = self.value.get("role") or self.value.get("type") or ""
        if role in ("system", "developer"):
            return "system"
        return "user" if self.transcript.by_user or role in ("user", "human") else "assistant"

    def rest(self, path: Path) -> int:
        """Return the bytes at and below a path that are not kept."""
        return sum(count for at, count in self.rests.items() if at[: len(path)] == path)


@dataclass(slots=True)
class Turn:
    """A model request with the calls that it led to. Sizes are bytes; ``parts`` are results and arguments by tool."""

    bytes: int = 0
    messages: int = 0
    parts: dict[tuple[str, str], int] = field(default_factory=dict)
    has_calls: bool = False
    #: What is cut, repeats or would be refused, with the tool.
    incidents: list[tuple[str, str]] = field(default_factory=list)
    #: Bytes that each remedy would save in this turn; trimming only where the turn is an old one.
    claim_check: int = 0
    trimming: int = 0
    compaction: int = 0

    def add(self, kind: str, tool: str | None, count: int) -> None:
        """Add bytes of a kind of part, and of a tool where it has one."""
        self.parts[kind, tool or ""] = self.parts.get((kind, tool or ""), 0) + count


@dataclass(frozen=True, slots=True)
class Saving:
    """The bytes that a remedy would save: of the stored payload, or of the next model request alone."""

    remedy: str
    setting: str
    bytes: int
    of_payload: bool = False


class Turns:
    """Divides the longest conversation of a text into its turns; ``take`` gets the messages in their order."""

    def __init__(self) -> None:
        self._best: list[Turn] = []
        self._conversation: object = None
        #: Turns and reasons of refused requests.
        self._refused: dict[tuple[int, str], None] = {}
        self._group: list[Message] = []
        self._chosen = settings.current()
        self._reset()

    def _reset(self) -> None:
        self._now: list[Turn] = []
        self._seen = Totals()
        #: Calls so far, with their turns; their names by id, and those without a result.
        self._asked: dict[tuple[str | None, str], int] = {}
        self._names: dict[str, str] = {}
        self._waiting: dict[str, Turn] = {}

    def take(self, conversation: object, message: Message) -> None:
        """Take the next message of a list, which is the conversation."""
        if conversation is not self._conversation:
            self._end()
            self._conversation = conversation
        if self._begins(message):
            self._flush()
        self._group.append(message)

    def failed(self, reason: str) -> None:
        """Note that the provider refused the latest request of the conversation."""
        self._refused[len(self._now) + bool(self._group), f"refused: {reason}"] = None

    def longest(self) -> tuple[list[Turn], list[str]]:
        """Return the turns of the conversation with the most bytes, and the refusals in a text without turns."""
        self._end()
        for number, what in self._refused if self._best else ():
            self._best[min(max(1, number), len(self._best)) - 1].incidents.append((what, ""))
        return self._best, [] if self._best else [what for _, what in self._refused]

    def savings(self, found: list[Turn]) -> list[Saving]:
        """Return the savings of the remedies in these turns, with the settings of this process."""
        calling = [turn for turn in found if turn.has_calls]
        history = turns.read([])
        history.turns = len(calling)
        old = calling[: history.cut(self._chosen.keep_turns, self._chosen.trim_step_turns)]
        compacted = sum(turn.compaction for turn in found)
        return [
            Saving("claim check", "AGENT_OTEL_CLAIM_CHECK", sum(turn.claim_check for turn in found), of_payload=True),
            Saving("trimming", "AGENT_OTEL_TRIM_RESULTS", sum(turn.trimming for turn in old)),
            Saving("argument compaction", "AGENT_OTEL_COMPACT_ARGUMENTS", compacted),
        ]

    def _begins(self, message: Message) -> bool:
        """Return True when a message begins a turn: the user's, or calls that follow a result."""
        group, seen = self._group, message.transcript
        if not group or len(group) >= _LONGEST_GROUP:
            return bool(group)
        if seen.asked:
            return any(one.transcript.answered for one in group)
        is_prompt = all(one.transcript.by_user or one.sender == "system" for one in group)
        return seen.by_user and not seen.answered and not is_prompt

    def _end(self) -> None:
        self._flush()
        for call_id, turn in self._waiting.items():
            if turn is not self._now[-1]:  # calls of the last turn may be running
                turn.incidents.append((_UNANSWERED, self._names[call_id]))
        if sum(turn.bytes for turn in self._now) >= sum(turn.bytes for turn in self._best):
            self._best = self._now
        self._reset()

    def _flush(self) -> None:
        """Make a turn of the messages since the last one."""
        group, self._group = self._group, []
        if group:
            history = History([one.value for one in group], [one.transcript for one in group])
            turn = Turn(sum(one.bytes for one in group), len(group), has_calls=history.turns > 0)
            for at, message in enumerate(group):
                self._divide(turn, message, [result for result in history.results if result.at == at])
            self._remedy(turn, history, group)
            self._now.append(turn)
            for message in group:
                self._observe(turn, message)

    def _observe(self, turn: Turn, message: Message) -> None:
        """Add calls of a message that repeat others, results that are cut, and halves that providers refuse."""
        number, told = len(self._now), turn.incidents.append
        for asked in message.transcript.asked:
            key = asked.name, preview(asked.arguments, _FEW_CHARACTERS)
            before = self._asked.setdefault(key, number)
            if before != number:
                told((f"has the arguments of turn {before}", asked.name or ""))
            if asked.id:
                self._waiting[asked.id], self._names[asked.id] = turn, asked.name or ""
        for answered in message.transcript.answered:
            tool = self._names.get(answered.id or "", answered.name or "")
            if self._waiting.pop(answered.id or "", None) is None and answered.id:
                told((_UNASKED, tool))
            cut = None if message.rest(answered.path) else find_cut(answered.content)
            if cut is not None and cut.reason != SUSPECTED:
                told((f"is truncated ({cut.reason})", tool))
            measured = size(answered.content)
            if self._seen.again(tool, outcome(answered.content, measured, message.value), number):
                told(("has the result of the calls before it", tool))

    def _divide(self, turn: Turn, message: Message, answered: list[turns.Result]) -> None:
        """Add the bytes of a message to its tools; the rest belongs to its sender."""
        left = message.bytes
        parts = [("result", result.name, result.answered.content, result.answered.path) for result in answered]
        parts += [("arguments", asked.name, asked.arguments, asked.path) for asked in message.transcript.asked]
        for kind, tool, value, path in parts:
            count = size(value).bytes + message.rest(path)
            turn.add(kind, tool, count)
            left -= count
        if answered and not message.transcript.by_user:
            turn.add("result", answered[-1].name, max(0, left))
        else:
            turn.add(message.sender, "", max(0, left))

    def _remedy(self, turn: Turn, history: History, group: list[Message]) -> None:
        """Run the remedies on a turn."""
        chosen = self._chosen
        trimmed, compacted = Changes(), Changes()
        trimming(history, 1, trimmed, LineForm(chosen.trim_characters, chosen.trim_reference_characters))
        compacting(history, 0, compacted, ABOVE_BYTES)
        bounding(history, 0, compacted, FAILURE_BYTES)
        places = [(result.at, result.answered.path) for result in history.results]
        turn.trimming = _saved(trimmed, history, group, places)
        places += [(call.at, call.asked.path) for call in history.calls]
        turn.compaction = _saved(compacted, history, group, places)
        turn.claim_check = sum(self._claimed(result, group[result.at]) for result in history.results)

    def _claimed(self, result: turns.Result, message: Message) -> int:
        """Return the bytes that the view of a stored result saves."""
        chosen = self._chosen
        text = raw_of(result.answered.content, WORKER_STEPS).text
        limit = min(chosen.claim_check_bytes, chosen.result_ceiling_bytes or chosen.claim_check_bytes)
        full = 0 if text is None else text_bytes(text) + message.rest(result.answered.path)
        if text is None or full <= limit:
            return 0
        place = envelope.key("0" * 32, "agent", result.answered.id or "call")
        digest, seal = "0" * envelope.DIGEST_DIGITS, "0" * envelope.SEAL_DIGITS
        reference = envelope.Reference(place, full, digest, seal)
        measured = Size(full, exact=True)  # without the tool that reads on, whose cursor would need a key
        shown = view(result.name or "", text, measured, str(reference), limit, names_tool=False).replacement.text
        return max(0, full - text_bytes(shown))


def _saved(changes: Changes, history: History, group: list[Message], places: Iterable[tuple[int, Path]]) -> int:
    """Return the bytes that changes remove, texts that are not kept included."""
    _, removed = changes.apply(history.messages)
    rests = (group[at].rest(path) for at, path in places if changes.value(at, path, _MISSING) is not _MISSING)
    return sum(removed.values()) + sum(rests)


# The messages of a text.


def read_messages(chunks: Iterator[str], turns: Turns, held: ReadTexts, steps: int) -> None:
    """Pass each message in the text to ``turns``, and add the texts that a model request would hold to ``held``."""
    visitor = _Visitor(turns, held)
    Reader(Window(chunks), visitor, steps=steps).read(_Spot(visitor.root, None))


class _Spot(NamedTuple):
    """A place in an open container; the elements of a list have no key."""

    around: _Open
    key: str | None


class _Open:
    """An open object or list."""

    __slots__ = ("around", "is_list", "kept", "key", "rests", "value")

    def __init__(self, around: _Open | None = None, key: str | None = None) -> None:
        self.around = around
        self.key = key
        self.value: Any = {}
        self.is_list = False
        self.kept = 0
        self.rests: _Rests = {}

    def objects(self) -> Iterator[_Open]:
        """Yield this object, unless it is a list, and those around it."""
        node: _Open | None = self
        while node is not None:
            if not node.is_list:
                yield node
            node = node.around

    def owner(self) -> _Open | None:
        """Return the object that keeps this value: itself, or the object around a list."""
        return next(self.objects(), None)

    def is_in_message(self) -> bool:
        """Return True inside of an object that looks like a message so far."""
        return any(_is_like_message(node.value) for node in self.objects())


class _Visitor:
    """Builds the objects that may be messages, and drops everything else."""

    form: Form = PLAIN

    def __init__(self, turns: Turns, held: ReadTexts) -> None:
        self._turns = turns
        self._held = held
        self.root = _Open()  # the texts of a file with several are its elements
        self.root.is_list, self.root.value = True, []
        self._latest = self.root

    def fields(self, spot: _Spot) -> _Open:
        """Begin a container."""
        self._latest = _Open(*spot)
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
            # The next piece may continue the last passage: keep its rest, aligned to a block.
            *whole, last = passages(tail + piece)
            done = len(last) // LONGEST * LONGEST
            texts.add(hashes([*whole, last[:done]]))
            tail = last[done:]
        texts.add(prints((tail,)))
        written()
        kept_text = "".join(kept)
        if self._put(spot, kept_text, kept_bytes) and owner is not None and full_bytes > kept_bytes:
            key = len(spot.around.value) - 1 if spot.key is None else spot.key
            owner.rests[id(spot.around.value), key] = full_bytes - kept_bytes, texts, spot.around.value

    def after(self, spot: _Spot, fields: _Open, key: str, value: Any, written: int) -> None:
        """End a member."""

    def close(self, fields: _Open) -> None:
        """End an object: a message is passed on, and another object is kept for the object around it."""
        spot = _Spot(fields.around or self.root, fields.key)
        if spot.key is None and not spot.around.is_in_message() and self._emit(spot.around, fields.value, fields.rests):
            return
        if not spot.around.is_in_message():
            self._look(fields.value, fields.rests)
        owner = spot.around.owner()
        if self._put(spot, fields.value, fields.kept) and owner is not None:
            owner.rests.update(fields.rests)

    def partly(self) -> None:
        """Skip an unreadable part."""

    def _decoded(self, spot: _Spot, value: Any) -> None:
        is_container = type(value) is dict or type(value) is list
        if is_container and not spot.around.is_in_message():
            if type(value) is dict and spot.key is None and self._emit(spot.around, value, {}):
                return
            self._search(value, _LEVELS)
        self._put(spot, value, 64 if is_container else 16)

    def _search(self, value: Any, levels: int) -> None:
        """Look for lists of messages in a decoded value."""
        if type(value) is dict:
            for member in value.values():
                if (type(member) is dict or type(member) is list) and levels:
                    self._search(member, levels - 1)
            self._look(value, {})
            return
        node = _Open()
        for element in value:
            if type(element) is dict and not self._emit(node, element, {}) and levels:
                self._search(element, levels - 1)

    def _look(self, value: dict[str, Any], rests: _Rests) -> None:
        """Look for the texts beside the messages of a request, and for what a provider said, in an object."""
        if not _LISTS.isdisjoint(value):
            for name in _BESIDE.intersection(value):
                self._hold(value, name, (), rests, {})
        arguments = value.get("payloads")  # of an activity
        given = [one for one in arguments if type(one) is dict and "data" in one] if type(arguments) is list else ()
        if any(_all_like(one["data"], _is_like_message) for one in given):
            for one in given:
                if type(one["data"]) is str or _all_like(one["data"], _SCHEMAS.intersection):
                    self._hold(one, "data", (), rests, {})
        kinds = (value.get(name) for name in ("run_type", "type", "kind"))
        is_tool = any(type(kind) is str and "tool" in kind.lower() for kind in kinds)
        for name in () if is_tool else _FAILURES.intersection(value):
            reason = reason_of(value[name])
            if reason is not None:
                self._turns.failed(reason)

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

    def _emit(self, around: _Open, value: dict[str, Any], rests: _Rests) -> bool:
        """Pass on an element that is a message."""
        message = _message(value)
        if message is None:
            return False
        cut: dict[Path, int] = {}
        for name in _REQUESTED:
            if name in message:
                self._hold(message, name, (), rests, cut)
        size = json_size(value, _NODES).bytes + sum(rest_bytes for rest_bytes, *_ in rests.values())
        self._turns.take(around, Message(message, size, cut, transcript(message)))
        if around.is_list and not around.value:
            around.value.append({"role": "user"})  # instead of all messages
        return True

    def _hold(self, container: Any, key: Any, around: Path, rests: _Rests, cut: dict[Path, int]) -> None:
        """Add the texts at and below a place to the texts of a request, and record the cut ones."""
        value, path = container[key], (*around, key)
        cls = type(value)
        if cls is str:
            rest = rests.get((id(container), key))
            if rest is None:
                self._held.add(prints((value,)))
            else:
                cut[path], texts, _ = rest
                self._held.modulus = max(self._held.modulus, texts.modulus)
                self._held.add(set(texts.prints))
        elif (cls is dict or cls is list) and len(path) < _LEVELS:
            for inner in value if cls is dict else range(len(value)):
                self._hold(value, inner, path, rests, cut)


def _message(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the message that an object is or has around it, else None."""
    if "action" in value or "observation" in value:
        _read_event(value)
    if type(ids := value.get("tool_call_ids")) is list and ids:  # SWE-agent's
        value.setdefault("tool_call_id", ids[0])
    for name in _AROUND:
        inner = value.get(name)
        if type(inner) is dict and "content" not in value:
            if name == "data" and type(value.get("type")) is str and value["type"] in _ROLES:
                inner.setdefault("type", value["type"])
            path = value.get("id")
            if name == "kwargs" and type(path) is list and path:  # LangChain's constructors, in LangSmith's runs
                inner.setdefault("type", str(path[-1]).removesuffix("Chunk").removesuffix("Message").lower())
            if _is_message(inner):
                return inner
    return value if _is_message(value) else None


def _read_event(value: dict[str, Any]) -> None:
    """Give an event of OpenHands the fields of a message: an action is a call, an observation its result."""
    action, observation, number = value.get("action"), value.get("observation"), value.get("id")
    about, args = (one if type(one) is dict else {} for one in (value.get("tool_call_metadata"), value.get("args")))
    if observation in {"agent_state_changed", "error"} and not about:  # of the agent itself
        extras = value.get("extras")
        value["error"] = value.get("content") or (extras.get("reason") if type(extras) is dict else None)
    elif type(observation) is str and type(value.get("content")) is str:
        value.update(role="tool", tool_call_id=about.get("tool_call_id") or str(value.get("cause", number)))
        value.setdefault("name", about.get("function_name") or observation)
    elif action in {"message", "system"}:
        value["role"] = "system" if action == "system" else "user" if value.get("source") == "user" else "assistant"
        value.setdefault("content", args.get("content", value.get("message")))
    elif type(action) is str and args:
        asked = {"name": about.get("function_name") or action, "arguments": args}
        value.update(role="assistant", tool_calls=[{"id": about.get("tool_call_id") or str(number), "function": asked}])


def _is_like_message(value: dict[str, Any]) -> bool:
    role, kind = value.get("role"), value.get("type")
    if type(role) is str:
        return role in _ROLES
    return "parts" in value or (type(kind) is str and (kind in _ROLES or kind in _ITEMS))


def _all_like(value: Any, is_like: Callable[[dict[str, Any]], object]) -> bool:
    return type(value) is list and bool(value) and all(type(one) is dict and is_like(one) for one in value)


def _is_message(value: dict[str, Any]) -> bool:
    """Return True for a message: it has a role or type, and content, calls, parts or a result."""
    return _is_like_message(value) and any(name in value for name in _REQUESTED)
