"""An agent of Google's Agent Development Kit with a session in SQLite, and what the database has of it."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from agent_otel.testing.servers.providers import GeminiServer
from tests.contract.runtimes.steps import produce
from tests.contract.stores.model import decide
from tests.contract.toolbox import GEMINI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]


def search(n: int) -> str:
    """Find so many letters."""
    return produce(n)


async def _run(url: str, file: str, name: str, given: Json) -> Json:
    os.environ.update(GOOGLE_API_KEY="scripted", GOOGLE_GEMINI_BASE_URL=url)
    is_own = name == "sqlite"
    service: Any = SqliteSessionService(file) if is_own else DatabaseSessionService(f"sqlite+aiosqlite:///{file}")
    agent = LlmAgent(name="clerk", model=Gemini(model=GEMINI), tools=[search])
    runner = Runner(agent=agent, app_name="store", session_service=service)
    whose = {"user_id": "user", "session_id": f"session-{name}"}
    await service.create_session(app_name="store", **whose)
    said, sizes = [], []
    for n in given["letters"]:
        message = types.Content(role="user", parts=[types.Part.from_text(text=f"é {n}")])
        async for event in runner.run_async(new_message=message, **whose):
            said += [part.text for part in event.content.parts if part.text] if event.content else []
        with contextlib.closing(sqlite3.connect(file)) as connection:
            query = "SELECT sum(length(CAST(event_data AS BLOB))) FROM events WHERE session_id = ?"
            sizes.append(connection.execute(query, (f"session-{name}",)).fetchone()[0])
    await service.close()
    return {"said": said, "sizes": sizes, "session": f"session-{name}"}


@contextlib.contextmanager
def running(_: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs an agent a few times in one session."""
    with tempfile.TemporaryDirectory() as folder, GeminiServer(decide) as server:
        yield lambda name, given: asyncio.run(
            _run(server.base_url, str(Path(folder, "own" if name == "sqlite" else "sessions")), name, given)
        )
