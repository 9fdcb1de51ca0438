"""No code of a value runs, whatever reader it passes: each kind of hostile value at each place of what a reader reads.

The doors are found by themselves: a reader of an SDK or a framework that is added without a row here fails.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel._internal.failures import error_type
from agent_otel.core import run_visit, tool_visit
from agent_otel.core.thread import request_parts
from agent_otel.core.thread.request_prefix import plain_part
from agent_otel.core.thread.tool_definitions import definitions
from agent_otel.core.types import Invocation, ModelReader, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations import frameworks, model_sdks, runtimes
from agent_otel.integrations.hooks import Hook
from agent_otel.measure.arguments_hash import arguments as digest
from agent_otel.measure.size import Size, size
from agent_otel.measure.truncation import find_cut
from agent_otel.measure.truncation.paging import asks_for_a_page, is_page
from tests.rows import each_row
from tests.unit import test_runtime_tripwires
from tests.unit.measure import hostile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

Json = dict[str, Any]


class Key(str):
    """A key that compares itself by code, and has the hash of the text that is looked up."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        hostile.ran.append("Key.__eq__")
        return False

    __hash__ = str.__hash__


def _variants(template: Any, value: Any) -> Iterator[Any]:
    """Yield copies of a template with the value in the place of each of its parts, one at a time."""
    if isinstance(template, dict):
        for key, part in template.items():
            yield {**template, key: value}
            for variant in _variants(part, value):
                yield {**template, key: variant}
    elif isinstance(template, list):
        for place, part in enumerate(template):
            for variant in (value, *_variants(part, value)):
                yield [*template[:place], variant, *template[place + 1 :]]
    elif isinstance(template, SimpleNamespace):
        yield from (SimpleNamespace(**fields) for fields in _variants(vars(template), value))


def _object(fields: Json) -> Any:
    """Return an object with a namespace: of a class like those of SDKs."""
    made = type("BaseMessage", (), {})()
    for name, each in fields.items():
        if type(name) is str:
            setattr(made, name, each)
    return made


_CALLS = [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]
_BLOCKS = [{"type": "text", "text": "hi"}]
_TOOLS = [{"type": "function", "function": {"name": "t", "parameters": {}}}]
_CHAT: Json = {
    "tools": _TOOLS,
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": _BLOCKS, "name": "n"},
        {"role": "assistant", "content": None, "tool_calls": _CALLS, "function_call": {"name": "t", "arguments": "{}"}},
        {"role": "tool", "content": "r", "tool_call_id": "c"},
    ],
}
_RESPONSES: Json = {
    "tools": [{"type": "function", "name": "t"}],
    "instructions": "i",
    "previous_response_id": "p",
    "conversation": {"id": "x"},
    "input": [
        {"type": "message", "role": "user", "content": _BLOCKS, "id": "msg_1"},
        {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}", "output": "o"},
        {"type": "function_call_output", "call_id": "c", "output": "o"},
        {"type": "reasoning", "encrypted_content": "e", "summary": []},
    ],
}
_ANTHROPIC: Json = {
    "tools": [{"name": "t", "input_schema": {}}],
    "system": _BLOCKS,
    "thread": {"type": "continue"},
    "messages": [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "t", "input": {}}, *_BLOCKS]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": _BLOCKS}]},
        {"role": "user", "content": [{"type": "web_search_tool_result", "content": "w"}]},
    ],
}
_BEDROCK: Json = {
    "toolConfig": {"tools": [{"toolSpec": {"name": "t"}}]},
    "system": [{"text": "s"}],
    "messages": [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "t", "input": {}}}, {"text": "a"}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "r"}], "status": "error"}}],
        },
    ],
}
_GEMINI: Json = {
    "tools": [{"functionDeclarations": [{"name": "t"}]}],
    "cachedContent": "c",
    "systemInstruction": {"parts": [{"text": "s"}]},
    "contents": [
        {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "t", "args": {}}}, {"text": "a"}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "t", "response": {"result": "r"}}}]},
    ],
}
_INTERACTION: Json = {
    "tools": _TOOLS,
    "system_instruction": "i",
    "input": [
        {"type": "user_input", "content": [{"type": "text", "text": "u"}]},
        {"type": "function_call", "id": "c", "name": "t", "arguments": {}},
        {"type": "function_result", "call_id": "c", "name": "t", "result": "r", "is_error": True},
        {"type": "google_search_result", "result": "w"},
    ],
    "generation_config": {"tool_choice": "any"},
    "previous_interaction_id": "p",
}
_CONVERSATION: Json = {
    "tools": _TOOLS,
    "instructions": "i",
    "inputs": [
        {"type": "message.input", "role": "user", "content": "u"},
        {"type": "function.call", "name": "t", "arguments": "{}"},
        {"type": "function.result", "tool_call_id": "c", "result": "r"},
    ],
}
_OLLAMA: Json = {
    "tools": _TOOLS,
    "messages": [
        {"role": "assistant", "content": "", "thinking": "t", "images": [], "tool_calls": _CALLS},
        {"role": "tool", "content": "r", "tool_name": "t"},
    ],
}
_LANGCHAIN: list[Json] = [
    {"type": "human", "content": _BLOCKS, "name": "n", "id": "1"},
    {"type": "ai", "content": _BLOCKS, "tool_calls": [{"id": "c", "name": "t", "args": {}}], "name": None, "id": "2"},
    {"type": "tool", "content": "r", "tool_call_id": "c", "name": "t", "id": "3"},
]
_CONFIG: Json = {"configurable": {"thread_id": "t"}, "metadata": {"lc_agent_name": "a", "thread_id": "t"}}


