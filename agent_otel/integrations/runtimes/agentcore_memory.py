"""Amazon Bedrock AgentCore Memory: the events that a program adds to a session.

botocore's client sends them, whatever calls it: the SDK's clients, the session manager for Strands, boto3 itself. The
bytes are those of the body of ``CreateEvent``. In a method of another store they are that store's: all that a node
writes is one event of LangGraph's saver, and a checkpoint is one too, or several: above 10 MB, or 100 channels.
"""

from __future__ import annotations

import re
from typing import Any

from agent_otel.core.plain import text
from agent_otel.integrations import stores
from agent_otel.semconv import STATE

_RUNTIME = "agentcore"
#: The SDKs write the ids before the payload.
_MAX_IDS = 2_000
#: The field with the session, any other text, and the brackets around fields.
_TOKENS = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"|"(?:[^"\\]|\\.)*"|[][{}]')
_DEPTHS = {b"{": 1, b"[": 1, b"]": -1, b"}": -1}
_REFUSED = 300


def created(request: dict[str, Any], answered: Any) -> None:
    """Report an event that botocore has sent; one that the service has not taken is none."""
    body = request.get("body")
    http = answered[0] if type(answered) is tuple else None
    if type(body) is not bytes or http is None or http.status_code >= _REFUSED:
        return
    saving = stores.open_saving.get()
    if saving is not None:
        before = sum(size for size, _ in saving.items)
        saving.items = [(before + len(body), _RUNTIME)]
        return
    transfer = stores.open_transfer.get()
    if transfer is not None and not transfer.is_read:
        stores.add(body)
        return
    stores.report(_RUNTIME, _session(body), STATE, len(body), None, is_appended=True, agent=_memory(request))


def _session(body: bytes) -> str | None:
    """Return the session that a body names; what is stored in it may have fields of the same name."""
    depth = 0
    for token in _TOKENS.finditer(body, 0, _MAX_IDS):
        if depth == 1 and token[1] is not None:
            return token[1].decode("utf-8", "replace")
        depth += _DEPTHS.get(token[0], 0)
    return None


def _memory(request: dict[str, Any]) -> str | None:
    """Return the memory's id: the part of ``/memories/{id}/events``."""
    return (text(request.get("url_path")) or "").rpartition("/events")[0].rpartition("/memories/")[2] or None
