"""xAI's protocol: what remedies change in a request, and what stays as it is."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel import semconv

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

LONG = "line of a file\n" * 20  # 300 bytes
TRIMMED = "[trimmed 300 bytes] read: " + " ".join(["line of a file"] * 10) + "…"  # 178 bytes
LARGE = 'print("字")\n' * 200  # 13 bytes a line
MARK = "[argument removed: 2600 bytes]"  # 30
IMAGE = "https://example.com/b.png"
TURNS = 7

PROGRAM = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
import grpc, xai_sdk
import agent_otel.auto
from google.protobuf.json_format import MessageToDict
from pydantic import BaseModel
from tests.contract.child import Messages, Telemetry
from xai_sdk import chat, tools
from xai_sdk.proto import chat_pb2, chat_pb2_grpc, deferred_pb2
long, large, image = sys.argv[1:]
telemetry, said, got = Telemetry(), Messages(), []

def plain(proto):
    return MessageToDict(proto, preserving_proto_field_name=True)

def answer(text):
    message = chat_pb2.CompletionMessage(role=2, content=text)
    return chat_pb2.GetChatCompletionResponse(outputs=[chat_pb2.CompletionOutput(message=message, finish_reason=1)])

class Model(chat_pb2_grpc.ChatServicer):
    def GetCompletion(self, request, context):
        got.append(plain(request))
        return answer('{"name": "done"}')

    def StartDeferredCompletion(self, request, context):
        got.append(plain(request))
        return deferred_pb2.StartDeferredResponse(request_id="1")

    def GetDeferredCompletion(self, request, context):
        return chat_pb2.GetDeferredCompletionResponse(status=deferred_pb2.DONE, response=answer("later"))

    def CompactContext(self, request, context):
        got.append(plain(request))
        return chat_pb2.CompactContextResponse(encrypted_content="short")

class Answer(BaseModel):
    name: str

def asked(number, name="read", kind=1, arguments=None):
    function = chat_pb2.FunctionCall(name=name, arguments=json.dumps(arguments or {}, ensure_ascii=False))
    return chat_pb2.ToolCall(id=f"{name}_{number}", type=kind, function=function)

server = grpc.server(ThreadPoolExecutor(2))
chat_pb2_grpc.add_ChatServicer_to_server(Model(), server)
host = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
server.start()
client = xai_sdk.Client(api_key="scripted", api_host=host, use_insecure_channel=True)
talk = client.chat.create(model="scripted", tools=[chat.tool("read", "Read.", {"type": "object"}), tools.web_search()])
talk.append(chat.system("You read."))
talk.append(chat.user("What is this?", chat.image("https://example.com/a.png")))
for number in range(7):
    calls = [asked(number, arguments={"path": "a.py", "content": large}), asked(number, "web_search", 2)]
    message = chat_pb2.Message(role=2, reasoning_content="Hm.", encrypted_content="s3cr3t", tool_calls=calls)
    talk.append(message)
    talk.append(chat.tool_result(long, f"read_{number}"))
    if number == 0:
        talk.messages[-1].content.append(chat.image(image))
before = plain(talk.proto)
with agent_otel.execution("run-1"):
    answers = [talk.sample().content, talk.parse(Answer)[1].name, talk.defer().content]
kept = plain(talk.proto)
with agent_otel.execution("run-2"):
    answers.append(talk.compact().encrypted_content)
server.stop(None).wait()
kept.pop("response_format")
print(json.dumps({"answers": answers, "before": before, "kept": kept, "got": got, "messages": said.take(),
                  "metrics": telemetry.metrics()}))
"""


