"""Conversations whose requests are unusual and complete, over real SDKs.

``python -m tests.system.bad_input.conversations SDK URL`` prints what was counted of each.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,unused-ignore"
# The SDKs are not installed where types are checked.

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import agent_otel
from tests.contract.child import Messages, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOL = "search"
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}}


class Said(NamedTuple):
    """A message of the user, or the results of the model's calls, by id in the order of the request."""

    text: str = ""
    calls: tuple[str, ...] = ()
    results: tuple[tuple[str, str], ...] = ()


class Send(Protocol):
    """A function that sends a history, of which the provider has ``kept`` what came before."""

    def __call__(self, history: list[Said], *, kept: bool = False) -> None:
        """Send it."""


def _call(call_id: str, number: int, text: str) -> tuple[str, str]:
    """Run the tool; return the call's id and the result."""
    with agent_otel.tool_call(TOOL, {"number": number}, call_id=call_id) as call:
        return call_id, str(call.result(text))


def ids_twice(send: Send) -> None:
    """The model numbers the calls of each turn anew."""
    history = [Said("go")]
    for number, size in enumerate((300, 400, 500)):
        send(history)
        history.append(Said(calls=("call_1",), results=(_call("call_1", number, f"{number}" * size),)))
    send(history)


def reordered(send: Send) -> None:
    """The program appends the results of parallel calls as they end."""
    history = [Said("go")]
    send(history)
    ids = ("call_1", "call_2", "call_3")
    results = [_call(call_id, number, f"{number}" * (300 + number)) for number, call_id in enumerate(ids)]
    send([*history, Said(calls=ids, results=tuple(reversed(results)))])
    send([*history, Said(calls=ids, results=tuple(results)), Said("And now?")])


def streamed(send: Send) -> None:
    """The tool streams, and the program sends what it has joined."""

    @agent_otel.tool
    def search(number: int) -> Iterator[str]:
        """Search."""
        for line in range(30):
            yield f"{number} {line:8}\n"

    history = [Said("go")]
    for number in (1, 2):
        send(history)
        call_id = f"call_{number}"
        history.append(Said(calls=(call_id,), results=((call_id, "".join(search(number))),)))
    send(history)


def edited(send: Send) -> None:
    """A middleware adds to results and to the last message, each time anew."""
    history = [Said("go")]
    for number in (1, 2, 3):
        heads = [
            Said(said.text, said.calls, tuple((one, f"[result {number}] {text}") for one, text in said.results))
            for said in history
        ]
        send([*heads, Said(f"Reminder {number}: {4 - number} turns are left.")])
        call_id = f"call_{number}"
        history.append(Said(calls=(call_id,), results=(_call(call_id, number, f"{number}" * 300),)))
    send(history)


def kept(send: Send) -> None:
    """The provider has the earlier messages: a request has new results alone, and the next a new text alone."""
    send([Said("go")])
    result = _call("call_1", 1, "1" * 300)
    send([Said(calls=("call_1",), results=(result,))], kept=True)
    send([Said("And now?")], kept=True)


