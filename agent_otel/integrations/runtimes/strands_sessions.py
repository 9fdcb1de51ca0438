"""Strands Agents: sessions that ``FileSessionManager`` and ``S3SessionManager`` keep.

Each message of an agent is a file or an object of S3, and an agent begins with all of them. The bytes are those of the
files and objects. The entry is in ``frameworks/strands.py``.
"""

from __future__ import annotations

import functools
import json
import os
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import listed, text
from agent_otel.integrations import stores
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import HISTORY, STATE

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

_RUNTIME = "strands"
_MESSAGE = "message_"

_FUNCTIONS = (
    Candidate(
        "strands.session.repository_session_manager",
        Wrap("RepositorySessionManager.append_message", "appended"),
        Wrap("RepositorySessionManager.initialize", "read"),
    ),
    Candidate(
        "strands.session.file_session_manager",
        Wrap("FileSessionManager._write_file", "written"),
        Wrap("FileSessionManager._read_file", "loaded"),
    ),
    Candidate(
        "strands.session.s3_session_manager",
        Wrap("S3SessionManager._write_s3_object", "put"),
        Wrap("S3SessionManager.list_messages", "messages"),
    ),
)
SESSIONS = tuple(Site(candidate, adapter="runtimes.strands_sessions") for candidate in _FUNCTIONS)


def _appended(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    message, agent = invocation.arg(0, "message"), invocation.arg(1, "agent")
    _report(invocation, agent, STATE, [message], error)


def _restored(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    agent = invocation.arg(0, "agent")
    _report(invocation, agent, HISTORY, listed(agent.messages), error)


def _report(invocation: Invocation, agent: Any, direction: str, value: Any, error: BaseException | None) -> None:
    size, session = invocation.state.bytes, text(invocation.instance.session_id)
    if size:
        is_appended, name = direction == STATE, text(getattr(agent, "name", None))
        stores.report(_RUNTIME, session, direction, size, value, error=error, is_appended=is_appended, agent=name)


def _add(invocation: Invocation, _: Any, error: BaseException | None, *, is_read: bool) -> None:
    """Add the bytes of a message's file."""
    path, transfer = invocation.arg(0, "path"), stores.open_transfer.get()
    if error is None and transfer is not None and transfer.is_read == is_read:
        transfer.bytes += os.path.getsize(path) if os.path.basename(path).startswith(_MESSAGE) else 0  # noqa: PTH119, PTH202 - a text


def _put(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    if error is None and invocation.arg(0, "key").rpartition("/")[2].startswith(_MESSAGE):
        stores.add(_object(invocation.arg(1, "data")))


def _messages(_: Invocation, messages: Any, error: BaseException | None) -> None:
    """Add the objects of messages; threads of the framework's own have read them."""
    for message in listed(messages) if error is None and stores.is_reading() else ():
        stores.add(_object(message.to_dict()), is_read=True)


def _object(message: Any) -> str:
    """Return the text of an object, as the framework writes it inside of the function that sends it."""
    return json.dumps(message, indent=2, ensure_ascii=False)


appended = Hook(stores.begin, _appended, within=stores.open_transfer)
read = Hook(stores.begin_reading, _restored, within=stores.open_transfer)
written = Hook(after=functools.partial(_add, is_read=False))
loaded = Hook(after=functools.partial(_add, is_read=True))
put = Hook(after=_put)
messages = Hook(after=_messages)
