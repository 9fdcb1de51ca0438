"""An agent of OpenAI's Agents SDK whose session is one value in a state store of Dapr."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from agents import Agent, OpenAIChatCompletionsModel, Runner
from agents.extensions.memory import DaprSession
from dapr.aio.clients import DaprClient
from openai import AsyncOpenAI

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.stores.model import decide
from tests.contract.stores.programs.openai_agents import search
from tests.system.engines import dapr_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]

#: The bytes of each session's value that the sidecar received.
sizes: list[int] = []


class Counted(dapr_state._Service):
    """The stand-in's state store."""

    def SaveState(self, request: Any, context: Any) -> Any:  # noqa: N802 - a method of the generated service
        """Take note of the sizes, and store."""
        sizes.extend(len(state.value) for state in request.states if state.key.endswith(":messages"))
        return super().SaveState(request, context)


@contextlib.contextmanager
def running(_: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs an agent a few times in one session."""
    names = iter(range(1000))
    dapr_state._Service = Counted
    with OpenAIServer(decide) as server, dapr_state.state_api() as stored:

        async def start(_: str, given: Json) -> Json:
            model = AsyncOpenAI(base_url=server.base_url, api_key="scripted", max_retries=0)
            agent = Agent("clerk", tools=[search], model=OpenAIChatCompletionsModel("scripted", model))
            name = f"session-{os.getpid()}-{next(names)}"
            after, said = [], []
            sizes.clear()
            async with DaprClient() as client:
                session = DaprSession(name, state_store_name="store", dapr_client=client)
                for n in given["letters"]:
                    try:
                        said.append((await Runner.run(agent, f"é {n}", session=session)).final_output)
                    except Exception as error:
                        said.append(type(error).__name__)
                    after.append(len(stored.get(f"{name}:messages", b"")))
                await session.get_items()  # outside of a run
            return {"said": said, "sizes": after, "session": name, "received": sum(sizes), "first": sizes[0]}

        yield lambda kind, given: asyncio.run(start(kind, given))
