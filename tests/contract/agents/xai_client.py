"""A loop of the program's own over xAI's client, whose protocol a gateway in front of the scripted model translates."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import contextlib
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped, unused-ignore] # its stubs are a package of their own
import xai_sdk
from xai_sdk import chat
from xai_sdk.proto import chat_pb2, chat_pb2_grpc

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import INSTRUCTIONS
from tests.contract.agents.chat_loop import asked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

_ROLES = {1: "user", 2: "assistant", 3: "system", 5: "tool"}
_MODES = {2: "none", 3: "required"}


class Gateway(chat_pb2_grpc.ChatServicer):  # type: ignore[misc]
    """Sends each request of xAI's protocol to a server of OpenAI's chat, and returns its answer."""

    def __init__(self, base_url: str) -> None:
        self._url = f"{base_url}/chat/completions"

    def GetCompletion(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - of the protocol
        """Answer as a whole."""
        answer = self._answer(request)
        message = answer["choices"][0]["message"]
        output = chat_pb2.CompletionOutput(
            finish_reason=1,
            message=chat_pb2.CompletionMessage(
                role=2, content=message.get("content") or "", tool_calls=map(_call, message.get("tool_calls") or ())
            ),
        )
        return chat_pb2.GetChatCompletionResponse(outputs=[output], model="scripted", usage=_usage(answer))

    def GetCompletionChunk(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: ARG002, N802 - of the protocol
        """Answer in two chunks and an end."""
        answer = self._answer(request)
        message = answer["choices"][0]["message"]
        content = message.get("content") or ""
        for piece in (content[:2], content[2:]):
            yield _chunk(chat_pb2.Delta(role=2, content=piece))
        yield _chunk(chat_pb2.Delta(role=2, tool_calls=map(_call, message.get("tool_calls") or ())))
        yield _chunk(chat_pb2.Delta(role=2), finish_reason=1, usage=_usage(answer))

    def _answer(self, request: Any) -> Any:
        body: dict[str, Any] = {"model": request.model, "messages": list(map(_message, request.messages))}
        if request.tools:
            body["tools"] = list(map(_tool, request.tools))
        if request.tool_choice.mode in _MODES:
            body["tool_choice"] = _MODES[request.tool_choice.mode]
        headers = {"Content-Type": "application/json"}
        sent = urllib.request.Request(self._url, json.dumps(body).encode(), headers)  # noqa: S310 - loopback
        with urllib.request.urlopen(sent) as answer:  # noqa: S310 - loopback
            return json.load(answer)


def _message(message: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "role": _ROLES[message.role],
        "content": "".join(each.text for each in message.content) or None,
    }
    if message.tool_call_id:
        made["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": name.name, "arguments": name.arguments}}
            for call in message.tool_calls
            for name in [call.function]
        ]
    return made


def _tool(tool: Any) -> dict[str, Any]:
    function = {"name": tool.function.name, "parameters": json.loads(tool.function.parameters)}
    return {"type": "function", "function": function}


def _call(call: Any) -> Any:
    return chat_pb2.ToolCall(id=call["id"], type=1, function=chat_pb2.FunctionCall(**call["function"]))


def _chunk(delta: Any, finish_reason: int = 0, usage: Any = None) -> Any:
    output = chat_pb2.CompletionOutputChunk(delta=delta, finish_reason=finish_reason)
    return chat_pb2.GetChatCompletionChunk(outputs=[output], model="scripted", usage=usage)


def _usage(answer: Any) -> Any:
    counts = answer.get("usage") or {}
    return xai_sdk.proto.usage_pb2.SamplingUsage(
        prompt_tokens=counts.get("prompt_tokens", 0), completion_tokens=counts.get("completion_tokens", 0)
    )


@contextlib.contextmanager
def gateway(base_url: str) -> Iterator[str]:
    """Run a gateway; yield its host."""
    server = grpc.server(ThreadPoolExecutor(8))
    chat_pb2_grpc.add_ChatServicer_to_server(Gateway(base_url), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def _begin(client: Any, tools: Sequence[Any], prompt: str) -> tuple[Any, dict[str, Any]]:
    functions = {tool.__name__: tool for tool in tools}
    described = [chat.tool(description="", **each["function"]) for each in by_hand.definitions(functions)]
    messages = [chat.system(INSTRUCTIONS), chat.user(prompt)]
    return client.chat.create(model="scripted", messages=messages, tools=described), functions


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    return _run(base_url, tools, prompt, setting, lambda talk: talk.sample())


def stream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync, the answers streamed."""
    return _run(base_url, tools, prompt, setting, lambda talk: [response for response, _ in talk.stream()][-1])


def _run(base_url: str, tools: Sequence[Any], prompt: str, setting: str, ask: Callable[[Any], Any]) -> str:
    with gateway(base_url) as host:
        client = xai_sdk.Client(api_key="scripted", api_host=host, use_insecure_channel=True)
        talk, functions = _begin(client, tools, prompt)
        with by_hand.running():
            while True:
                response = ask(talk)
                if not response.tool_calls:
                    return str(response.content)
                talk.append(response)
                for call in response.tool_calls:
                    talk.append(chat.tool_result(by_hand.call(functions, asked(call), setting), call.id))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    return await _arun(base_url, tools, prompt, setting, lambda talk: talk.sample())


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""

    async def last(talk: Any) -> Any:
        return [response async for response, _ in talk.stream()][-1]

    return await _arun(base_url, tools, prompt, setting, last)


async def _arun(
    base_url: str, tools: Sequence[Any], prompt: str, setting: str, ask: Callable[[Any], Awaitable[Any]]
) -> str:
    with gateway(base_url) as host:
        client = xai_sdk.AsyncClient(api_key="scripted", api_host=host, use_insecure_channel=True)
        talk, functions = _begin(client, tools, prompt)
        with by_hand.running():
            while True:
                response = await ask(talk)
                if not response.tool_calls:
                    return str(response.content)
                talk.append(response)
                for call in response.tool_calls:
                    result = await by_hand.call_later(functions, asked(call), setting)
                    talk.append(chat.tool_result(result, call.id))
