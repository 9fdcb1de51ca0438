"""Reading on at the model boundary: streams with a text before the call, endless readers, nonsense, and owners."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel._internal import env
from agent_otel.core import handler, remedy_hooks
from agent_otel.core.types import Exchange, Invocation, ModelReader, ModelRequest, RequestPart
from agent_otel.integrations import wrap
from agent_otel.remedies.claim_check import dialogue
from agent_otel.semconv import TOOL_RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Item = dict[str, Any]
TEXT = "row\n" * 20_000


@pytest.fixture(autouse=True)
def store(set_variables: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store in memory, and the tool switched on."""
    set_variables(
        AGENT_OTEL="1",
        AGENT_OTEL_CLAIM_CHECK="memory:",
        AGENT_OTEL_CLAIM_CHECK_KEY="the secret of this test",
        AGENT_OTEL_CLAIM_CHECK_BUDGET="30",
    )
    monkeypatch.setattr(env, "active", True)
    monkeypatch.setattr(remedy_hooks, "make_dialogues", dialogue.Dialogues)
    remedy_hooks.dialogues.cache_clear()
    yield
    remedy_hooks.dialogues.cache_clear()


def stored(text: str = TEXT, call_id: str = "call_1") -> str:
    """Store a result in the present execution; what the model gets of it."""
    with agent_otel.tool_call("search", {"q": call_id}, call_id=call_id) as call:
        return call.result(text)


def ref_of(shown: str) -> str:
    return shown.rpartition('ref="')[2].partition('"')[0]


class Model:
    """A scripted model: each response, whole or a stream, answers one request."""

    def __init__(self, form: str, *responses: Any) -> None:
        self.requests: list[Item] = []
        self._responses = list(responses)
        self.reader = ModelReader(
            lambda invocation: ModelRequest(
                RequestPart(TOOL_RESULTS, message.get("content"), message.get("tool_call_id"))
                for message in invocation.args[0].get("messages", ())
                if isinstance(message, dict) and message.get("role") == "tool"
            ),
            exchange=Exchange(
                lambda invocation: (form, dict(invocation.args[0])),
                lambda invocation, body: (invocation.args[0].clear(), invocation.args[0].update(body))[1],
                stream=lambda response: response if hasattr(response, "__next__") else None,
                changed=lambda item, changes, _: {**item, **changes},
            ),
        )

    def ask(self, body: Item) -> Any:
        """Send a request, as an SDK's function does it."""

        def respond(request: Item) -> Any:
            self.requests.append(json.loads(json.dumps(request)))
            response = self._responses.pop(0) if len(self._responses) > 1 else self._responses[0]
            return iter_of(response) if isinstance(response, list) else response

        def measured(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
            return wrapped(*args, **kwargs)

        assert self.reader.exchange is not None
        wrapper = wrap.answering(measured, self.reader, self.reader.exchange, is_async=False)
        answer = wrapper(respond, None, (body,), {})
        return list(answer) if hasattr(answer, "__next__") else answer


def iter_of(items: list[Item]) -> Iterator[Item]:
    yield from items


def chat(ref: str, call_id: str = "read_1", name: str = "get_tool_result", **arguments: str) -> Item:
    """A chat completion that calls a tool."""
    function = {"name": name, "arguments": json.dumps({"ref": ref, **arguments})}
    call = {"id": call_id, "type": "function", "function": function}
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}


DONE: Item = {"choices": [{"message": {"role": "assistant", "content": "done"}}]}


def asked(shown: str) -> Item:
    """A chat request with a result."""
    call = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": shown},
    ]
    return {"model": "scripted", "messages": messages}


def test_a_request_without_a_reference_stays_as_it_is() -> None:
    model = Model("chat", DONE)
    with agent_otel.execution("run-1"):
        assert model.ask({"messages": [{"role": "user", "content": "go"}]}) is DONE
    assert model.requests == [{"messages": [{"role": "user", "content": "go"}]}]


