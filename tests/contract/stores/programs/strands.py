"""An agent of Strands with a session in files or in S3, and their bytes."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from moto.server import ThreadedMotoServer
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager
from strands.session.s3_session_manager import S3SessionManager

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
def _s3() -> Iterator[str]:
    """Yield the URL of moto's S3."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION="us-east-1")  # noqa: S106
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextlib.contextmanager
def running(_: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs an agent a few times in one session, each time a new one that reads the session."""
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(decide) as server, _s3() as url:
        objects = boto3.client("s3", endpoint_url=url)
        objects.create_bucket(Bucket="sessions")

        def stored(session: str) -> int:
            """Return the bytes of a session's messages."""
            if session == "session-s3":
                found = objects.list_objects_v2(Bucket="sessions").get("Contents", ())
                return sum(each["Size"] for each in found if "/message_" in each["Key"])
            files = Path(folder, f"session_{session}").rglob("message_*.json")
            return sum(file.stat().st_size for file in files)

        def start(name: str, given: Json) -> Json:
            said, sizes = [], []
            for n in given["letters"]:
                client = {"base_url": server.base_url, "api_key": "scripted", "max_retries": 0}
                model = OpenAIModel(client_args=client, model_id="scripted")
                sessions: Any = (
                    S3SessionManager(session_id=f"session-{name}", bucket="sessions", endpoint_url=url)
                    if name == "s3"
                    else FileSessionManager(session_id=f"session-{name}", storage_dir=folder)
                )
                agent = Agent(
                    model=model, tools=[search], name="clerk", callback_handler=None, session_manager=sessions
                )
                said.append(str(agent(f"é {n}")).strip())
                sizes.append(stored(f"session-{name}"))
            return {"said": said, "sizes": sizes, "session": f"session-{name}"}

        yield start
