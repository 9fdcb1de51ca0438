"""Ten agent loops, nine of them a framework's own, and the places where an application may cut in each."""

# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import functools
import importlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.system.false_alarms.cuts import BY_THE_TOOL, KINDS, PLANTED, Sender, by_the_framework, by_the_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CALLS_A_TURN: Final = 25
SENT: Final = ("cut for the model", "cleared later")


class Loop(NamedTuple):
    """One loop: the agent of the contract suite it is (or ``by_hand``), where it is installed, whom it talks to.

    ``kinds`` are the cuts that can be made in it. ``objects`` says that its tools may return more than text, and
    ``tells_in_time`` that what the framework hands back is known before the tool's span ends.
    """

    agent: str
    environment: str
    server: str = "openai:OpenAIServer"
    kinds: tuple[str, ...] = BY_THE_TOOL
    objects: bool = True
    tells_in_time: bool = True


LOOPS: Final = {
    "langgraph": Loop("langgraph", "langchain", kinds=tuple(KINDS)),
    "openai-agents": Loop("openai_agents", "openai-agents", kinds=(*BY_THE_TOOL, *SENT)),
    "pydantic-ai": Loop("pydantic_ai", "pydantic-ai", kinds=tuple(KINDS)),
    "strands": Loop("strands", "strands", kinds=(*BY_THE_TOOL, "cut by the framework"), tells_in_time=False),
    "agno": Loop("agno", "agno"),
    "smolagents": Loop("smolagents", "smolagents", kinds=(*BY_THE_TOOL, "cut for the model")),
    "google-adk": Loop("google_adk", "google-adk", "providers:GeminiServer", kinds=tuple(KINDS)),
    "google-genai": Loop("google_functions", "google-genai", "providers:GeminiServer"),
    "anthropic": Loop("anthropic_runner", "anthropic", "anthropic:AnthropicServer", objects=False),
    "openai": Loop("by_hand", "openai-agents", kinds=(*BY_THE_TOOL, *SENT)),
}


async def run(loop: Loop, base_url: str, tools: Sequence[Any], prompt: str) -> str:
    """Run an agent once: it is asked for all the calls, some in each turn."""
    send = Sender()
    if loop.agent == "by_hand":
        return await by_hand(base_url, tools, prompt, send)
    agent = importlib.import_module(f"tests.contract.agents.{loop.agent}")
    setting = _PREPARED.get(loop.agent, _as_it_is)(agent, send)
    return str(await agent.arun(base_url, tools, prompt, setting))


async def by_hand(base_url: str, tools: Sequence[Any], prompt: str, send: Callable[[str], str]) -> str:
    """A loop of the program's own over OpenAI's client, which sends results as it likes."""
    import openai

    import agent_otel

    functions = {tool.__name__: tool for tool in tools}
    history: list[Any] = [{"role": "user", "content": prompt}]
    async with openai.AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0) as client:
        with agent_otel.execution(f"run {id(send)}"):
            while True:
                sent = [{**m, "content": send(m["content"])} if m["role"] == "tool" else m for m in history]
                answer = await client.chat.completions.create(model="scripted", messages=sent)
                message = answer.choices[0].message
                if not message.tool_calls:
                    return str(message.content)
                history.append(message.model_dump(exclude_none=True))
                for asked in message.tool_calls:
                    name, arguments = asked.function.name, json.loads(asked.function.arguments)
                    with agent_otel.tool_call(name, arguments, call_id=asked.id) as call:
                        result = call.result(functions[name](**arguments))
                    text = result if isinstance(result, str) else json.dumps(result)
                    history.append({"role": "tool", "tool_call_id": asked.id, "content": text})


def _as_it_is(agent: Any, send: Callable[[str], str]) -> str:
    del agent, send
    return ""


def _langgraph(agent: Any, send: Callable[[str], str]) -> str:
    from langchain.agents.middleware import AgentMiddleware

    class Cuts(AgentMiddleware):
        """Shortens results, and what is sent of them."""

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            """Run the tool and shorten what it says."""
            message = await handler(request)
            return message.model_copy(update={"content": by_the_framework(message.content)})

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            """Send less than the state has."""
            sent = [
                message.model_copy(update={"content": send(message.content)}) if message.type == "tool" else message
                for message in request.messages
            ]
            return await handler(request.override(messages=sent))

    agent.MIDDLEWARE["cuts"] = Cuts
    return "cuts"


def _openai_agents(agent: Any, send: Callable[[str], str]) -> str:
    from agents import RunConfig
    from agents.run import ModelInputData

    def edit(data: Any) -> Any:
        items = [
            {**item, "output": send(item["output"])} if item.get("type") == "function_call_output" else item
            for item in data.model_data.input
        ]
        return ModelInputData(items, data.model_data.instructions)

    agent.CONFIG = RunConfig(group_id="group-1", call_model_input_filter=edit)
    return ""


def _pydantic_ai(agent: Any, send: Callable[[str], str]) -> str:
    from dataclasses import replace

    from pydantic_ai.capabilities import Hooks

    async def after(_: Any, *, result: Any, **__: Any) -> Any:
        return by_the_framework(result) if isinstance(result, str) else result

    def sent(part: Any) -> Any:
        is_text = part.part_kind == "tool-return" and isinstance(part.content, str)
        return replace(part, content=send(part.content)) if is_text else part

    async def before(_: Any, request: Any) -> Any:
        messages = [replace(message, parts=[sent(part) for part in message.parts]) for message in request.messages]
        return replace(request, messages=messages)

    agent.HOOKS["cuts"] = Hooks(after_tool_execute=after, before_model_request=before)
    return "cuts"


def _strands(agent: Any, send: Callable[[str], str]) -> str:
    del send

    def after(event: Any) -> None:
        text = event.result["content"][0]["text"]
        event.result = {**event.result, "content": [{"text": by_the_framework(text)}]}

    agent.HOOKS["cuts"] = (agent.AfterToolCallEvent, after)
    return "cuts"


def _smolagents(agent: Any, send: Callable[[str], str]) -> str:
    from smolagents import ToolCallingAgent

    def after(step: Any, agent: Any) -> None:
        del agent
        for number, kind in PLANTED.items():
            if kind == "cut for the model":
                text = by_the_tool(number).strip()
                step.observations = step.observations.replace(text, send(text))

    agent.ToolCallingAgent = functools.partial(ToolCallingAgent, step_callbacks=[after])
    return ""


def _google_adk(agent: Any, send: Callable[[str], str]) -> str:
    def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> Any:
        del tool, args, tool_context
        if isinstance(tool_response, str) and by_the_framework(tool_response) != tool_response:
            return {"result": by_the_framework(tool_response)}
        return None

    def before(callback_context: Any, llm_request: Any) -> None:
        del callback_context
        contents = [content.model_copy(deep=True) for content in llm_request.contents]
        for part in (part for content in contents for part in content.parts if part.function_response is not None):
            response = part.function_response.response
            if isinstance(response.get("result"), str):
                part.function_response.response = {"result": send(response["result"])}
        llm_request.contents = contents

    agent.CALLBACKS["cuts"] = {"after_tool_callback": after, "before_model_callback": before}
    return "cuts"


_PREPARED: Final[dict[str, Callable[[Any, Callable[[str], str]], str]]] = {
    "langgraph": _langgraph,
    "openai_agents": _openai_agents,
    "pydantic_ai": _pydantic_ai,
    "smolagents": _smolagents,
    "strands": _strands,
    "google_adk": _google_adk,
}