@pytest.mark.parametrize("same", [False, True])
def test_a_model_that_reads_for_ever_is_stopped(*, same: bool) -> None:
    with agent_otel.execution("run-1"):
        shown = stored()
        reads = 3 if same else dialogue.MOST_ROUNDS
        lines = ["1" if same else str(number) for number in range(1, reads + 1)]
        asks = [chat(ref_of(shown), f"read_{number}", lines=each) for number, each in enumerate(lines)]
        model = Model("chat", *asks, DONE)
        assert model.ask(asked(shown)) is DONE
    assert [request.get("tool_choice") for request in model.requests] == [None] * reads + ["none"]
    answers = [json.loads(message["content"]) for message in model.requests[-1]["messages"][4::2]]
    assert answers[0] == {"content": "row", "size_bytes": 3, "start": 0, "end": 3}
    assert answers[-1]["error"] == ("read_before" if same else "too_many_reads")


@pytest.mark.parametrize(
    "arguments",
    [
        *("", "{", "[]", '"x"', "null", '{"ref": 5}', '{"ref": {"a": 1}}', '{"nothing": 1}', '{"ref": ""}'),
        # A model that repeats itself: a pattern that goes back over the blanks takes minutes.
        pytest.param(json.dumps({"ref": "x" + "\n" * 500_000 + "x"}), id="blanks"),
    ],
)
def test_nonsense_gets_an_answer(arguments: str) -> None:
    with agent_otel.execution("run-1"):
        shown, call = stored(), chat("")
        call["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = arguments
        model = Model("chat", call, DONE)
        assert model.ask(asked(shown)) is DONE
    assert json.loads(model.requests[1]["messages"][-1]["content"])["error"] == "tool_result_unavailable"


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [{"type": "function", "function": {"name": "get_tool_result"}}]},
        {"tool_choice": "none"},
        {"n": 2},
        {"functions": [{"name": "a"}]},
    ],
)
def test_nothing_is_added_where_the_program_has_the_tool_or_wants_no_calls(more: Item) -> None:
    with agent_otel.execution("run-1"):
        shown = stored()
        call = chat(ref_of(shown))
        model = Model("chat", call)
        assert model.ask({**asked(shown), **more}) is call
    assert model.requests == [{**asked(shown), **more}]


def test_another_execution_reads_nothing() -> None:
    with agent_otel.execution("run-1"):
        shown = stored()
    with agent_otel.execution("run-2"):
        model = Model("chat", chat(ref_of(shown)), DONE)
        assert model.ask(asked(shown)) is DONE
    assert json.loads(model.requests[1]["messages"][-1]["content"])["error"] == "tool_result_unavailable"


def test_a_stream_without_a_read_is_what_the_provider_sent() -> None:
    items = [{"choices": [{"delta": delta}]} for delta in ({"role": "assistant"}, {"content": "d"}, {"content": "one"})]
    with agent_otel.execution("run-1"):
        assert Model("chat", items).ask(asked(stored())) == items


def test_anthropic_s_events_go_on_behind_a_text() -> None:
    with agent_otel.execution("run-1"):
        shown = stored()
        arguments = json.dumps({"ref": ref_of(shown), "lines": "1"})
        first = [
            {"type": "message_start", "message": {}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I read on."}},
            {"type": "content_block_stop", "index": 0},
        ]
        read = [
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "t", "name": "get_tool_result", "input": {}},
            },
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": arguments},
            },
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ]
        second: list[Item] = [
            {"type": "message_start", "message": {}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_stop"},
        ]
        model = Model("anthropic", [*first, *read], second)
        got = model.ask({"messages": [{"role": "user", "content": shown}]})
    moved = [{**item, "index": 1} if "index" in item else item for item in second[1:]]
    assert got == [*first, *moved]
    assert model.requests[1]["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I read on."},
                {"type": "tool_use", "id": "t", "name": "get_tool_result", "input": json.loads(arguments)},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": '{"content":"row","size_bytes":3,"start":0,"end":3}',
                }
            ],
        },
    ]


