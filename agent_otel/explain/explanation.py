"""The explanation of a payload, as plain data: for the terminal, for JSON and for the page.

The costs of carrying a tool's bytes are estimates: a token is four bytes, each request holds all turns before it, and
nothing is cached.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel._internal.installing import installed_with
from agent_otel.caps import payload_caps
from agent_otel.core.execution_state import ReadTexts
from agent_otel.core.models import UNKNOWN, ModelFacts, configured, read_facts
from agent_otel.core.payload_cap import cap_for
from agent_otel.core.usage import Usage
from agent_otel.explain.conversation import Saving, Turn, Turns, read_messages
from agent_otel.explain.formats import Source, SourceError, Step
from agent_otel.measure.breakdown.report import Breakdown, breakdown_chunks
from agent_otel.measure.breakdown.unread import Held
from agent_otel.measure.forecast import turns_to_cap
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

BYTES_PER_TOKEN: Final = 4
CARRIED_HEAD: Final = ("tool", "tokens", "sent again", "US dollars")
ESTIMATED: Final = "Tokens are estimates of 4 bytes each, sent again in each later turn; without a prompt cache."
#: Values that are read one by one at most: 50 s, for files that a person waits for.
_STEPS: Final = 10_000_000
#: Boundaries at which a state or a conversation is one payload.
_PAYLOADS: Final = ("activity_input", "activity_output", "workflow_input", "workflow_output", "state", "message")


class Room(NamedTuple):
    """The room that a payload has under a runtime's smallest cap, in bytes, and the turns until it is full."""

    runtime: str
    boundary: str
    cap_bytes: int
    source: str
    left_bytes: int
    turns_left: int | None


class Carried(NamedTuple):
    """Tokens of a tool's results and arguments, those sent in all later requests, and US dollars for these."""

    tool: str
    tokens: int
    sent_tokens: int
    dollars: float | None

    def row(self) -> tuple[str, ...]:
        """Return the row of a table for people, below ``CARRIED_HEAD``."""
        dollars = "" if self.dollars is None else f"{self.dollars:,.2f}"
        return self.tool, f"{self.tokens:,}", f"{self.sent_tokens:,}", dollars


class ContextWindow(NamedTuple):
    """The window of a model in tokens, the tokens of the conversation, and the turns until it is full."""

    model: str
    tokens: int
    used_tokens: int
    turns_left: int | None

    def sentence(self) -> str:
        """Return the figures in words."""
        left = "" if self.turns_left is None else f", {self.turns_left:,} turns left"
        return f"Context window of {self.model}: {self.used_tokens:,} of {self.tokens:,} tokens{left}."


@dataclass(frozen=True, slots=True)
class Explanation:
    """A payload in bytes: its breakdown, its turns, the payloads of its runtime, its room and the remedies' savings."""

    name: str
    kind: str
    payload_bytes: int
    breakdown: Breakdown
    turns: list[Turn]
    sizes: list[int]
    steps: list[Step]
    rooms: list[Room]
    savings: list[Saving]
    carried: list[Carried]
    window: ContextWindow | None
    notes: list[str]


def explain(name: str, source: Source, model: str = "", facts: ModelFacts = UNKNOWN) -> Explanation:
    """Return the explanation of a source, which is read twice; ``facts`` are of the conversation's model.

    Raises:
        SourceError: it holds no JSON.
    """
    turns, held, read_bytes = Turns(), ReadTexts(), 0

    def counted() -> Iterator[str]:
        nonlocal read_bytes
        for chunk in source.chunks():
            read_bytes += text_bytes(chunk)
            yield chunk

    chunks = counted()
    read_messages(chunks, turns.take, held, _STEPS)
    for _ in chunks:  # what the reader left
        pass
    total = read_bytes if source.bytes is None else source.bytes
    found = turns.longest()
    requests = Held(held.prints, len(held.prints), held.modulus, lambda _: None) if found else None
    breakdown = breakdown_chunks(source.chunks(), total, lambda _: None, held=requests, steps=_STEPS)
    if breakdown is None:
        raise SourceError(f"{name} is not JSON")
    notes = list(source.notes)
    if not breakdown.exact:
        notes.append("A part could not be read, or is estimated: figures are lower bounds.")
    largest = max(source.steps, key=lambda step: step.bytes, default=Step("", "", 0))
    series = (largest.name, largest.boundary)
    sizes = [step.bytes for step in source.steps if (step.name, step.boundary) == series]
    sizes = sizes or _sizes(found, breakdown)
    return Explanation(
        name=name,
        kind=source.kind,
        payload_bytes=total,
        breakdown=breakdown,
        turns=found,
        sizes=sizes,
        steps=source.steps,
        rooms=_rooms(source, largest.boundary, sizes, total),
        savings=turns.savings(found) if found else [],
        carried=carried(found, facts),
        window=context_window(model, found, facts),
        notes=notes,
    )