def _output(value: Any) -> Any:
    return _space(raw_output=value, content=value, blocks=[value], is_error=value, exception=None)


def _posted(url: str) -> Callable[[Any], tuple[Any, Json]]:
    return lambda body: (None, {"options": SimpleNamespace(json_data=body, url=url)})


_CLIENT = SimpleNamespace(meta=SimpleNamespace(service_model=SimpleNamespace(service_name="bedrock-runtime")))

#: Reader -> templates of what it reads, each with the instance and the arguments that carry it.
REQUESTS: dict[str, list[tuple[Any, Callable[[Any], tuple[Any, Json]]]]] = {
    "anthropic.request": [(_ANTHROPIC, _posted("/v1/messages"))],
    "azure_inference.request": [(_CHAT, lambda body: (None, body)), (_CHAT, lambda body: (None, {"body": body}))],
    "bedrock.request": [
        (_BEDROCK, lambda body: (_CLIENT, {"operation_name": "Converse", "api_params": body})),
        ({"body": "{}", "modelId": "m"}, lambda body: (_CLIENT, {"operation_name": "InvokeModel", "api_params": body})),
    ],
    "google_genai.request": [(_GEMINI, lambda body: (None, {"path": "m:generateContent", "request_dict": body}))],
    "google_genai.interaction": [(_INTERACTION, lambda body: (None, body))],
    **{
        f"cohere.{reader}": [({"documents": [{"data": {"text": "d"}}], **_CHAT}, lambda body: (None, body))]
        for reader in ("request", "streamed", "astreamed")
    },
    "fireworks.request": [(_CHAT, _posted("/v1/chat/completions")), (_ANTHROPIC, _posted("/v1/messages"))],
    "openai.groq_request": [(_CHAT, _posted("/openai/v1/chat/completions"))],
    "httpx.request": [
        (
            {"_content": b"{}"},
            lambda sent: (
                None,
                {"request": SimpleNamespace(url=SimpleNamespace(path="/v1/responses"), method="POST", **sent)},
            ),
        )
    ],
    "huggingface_hub.request": [(_CHAT, lambda body: (None, body))],
    "langchain.generated": [
        (_LANGCHAIN, lambda body: (None, {"messages": [_object(m) if type(m) is dict else m for m in body]})),
        (_TOOLS, lambda body: (None, {"messages": [], "tools": body})),
        (_CONFIG, lambda body: (None, {"messages": [], "run_manager": SimpleNamespace(metadata=body["metadata"])})),
    ],
    "langchain.events": [
        (_LANGCHAIN, lambda body: (None, {"messages": [_object(m) for m in body if type(m) is dict]}))
    ],
    "langchain.streamed": [
        (
            _CONFIG,
            lambda body: (
                SimpleNamespace(_convert_input=lambda _: SimpleNamespace(to_messages=list)),
                {"input": "", "config": body},
            ),
        )
    ],
    "mistral.request": [
        (_CHAT, lambda body: (None, {"method": "POST", "path": "/v1/chat/completions", "request": body})),
        (_CONVERSATION, lambda body: (None, {"method": "POST", "path": "/v1/conversations", "request": body})),
    ],
    "openai.request": [(_CHAT, _posted("/chat/completions")), (_RESPONSES, _posted("/responses"))],
}
#: Readers whose request has another form than keyword arguments, or no parts: tested by name below, or nothing to read.
ELSEWHERE = {
    "google_adk.request": "names of the framework's own objects",
    "litellm.completing": "has no parts; what it announces is read by openai's functions",
    "litellm.responding": "has no parts; what it announces is read by openai's functions",
    "mistral.chatting": "has no parts; mistral.request reads them",
    "ollama.request": "test_ollama",
    **{f"xai.{reader}": "test_xai" for reader in ("measured", "answered", "read_by_sdk", "compacted")},
}
#: Framework's reader -> what its result is in, where that is an object of the framework's.
RESULTS: dict[str, Callable[[Any], Any]] = {
    "ag2.execute": lambda value: _space(result=_space(parts=[_space(content=value)]), error=value),
    "ag2.tool": lambda value: _space(result=_space(parts=[_space(data=value), value])),
    "agent_framework.auto_invoke": lambda value: _space(
        type="function_result", exception=None, items=[_named("Content", type="text", text=value), value]
    ),
    "agent_framework.invoke": lambda value: value,
    "agentscope.execute": lambda value: value,
    "agentscope.tool": lambda value: _named("ToolResponse", content=[_named("TextBlock", text=value)], state=value),
    "autogen.execute": lambda value: (value, _space(is_error=value, content=value)),
    "autogen.run": lambda value: value,
    "openai_agents.live_invoke": lambda value: value,
    "openai.execute": lambda value: {"output": value},
    "mistral.called": lambda value: {"result": value},
    "agno._execute": lambda value: _space(status="success", result=value),
    "anthropic._call": lambda value: value,
    "anthropic.member": lambda value: {"content": value, "is_error": value},
    "anthropic.run_tool": lambda value: {"content": value},
    "anthropic.session_tool": lambda value: ({"content": value, "is_error": value}, value),
    "browser_use.act": lambda value: _space(
        long_term_memory=value, extracted_content=value, error=value, include_extracted_content_only_once=value
    ),
    "browser_use.action": lambda value: _named(
        "ActionResult", long_term_memory=value, extracted_content=value, error=value
    ),
    "camel.execute": lambda value: value,
    "camel.execute_streamed": lambda value: value,
    "camel.tool": lambda value: value,
    "claude_agent_sdk.request": lambda value: {
        "result": {"content": value, "structuredContent": value, "isError": value}
    },
    "crewai.function": lambda value: value,
    "crewai.invoke": lambda value: value,
    "crewai.native": lambda value: {"result": value},
    "crewai.run": lambda value: value,
    "crewai.step": lambda value: {"result": value, "tool_failure": value},
    "crewai.use": lambda value: value,
    "dapr_agents.activity": lambda value: {"content": value},
    "dapr_agents.run_tool": lambda value: value,
    "mcp.injected": lambda value: _space(content=[_space(text=value)], structured_content=value),
    "mcp.sampled": lambda value: value,
    "mcp.task": lambda value: value,
    "google_adk._error_answer": lambda value: value,
    "google_adk.call_tool": lambda value: value,
    "google_adk.prepared_call": lambda value: value,
    "google_adk.run": lambda value: _space(stdout=value, stderr=value),
    "google_adk.single_call": lambda value: value,
    "google_adk.tool_node": lambda value: value,
    "google_genai.invoke": lambda value: value,
    "dspy.tool": lambda value: value,
    "dspy._executed": lambda value: value,
    "litellm._asked": lambda value: {"role": "tool", "content": value},
    "litellm.function": lambda value: value,
    "mistral.invoke": lambda value: value,
    "haystack.tool": lambda value: value,
    "langchain.run": lambda value: value,
    "langchain.tool_node": lambda value: value,
    "llama_index.inner": _output,
    "llama_index.outer": lambda value: _space(tool_output=_output(value)),
    "llama_index.selected": _output,
    "llama_index.tool": _output,
    "mcp.client": lambda value: _space(content=[_space(text=value)], structuredContent=value, isError=value),
    "mcp.session": lambda value: _space(content=value, structured_content=value, is_error=value),
    "mcp._answer": lambda value: _space(content=[_space(text=value)], structured_content=value, is_error=value),
    "mcp.handled": lambda value: value,
    "mcp.request": lambda value: value,
    "mcp.tool": lambda value: _space(content=[_space(text=value)], structured_content=value),
    "openai_agents._guarded": lambda value: value,
    "openai_agents._unguarded": lambda value: value,
    "livekit_agents.execute": lambda value: _named("ToolResult", output=value),
    "livekit_agents.executed": lambda value: _space(raw_exception=None, raw_output=value),
    "openai_agents.invoke": lambda value: value,
    "openai_agents.single_tool": lambda value: value,
    "openai_agents.action": lambda value: _named("ToolCallOutputItem", raw_item={"output": value}, output=value),
    "pipecat._handler": lambda value: _space(result=value, error=None),
    "pydantic_ai.activity": lambda value: value,
    "pydantic_ai.execute_tool_call": lambda value: value,
    "pydantic_ai.raw_execute": lambda value: value,
    "semantic_kernel._function": lambda value: _space(value=value),
    "semantic_kernel._outer": lambda value: _space(result=value, inner_content=value),
    "smolagents.execute": lambda value: value,
    "smolagents.managed": lambda value: value,
    "smolagents.tool": lambda value: value,
    "strands.background": lambda value: {"content": value, "status": value},
    "strands.run_tool": lambda value: _named("ToolResultEvent", tool_result={"content": value, "status": value}),
    "strands.stream": lambda value: _named("ToolResultEvent", tool_result=value),
    "strands.stream_alone": lambda value: value,
}
_ADK_CONTEXT = SimpleNamespace(function_call_id="c", agent_name="a", session=SimpleNamespace(id="s"))
#: Framework's reader -> instance, arguments and keyword arguments of a call with the value in each place.
CALLS: dict[str, Callable[[Any], tuple[Any, tuple[Any, ...], Json]]] = {
    "ag2.execute": lambda value: (None, (None, _space(name=value, arguments=value, id=value)), {}),
    "ag2.tool": lambda value: (None, (_space(name=value, arguments=value, id=value),), {}),
    "agent_framework.auto_invoke": lambda value: (
        None,
        (_space(type="function_call", name="search", arguments=value, call_id=value),),
        {"tool_map": {"search": None}, "invocation_session": _space(session_id=value)},
    ),
    "agent_framework.invoke": lambda value: (_space(name=value, _context_parameter_name=None), (value,), {}),
    "agentscope.execute": lambda value: (
        _space(name=value, state=_space(session_id=value)),
        (_space(name=value, input=value, id=value),),
        {},
    ),
    "agentscope.tool": lambda value: (None, (_space(name=value, input=value, id=value),), {}),
    "autogen.execute": lambda value: (
        None,
        (_space(name=value, arguments=value, id=value),),
        {"agent_name": value},
    ),
    "autogen.run": lambda value: (_space(name=value), (value,), {}),
    "openai_agents.live_invoke": lambda value: (
        None,
        (),
        {
            "function_tool": _space(name=value),
            "context": _space(tool_arguments=value, tool_call_id=value, agent=_space(name=value)),
        },
    ),
    "mistral.called": lambda value: (
        None,
        (_space(name=value, arguments=value, tool_call_id=value), value),
        {},
    ),
    "openai.execute": lambda value: (
        None,
        (None, _space(name=value, arguments=value, call_id=value)),
        {},
    ),
    "agno._execute": lambda value: (
        _space(
            function=_space(name=value, _agent=_space(name=value), _team=None, _run_context=_space(session_id=value)),
            arguments=value,
            call_id=value,
        ),
        (),
        {},
    ),
    "anthropic._call": lambda value: (_space(name=value), (value,), {}),
    "anthropic.member": lambda value: (
        None,
        (_space(name=value, input=value, id=value, toolset_name=value),),
        {},
    ),
    "anthropic.run_tool": lambda value: (None, (None, _space(name=value, input=value, id=value)), {}),
    "anthropic.session_tool": lambda value: (
        _space(session_id=value),
        (None, _space(name=value, id=value), value),
        {},
    ),
    "claude_agent_sdk.request": lambda value: (
        None,
        (),
        {
            "message": {
                "method": "tools/call",
                "params": {"name": value, "arguments": value, "_meta": {"claudecode/toolUseId": value}},
            }
        },
    ),
    "browser_use.act": lambda value: (None, (_space(root=_space(t=_space(a=value))),), {}),
    "browser_use.action": lambda value: (None, (), {"action_name": value, "params": {"a": value}}),
    "camel.execute": lambda value: (
        _space(_internal_tools={"t": value}, role_name=value),
        (_space(tool_name="t", args=value, tool_call_id=value),),
        {},
    ),
    "camel.execute_streamed": lambda value: (
        _space(_internal_tools={"t": value}, role_name=value),
        ({"function": {"name": "t", "arguments": value}, "id": value},),
        {},
    ),
    "camel.tool": lambda value: (_space(openai_tool_schema={"function": {"name": value}}), (), {"a": value}),
    "crewai.function": lambda value: (None, ("f", value, {"f": value}), {"from_agent": _space(role=value)}),
    "crewai.invoke": lambda value: (_space(name=value), (value,), {}),
    "crewai.native": lambda value: (
        _space(agent=_space(role=value), crew=_space(id=value), task=None),
        ((value, value, value),),
        {},
    ),
    "crewai.run": lambda value: (_space(name=value), (value,), {"a": value}),
    "crewai.step": lambda value: (None, ((value, value, value),), {"task": _space(id=value)}),
    "crewai.use": lambda value: (
        _space(agent=_space(role=value)),
        (_space(tool_name=value, arguments=value),),
        {},
    ),
    "dapr_agents.activity": lambda value: (
        _space(name=value),
        (
            None,
            {
                "tool_call": {"function": {"name": value, "arguments": value}, "id": value},
                "instance_id": value,
            },
        ),
        {},
    ),
    "dapr_agents.run_tool": lambda value: (None, (value,), {"a": value}),
    "mcp.injected": lambda value: (
        _space(_tools_to_inject_by_name={"a": value}),
        (_space(message=_space(name="a", arguments=value)),),
        {},
    ),
    "mcp.sampled": lambda value: (_space(name=value), (value,), {}),
    "mcp.task": lambda value: (None, (_space(name=value), value), {}),
    "google_adk._error_answer": lambda value: (None, (_space(name=value), value, _ADK_CONTEXT), {}),
    "google_adk.call_tool": lambda value: (None, (_space(name=value), value, _ADK_CONTEXT), {}),
    "google_adk.run": lambda value: (
        None,
        (_space(agent=_space(name=value), session=_space(id=value)), _space(code=value)),
        {},
    ),
    "google_adk.prepared_call": lambda value: (
        None,
        (
            None,
            _space(
                tool_lookup_error=None,
                tool=_space(name=value),
                function_args=value,
                tool_context=_space(function_call_id=value, agent_name=value, session=_space(id=value)),
            ),
        ),
        {},
    ),
    "google_adk.single_call": lambda value: (
        None,
        (_ADK_CONTEXT, _space(name=value, args=value, id=value), {"t": None}, _space(name=value)),
        {},
    ),
    "google_adk.tool_node": lambda value: (
        _space(tool=_space(name=value)),
        (),
        {"ctx": _space(function_call_id=value, session=_space(id=value)), "args": value},
    ),
    "google_genai.invoke": lambda value: (None, (value, test_keys_that_compare_themselves), {}),
    "dspy.tool": lambda value: (_space(name=value, func=value, args=value), (), {"a": value}),
    "dspy._executed": lambda value: (
        _space(name="a", args=value, id=value),
        (),
        {"functions": {"a": value}},
    ),
    "litellm._asked": lambda value: (None, (_asked_of_litellm(value),), {}),
    "litellm.function": lambda value: (None, (_space(name=value), value), {}),
    "mistral.invoke": lambda value: (_space(name=value), (value,), {}),
    "haystack.tool": lambda value: (_space(name=value), (), {"a": value}),
    "langchain.run": lambda value: (
        _space(name=value),
        (value,),
        {"tool_call_id": value, "config": {"configurable": {"thread_id": value}}},
    ),
    "langchain.tool_node": lambda value: (
        None,
        (
            {"name": value, "args": value, "id": value},
            None,
            {"configurable": {"thread_id": value}, "metadata": {"lc_agent_name": value}},
        ),
        {},
    ),
    "llama_index.inner": lambda value: (
        _space(name=value),
        (None, _space(metadata=_space(name=value, fn_schema=value)), value),
        {},
    ),
    "llama_index.outer": lambda value: (
        _space(name=value),
        (None, _space(tool_name=value, tool_kwargs=value, tool_id=value)),
        {},
    ),
    "llama_index.selected": lambda value: (None, (_space(tool_name=value, tool_kwargs=value, tool_id=value),), {}),
    "llama_index.tool": lambda value: (
        _space(metadata=_space(name=value, fn_schema=_space(model_fields={"a": None})), ctx_param_name=value),
        (value,),
        {"b": value},
    ),
    "mcp.client": lambda value: (None, (value, value), {}),
    "mcp.session": lambda value: (None, (), {"name": value, "arguments": value}),
    "mcp._answer": lambda value: (
        None,
        (None, _space(method="tools/call", params=_space(name=value, arguments=value))),
        {},
    ),
    "mcp.handled": lambda value: (
        None,
        (None, _space(method="tools/call", params=_space(name=value, arguments=value))),
        {},
    ),
    "mcp.request": lambda value: (None, (None, "tools/call", {"name": value, "arguments": value}), {}),
    "mcp.tool": lambda value: (_space(name=value), (value,), {}),
    "openai_agents._guarded": lambda value: (
        None,
        (),
        {
            "func_tool": _space(name=value),
            "tool_context": _space(tool_arguments=value, tool_call_id=value, run_config=_space(group_id=value)),
            "agent": _space(name=value),
        },
    ),
    "openai_agents._unguarded": lambda value: (
        None,
        (),
        {
            "func_tool": _space(name=value),
            "tool_context": _space(tool_arguments=value, tool_call_id=value, run_config=_space(group_id=value)),
            "agent": _space(name=value),
        },
    ),
    "openai_agents.invoke": lambda value: (
        None,
        (),
        {
            "function_tool": _space(name=value),
            "context": _space(tool_arguments=value, tool_call_id=value, agent=_space(name=value)),
        },
    ),
    "openai_agents.action": lambda value: (
        None,
        (),
        {
            "call": {"shell_tool": _space(name=value), "tool_call": {"action": value, "call_id": value}},
            "agent": _space(name=value),
            "config": _space(group_id=value),
        },
    ),
    "openai_agents.single_tool": lambda value: (
        _space(public_agent=_space(name=value), config=_space(group_id=value)),
        (),
        {"tool_call": _space(arguments=value, call_id=value), "func_tool": _space(name=value)},
    ),
    "livekit_agents.executed": lambda value: (
        None,
        (_space(name="t", arguments=value, call_id=value), _space(function_tools={"t": value})),
        {},
    ),
    "livekit_agents.execute": lambda value: (
        None,
        (),
        {
            "raw_arguments": value,
            "run_ctx": _space(
                function_call=_space(name=value, call_id=value), session=_space(current_agent=_space(id=value))
            ),
        },
    ),
    "pipecat._handler": lambda value: (
        None,
        (_space(function_name=value, arguments=value, tool_call_id=value, registry_item=None),),
        {},
    ),
    "pydantic_ai.activity": lambda value: (
        None,
        (value, value),
        {
            "ctx": _named(
                "TemporalRunContext",
                agent=_space(name=value),
                conversation_id=value,
                run_id=value,
                tool_call_id=value,
            )
        },
    ),
    "pydantic_ai.execute_tool_call": lambda value: (None, (_validated(value),), {}),
    "pydantic_ai.raw_execute": lambda value: (None, (), {"validated": _validated(value)}),
    "semantic_kernel._function": lambda value: (
        _space(fully_qualified_name=value),
        (_space(arguments={"a": value}, result=value),),
        {},
    ),
    "semantic_kernel._outer": lambda value: (
        _space(plugins={"p": _space(functions={"f": _space(fully_qualified_name=value)})}),
        (_space(plugin_name="p", function_name="f", arguments=value, id=value, call_id=value),),
        {},
    ),
    "smolagents.execute": lambda value: (_space(managed_agents={"m": None}, name=value), (value, value), {}),
    "smolagents.managed": lambda value: (_space(name=value), (value,), {}),
    "smolagents.tool": lambda value: (_space(name=value, inputs={"a": {}}), (value,), {"b": value}),
    "strands.background": lambda value: (None, (_space(name=value), None, _space(tool_use=_use(value))), {}),
    "strands.run_tool": lambda value: (None, (_space(agent=_space(name=value), tool_use=_use(value)),), {}),
    "strands.stream": lambda value: (None, (_space(name=value, session_id=value), _use(value)), {}),
    "strands.stream_alone": lambda value: (None, (), {"agent": _space(name=value), "tool_use": _use(value)}),
}
#: Framework's function beside a call -> arguments of its run, with the value in each place.
BESIDE: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "camel.making": lambda value: (_space(func=value), (), {}, None, None),
    "camel.submitting": lambda value: (None, (value,), {}),
    "litellm.looping": lambda value: (None, (), {"execute_tool": value}),
    "litellm.looping_async": lambda value: (None, (), {"execute_tool": value}),
    "mcp.looking_up": lambda value: (None, (value,), {}),
    "mcp.composing": lambda value: (None, (value,), {}),
    "mcp.serialising": lambda value: (None, (value, value, value), {}),
    "agno.reformatted": lambda value: (
        None,
        ([_space(tool_calls=[{"id": value}]), value], value),
        {},
        [_space(tool_calls=[{"id": "sent", "call_id": value}]), value],
        None,
    ),
    "agno.logged": lambda value: (None, (value,), {}),
    "agentscope.saving": lambda value: (
        None,
        ([_named("ToolResultBlock", output=value, state=value)],),
        {},
    ),
    "anthropic.asked": lambda value: (None, (), {}, [_space(type=value, input=value, id=value)], None),
    "anthropic.turn": lambda value: (None, (), {}, {"content": [{"tool_use_id": value}]}, None),
    "anthropic.sent": lambda value: (
        None,
        (),
        {"events": [{"type": "user.tool_result", "tool_use_id": "c", "content": value}, {"type": value}, value]},
    ),
    "camel.remembering": lambda value: (
        None,
        (_named("FunctionCallingMessage", tool_call_id="c", mask_output=value, result=value),),
        {},
    ),
    "claude_agent_sdk.parsing": lambda value: (
        None,
        ({"type": "user", "message": {"content": [{"type": "tool_result", "content": value, "tool_use_id": value}]}},),
        {},
    ),
    "mcp.sampling": lambda value: (None, ([_space(id=value, input=value)],), {}),
    "google_adk.building": lambda value: (
        None,
        (None, value, _space(actions=_space(requested_tool_confirmations={}, requested_auth_configs={}))),
        {},
    ),
    "google_adk.live": lambda _: (None, (_space(func=len),), {}),
    "dspy.cached": lambda value: (None, (), {}, value, None),
    "dspy.predict": lambda value: (None, (), {"history": value, "tools": [_space(name=value)]}),
    "dspy.step": lambda value: (_space(react=None), (None, {"observation_0": value}), {}),
    "haystack.before_span": lambda value: (None, (None, value), {}),
    "langchain.ending": lambda value: (None, (value,), {}),
    "langchain.started": lambda value: (_space(handlers=[value], run_id="r"), (), {}, None, None),
    "llama_index.started": lambda value: (None, ("id", value, value), {}, _space(_otel_span=None), None),
    "llama_index.ending": lambda value: (
        _space(open_spans={"id": _space(_otel_span=value)}),
        ("id", None, _named("BaseTool"), value),
        {},
    ),
    "mcp.beginning": lambda _: (_WithoutCode(), (), {}),
    "mcp.introduced": lambda value: (
        _WithoutCode(),
        (),
        {},
        _space(serverInfo=_space(name=value)),
        None,
    ),
    "mcp.piping": lambda _: (None, (), {}),
    "mcp.raising": lambda value: (None, (), {"raise_on_error": value}),
    "mcp.requesting": lambda _: (_WithoutCode(), (), {}),
    "mcp.serving": lambda _: (None, (), {}),
    "mcp.subscribing": lambda _: (None, (), {}),
    "mcp.sending": lambda value: (None, (_space(method=value, params=_space(name=value)),), {}),
    "mcp.listing": lambda value: (
        _WithoutCode(),
        (),
        {},
        _space(tools=[_space(name="t", inputSchema={"properties": value}, description=value)]),
        None,
    ),
    "semantic_kernel.preparing": lambda value: (_space(name=value), (), {}),
    "strands.returned": lambda value: (
        None,
        (),
        {"cancel_message": value, "result": {"content": value, "status": value}, "exception": None},
    ),
}
#: Functions that read nothing by themselves but an exception, whose class `test_the_class_of_an_exception` reads.
READ_BY_OTHERS = {
    "agentscope.calling": "an exception",
    "autogen.validating": "an exception",
    "dspy.formatting": "an exception",
    "agno.message": "agno._execute",
    "anthropic.swallowed": "an exception",
    "anthropic.failing": "an exception",
    "crewai.failing": "an exception",
    "dapr_agents.wrapping_error": "an exception",
    "langchain.failing": "an exception",
    "llama_index.failing": "an exception",
    "langchain.swallowed": "an exception",
    "openai_agents.swallowed": "an exception",
    "openai_agents.timed_out": "an exception",
    "openai_agents.failing": "an exception",
}


