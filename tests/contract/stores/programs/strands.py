"""An agent of Strands with a session in files, and the bytes of the files."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.runtimes.steps import produce
from tests.contract.stores.model import decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]


@tool
def search(n: int) -> str:
    """Find so many letters.

    Args:
        n: how many
    """
    return produce(n)


@contextlib.contextmanager
def running(_: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs an agent a few times in one session, each time a new one that reads the session."""
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(decide) as server:

        def start(name: str, given: Json) -> Json:
            said, sizes = [], []
            for n in given["letters"]:
                client = {"base_url": server.base_url, "api_key": "scripted", "max_retries": 0}
                model = OpenAIModel(client_args=client, model_id="scripted")
                sessions = FileSessionManager(session_id=f"session-{name}", storage_dir=folder)
                agent = Agent(
                    model=model, tools=[search], name="clerk", callback_handler=None, session_manager=sessions
                )
                said.append(str(agent(f"é {n}")).strip())
                files = Path(folder, f"session_session-{name}").rglob("message_*.json")
                sizes.append(sum(file.stat().st_size for file in files))
            return {"said": said, "sizes": sizes, "session": f"session-{name}"}

        yield start
