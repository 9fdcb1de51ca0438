"""State at the provider: the remedies leave it alone, and say so once where they have no effect."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_otel.remedies.history.request_rewriter import NOTE
from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import OllamaServer, OpenAIServer, ToolCall
from agent_otel.testing.servers.providers import GeminiServer
from tests.servers.mistral import MistralServer
from tests.unit.remedies.history.histories import Asked, Turn, rendered

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Reply
    from tests.contract.cases import Json
    from tests.forks import Forks

LONG = "line of a file\n" * 20  # 300 bytes
TRIMMED = "[trimmed 300 bytes] read: " + " ".join(["line of a file"] * 10) + "…"
LARGE = "x" * 3_000
MARK = "[argument removed: 3000 bytes]"
LIMITED = '{"error": "limit_reached", "limit": "tool_calls", "maximum": 3, "message": "Answer now"}'
SETTINGS = {
    "AGENT_OTEL": "1",
    "AGENT_OTEL_TRIM_RESULTS": "1",
    "AGENT_OTEL_COMPACT_ARGUMENTS": "1",
    "AGENT_OTEL_DEDUPLICATE_HISTORY": "1",
    "AGENT_OTEL_CLAIM_CHECK": "memory:",
    "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": "1000",
    "AGENT_OTEL_MAX_TOOL_CALLS": "3",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
VIEWS = (
    "AGENT_OTEL_TRIM_RESULTS, AGENT_OTEL_COMPACT_ARGUMENTS, AGENT_OTEL_DEDUPLICATE_HISTORY: without effect on what the "
    "provider keeps of earlier requests (previous_response_id, a conversation, a thread, cached content, a container), "
    "which is not sent again."
)
SUMMARIES = (
    "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS: without effect on requests to which the provider adds what it keeps "
    "(previous_response_id, a conversation, a thread, a prompt, cached content, a container); they go on as they are."
)
UNNAMED = (
    "AGENT_OTEL_CLAIM_CHECK: get_tool_result cannot be offered in a request through {layer}; the result's view has the "
    "reference and names no tool."
)
PROGRAM = """
import json
import agent_otel.auto
from tests.contract.child import Messages
messages = Messages()
run = agent_otel.execution("run-1")
run.__enter__()
with agent_otel.tool_call("report", {}, call_id="call_8") as call:
    shown = call.result("row of a report\\n" * 5_000)
last = ""
for request in json.loads(requests.replace('"SHOWN"', json.dumps(shown))):
    if layer == "openai":
        import openai
        openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0).responses.create(**request)
    elif layer == "anthropic":
        import anthropic
        client = anthropic.Anthropic(base_url=base_url, api_key="scripted", max_retries=0)
        request = json.loads(json.dumps(request).replace("LAST", last))
        last = client.beta.messages.create(model="scripted", max_tokens=100, **request).id
    elif layer == "google_genai":
        from google import genai
        client = genai.Client(api_key="scripted", http_options={"base_url": base_url})
        client.models.generate_content(model="gemini-scripted", **request)
    elif layer == "litellm":
        import litellm
        litellm.responses(model="openai/scripted", api_base=base_url, api_key="scripted", max_retries=0, **request)
    elif layer == "mistral":
        try:
            from mistralai.client import Mistral
        except ImportError:
            from mistralai import Mistral
        conversations = Mistral(api_key="scripted", server_url=base_url).beta.conversations
        (conversations.append if "conversation_id" in request else conversations.start)(**request)
    elif layer == "ollama":
        import ollama
        ollama.Client(base_url).generate(model="scripted", **request)
    else:
        import boto3
        client = boto3.client("bedrock-runtime", endpoint_url=base_url, region_name="us-east-1",
                              aws_access_key_id="scripted", aws_secret_access_key="scripted")
        client.converse(**request)
