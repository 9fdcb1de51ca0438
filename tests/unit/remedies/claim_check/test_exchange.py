"""The requests behind a read: what a provider has sent comes back to it as it takes it."""

from __future__ import annotations

from typing import Any

from agent_otel.messages.exchange.base import Answer, Call
from agent_otel.messages.exchange.openai import Chat, Responses

Item = dict[str, Any]
READ = Call("call_9", "get_tool_result", '{"ref":"claim:v2:abc"}')
CALL: Item = {"type": "function_call", "id": "fc_1", "call_id": "call_9", "name": READ.name, "arguments": "{}"}
TEXT: Item = {"type": "output_text", "text": "I read it.", "annotations": []}
SAID: Item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [TEXT]}
USER: Item = {"role": "user", "content": "go"}
RESULT: Item = {"type": "function_call_output", "call_id": "call_9", "output": '{"found":1}'}


def folded(*deltas: Item) -> Item:
    items = [{"choices": [{"delta": delta}]} for delta in deltas]
    return dict(Chat().folded(items)["choices"][0]["message"])


def test_thinking_that_is_streamed_in_pieces_is_one_signed_block() -> None:
    pieces = [
        {"thinking_blocks": [{"type": "thinking", "thinking": "Let me ", "signature": ""}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "read it.", "signature": ""}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "SIGNED=="}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "And then.", "signature": ""}]},
    ]
    assert folded(*pieces)["thinking_blocks"] == [
        {"type": "thinking", "thinking": "Let me read it.", "signature": "SIGNED=="},
        {"type": "thinking", "thinking": "And then.", "signature": ""},
    ]


def test_a_content_may_be_a_text_and_then_blocks_and_a_text_again() -> None:
    def thought(words: str) -> Item:
        return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": words}]}]}

    found = folded({"content": ""}, thought("Let me "), thought("read it."), {"content": "I "}, {"content": "read."})
    assert found["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Let me read it."}]},
        {"type": "text", "text": "I read."},
    ]
    assert folded({"content": "I "}, {"content": "read."})["content"] == "I read."


def test_other_lists_are_those_of_the_last_chunk() -> None:
    message = folded({"content": "a", "citations": ["https://x"]}, {"content": "b", "citations": ["https://x", "y"]})
    assert message == {"content": "ab", "citations": ["https://x", "y"]}


def answered(output: list[Item], **more: Any) -> Any:
    body = {"input": [USER], **more}
    return Responses().answered(body, {"output": output}, [Answer(READ, {"found": 1})])["input"]


def test_without_a_store_reasoning_goes_back_only_where_it_can_be_read() -> None:
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    whole = {**bare, "encrypted_content": "gAAA"}
    without_ids = [{key: value for key, value in item.items() if key != "id"} for item in (SAID, CALL)]
    assert answered([bare, SAID, CALL], store=False) == [USER, *without_ids, RESULT]
    assert answered([whole, SAID, CALL], store=False) == [USER, whole, SAID, CALL, RESULT]
    assert answered([bare, SAID, CALL]) == [USER, bare, SAID, CALL, RESULT]
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert answered([bare, search], store=False) == [USER, search, RESULT]


def test_the_fields_that_the_sdk_has_parsed_are_not_sent() -> None:
    parsed = {**SAID, "content": [{**TEXT, "parsed": {"a": 1}}]}
    assert answered([parsed, {**CALL, "parsed_arguments": {}}]) == [USER, SAID, CALL, RESULT]
    function: Item = {"name": READ.name, "arguments": "{}"}
    call: Item = {"id": "call_9", "type": "function", "function": function}
    with_more = {**call, "function": {**function, "parsed_arguments": None}}
    message = {"role": "assistant", "content": "x", "parsed": {"a": 1}, "tool_calls": [with_more]}
    response = {"choices": [{"message": message}]}
    messages = Chat().answered({"messages": [USER]}, response, [Answer(READ, {"found": 1})])["messages"]
    assert messages[1] == {"role": "assistant", "content": "x", "tool_calls": [call]}
    assert message["tool_calls"] == [with_more]  # the response is the program's
