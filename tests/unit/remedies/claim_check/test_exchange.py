"""The requests behind a read: what a provider has sent comes back to it as it takes it."""

from __future__ import annotations

from typing import Any

from agent_otel.messages import Answer, Call
from agent_otel.messages.anthropic import Anthropic, Bedrock
from agent_otel.messages.openai import Chat, Responses

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


def test_calls_beside_a_read_get_answers_of_their_own_types() -> None:
    output: list[Item] = [
        CALL,
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_a", "name": "code", "input": "1 + 1"},
        {"type": "shell_call", "id": "sh_1", "call_id": "call_b", "action": {"commands": ["ls"]}},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_c", "action": {"type": "exec"}},
        {"type": "apply_patch_call", "id": "apc_1", "call_id": "call_d", "operation": {"type": "delete_file"}},
        {"type": "shell_call", "id": "sh_2", "call_id": "call_e", "environment": {"type": "container_reference"}},
    ]
    calls = Responses().calls({"output": output})
    assert [call.id for call in calls] == ["call_9", "call_a", "call_b", "call_c", "call_d"]
    answers = [Answer(call, {"error": "not_run"}) for call in calls]
    made = Responses().answered({"input": [USER]}, {"output": output}, answers)["input"]
    said = '{"error":"not_run"}'
    failed = {"stdout": "", "stderr": said, "outcome": {"type": "exit", "exit_code": 1}}
    assert made == [
        USER,
        *output,
        {"type": "function_call_output", "call_id": "call_9", "output": said},
        {"type": "custom_tool_call_output", "call_id": "call_a", "output": said},
        {"type": "shell_call_output", "call_id": "call_b", "output": [failed]},
        {"type": "local_shell_call_output", "id": "call_c", "output": said},
        {"type": "apply_patch_call_output", "call_id": "call_d", "status": "failed", "output": said},
    ]


def test_an_item_that_only_the_program_can_answer_is_left_out_with_its_reasoning() -> None:
    thought: Item = {"type": "reasoning", "id": "rs_1", "summary": []}
    for kind in ("computer_call", "mcp_approval_request"):
        output = [{**thought, "id": "rs_0"}, CALL, thought, {"type": kind, "id": "x_1", "call_id": "call_x"}]
        assert answered(output) == [USER, *output[:2], RESULT]
        # One thought of several calls is required as long as one of them stays.
        assert answered([thought, output[-1], CALL]) == [USER, thought, CALL, RESULT]
        assert answered([thought, CALL, output[-1]]) == [USER, thought, CALL, RESULT]


def test_a_call_that_the_program_answers_is_held_back_in_a_stream() -> None:
    def added(**item: Any) -> str:
        return Responses().kind({"type": "response.output_item.added", "item": item})

    assert added(type="shell_call", environment={"type": "local"}) == "call"
    assert added(type="computer_call") == "call"
    assert added(type="shell_call", environment={"type": "container_reference"}) == "neutral"
    assert added(type="web_search_call") == "neutral"


def test_a_blank_text_before_a_call_is_not_sent_back() -> None:
    call: Item = {"type": "tool_use", "id": "call_9", "name": READ.name, "input": {}}
    events: list[Item] = [
        {"type": "message_start", "message": {"id": "msg_1"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_start", "index": 1, "content_block": call},
    ]
    made = Anthropic().answered({"messages": [USER]}, Anthropic().folded(events), [Answer(READ, {"found": 1})])
    assert made["messages"][1] == {"role": "assistant", "content": [call]}

    used: Item = {"toolUseId": "call_9", "name": READ.name}
    parts: list[Item] = [
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": " "}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"later": 1}}},
        {"contentBlockStart": {"contentBlockIndex": 2, "start": {"toolUse": used}}},
    ]
    made = Bedrock().answered({"messages": [USER]}, Bedrock().folded(parts), [Answer(READ, {"found": 1})])
    assert made["messages"][1] == {"role": "assistant", "content": [{"toolUse": {**used, "input": {}}}]}