def _sizes(turns: list[Turn], breakdown: Breakdown) -> list[int]:
    """Return the size after each turn of a payload that no runtime has recorded.

    It follows from the bytes of the turns: the payload without the turns behind, and without their share of the texts
    that stand in it twice.
    """
    ends = list(accumulate(turn.bytes for turn in turns))
    whole = max(1, ends[-1] if ends else 0)
    growing = min(breakdown.total_bytes, whole + breakdown.duplicate_bytes)
    return [breakdown.total_bytes - (whole - end) * growing // whole for end in ends]


def _rooms(source: Source, boundary: str, sizes: list[int], total: int) -> list[Room]:
    """Return the room under the smallest cap of each runtime, or of the source's own boundary; least room first."""
    size = sizes[-1] if sizes else total
    if sizes and boundary.endswith("_output"):  # results are not carried on
        size = max(sizes)
    found: dict[str, Room] = {}
    for row in payload_caps():
        if boundary not in ("", row.boundary) or row.cumulative or row.boundary not in _PAYLOADS:
            continue
        if source.runtime not in ("", row.runtime) or source.variant not in ("", row.variant):
            continue
        cap = cap_for(row.runtime, row.boundary, variant=row.variant or None)
        runtime = f"{row.runtime} ({row.variant})" if row.variant else row.runtime
        if cap is not None and not (runtime in found and found[runtime].cap_bytes <= cap.bytes):
            turns = turns_to_cap(sizes, cap.bytes)
            found[runtime] = Room(runtime, row.boundary, cap.bytes, cap.source, cap.bytes - size, turns)
    return sorted(found.values(), key=lambda room: room.left_bytes)


def facts_of(model: str, warn: Callable[[str], None]) -> ModelFacts:
    """Return the window and the prices of a model; of the setting alone, with a warning, without genai-prices."""
    if not model:
        return UNKNOWN
    try:
        return read_facts(model)
    except PackageNotFoundError:
        warn(f"prices of models need a package: {installed_with('prices')}")
        return ModelFacts(configured().get(model))


def carried(turns: list[Turn], facts: ModelFacts) -> list[Carried]:
    """Return the cost of carrying for each tool, the most expensive first."""

    def rate(total_bytes: int) -> float:
        """Return US dollars for an input token of a request with so many bytes; 0 for a model without prices."""
        tokens = max(1, total_bytes // BYTES_PER_TOKEN)
        cost = facts.cost(Usage(input=tokens))
        return 0.0 if cost is None else cost.input / tokens

    totals = [0, *accumulate(turn.bytes for turn in turns)]
    # Of the request of each turn, and of all up to it: US dollars for a token that stands in every one of them.
    rates = list(accumulate(map(rate, totals[:-1])))
    held: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    dollars: dict[str, float] = defaultdict(float)
    for number, turn in enumerate(turns, 1):
        for (_, tool), count in turn.parts.items():
            if tool:
                held[tool] += count
                sent[tool] += count * (len(turns) - number)
                dollars[tool] += count * (rates[-1] - rates[number - 1]) / BYTES_PER_TOKEN
    rows = [
        Carried(tool, count // BYTES_PER_TOKEN, sent[tool] // BYTES_PER_TOKEN, dollars[tool] if facts.tiers else None)
        for tool, count in held.items()
    ]
    return sorted(rows, key=lambda row: (-row.sent_tokens, -row.tokens))


def context_window(model: str, turns: list[Turn], facts: ModelFacts) -> ContextWindow | None:
    """Return the use of a model's window; None where the window is unknown or the payload has no turns."""
    if facts.window is None or not turns:
        return None
    used = [total // BYTES_PER_TOKEN for total in accumulate(turn.bytes for turn in turns)]
    return ContextWindow(model, facts.window, used[-1], turns_to_cap(used, facts.window))


@dataclass(slots=True)
class Node:
    """A place in a payload: its name, the bytes at and below it, and its children, largest first."""

    name: str
    bytes: int = 0
    children: list[Node] = field(default_factory=list)


def by_path(paths: Mapping[str, int], total_bytes: int) -> Node:
    """Return the tree of the paths; the root has all bytes, the punctuation included."""
    root = Node("payload")
    places: dict[str, Node] = {"": root}
    for path, count in paths.items():
        at, node = "", root
        node.bytes += count
        for part in path.split("."):
            at = f"{at}.{part}" if at else part
            if at not in places:
                places[at] = Node(part)
                node.children.append(places[at])
            node = places[at]
            node.bytes += count
    for node in places.values():
        node.children.sort(key=lambda child: -child.bytes)
    if total_bytes > root.bytes:
        root.children.append(Node("keys and punctuation", total_bytes - root.bytes))
    root.bytes = total_bytes
    return root
