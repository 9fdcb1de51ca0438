"""An agent of Google's Agent Development Kit."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from tests.contract import toolbox
from tests.contract.toolbox import GEMINI as MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Any:
    """An agent with these tools."""
    # Which all versions understand.
    os.environ.update(GOOGLE_API_KEY="scripted", GOOGLE_GEMINI_BASE_URL=base_url)
    natives = [delegate(base_url) if tool == "delegate" else tool for tool in tools]
    more = CALLBACKS.get(setting, {})
    return LlmAgent(name=name, model=Gemini(model=MODEL), instruction="Be kind.", tools=natives, **more)


def delegate(base_url: str) -> Any:
    """A tool that is an agent with a tool of its own."""
    agent = make(base_url, [toolbox.lookup], "", name="assistant")
    agent.name = "delegate"
    return AgentTool(agent)


def _message(prompt: str) -> Any:
    return types.Content(role="user", parts=[types.Part.from_text(text=prompt)])


def _said(events: Sequence[Any]) -> str:
    if any(event.actions.requested_tool_confirmations for event in events):
        return "1 to approve"
    last = [event for event in events if not event.partial][-1]
    texts = [part.text for part in (last.content.parts if last.content else ()) if part.text]
    return "".join(texts) or "unanswered"


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    runner = InMemoryRunner(make(base_url, tools, setting))
    session = runner.session_service.create_session_sync(**_whose(runner))
    given = {"user_id": session.user_id, "session_id": session.id, "new_message": _message(prompt)}
    return _said(list(runner.run(**given)))


def _whose(runner: Any) -> dict[str, str]:
    return {"app_name": runner.app_name, "user_id": "user-1", "session_id": f"session-{uuid4().hex}"}


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    return await _arun(base_url, tools, prompt, setting)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    return await _arun(base_url, tools, prompt, setting, run_config=RunConfig(streaming_mode=StreamingMode.SSE))


async def _node(tool: Any, prompt: str) -> str:
    """One run of a workflow, of which the tool is the only node; its arguments are those of the first call."""
    from google.adk.workflow import START, Workflow

    node = tool if isinstance(tool, FunctionTool) else FunctionTool(tool)
    runner = InMemoryRunner(Workflow(name="flow", edges=[(START, node)]))
    session = await runner.session_service.create_session(**_whose(runner))
    message = _message(json.dumps(json.loads(prompt)["calls"][0][2]))
    given = {"user_id": session.user_id, "session_id": session.id, "new_message": message}
    return "".join([str(event.output or "") async for event in runner.run_async(**given)])


async def _arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str, **more: Any) -> str:
    if setting == "node":
        return await _node(tools[0], prompt)
    runner = InMemoryRunner(make(base_url, tools, setting))
    session = await runner.session_service.create_session(**_whose(runner))
    given = {"user_id": session.user_id, "session_id": session.id, **more}
    events = [event async for event in runner.run_async(**given, new_message=_message(prompt))]
    if setting == "twice":  # in the second turn the first one's result goes along
        events = [event async for event in runner.run_async(**given, new_message=_message(prompt))]
    return _said(events)


def _shorten(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> Any:
    del tool, args, tool_context
    return {"result": tool_response[:100]}


def _answer(tool: Any, args: Any, tool_context: Any) -> Any:
    del tool, tool_context
    return {"result": toolbox.lookup(**args)}


def _forgive(tool: Any, args: Any, tool_context: Any, error: Exception) -> Any:
    del tool, args, tool_context
    return {"error": f"sorry: {error}"}


def _trim(callback_context: Any, llm_request: Any) -> None:
    """Shorten the results in a request: what the session keeps is whole."""
    del callback_context
    contents = []
    for content in llm_request.contents:
        copied = content.model_copy(deep=True)
        for part in copied.parts:
            if part.function_response is not None:
                part.function_response.response = {"result": part.function_response.response["result"][:100]}
        contents.append(copied)
    llm_request.contents = contents


CALLBACKS: dict[str, Any] = {
    "shorten": {"after_tool_callback": _shorten},
    "answer": {"before_tool_callback": _answer},
    "forgive": {"on_tool_error_callback": _forgive},
    "trim": {"before_model_callback": _trim},
}


def wrapped(key: str) -> dict[str, Any]:
    """Look a record up, in the object that the model is sent."""
    return {"result": toolbox.lookup(key)}


def pending(key: str) -> None:
    """Begin to look a record up; the answer comes another time."""
    del key


def approved(key: str) -> str:
    """Look a record up once a human agrees."""
    return toolbox.lookup(key)


TOOLS: dict[str, Any] = {
    "delegate": "delegate",
    "wrapped": wrapped,
    "pending": LongRunningFunctionTool(pending),
    "approved": FunctionTool(approved, require_confirmation=True),
}
