"""Model requests that a program sends itself, with httpx or its successor httpx2, to vLLM, llama.cpp and other servers.

``AGENT_OTEL_HTTPX`` switches it on. The format follows from the path of the URL and from the body; the host does not
matter. Requests of SDKs arrive here as well. If an SDK's adapter has read one, it is skipped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel._internal.object_kinds import fields, text
from agent_otel.core.thread import model_request
from agent_otel.core.types import Invocation, ModelReader, ModelRequest
from agent_otel.integrations.model_sdks.stainless import asks, ends, follow, usage
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.request_bodies import form_at
from agent_otel.integrations.wrap import watched

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

_SETTING = "AGENT_OTEL_HTTPX"
_UNCOVERED = (
    "remedies, which change no request here; a body that httpx streams; a response that the program reads with "
    "`iter_raw`"
)
_LOWEST_ERROR = 400
_SENDING = "Client.send AsyncClient.send"

ENTRY = Integration(
    "httpx",
    minimum="0.27",
    tested="0.28, requests in the formats of OpenAI and Anthropic",
    uncovered="remedies; a body that httpx streams; a response that the program reads with `iter_raw`",
    setting=_SETTING,
    sites=(Candidate("httpx._client", request=_SENDING),),
)
SUCCESSOR = Integration(
    "httpx2",
    minimum="2.0",
    tested="2.16, requests in the formats of OpenAI and Anthropic",
    uncovered="as for `httpx`",
    setting=_SETTING,
    product="httpx",
    sites=(Candidate("httpx2._client", request=_SENDING),),
)


def _request(invocation: Invocation) -> ModelRequest | None:
    sent = invocation.arg(0, "request")
    form = form_at(sent.url.path)
    if form is None or sent.method != "POST" or model_request.is_read():
        return None
    body = _json(fields(sent).get("_content"))  # a body that httpx streams is not in memory
    return form.read(body) if body is not None and form.messages in body else None


def _json(data: Any) -> dict[str, Any] | None:
    """Return a JSON object; None for anything else."""
    if type(data) is not bytes:
        return None
    found = errors.attempt(json.loads, data)
    return found if type(found) is dict else None


class _RefusedError(Exception):
    """A response that refuses a request, with the fields of an SDK's error; it is never raised."""

    def __init__(self, response: Any, data: bytes) -> None:
        super().__init__(data.decode(errors="replace"))
        self.status_code = response.status_code
        self.response = response
        self.body = _json(data)


class _Events:
    """The visit of a request around the bytes of its response. It reads events, or one JSON text.

    The bytes of a ``refusal`` are one text.
    """

    def __init__(self, visit: Any, *, is_stream: bool, refusal: Any = None) -> None:
        self._visit = visit
        self._around: Any = None
        self._separator = b"\n" if is_stream else None
        self._refusal = refusal
        #: The bytes of an unfinished line or text; joined once, at its end.
        self._rest: list[bytes] = []

    def step(self) -> Self:
        """Return the context manager around the next bytes."""
        self._around = self._visit.step()
        return self

    def __enter__(self) -> Self:
        self._around.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, StopIteration | StopAsyncIteration):
            self._end()
        self._around.__exit__(kind, error, trace)

    def close(self) -> None:
        """Complete an ``__exit__`` that an interrupt has ended."""
        self._around.close()

    @errors.guarded("model_request.response")
    def item(self, value: Any) -> None:
        """Read the events that end in these bytes."""
        self._rest.append(value)
        if self._separator is not None and self._separator in value:
            *lines, rest = self._whole().split(self._separator)
            self._rest.append(rest)
            for line in lines:
                self._line(line)

    def returned(self, value: Any) -> None:
        """Read nothing: a body ends when its bytes end."""

    def abandon(self) -> None:
        """End the visit when the program abandons the body."""
        self._end()
        self._visit.abandon()

    @errors.guarded("model_request.response")
    def _end(self) -> None:
        """Read the rest: the last line, or the whole text."""
        rest = self._whole()
        if self._refusal is None:
            self._line(rest)
        else:
            self._visit.refused(_RefusedError(self._refusal, rest))

    def _whole(self) -> bytes:
        """Return the unread bytes, and clear them."""
        parts, self._rest = self._rest, []
        return b"".join(parts)

    def _line(self, line: bytes) -> None:
        event = _json(line.removeprefix(b"data:"))
        if event is not None:
            self._visit.item(event)


def _watch(response: Any, visit: Any) -> Any:
    """Read a whole body, or put the visit around the bytes of one that the program reads later."""
    is_refused = response.status_code >= _LOWEST_ERROR
    data = fields(response).get("_content")
    if data is None:
        kind = text(response.headers.get("content-type")) or ""
        is_stream = kind.startswith("text/event-stream") and not is_refused
        events = _Events(visit, is_stream=is_stream, refusal=response if is_refused else None)
        method = "aiter_bytes" if hasattr(type(response.stream), "__aiter__") else "iter_bytes"
        follow(response, method, lambda chunks: watched(chunks, events))
    elif is_refused:
        visit.refused(_RefusedError(response, data))
    elif (body := _json(data)) is not None:
        visit.returned(body)
    return response


request = ModelReader(_request, usage, asks, _watch, ends)
