"""What the ledger holds of one execution: integers and short strings only, never a value."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import deque

    from opentelemetry.trace import SpanContext


class Noted:
    """One tool call whose result may come by again: the tool, and its bytes at each station, -1 where not read.

    ``length`` is how many characters were delivered, so that a result that was seen costs a look-up and a length.
    ``probe`` is the beginning and the end of a result without a call id. ``span`` is the context of the tool's span;
    both are let go when the result has been delivered.
    """

    __slots__ = ("delivered", "handed", "length", "probe", "produced", "span", "tool")

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.produced = -1
        self.handed = -1
        self.delivered = -1
        self.length = -1
        self.probe: tuple[str, str] | None = None
        self.span: SpanContext | None = None


_STREAM_ENTRIES = 2
_PRINTS_PER_ENTRY = 25


class Stream:
    """The model requests of one transcript: what the last one consisted of, as fingerprints of its parts.

    Its length is in entries of the ledger, of about 200 bytes: a fingerprint has eight.
    """

    __slots__ = ("prints", "requests")

    def __init__(self) -> None:
        self.prints = array("q")
        self.requests = 0

    def __len__(self) -> int:
        return _STREAM_ENTRIES + len(self.prints) // _PRINTS_PER_ENTRY


class Track:
    """Payloads of one kind in one execution, turn by turn: their recent sizes, and how many were refused in a row."""

    __slots__ = ("refused", "sizes", "utilization")

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.refused = 0
        self.utilization = 0.0


class Execution:
    """What is remembered of one execution.

    ``call_ids`` maps a call's id to what is known of it, ``unnamed`` holds calls without one, oldest first. ``streams``
    are its transcripts (an agent's and its sub-agents'), ``followed`` the tools that are expected to be asked again and
    the requests since.
    """

    __slots__ = (
        "analysed",
        "asked",
        "call_ids",
        "carries",
        "few_turns",
        "followed",
        "forgotten",
        "handed_bytes",
        "payload_bytes",
        "result_bytes",
        "seen_at",
        "streams",
        "tool_calls",
        "tracks",
        "unnamed",
        "workflow",
    )

    def __init__(self) -> None:
        self.tool_calls = 0
        self.result_bytes = 0
        self.payload_bytes = 0
        self.seen_at = 0.0
        self.analysed = -1
        self.few_turns = False
        self.forgotten = False
        #: Bytes, cap and turns left of the payload nearest to its cap.
        self.carries: tuple[int, int | None, int | None] | None = None
        #: Bytes of the results that were handed on since that payload.
        self.handed_bytes = 0
        self.asked: dict[int, None] = {}
        self.call_ids: dict[str, Noted] = {}
        self.unnamed: deque[Noted] | None = None
        self.streams: dict[int, Stream] | None = None
        self.followed: dict[str, int] | None = None
        self.tracks: dict[str, Track] | None = None
        self.workflow: str | None = None

    def __len__(self) -> int:
        streams = sum(map(len, (self.streams or {}).values()))
        return len(self.asked) + len(self.call_ids) + len(self.tracks or ()) + len(self.unnamed or ()) + streams