_PROBED = ToolReader(lambda *_: ToolCall("probed"), ToolResult)


class _WithoutCode:
    """Stands for an object of a framework that can be referred to weakly."""


def _space(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


def _named(name: str, /, **fields: Any) -> Any:
    made = type(name, (), {})()
    vars(made).update(fields)
    return made


def _asked_of_litellm(value: Any) -> Any:
    return _space(id=value, function=_space(name=value, arguments=value))


def _use(value: Any) -> Json:
    return {"name": value, "input": value, "toolUseId": value}


def _validated(value: Any) -> Any:
    context = _space(agent=_space(name=value), conversation_id=value, run_id=value)
    return _space(call=_space(tool_name=value, args=value, tool_call_id=value), ctx=context)


def _readers(kind: type, *packages: ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for package in packages or (frameworks, model_sdks, runtimes):
        for module in pkgutil.iter_modules(package.__path__):
            members = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
            found |= {f"{module.name}.{name}": reader for name, reader in members.items() if type(reader) is kind}
    return found


MODEL_READERS = _readers(ModelReader)
TOOL_READERS = _readers(ToolReader)
HOOKS = _readers(Hook)
RUN_READERS = _readers(RunReader)
#: Calls that run an agent, by reader.
RUNS: dict[str, Callable[[Any], list[Invocation]]] = {
    "ag2.agent_run": lambda value: [Invocation(_space(name=value), (), {"context": _space(stream=_space(id=value))})],
    "agent_framework.agent_run": lambda value: [
        Invocation(_space(name=value), (), {"session": _space(session_id=value)})
    ],
    "agent_framework.workflow_run": lambda value: [Invocation(_space(name=value), (), {})],
    "agentscope.agent_run": lambda value: [
        Invocation(_space(name=value, state=_space(session_id=value), _reply_middlewares=[value]), (), {})
    ],
    "autogen.agent_run": lambda value: [Invocation(_space(name=value), (), {})],
    "autogen.team_run": lambda value: [Invocation(_space(name=value), (), {})],
    "openai.runner_run": lambda _: [Invocation(None, (), {})],
    "mistral.conversation_run": lambda value: [Invocation(None, (), {"inputs": value})],
    "agno.run": lambda value: [
        Invocation(_space(name=value, session_id=value), (), {"session_id": given}) for given in (value, None)
    ],
    "agno.dispatched": lambda value: [
        Invocation(None, (), {key: _space(name=value, session_id=value), "session_id": given})
        for key, given in (("agent", value), ("team", None))
    ],
    "browser_use.agent_run": lambda value: [Invocation(_space(session_id=value), (), {})],
    "camel.agent_run": lambda value: [Invocation(_space(role_name=value, agent_id=value), (), {})],
    "crewai.agent_run": lambda value: [Invocation(_space(role=value), (), {})],
    "claude_agent_sdk.agent_run": lambda _: [Invocation(None, (), {})],
    "crewai.flow_run": lambda value: [
        Invocation(_space(name=value, stream=False), (), {}),
        Invocation(_space(name="a", stream=value), (), {}),
    ],
    "crewai.crew_run": lambda value: [
        Invocation(_space(name=value, stream=False), (), {}),
        Invocation(_space(name="a", stream=value), (), {}),
    ],
    "google_adk.agent_run": lambda value: [
        Invocation(_space(agent=_space(name=value)), (), {"session_id": value}),
        Invocation(_space(agent=value), (), {}),
    ],
    "pydantic_ai.agent_run": lambda value: [
        Invocation(_space(name=value, instrument=value), (), {"conversation_id": value})
    ],
    "semantic_kernel.agent_run": lambda value: [Invocation(_space(name=value), (), {"thread": _space(id=value)})],
    "smolagents.agent_run": lambda value: [Invocation(_space(name=value), (), {})],
    "strands.team_run": lambda value: [Invocation(_space(id=value), (), {})],
    "strands.agent_run": lambda value: [Invocation(_space(name=value, session_id=value), (), {})],
    "langgraph.run": lambda value: [
        Invocation(_space(config=None, name=value), (None, config), {})
        for config in (value, {"configurable": value}, {"configurable": {"thread_id": value, "checkpoint_ns": value}})
    ],
    "dspy.agent_run": lambda _: [Invocation(None, (), {})],
    "haystack.agent_run": lambda value: [Invocation(_space(__component_name__=value), (), {})],
    "llama_index.run": lambda value: [
        Invocation(_named(kind, name=value, root_agent=given), (), {})
        for kind in ("BaseWorkflowAgent", "Workflow")
        for given in (value, None)
    ],
    "openai_agents.run": lambda value: [
        Invocation(None, (_space(name=value), value), more)
        for more in (
            {"run_config": _space(group_id=value)},
            {"session": _space(session_id=value)},
            {"conversation_id": value},
        )
    ],
}
pytestmark = pytest.mark.usefixtures("nothing_ran")
each_kind = each_row("kind", list(hostile.everything()), around=hostile.untouched)


def _measured(value: Any) -> None:
    for function in (size, find_cut, is_page, asks_for_a_page, request_parts.characters, request_parts.beginning):
        function(value)


def _read(reader: ModelReader, instance: Any, args: tuple[Any, ...], kwargs: Json) -> None:
    with contextlib.suppress(AttributeError, KeyError, TypeError):  # what the SDK itself would refuse
        request = reader.request(Invocation(instance, args, kwargs))
        for number, part in enumerate(map(plain_part, request.parts if request is not None else ())):
            _measured(part.value)
            definitions.compare((), part.value, hash((kind_of(part), number, id(part.value))))


def kind_of(part: Any) -> str:
    """Return which part of a request it is."""
    return str(part.part)


def test_each_reader_of_a_request_has_a_row() -> None:
    rows = REQUESTS.keys() | ELSEWHERE.keys()
    assert _readers(ModelReader, model_sdks).keys() <= rows <= MODEL_READERS.keys()


def test_each_reader_of_a_tool_call_has_its_rows() -> None:
    assert TOOL_READERS.keys() == RESULTS.keys() == CALLS.keys()
    rows = BESIDE.keys() | READ_BY_OTHERS.keys()
    assert rows <= HOOKS.keys()
    assert _readers(Hook, frameworks).keys() - test_runtime_tripwires.DOORS <= rows
    assert RUN_READERS.keys() == RUNS.keys()


@each_kind
@each_row("door", list(RUN_READERS))
def test_a_run_of_an_agent(door: str, kind: str) -> None:
    reader = RUN_READERS[door]
    for invocation in RUNS[door](hostile.everything()[kind]):
        with contextlib.suppress(AttributeError, KeyError, TypeError):  # what the framework itself would refuse
            visit = run_visit.begin(reader, reader.run(invocation))
            if visit is not None:
                with visit:
                    visit.returned(None)


@each_kind
@each_row("door", list(REQUESTS))
def test_a_request_to_a_model(door: str, kind: str) -> None:
    for template, carried in REQUESTS[door]:
        for body in _variants(template, hostile.everything()[kind]):
            with contextlib.suppress(KeyError):
                instance, kwargs = carried(body)
                _read(MODEL_READERS[door], instance, (), kwargs)


@each_kind
def test_ollama(kind: str) -> None:
    for body in _variants(_OLLAMA, hostile.everything()[kind]):
        _read(MODEL_READERS["ollama.request"], None, ("POST", "/api/chat"), {"json": body})


@each_kind
@each_row("door", list(TOOL_READERS))
def test_a_result_of_a_tool(door: str, kind: str) -> None:
    value = hostile.everything()[kind]
    for each in (value, {"result": value}, {"type": value}, [value], {"status": value}):
        with contextlib.suppress(AttributeError, KeyError, TypeError):  # what is no result of this framework
            result = TOOL_READERS[door].result(RESULTS[door](each))
            if result is not None:
                _measured(result.value)


@each_kind
@each_row("door", list(TOOL_READERS))
def test_a_call_of_a_tool(door: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "crewai.utilities.agent_utils", _space(extract_tool_call_info=lambda asked_for: asked_for)
    )
    with contextlib.suppress(AttributeError, KeyError, TypeError):  # what is no call of this framework
        invocation = Invocation(*CALLS[door](hostile.everything()[kind]))
        call = tool_visit._plain_call(TOOL_READERS[door].call(invocation))
        if call is not None:
            digest(call.arguments, b"key")
            _measured(call.arguments)


@each_kind
@each_row("door", list(BESIDE))
def test_what_is_read_beside_a_call(door: str, kind: str) -> None:
    hook = HOOKS[door]
    value = hostile.everything()[kind]
    running = tool_visit._begin(_PROBED, ToolCall("probed"))
    assert running is not None
    with running, contextlib.suppress(AttributeError, KeyError, TypeError, LookupError):
        instance, args, kwargs, *outcome = BESIDE[door](value)
        (hook.after or hook.before)(Invocation(instance, args, kwargs), *outcome)


@each_row("door", list(TOOL_READERS), around=hostile.untouched)
def test_an_exception(door: str) -> None:
    reader = TOOL_READERS[door]
    for read in (reader.is_control_flow, reader.failure_text):
        if read is not None:
            read(hostile._hostile(Exception, ()))


def test_keys_that_compare_themselves() -> None:
    for key in ("next", "cursor", "truncated", "content", "page", "text", "type"):
        for function in (size, find_cut, is_page, asks_for_a_page):
            function({Key(key): 1, "other": 2})
            function([{Key(key): 1, "other": 2}])
            function(_object({"content": [{Key(key): 1}]}))


def test_a_text_block_whose_keys_compare_themselves() -> None:
    assert Size(4, exact=True) == size([{Key("type"): "text", Key("text"): "said"}])
    message = _object({})
    vars(message)[Key("content")] = "said"
    assert Size(4, exact=True) == size(message)


def test_the_class_of_an_exception() -> None:
    error: Any = hostile._hostile(Exception, ())
    assert error_type(error).endswith("Hostile")
