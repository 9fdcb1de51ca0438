"""Temporal histories as JSON: payloads are base64 there, and are decoded on the way.

``temporal workflow show --output json``, ``WorkflowHistory.to_json`` and the Web UI's download write this format.
"""

from __future__ import annotations

import binascii
import codecs
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Final

from agent_otel.explain.source import Source, Step
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNTIME: Final = "temporal"
_EVENTS: Final = re.compile(rb'"events"\s*:\s*\[')
_EVENT: Final = re.compile(rb'"eventType"\s*:')
#: Kind of event and field -> boundary of its payloads.
_BOUNDARIES: Final = {
    ("workflowExecutionStarted", "input"): "workflow_input",
    ("activityTaskScheduled", "input"): "activity_input",
    ("activityTaskCompleted", "result"): "activity_output",
    ("workflowExecutionCompleted", "result"): "workflow_output",
}
_JSON: Final = tuple(binascii.b2a_base64(name, newline=False).decode() for name in (b"json/plain", b"json/protobuf"))
_FIELDS: Final = "input|result|header|memo|searchAttributes|details|failure|lastCompletionResult"
_MARK: Final = re.compile(
    r'"(?P<event>\w+)EventAttributes"\s*:|"activityType"\s*:\s*\{\s*"name"\s*:\s*"(?P<name>[^"]{0,256})"'
    rf'|"(?P<field>{_FIELDS})"\s*:\s*[{{\[]|"encoding"\s*:\s*"(?P<encoding>[^"]{{0,64}})"|"data"\s*:\s*"(?P<data>)'
)
_LONGEST_MARK: Final = 512
_BLOCK: Final = 32 * 1024  # characters of base64, a multiple of four


def is_history(head: bytes) -> bool:
    """Return True for the beginning of a history."""
    return _EVENTS.search(head) is not None and _EVENT.search(head) is not None


def source(text: Callable[[], Iterator[str]]) -> Source:
    """Return the source of a history."""
    steps: list[Step] = []
    return Source("Temporal history", lambda: _Decoder(text(), steps).chunks(), None, RUNTIME, steps=steps)


class _Decoder:
    """Replaces the base64 text of each JSON payload by the JSON, and records the payloads' sizes."""

    def __init__(self, text: Iterator[str], steps: list[Step]) -> None:
        self._text = text
        self._steps = steps
        steps.clear()
        self._buffer = ""
        self._at_end = False
        self._event = self._name = self._field = self._encoding = ""
        self._step_bytes = 0

    def chunks(self) -> Iterator[str]:
        """Yield the decoded text."""
        while not (self._at_end and not self._buffer):
            mark = _MARK.search(self._buffer)
            if mark is None:
                keep = 0 if self._at_end else min(_LONGEST_MARK, len(self._buffer))
                yield self._buffer[: len(self._buffer) - keep]
                self._buffer = self._buffer[len(self._buffer) - keep :]
                self._more()
                continue
            is_json_data = mark.lastgroup == "data" and self._encoding in _JSON
            end = mark.end() - 1 if is_json_data else mark.end()
            yield self._buffer[:end]
            self._buffer = self._buffer[mark.end() :]
            if is_json_data:
                yield from self._payload()
            else:
                self._note(mark)
        self._finish_step()

    def _more(self) -> None:
        chunk = next(self._text, None)
        self._at_end = chunk is None
        self._buffer += chunk or ""

    def _note(self, mark: re.Match[str]) -> None:
        if mark["event"] is not None:
            self._finish_step()
            self._event, self._name, self._field = mark["event"], "", ""
        elif mark["name"] is not None:
            self._name = mark["name"]
        elif mark["field"] is not None:
            self._finish_step()
            self._field = mark["field"]
        elif mark["encoding"] is not None:
            self._encoding = mark["encoding"]

    def _payload(self) -> Iterator[str]:
        """Yield the JSON of a payload, a block at a time."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._encoding = ""
        while True:
            end = self._buffer.find('"')
            if end < 0 and len(self._buffer) < _BLOCK and not self._at_end:
                self._more()
                continue
            block = self._buffer[: end if 0 <= end <= _BLOCK else _BLOCK]
            self._buffer = self._buffer[len(block) :]
            is_last = len(block) < _BLOCK or self._buffer.startswith('"')
            try:
                decoded = decoder.decode(b64decode(block), final=is_last)
            except binascii.Error:
                decoded = "null"
            self._step_bytes += text_bytes(decoded)
            yield decoded
            if is_last:
                self._buffer = self._buffer.removeprefix('"')
                return

    def _finish_step(self) -> None:
        """Record the payloads of a field of an event: their cap is on all of them together."""
        boundary = _BOUNDARIES.get((self._event, self._field))
        if boundary is not None and self._step_bytes:
            self._steps.append(Step(self._name, boundary, self._step_bytes))
        self._step_bytes = 0
