"""The explanation of a payload, as plain data: for the terminal, for JSON and for the page.

The costs of carrying a tool's bytes are estimates: a token is four bytes, each request holds all turns before it, and
nothing is cached.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel._internal.installing import installed_with
from agent_otel.caps import payload_caps
from agent_otel.core.cost.models import UNKNOWN, ModelFacts, configured, read_facts
from agent_otel.core.cost.usage import Usage
from agent_otel.core.execution_state import ReadTexts
from agent_otel.core.payload_cap import EffectiveCap, cap_for
from agent_otel.explain.conversation import Saving, Turn, Turns, read_messages
from agent_otel.explain.formats import Source, SourceError, Step
from agent_otel.measure.breakdown.report import Breakdown, breakdown_chunks
from agent_otel.measure.breakdown.unread import Held
from agent_otel.measure.forecast import LOOK_BACK, turns_to_cap, turns_until_full
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

BYTES_PER_TOKEN: Final = 4
_ESTIMATED: Final = "Tokens are estimates of 4 bytes each, sent again in each later turn; without a prompt cache."
#: Values that are read one by one at most: 50 s, for files that a person waits for.
_STEPS: Final = 10_000_000
#: Boundaries at which a state or a conversation is one payload.
_FAR: Final = 0.1
#: Events of a Temporal history above which the server terminates the workflow (limit.historyCount.error).
_MOST_EVENTS: Final = 51_200
_PAYLOADS: Final = ("activity_input", "activity_output", "workflow_input", "workflow_output", "state", "message")


@dataclass(frozen=True, slots=True)
class Room:
    """The room that a payload has under a runtime's smallest cap, in bytes, and the turns until it is full."""

    runtime: str
    boundary: str
    cap_bytes: int
    source: str
    left_bytes: int
    turns_left: int | None


@dataclass(frozen=True, order=True, slots=True)
class Carried:
    """Tokens of a tool's results and arguments, those sent in all later requests, and US dollars for these."""

    tool: str
    tokens: int
    sent_tokens: int
    dollars: float | None


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The window of a model in tokens, the tokens of the conversation, and the turns until it is full."""

    model: str
    tokens: int
    used_tokens: int
    turns_left: int | None


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
    read_messages(chunks, turns, held, _STEPS)
    deque(chunks, 0)  # what the reader left
    total = read_bytes if source.bytes is None else source.bytes
    found, refused = turns.longest()
    requests = Held(held.prints, len(held.prints), held.modulus, lambda _: None) if found else None
    breakdown = breakdown_chunks(source.chunks(), total, lambda _: None, held=requests, steps=_STEPS)
    if breakdown is None:
        raise SourceError(f"{name} is not JSON")
    if breakdown.unread is not None and source.runtime == "temporal":  # the rest is the server's
        paths = {path: count for path, count in breakdown.unread.paths.items() if ".payloads[].data" in path}
        breakdown = replace(breakdown, unread=breakdown.unread._replace(paths=paths))
    notes = [*source.notes, *(f"A model request was {what}." for what in refused)]
    if not breakdown.exact:
        notes.append("A part could not be read, or is estimated: figures are lower bounds.")
    # The sizes of a runtime's payloads in their order, by name and boundary.
    series: dict[tuple[str, str], list[int]] = defaultdict(list)
    for step in source.steps:
        series[step.name, step.boundary].append(step.bytes)
    largest = max(series, key=lambda key: max(series[key]), default=("", ""))
    sizes = series.get(largest) or _sizes(found, breakdown)
    return Explanation(
        name=name,
        kind=source.kind,
        payload_bytes=total,
        breakdown=breakdown,
        turns=found,
        sizes=sizes,
        steps=source.steps,
        rooms=_rooms(source, series, sizes or [total]),
        savings=turns.savings(found) if found else [],
        carried=carried(found, facts),
        window=context_window(model, found, facts),
        notes=notes,
    )


def _sizes(turns: list[Turn], breakdown: Breakdown) -> list[int]:
    """Return the size after each turn of a payload that no runtime has recorded.

    It follows from the bytes of the turns: the payload without the later turns and their share of the texts that are
    in it twice.
    """
    ends = list(accumulate(turn.bytes for turn in turns))
    whole = max(1, ends[-1] if ends else 0)
    growing = min(breakdown.total_bytes, whole + breakdown.duplicate_bytes)
    return [breakdown.total_bytes - (whole - end) * growing // whole for end in ends]


def _rooms(source: Source, series: Mapping[tuple[str, str], list[int]], sizes: list[int]) -> list[Room]:
    """Return the room under each cap of the source's runtime, or under the smallest one of each; the nearest first."""
    found: dict[tuple[str, str], Room] = {}
    for row in payload_caps():
        if source.runtime not in ("", row.runtime) or source.variant not in ("", row.variant):
            continue
        cap = cap_for(row.runtime, row.boundary, variant=row.variant or None)
        own = [each for (_, boundary), each in series.items() if boundary == row.boundary]
        if row.boundary == "message" and series:
            own = [[step.bytes for step in source.steps]]
        elif not series and row.boundary in _PAYLOADS and not row.cumulative:
            own = [sizes]
        if cap is None:
            continue
        for each in own:
            runtime = f"{row.runtime} ({row.variant})" if row.variant else row.runtime
            # The results of a step, and the payloads of several, are not carried on.
            is_carried = not (series and (row.boundary.endswith("_output") or row.boundary == "message"))
            left = cap.bytes - (each[-1] if is_carried else max(each))
            turns = turns_to_cap(each, cap.bytes) if is_carried else None
            room = Room(runtime, row.boundary, cap.bytes, cap.source, left, turns)
            key = (runtime, row.boundary if series else "")
            if key not in found or _nearness(room) < _nearness(found[key]):
                found[key] = room
    if source.history and (cap := cap_for(source.runtime, "history")) is not None:
        most = max(series, key=lambda key: len(series[key]))
        ends = [at for at, step in enumerate(source.steps) if (step.name, step.boundary) == most]
        parts = list(zip(*(source.history[at] for at in (*ends, -1)), strict=True))
        events = EffectiveCap(_MOST_EVENTS, cap.source)
        for name, own_cap, grown in zip(("history", "history, events"), (cap, events), parts, strict=True):
            turns_left = _turns_of_history(grown[:-1], own_cap.bytes)
            found[source.runtime, name] = Room(
                *(source.runtime, name, own_cap.bytes, own_cap.source, own_cap.bytes - grown[-1], turns_left)
            )
    return sorted(found.values(), key=_nearness)


