"""Strands Agents: sessions that ``FileSessionManager`` keeps.

Each message of an agent is a file, and an agent begins with all of them. The bytes are those of the files. The entry is
in ``frameworks/strands.py``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import listed, text
from agent_otel.integrations import stores
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.semconv import HISTORY, STATE

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

_ADAPTER = "runtimes.strands_sessions"
_RUNTIME = "strands"
_MESSAGE = "message_"

SESSIONS = (
    Site(
        Candidate(
            "strands.session.repository_session_manager",
            Wrap("RepositorySessionManager.append_message", "appended"),
            Wrap("RepositorySessionManager.initialize", "read"),
        ),
        adapter=_ADAPTER,
    ),
    Site(
        Candidate(
            "strands.session.file_session_manager",
            Wrap("FileSessionManager._write_file", "written"),
            Wrap("FileSessionManager._read_file", "loaded"),
        ),
        adapter=_ADAPTER,
    ),
)


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


def _add(invocation: Invocation, error: BaseException | None, *, is_read: bool) -> None:
    """Add the bytes of a message's file."""
    path, transfer = invocation.arg(0, "path"), stores.open_transfer.get()
    if error is None and transfer is not None and transfer.is_read == is_read:
        transfer.bytes += os.path.getsize(path) if os.path.basename(path).startswith(_MESSAGE) else 0  # noqa: PTH119, PTH202 - a text


def _written(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    _add(invocation, error, is_read=False)


def _loaded(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    _add(invocation, error, is_read=True)


appended = Hook(stores.begin, _appended, within=stores.open_transfer)
read = Hook(stores.begin_reading, _restored, within=stores.open_transfer)
written = Hook(after=_written)
loaded = Hook(after=_loaded)
