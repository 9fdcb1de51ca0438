"""Artifacts that a tool yields: each is stored by itself, and an answer about one names the next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.errors import ours
from agent_otel.core.captured_content import hide_in
from agent_otel.core.tool_visit import running as running_call
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.writer import Stored

if TYPE_CHECKING:
    from agent_otel.remedies.claim_check.policy import ClaimCheck

MOST_ARTIFACTS: Final = 1000
"""Artifacts of one call; a tool that yields more is closed."""

_MOST_REFERENCES: Final = 10_000
#: Ids that one answer lists; the model gets the others with the next answers.
_MOST_LISTED: Final = 50

#: The stream of each artifact, and the artifact's place in it. A lost entry costs the next action of an answer.
_streams: OrderedDict[str, tuple[ArtifactStream, int]] = OrderedDict()


class ArtifactStream:
    """The artifacts of one call: ``streaming`` until the tool has ended, then ``complete`` or ``failed``."""

    def __init__(self, check: ClaimCheck, tool: str) -> None:
        self._check = check
        self._tool = tool
        #: It may end before the tool does.
        self._call = running_call()
        self._ids: list[str] = []
        self._lost = 0
        self._status = "streaming"
        self._failure = ""
        #: The exception of a tool that has yielded nothing.
        self.error: BaseException | None = None
        #: Set when the first artifact is stored, or the tool has ended.
        self.has_begun = threading.Event()

    @property
    def is_empty(self) -> bool:
        """True while no artifact was yielded."""
        return not self._ids and not self._lost

    def add(self, artifact: object) -> bool:
        """Store an artifact; False when the tool has to be closed."""
        number = len(self._ids) + self._lost + 1
        outcome = self._check.keep(artifact, self._tool, "artifact", self._call)
        if isinstance(outcome, Stored):
            ref = str(outcome.reference)
            _streams[ref] = self, len(self._ids)
            self._ids.append(ref)
            if len(_streams) > _MOST_REFERENCES:
                _streams.popitem(last=False)
        else:
            self._lost += 1
        self.has_begun.set()
        return number < MOST_ARTIFACTS

    def end(self, error: BaseException | None = None) -> None:
        """Record that the tool has ended, or raised; the first of several calls counts."""
        if self._status == "streaming":
            if error is not None:
                self._fail(error)
            self._status = "complete" if error is None else "failed"
        self._call = None  # the stream stays for its references, and the call holds the arguments
        self.has_begun.set()

    def _fail(self, error: BaseException) -> None:
        """Keep the text of an exception, without injected values: the exception itself holds the tool's variables."""
        if self._call is not None and self._call.injected:
            hide_in(error, self._call.injected)
        try:
            self._failure = f"{type(error).__name__}: {error}"
        except ours(Exception):  # its own code
            self._failure = type(error).__name__
        self.error = error if self.is_empty else None

    def acknowledgement(self) -> dict[str, Any]:
        """Return the answer to the call itself."""
        return {"tool": self._tool, **self._state(-1, None)}

    def after(self, place: int, ref: str) -> dict[str, Any]:
        """Return what follows after the artifact in this place."""
        return self._state(place, ref)

    def _state(self, place: int, ref: str | None) -> dict[str, Any]:
        # The status is read first: a stream that is complete has all its artifacts.
        state: dict[str, Any] = {"status": self._status}
        ids = self._ids[place + 1 : place + 1 + _MOST_LISTED]
        state["artifact_ids"] = ids
        if self._lost:
            state["artifacts_lost"] = self._lost
        if state["status"] == "failed":
            state["error"] = self._failure
        following = ids[0] if ids else ref if state["status"] == "streaming" else None
        state["next_action"] = None if following is None else next_action(following)
        return state


def next_action(ref: str, **arguments: str) -> dict[str, Any]:
    """Return the call that reads an artifact."""
    return {"tool": policy.GET_TOOL_RESULT, "arguments": {"ref": ref, **arguments}}


def following(ref: str) -> dict[str, Any] | None:
    """Return what follows after an artifact; None for a result that is no artifact of this process."""
    found = _streams.get(ref)
    return None if found is None else found[0].after(found[1], ref)