def openai_chat(url: str) -> Send:
    """Return what sends by Chat Completions."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
    tools: Any = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]

    def send(history: list[Said], *, kept: bool = False) -> None:
        del kept
        messages: list[Any] = [{"role": "system", "content": "Be kind."}]
        for said in history:
            if said.text:
                messages.append({"role": "user", "content": said.text})
            if said.calls:
                asked = [_function(one, {"type": "function"}) for one in said.calls]
                messages.append({"role": "assistant", "content": None, "tool_calls": asked})
            messages += [{"role": "tool", "tool_call_id": one, "content": text} for one, text in said.results]
        client.chat.completions.create(model="scripted", messages=messages, tools=tools)

    return send


def _function(call_id: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"id": call_id, **more, "function": {"name": TOOL, "arguments": "{}"}}


def openai_responses(url: str) -> Send:
    """Return what sends by Responses, after a response that the provider keeps."""
    return _responses(url, lambda last: {"previous_response_id": last})


def openai_conversation(url: str) -> Send:
    """Return what sends by Responses, in a conversation that the provider keeps."""
    return _responses(url, lambda _: {"conversation": "conv_1"})


def _responses(url: str, state: Callable[[str], dict[str, Any]]) -> Send:
    import openai

    client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
    tools: Any = [{"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": False}]
    last = ["resp_0"]

    def send(history: list[Said], *, kept: bool = False) -> None:
        items: list[Any] = []
        for said in history:
            if said.text:
                items.append({"role": "user", "content": said.text})
            if not kept:
                items += [
                    {"type": "function_call", "call_id": one, "name": TOOL, "arguments": "{}"} for one in said.calls
                ]
            items += [{"type": "function_call_output", "call_id": one, "output": text} for one, text in said.results]
        more: Any = state(last[0]) if kept else {}
        last[0] = client.responses.create(model="scripted", input=items, tools=tools, **more).id

    return send


def anthropic(url: str) -> Send:
    """Return what sends by Messages, in a container that the provider keeps."""
    import anthropic as sdk

    client = sdk.Anthropic(base_url=url, api_key="scripted", max_retries=0)
    fixed: Any = {"model": "scripted", "max_tokens": 100, "tools": [{"name": TOOL, "input_schema": SCHEMA}]}

    def send(history: list[Said], *, kept: bool = False) -> None:
        messages: list[Any] = []
        for said in history:
            if said.text:
                messages.append({"role": "user", "content": said.text})
            if said.calls:
                asked = [{"type": "tool_use", "id": one, "name": TOOL, "input": {}} for one in said.calls]
                blocks = [{"type": "tool_result", "tool_use_id": one, "content": text} for one, text in said.results]
                messages += [{"role": "assistant", "content": asked}, {"role": "user", "content": blocks}]
        if kept:
            client.beta.messages.create(messages=messages, container="container_1", **fixed)
        else:
            client.messages.create(messages=messages, **fixed)

    return send


def gemini(url: str) -> Send:
    """Return what sends by generateContent, after a cache of the earlier messages."""
    from google import genai
    from google.genai import types

    from agent_otel.testing.servers.providers import MODEL

    client = genai.Client(api_key="scripted", http_options={"base_url": url})
    tools = [types.Tool(function_declarations=[types.FunctionDeclaration(name=TOOL)])]

    def send(history: list[Said], *, kept: bool = False) -> None:
        contents: list[Any] = []
        for said in history:
            if said.text:
                contents.append(types.Content(role="user", parts=[types.Part.from_text(text=said.text)]))
            if said.calls:
                calls = [types.FunctionCall(id=one, name=TOOL, args={}) for one in said.calls]
                answers = [
                    types.FunctionResponse(id=one, name=TOOL, response={"result": text}) for one, text in said.results
                ]
                contents += [
                    types.Content(role="model", parts=[types.Part(function_call=call) for call in calls]),
                    types.Content(role="user", parts=[types.Part(function_response=answer) for answer in answers]),
                ]
        config = types.GenerateContentConfig(
            tools=None if kept else tools, cached_content="cachedContents/1" if kept else None
        )
        client.models.generate_content(model=MODEL, contents=contents, config=config)

    return send


def bedrock(url: str) -> Send:
    """Return what sends by Converse."""
    import boto3

    keys = {"aws_access_key_id": "scripted", "aws_secret_access_key": "scripted"}
    client = boto3.client("bedrock-runtime", endpoint_url=url, region_name="us-east-1", **keys)
    tools = {"tools": [{"toolSpec": {"name": TOOL, "inputSchema": {"json": SCHEMA}}}]}

    def send(history: list[Said], *, kept: bool = False) -> None:
        del kept
        messages: list[Any] = []
        for said in history:
            if said.text:
                messages.append({"role": "user", "content": [{"text": said.text}]})
            if said.calls:
                asked = [{"toolUse": {"toolUseId": one, "name": TOOL, "input": {}}} for one in said.calls]
                blocks = [{"toolResult": {"toolUseId": one, "content": [{"text": text}]}} for one, text in said.results]
                messages += [{"role": "assistant", "content": asked}, {"role": "user", "content": blocks}]
        client.converse(modelId="scripted", messages=messages, toolConfig=tools)

    return send


CONVERSATIONS: dict[str, Callable[[Send], None]] = {
    "ids twice": ids_twice,
    "re-ordered": reordered,
    "streamed": streamed,
    "edited": edited,
    "kept": kept,
}
#: Without state of the provider's.
STATELESS = ("openai_chat", "bedrock")
_COUNTED = ("model.history.", "tool.results.", "answers.", "tool.result.delivered", "tool.followups")


def main(sdk: str, url: str) -> None:
    """Hold each conversation and print what was counted: metrics of losses and cuts, and the bytes delivered."""
    messages, telemetry = Messages(), Telemetry()
    send = globals()[sdk](url)
    counted: dict[str, dict[str, int]] = {}
    for name, talk in CONVERSATIONS.items():
        if name != "kept" or sdk not in STATELESS:
            with agent_otel.execution(name, agent=name):
                talk(send)
            counted[name] = {
                metric["name"].removeprefix("agent_otel."): metric["sum"]
                for metric in telemetry.metrics()
                if metric["name"].removeprefix("agent_otel.").startswith(_COUNTED) and metric["sum"]
            }
    print(json.dumps({"counted": counted, "messages": messages.take()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