from agent_otel._internal import errors
print(json.dumps({"shown": shown, "messages": messages.take(), "errors": dict(errors.errors)}))
"""


#: What a child imports before it forks; of the others each sends once.
BEGIN = {"openai": "import openai.resources.responses", "anthropic": "import anthropic.resources.beta.messages"}


class Layer(NamedTuple):
    """An SDK: the shape of its histories, its environment and its server."""

    shape: str
    key: str
    environment: str
    server: Any


LAYERS = {
    "openai": Layer("responses", "input", "openai-agents", OpenAIServer),
    "anthropic": Layer("anthropic", "messages", "anthropic", AnthropicServer),
    "google_genai": Layer("gemini", "contents", "google-genai", GeminiServer),
    "bedrock": Layer("bedrock", "messages", "bedrock", BedrockServer),
    "litellm": Layer("responses", "input", "litellm", OpenAIServer),
    "mistral": Layer("chat", "inputs", "mistralai", MistralServer),
    "ollama": Layer("chat", "prompt", "ollama", OllamaServer),
}
PROMPT = "arn:aws:bedrock:us-east-1:123456789012:prompt/PROMPT12345:1"


def history(shape: str, trimmed: int = 0, content: str = LARGE, last: str = "SHOWN") -> list[Any]:
    """Seven turns, whose last result is a view of a stored one."""
    turns = [
        Turn((Asked(f"call_{number}", "read", {"content": content}, TRIMMED if number < trimmed else LONG),))
        for number in range(6)
    ]
    return rendered(shape, [*turns, Turn((Asked("call_8", "report", {}, last),))])


def ran(forks: Forks, name: str, requests: list[Json], other: str = "") -> tuple[Json, list[Json]]:
    """Send these requests with all remedies on; return what the child reported, and the requests on the wire."""
    layer = LAYERS[name]
    with layer.server(lambda _: "done") as server:
        report = sent(forks, other or layer.environment, name, server.base_url, requests, SETTINGS)
    assert report["errors"] == {}
    return report, server.requests


def sent(  # noqa: PLR0913, PLR0917 - what the child is told
    forks: Forks, row: str, name: str, base_url: str, requests: list[Json], env: dict[str, str]
) -> Json:
    """Let a child send these requests; return what it reported."""
    given = f"layer, base_url, requests = {name!r}, {base_url!r}, {json.dumps(requests)!r}"
    done = forks.run(row, BEGIN.get(name, ""), f"{given}\n{PROGRAM}", env)
    report: Json = json.loads(done.stdout.splitlines()[-1])
    return report


def named(tools: Any) -> list[str]:
    """Return the names of the tools in a request."""
    return [tool["name"] for tool in tools or ()]


TOOL = {"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}
KEPT: dict[str, Json] = {
    "previous_response_id": {"previous_response_id": "resp_1"},
    "conversation": {"conversation": "conv_1"},
    "conversation object": {"conversation": {"id": "conv_1"}},
    # The SDK adds these fields to the body behind the functions that read it.
    "beside the body": {"extra_body": {"previous_response_id": "resp_1"}},
    "tools beside the body": {"extra_body": {"conversation": "conv_1", "tools": [TOOL]}},
}


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_read_below_the_program_is_no_turn_of_its_history(forks: Forks, name: str) -> None:
    layer = LAYERS[name]

    def decide(_: Json) -> Reply:
        return "done" if len(server.requests) > 1 else [ToolCall("read_1", "get_tool_result", {"ref": "call_8"})]

    request: Json = {layer.key: history(layer.shape)} | ({"model": "scripted"} if name == "openai" else {})
    settings = {**SETTINGS, "AGENT_OTEL_TRIM_STEP_TURNS": "1", "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": "100000"}
    with layer.server(decide) as server:
        report = sent(forks, layer.environment, name, server.base_url, [request], settings)
    first, second = (each[layer.key] for each in server.requests)
    assert first == history(layer.shape, 5, MARK, report["shown"])
    assert second[: len(first)] == first
    assert len(second) == len(first) + 2
    assert (report["messages"], report["errors"]) == ([], {})


def test_conversations_at_openai_keep_their_messages_and_get_the_tool(
    forks: Forks,
) -> None:
    reference = {"type": "item_reference", "id": "msg_1"}
    items = history("responses")
    requests: list[Json] = [{"model": "scripted", "input": items, "tools": [TOOL], **kept} for kept in KEPT.values()]
    requests.append({"model": "scripted", "input": [reference, *items], "tools": [TOOL]})
    # The reference was in an earlier request: the model may still read on.
    requests += [{**request, "input": items[:3]} for request in requests[:3]]
    report, wire = ran(forks, "openai", requests)
    whole = json.loads(json.dumps(requests).replace('"SHOWN"', json.dumps(report["shown"])))
    assert [request["input"] for request in wire] == [request["input"] for request in whole]
    assert [named(request["tools"]) for request in wire] == [["read", "get_tool_result"]] * len(wire)
    kept = [
        {key: request[key] for key in ("previous_response_id", "conversation") if key in request} for request in wire
    ]
    first, second, third, beside, last, items_only, *_ = kept
    assert (first, beside, items_only) == ({"previous_response_id": "resp_1"}, {"previous_response_id": "resp_1"}, {})
    assert (second, third, last) == (*[{"conversation": value} for value in ("conv_1", {"id": "conv_1"})], second)
    assert sorted(report["messages"]) == [SUMMARIES, VIEWS]


def test_a_conversation_through_litellm_keeps_its_messages(forks: Forks) -> None:
    beside: list[Json] = [{"previous_response_id": "resp_1"}, {"extra_body": {"previous_response_id": "resp_1"}}]
    requests: list[Json] = [{"input": history("responses"), **kept} for kept in beside]
    own = {**TOOL, "name": "get_tool_result"}
    report, wire = ran(forks, "litellm", [*requests, {**requests[0], "tools": [own]}])
    *unnamed, named_by_hand = [request["input"][-1].pop("output") for request in wire]
    assert ["get_tool_result" in view for view in (*unnamed, named_by_hand)] == [False, False, True]
    assert named_by_hand == report["shown"]
    assert all("claim:v2:" in view for view in unnamed)
    del requests[0]["input"][-1]["output"]
    assert [request["input"] for request in wire] == [requests[0]["input"]] * 3
    assert [request["previous_response_id"] for request in wire] == ["resp_1"] * 3
    assert {VIEWS, UNNAMED.format(layer="litellm")} <= set(report["messages"])


@pytest.mark.parametrize("major", ["mistralai-1", "mistralai"])
def test_a_conversation_at_mistral_keeps_its_entries_and_ends_at_a_limit(forks: Forks, major: str) -> None:
    entries: list[Json] = []
    for number in range(7):
        arguments = json.dumps({"content": LARGE})
        called = {"tool_call_id": f"call_{number}", "name": "read", "arguments": arguments}
        result = {"tool_call_id": f"call_{number}", "result": "SHOWN" if number == 6 else LONG}
        entries += [{"type": "function.call", **called}, {"type": "function.result", **result}]
    kept = {"conversation_id": "conv_1"}
    skipped = {"type": "function.result", "tool_call_id": "call_7", "result": LIMITED}
    requests: list[Json] = [
        {"model": "scripted", "inputs": entries},
        {"inputs": entries[-2:], **kept},
        {"inputs": [skipped], **kept},
        {"inputs": [skipped], "completion_args": {"temperature": 0.5}, **kept},
        {"inputs": [skipped, {"type": "message.input", "role": "user", "content": "go on"}], **kept},
    ]
    report, wire = ran(forks, "mistral", requests, major)
    first, second, *ended = wire
    seen = [{key: entry[key] for key in given} for entry, given in zip(first["inputs"], entries, strict=True)]
    unnamed = seen[-1].pop("result")
    assert seen == [*entries[:-1], {key: value for key, value in entries[-1].items() if key != "result"}]
    assert "get_tool_result" not in unnamed
    assert "claim:v2:" in unnamed
    assert second["inputs"][-1]["result"] == unnamed
    choices = [{"tool_choice": "none"}, {"temperature": 0.5, "tool_choice": "none"}, None]
    assert [request.get("completion_args") for request in ended] == choices
    assert [request["inputs"][0]["result"] for request in ended] == [LIMITED] * 3
    assert sorted(report["messages"]) == sorted([SUMMARIES, VIEWS, UNNAMED.format(layer="mistral")])


def test_a_context_at_ollama_goes_on_as_it_is(forks: Forks) -> None:
    request = {"prompt": LARGE * 3, "context": [1, 2, 3]}
    report, [wire] = ran(forks, "ollama", [request])
    assert {key: wire[key] for key in request} == request
    assert sorted(report["messages"]) == [SUMMARIES, VIEWS]


def test_a_prompt_at_openai_keeps_its_tools_and_its_instructions(forks: Forks) -> None:
    prompt = {"prompt": {"id": "pmpt_1"}}
    requests = [
        {**prompt, "input": history("responses")[-3:]},
        {**prompt, "input": history("responses", last="claim:v2:x/y")[-3:], "tools": [TOOL]},
        {**prompt, "input": history("responses", last=LIMITED)[-3:]},
    ]
    report, wire = ran(forks, "openai", requests)
    first, offered, last = wire
    assert "tools" not in first
    assert "instructions" not in first
    assert "get_tool_result" in report["shown"]
    assert "get_tool_result" not in json.dumps(first)
    assert "claim:v2:" in json.dumps(first)
    assert named(offered["tools"]) == ["read", "get_tool_result"]
    assert last["input"] == [*requests[2]["input"], {"role": "developer", "content": NOTE}]
    assert (last.get("instructions"), last.get("tools"), last["tool_choice"]) == (None, None, "none")
    assert sorted(report["messages"]) == sorted([SUMMARIES, UNNAMED.format(layer="openai")])


def test_a_thread_at_anthropic_has_the_tool_from_its_beginning(forks: Forks) -> None:
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    go = [{"role": "user", "content": "go"}]
    created = {"messages": go, "tools": tools, "thread": {"type": "create"}}
    thread = {"thread": {"type": "continue", "previous_message_id": "LAST"}}
    items = [*go, *history("anthropic")]
    report, wire = ran(
        forks,
        "anthropic",
        [
            created,
            {"messages": items, **thread},
            {"messages": items, "extra_body": thread},
            {"messages": history("anthropic", last=LIMITED)[-1:], **thread},
        ],
    )
    first, second, beside, last = wire
    assert named(first["tools"]) == ["read", "get_tool_result"]
    assert second["messages"] == json.loads(json.dumps(items).replace('"SHOWN"', json.dumps(report["shown"])))
    assert "tools" not in second
    assert {**beside, "thread": second["thread"]} == second
    assert last["messages"][0]["content"][-1] == {"type": "text", "text": NOTE}
    assert (last.get("tools"), last.get("system"), last["tool_choice"]) == (None, None, {"type": "none"})
    assert sorted(report["messages"]) == [SUMMARIES, VIEWS]


def test_a_thread_that_began_elsewhere_is_not_told_of_the_tool_and_may_call_it(
    forks: Forks,
) -> None:
    def decide(_: Json) -> Reply:
        if len(server.requests) > 1:
            return "done"
        refs = re.findall(r'ref=\\"(claim:[^"\\]+)', json.dumps(server.requests))
        return [ToolCall("read_1", "get_tool_result", {"ref": refs[0]})]

    thread = {"thread": {"type": "continue", "previous_message_id": "msg_elsewhere"}}
    items = history("anthropic")
    requests: list[Json] = [
        {"messages": items[-1:], **thread},
        {"messages": items[-1:], "thread": {**thread["thread"], "previous_message_id": "LAST"}},
        # A program's own tool: its calls are the program's.
        {
            "messages": [{"role": "user", "content": "go"}],
            "tools": [{"name": "get_tool_result", "input_schema": {"type": "object"}}],
            "thread": {"type": "create"},
        },
        {"messages": items[-1:], "thread": {**thread["thread"], "previous_message_id": "LAST"}},
    ]
    with AnthropicServer(decide) as server:
        report = sent(forks, "anthropic", "anthropic", server.base_url, requests, SETTINGS)
    first, read, second, created, last = server.requests
    views = [each["messages"][-1]["content"][0]["content"][0]["text"] for each in (first, second, last)]
    assert ["get_tool_result" in view for view in views] == [False, False, True]
    assert all("claim:v2:" in view for view in views)
    [answer] = read["messages"]
    assert [block["tool_use_id"] for block in answer["content"]] == ["read_1"]
    assert "row of a report" in answer["content"][0]["content"]
    assert read["thread"]["previous_message_id"].startswith("msg_")
    assert read["thread"] != first["thread"]
    assert named(created["tools"]) == ["get_tool_result"]
    assert sorted(report["messages"]) == sorted([SUMMARIES, VIEWS, UNNAMED.format(layer="anthropic")])


def test_all_turns_are_in_a_request_beside_a_container(forks: Forks) -> None:
    go = {"role": "user", "content": "go"}
    request = {"messages": [go, *history("anthropic")], "container": "container_1"}
    report, [wire] = ran(forks, "anthropic", [request])
    seen = [go, *history("anthropic", 5, MARK, report["shown"])]
    assert wire["messages"] == seen
    assert sorted(report["messages"]) == [SUMMARIES, VIEWS]


def test_a_cache_at_google_keeps_its_tools_and_its_instructions(forks: Forks) -> None:
    go = {"role": "user", "parts": [{"text": "go"}]}
    config = {"cached_content": "cachedContents/1"}
    beside = {"cachedContent": "cachedContents/1"}
    requests = [
        {"contents": [go, *history("gemini")], "config": config},
        {"contents": [go, *history("gemini", last=LIMITED)], "config": config},
        {"contents": [go, *history("gemini")], "config": {"http_options": {"extra_body": beside}}},
    ]
    report, [first, last, third] = ran(forks, "google_genai", requests)
    assert third == first
    for request in (first, last):
        assert {"tools", "toolConfig", "systemInstruction"}.isdisjoint(request)
    unnamed = first["contents"][-1]["parts"][0]["functionResponse"]["response"]["result"]
    assert "get_tool_result" in report["shown"]
    assert "get_tool_result" not in unnamed
    assert "claim:v2:" in unnamed
    # The turns behind the cache are all in the request.
    assert first["contents"] == [go, *history("gemini", 5, MARK, unnamed)]
    assert last["contents"][-1]["parts"][-1] == {"text": NOTE}
    assert sorted(report["messages"]) == sorted([SUMMARIES, VIEWS, UNNAMED.format(layer="google_genai")])


def test_a_prompt_at_bedrock_keeps_its_tools_and_its_instructions(forks: Forks) -> None:
    requests = [
        {"modelId": PROMPT, "messages": history("bedrock")[-2:]},
        {"modelId": PROMPT, "messages": history("bedrock", last=LIMITED)[-2:]},
    ]
    report, [first, last] = ran(forks, "bedrock", requests)
    for request in (first, last):
        assert {"toolConfig", "system"}.isdisjoint(request)
    assert "get_tool_result" not in json.dumps(first)
    assert last["messages"][-1]["content"][-1] == {"text": NOTE}
    assert sorted(report["messages"]) == sorted([SUMMARIES, UNNAMED.format(layer="bedrock")])


def test_a_result_without_text_leaves_no_blank_text_in_the_last_request_at_bedrock(forks: Forks) -> None:
    turns = [Turn((Asked("call_1", "read", {}, ""),)), Turn((Asked("call_2", "report", {}, LIMITED),))]
    _, [last] = ran(forks, "bedrock", [{"modelId": "scripted", "messages": rendered("bedrock", turns)}])
    assert [message["content"] for message in last["messages"]][-4:] == [
        [{"text": "[called read with {}]"}],
        [{"text": "[result of read]"}],
        [{"text": "[called report with {}]"}],
        [{"text": "[result of report]"}, {"text": LIMITED}],
    ]