@pytest.fixture(scope="module")
def run(environment: Callable[[str], Environment]) -> Callable[..., Any]:
    """Run the program with settings; return what it reports."""

    def run(**variables: str) -> Any:
        done = environment("xai").run(PROGRAM, LONG, LARGE, IMAGE, env={"AGENT_OTEL": "1", **variables}, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_remedies_change_the_copy_that_is_sent_and_nothing_else_of_it(run: Callable[..., Any]) -> None:
    report = run(AGENT_OTEL_TRIM_RESULTS="1", AGENT_OTEL_COMPACT_ARGUMENTS="1")
    wanted = copy.deepcopy(report["before"])
    arguments = json.dumps({"path": "a.py", "content": MARK}, ensure_ascii=False)
    for number in range(TURNS):
        asking, answering = wanted["messages"][2 + 2 * number : 4 + 2 * number]
        asking["tool_calls"][0]["function"]["arguments"] = arguments
        if number < TURNS - 2:
            answering["content"][0] = {"text": TRIMMED}
    # An image beside a text stays, and the line names it.
    assert [*wanted["messages"][3]["content"][1]] == ["image_url"]
    wanted["messages"][3]["content"][0]["text"] += f" {IMAGE}"
    assert report["got"][0] == {**wanted, "n": 1}
    assert report["kept"] == report["before"]
    assert report["answers"] == ['{"name": "done"}', "done", "later", "short"]
    assert report["messages"] == []


def test_each_kind_of_request_is_measured(run: Callable[..., Any]) -> None:
    report = run()
    assert report["got"][0] == {**report["before"], "n": 1}
    sizes = {
        metric["attributes"][semconv.PART]: (metric["count"], metric["sum"])
        for metric in report["metrics"]
        if metric["name"] == semconv.REQUEST_SIZE.name
    }
    image = f'{{"type":"image_url","image_url":{{"image_url":"{IMAGE}","detail":"DETAIL_AUTO"}}}}'
    assert sizes["tool_results"] == (4, 4 * (TURNS * 300 + len(image)))
    assert sizes["system"] == (4, 4 * len("You read."))
    assert sizes["assistant"] == (4, 4 * TURNS * len("Hm.s3cr3t"))
    read = {"type": "function", "function": {"name": "read", "description": "Read.", "parameters": {"type": "object"}}}
    tools = json.dumps([read, report["before"]["tools"][1]], separators=(",", ":"))
    assert sizes["tools"] == (4, 3 * len(tools))  # a compaction is sent without them


_ANSWERS = """
import asyncio, json
from concurrent.futures import ThreadPoolExecutor
import grpc, xai_sdk
import agent_otel.auto
from agent_otel._internal import errors
from tests.contract.child import Telemetry
from xai_sdk import chat
from xai_sdk.proto import chat_pb2, chat_pb2_grpc, usage_pb2
telemetry = Telemetry()

def chunk(index, text, tokens, **ended):
    output = chat_pb2.CompletionOutputChunk(index=index, delta=chat_pb2.Delta(role=2, content=text), **ended)
    usage = usage_pb2.SamplingUsage(prompt_tokens=10, completion_tokens=tokens)
    return chat_pb2.GetChatCompletionChunk(outputs=[output], usage=usage)

class Model(chat_pb2_grpc.ChatServicer):
    def GetCompletionChunk(self, request, context):
        yield chunk(0, "a", 1)
        yield chunk(0, "b", 2, finish_reason=1)
        yield chunk(1, "c", 30)
        yield chunk(1, "d", 40, finish_reason=1)

server = grpc.server(ThreadPoolExecutor(2))
chat_pb2_grpc.add_ChatServicer_to_server(Model(), server)
host = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
server.start()

def talk(kind):
    client = kind(api_key="scripted", api_host=host, use_insecure_channel=True)
    return client.chat.create(model="scripted", messages=[chat.user("go")])

def read(ends):
    for responses, chunks in talk(xai_sdk.Client).stream_batch(2):
        if ends and chunks[1].content == "d":
            break
    return [response.content for response in responses]

async def aread(_):
    async for responses, _ in talk(xai_sdk.AsyncClient).stream_batch(2):
        pass
    return [response.content for response in responses]

found = {}
for name, way, ends in (("sync", read, False), ("left", read, True), ("async", aread, False)):
    with agent_otel.execution(name):
        said = way(ends) if way is read else asyncio.run(way(ends))
    tokens = [m["sum"] for m in telemetry.metrics() if m["name"] == "agent_otel.execution.tokens"]
    found[name] = [said, tokens]
server.stop(None).wait()
print(json.dumps([found, dict(errors.errors)]))
"""


def test_the_tokens_of_several_answers_in_one_stream_are_read_to_the_last(
    environment: Callable[[str], Environment],
) -> None:
    """The usage of a chunk is that of the stream so far; the first answer ends before the second begins."""
    done = environment("xai").run(_ANSWERS, env={"AGENT_OTEL": "1"}, check=True)
    found, errors = json.loads(done.stdout.splitlines()[-1])
    assert errors == {}
    assert found == {name: [["ab", "cd"], [10 + 40]] for name in ("sync", "left", "async")}


_BLOCKS = """
import json
from agent_otel.integrations.model_sdks.xai import as_chat, with_body
from google.protobuf.json_format import MessageToDict
from xai_sdk import chat
from xai_sdk.proto import chat_pb2

blocks = [chat.text("one"), chat.image("https://example.com/a.png"), chat.text("one"), chat.text("two")]
request = chat_pb2.GetCompletionsRequest(messages=[chat.user(*blocks)])
body = as_chat(request)
body["messages"][0]["content"][-1] = {"type": "text", "text": "short"}
made = MessageToDict(with_body(request, body), preserving_proto_field_name=True)
wanted = MessageToDict(request, preserving_proto_field_name=True)
print(json.dumps([each["messages"][0]["content"] for each in (made, wanted)]))
"""


def test_a_changed_text_leaves_the_blocks_beside_it(environment: Callable[[str], Environment]) -> None:
    made, wanted = json.loads(environment("xai").run(_BLOCKS, check=True).stdout)
    assert len(wanted) == 4
    assert made == [*wanted[:-1], {"text": "short"}]