def test_bedrock_s_events_go_on_behind_a_text() -> None:
    with agent_otel.execution("run-1"):
        shown = stored()
        arguments = json.dumps({"ref": ref_of(shown), "lines": "1"})
        first: list[Item] = [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "I read on."}}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
        ]
        start = {"toolUse": {"toolUseId": "t", "name": "get_tool_result"}}
        read: list[Item] = [
            {"contentBlockStart": {"contentBlockIndex": 1, "start": start}},
            {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": arguments}}}},
            {"contentBlockStop": {"contentBlockIndex": 1}},
            {"messageStop": {"stopReason": "tool_use"}},
            {"metadata": {}},
        ]
        second: list[Item] = [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Done."}}},
            {"messageStop": {"stopReason": "end_turn"}},
        ]
        model = Model("bedrock", [*first, *read], second)
        got = model.ask({"messages": [{"role": "user", "content": [{"text": shown}]}]})
    assert got == [
        *first,
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "Done."}}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    [said, answer] = model.requests[1]["messages"][1:]
    assert said["content"][0] == {"text": "I read on."}
    assert said["content"][1]["toolUse"]["input"] == json.loads(arguments)
    assert answer["content"][0]["toolResult"]["toolUseId"] == "t"


def test_responses_events_go_on_behind_a_text() -> None:
    with agent_otel.execution("run-1"):
        shown = stored()
        said = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "I read on."}]}
        call = {
            "type": "function_call",
            "call_id": "t",
            "name": "get_tool_result",
            "arguments": json.dumps({"ref": ref_of(shown), "lines": "1"}),
        }
        first: list[Item] = [
            {"type": "response.created", "response": {}},
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "I read on."},
            {"type": "response.output_item.done", "output_index": 0, "item": said},
        ]
        read: list[Item] = [
            {"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call"}},
            {"type": "response.output_item.done", "output_index": 1, "item": call},
            {"type": "response.completed", "response": {"output": [said, call]}},
        ]
        second: list[Item] = [
            {"type": "response.created", "response": {}},
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Done."},
            {"type": "response.completed", "response": {"output": []}},
        ]
        model = Model("responses", [*first, *read], second)
        got = model.ask({"input": shown})
    assert got == [*first, {**second[1], "output_index": 1}, {**second[2], "output_index": 1}, second[3]]
    output = '{"content":"row","size_bytes":3,"start":0,"end":3}'
    assert model.requests[1]["input"] == [
        {"role": "user", "content": shown},
        said,
        call,
        {"type": "function_call_output", "call_id": "t", "output": output},
    ]


def test_a_conversation_at_the_provider_gets_the_answers_alone() -> None:
    with agent_otel.execution("run-1"):
        shown = stored()
        call = {"type": "function_call", "call_id": "t", "name": "get_tool_result", "arguments": "{}"}
        model = Model("responses", {"output": [call]}, {"output": []})
        model.ask({"input": shown, "conversation": "conv_1"})
    assert [item["type"] for item in model.requests[1]["input"]] == ["function_call_output"]


def test_asynchronous_requests_are_answered_off_the_loop() -> None:
    async def ask(shown: str) -> Any:
        model = Model("chat")
        left = [chat(ref_of(shown), lines="2"), DONE]
        requests: list[Item] = []

        async def respond(request: Item) -> Any:
            requests.append(json.loads(json.dumps(request)))
            return left.pop(0)

        async def measured(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
            return await wrapped(*args, **kwargs)

        assert model.reader.exchange is not None
        wrapper = wrap.answering(measured, model.reader, model.reader.exchange, is_async=True)
        assert await wrapper(respond, None, (asked(shown),), {}) is DONE
        return requests[1]["messages"][-1]["content"]

    with agent_otel.execution("run-1"):
        assert asyncio.run(ask(stored())) == '{"content":"row","size_bytes":3,"start":0,"end":3}'


def test_an_owner_that_the_request_itself_shows_may_read() -> None:
    """The results of a framework's thread, where no layer above the SDK names the thread."""
    from agent_otel.core.types import ToolCall, ToolReader, ToolResult

    reader = ToolReader(lambda call: call.instance, ToolResult, replace=lambda _, found, __: found)
    invocation = Invocation(ToolCall("search", {}, "call_of_the_thread", None, "thread-of-the-request"), (), {})
    visit = handler.enter_tool(reader, invocation)
    assert isinstance(visit, handler.Visit)
    with visit:
        shown = visit.remedied(TEXT, invocation).text
    for call_id, is_read in (("call_of_the_thread", True), ("call_of_nobody", False)):
        model = Model("chat", chat(ref_of(shown), lines="1"), DONE)
        request = asked(shown)
        request["messages"][2]["tool_call_id"] = call_id
        assert model.ask(request) is DONE
        assert ("content" in json.loads(model.requests[1]["messages"][-1]["content"])) == is_read
