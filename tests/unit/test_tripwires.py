"""No code of a value runs, whatever reader it passes: each kind of hostile value at each place of what a reader reads.

The doors are found by themselves: a reader of an SDK or a framework that is added without a row here fails.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel._internal.failures import error_type
from agent_otel.core import request_parts
from agent_otel.core.names import plain_part
from agent_otel.core.tool_names import note_definitions
from agent_otel.core.types import ModelReader, ToolReader
from agent_otel.integrations import frameworks, model_sdks
from agent_otel.measure.size import size
from agent_otel.measure.truncation.detect import asks_for_a_page, find_cut, has_cursor
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


def _posted(url: str) -> Callable[[Any], tuple[Any, Json]]:
    return lambda body: (None, {"options": SimpleNamespace(json_data=body, url=url)})


_CLIENT = SimpleNamespace(meta=SimpleNamespace(service_model=SimpleNamespace(service_name="bedrock-runtime")))

#: Reader -> templates of what it reads, each with the instance and the arguments that carry it.
REQUESTS: dict[str, list[tuple[Any, Callable[[Any], tuple[Any, Json]]]]] = {
    "anthropic.request": [(_ANTHROPIC, _posted("/v1/messages"))],
    "bedrock.request": [(_BEDROCK, lambda body: (_CLIENT, {"operation_name": "Converse", "api_params": body}))],
    "google_genai.request": [(_GEMINI, lambda body: (None, {"path": "m:generateContent", "request_dict": body}))],
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
    "litellm.entered": "has no parts; what it announces is read by openai's functions",
    "ollama.request": "test_ollama",
}
#: Reader -> what its result is in, where that is an object of the framework's.
RESULTS: dict[str, Callable[[Any], Any]] = {
    "agno._execute": lambda value: SimpleNamespace(status="success", result=value),
    "langchain.run": lambda value: value,
    "langchain.tool_node": lambda value: value,
}
#: Frameworks whose readers still ask the class of a result by its metaclass, or a message of their own.
LATER = {
    *("anthropic", "claude_agent_sdk", "crewai", "dapr_agents", "google_adk", "google_genai", "mcp"),
    *("openai_agents", "pydantic_ai", "smolagents", "strands"),
}


def _readers(package: ModuleType, kind: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(package.__path__):
        members = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
        found |= {f"{module.name}.{name}": reader for name, reader in members.items() if type(reader) is kind}
    return found


MODEL_READERS = _readers(model_sdks, ModelReader)
TOOL_READERS = _readers(frameworks, ToolReader)
each_kind = pytest.mark.parametrize("kind", list(hostile.everything()))


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    hostile.ran.clear()
    yield
    assert [] == hostile.ran


def _measured(value: Any) -> None:
    for function in (size, find_cut, has_cursor, asks_for_a_page, request_parts.characters, request_parts.beginning):
        function(value)


def _read(reader: ModelReader, instance: Any, args: tuple[Any, ...], kwargs: Json) -> None:
    with contextlib.suppress(AttributeError, KeyError, TypeError):  # what the SDK itself would refuse
        request = reader.request(instance, args, kwargs)
        for number, part in enumerate(map(plain_part, request.parts if request is not None else ())):
            _measured(part.value)
            note_definitions(part.value, hash((kind_of(part), number, id(part.value))))


def kind_of(part: Any) -> str:
    """Return which part of a request it is."""
    return str(part.part)


def test_each_reader_of_a_request_has_a_row() -> None:
    assert MODEL_READERS.keys() == REQUESTS.keys() | ELSEWHERE.keys()


def test_each_reader_of_a_result_has_a_row() -> None:
    found = {door for door in TOOL_READERS if door.partition(".")[0] not in LATER}
    assert RESULTS.keys() == found


@each_kind
@pytest.mark.parametrize("door", list(REQUESTS))
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
@pytest.mark.parametrize("door", list(RESULTS))
def test_a_result_of_a_tool(door: str, kind: str) -> None:
    value = hostile.everything()[kind]
    for each in (value, {"result": value}, {"type": value}, [value], {"status": value}):
        result = TOOL_READERS[door].result(RESULTS[door](each))
        if result is not None:
            _measured(result.value)


def test_keys_that_compare_themselves() -> None:
    for key in ("next", "cursor", "truncated", "content", "page"):
        for function in (find_cut, has_cursor, asks_for_a_page):
            function({Key(key): 1, "other": 2})


def test_the_class_of_an_exception() -> None:
    error: Any = hostile._hostile(Exception, ())
    assert error_type(error).endswith("Hostile")