def _nearness(room: Room) -> tuple[float, float]:
    turns = math.inf if room.turns_left is None else room.turns_left
    return (turns if room.left_bytes > 0 else -1, room.left_bytes / room.cap_bytes)


def _turns_of_history(sizes: Sequence[int], cap: int) -> int | None:
    """Return how many turns fit into a history. It holds the state of each turn, so its growth itself grows."""
    growths = [after - before for before, after in pairwise(sizes)][-LOOK_BACK:]
    if len(growths) < 2:  # noqa: PLR2004 - no growth of the growth
        return None
    more = max(0.0, (growths[-1] - growths[0]) / (len(growths) - 1))
    return turns_until_full(cap - sizes[-1], growths[-1], more)


class Table(NamedTuple):
    """A table for people: its title, head, rows and notes below it."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str] = ()


def tables(found: Explanation, *, everything: bool = False) -> list[Table]:
    """Return the tables of an explanation that have rows; those of a share below 0.5 % only with ``everything``."""

    def shares(counts: Iterable[tuple[str, int]]) -> list[tuple[str, ...]]:
        ordered = [row for row in sorted(counts, key=lambda row: -row[1]) if everything or row[1] * 200 >= total]
        return [(name, f"{count:,}", f"{100 * count / total:.0f} %") for name, count in ordered]

    total, breakdown = max(1, found.payload_bytes), found.breakdown
    unread = {} if breakdown.unread is None else breakdown.unread.paths
    duplicates = [(f"{one.path} = {one.other_path}", one.bytes) for one in breakdown.duplicates]
    # All caps of a runtime's own file; of any JSON, only those that it comes near.
    is_all = everything or found.steps
    near = [room for room in found.rooms if is_all or room.left_bytes <= (1 - _FAR) * room.cap_bytes]
    rooms = [
        (
            *(room.runtime, room.boundary, f"{room.cap_bytes:,}"),
            f"{room.left_bytes:,}" if room.left_bytes >= 0 else f"over by {-room.left_bytes:,}",
            "" if room.turns_left is None else f"{room.turns_left:,}",
        )
        for room in near or found.rooms[:1]
    ]
    hidden = len(found.rooms) - len(rooms)
    notes = [f"{hidden} more with --all: less than {_FAR:.0%} full."] if hidden else []
    notes += [] if found.sizes else ["turns left: unknown, the payload shows no turns"]
    carried = [
        (row.tool, f"{row.tokens:,}", f"{row.sent_tokens:,}", "" if row.dollars is None else f"{row.dollars:,.2f}")
        for row in found.carried
    ]
    estimated = [_ESTIMATED]
    if (window := found.window) is not None:
        left = "" if window.turns_left is None else f", {window.turns_left:,} turns left"
        used = f"{window.used_tokens:,} of {window.tokens:,} tokens"
        estimated.append(f"Context window of {window.model}: {used}{left}.")
    savings = [
        (row.remedy, f"{row.bytes:,}", "the payload" if row.of_payload else "the next request", row.setting)
        for row in found.savings
        if row.bytes or everything
    ]
    incidents = [
        (f"{number:,}", tool, what) for number, turn in enumerate(found.turns, 1) for what, tool in turn.incidents
    ]
    every = [
        Table("Room", ("runtime", "boundary", "smallest cap", "room left", "turns left"), rooms, notes),
        Table("What happened", ("turn", "tool", "what"), incidents),
        Table("Tools", ("tool", "bytes of results", "share"), shares(breakdown.tools.items())),
        Table("Duplicates", ("duplicate", "bytes", "share"), shares(duplicates)),
        Table("Read by no model request", ("read by no model request", "bytes", "share"), shares(unread.items())),
        Table("What carrying costs", ("tool", "tokens", "sent again", "US dollars"), carried, estimated),
        Table("What each remedy saves", ("remedy", "saves bytes", "of", "setting"), savings),
    ]
    return [table for table in every if table.rows]


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
        return 0.0 if cost is None else cost[0] / tokens

    totals = [0, *accumulate(turn.bytes for turn in turns)]
    # US dollars for a token in the request of each turn, and for one in all requests up to it.
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
