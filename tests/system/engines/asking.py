"""Asks a server on this machine over HTTP, for what answers in JSON."""

from __future__ import annotations

import contextlib
import http.client
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def get(url: str, parameters: Mapping[str, str | Sequence[str]] | None = None) -> Any:
    """Return the JSON of an answer, None for an empty one; any status but a 2xx is an AssertionError with its text."""
    query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
    return _read(*_ask("GET", url + query))


def post(url: str, body: str | bytes = b"", content_type: str = "text/plain") -> Any:
    """Return what `get` does, for a body that is sent."""
    return _read(*_ask("POST", url, body.encode() if isinstance(body, str) else body, content_type))


def is_healthy(url: str) -> bool:
    """Whether the server answers here, and that all is well."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        return _ask("GET", url)[0] == http.client.OK
    return False


def _ask(method: str, url: str, body: bytes | None = None, content_type: str = "") -> tuple[int, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    with contextlib.closing(connection):
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request(method, path, body, {"content-type": content_type} if content_type else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def _read(status: int, said: str) -> Any:
    assert http.client.OK <= status < http.client.MULTIPLE_CHOICES, f"{status}: {said}"
    return json.loads(said) if said.strip() else None
