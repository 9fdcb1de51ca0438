"""Model clients with one way to ask: a system prompt, neutral messages, and whether the model calls a tool or answers.

The scripted server replies to the name of the model.
"""

# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
# The SDKs are not installed where types are checked.

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict

CALL, SAY, FINISH = "call", "say", "finish"
TOOL = "search"
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


class Call(NamedTuple):
    """A tool call that the model asks for."""

    id: str
    name: str
    arguments: dict[str, Any]


class User(NamedTuple):
    """A message of the user."""

    text: str


class Said(NamedTuple):
    """A message of the model."""

    text: str


class Result(NamedTuple):
    """A result for the model."""

    call: Call
    text: str


Message = User | Said | Call | Result
Handler = Callable[[str], str]
#: Makes each request of its number and of the turns so far.
Builder = Callable[[int, list[tuple[Call, str]]], tuple[str | None, list[Message]]]


def _said(message: User | Said) -> dict[str, Any]:
    """Return a text in the form that all three APIs have."""
    return {"role": "user" if isinstance(message, User) else "assistant", "content": message.text}


class OpenAI:
    """A client of OpenAI's."""

    def __init__(self, url: str) -> None:
        import openai

        self.client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)


class OpenAIChat(OpenAI):
    """Chat Completions."""

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        items: list[Any] = [{"role": "system", "content": system}] if system else []
        items += map(_chat, messages)
        more: dict[str, Any] = {}
        if tools:
            more["tools"] = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]
        if forced:
            more["tool_choice"] = {"type": "function", "function": {"name": TOOL}}
        answer = self.client.chat.completions.create(model=reply, messages=items, **more).choices[0].message
        for call in answer.tool_calls or ():
            return Call(call.id, call.function.name, json.loads(call.function.arguments))
        return None


def _chat(message: Message) -> dict[str, Any]:
    match message:
        case User() | Said():
            return _said(message)
        case Call(call_id, name, arguments):
            function = {"name": name, "arguments": json.dumps(arguments)}
            return {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}
        case Result(call, text):
            return {"role": "tool", "tool_call_id": call.id, "content": text}


class OpenAIResponses(OpenAI):
    """Responses."""

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        more: dict[str, Any] = {"instructions": system} if system else {}
        if tools:
            more["tools"] = [{"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": False}]
        if forced:
            more["tool_choice"] = {"type": "function", "name": TOOL}
        items: Any = [_item(message) for message in messages]
        for item in self.client.responses.create(model=reply, input=items, **more).output:
            if item.type == "function_call":
                return Call(item.call_id, item.name, json.loads(item.arguments))
        return None


def _item(message: Message) -> dict[str, Any]:
    match message:
        case User() | Said():
            return _said(message)
        case Call(call_id, name, arguments):
            return {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)}
        case Result(call, text):
            return {"type": "function_call_output", "call_id": call.id, "output": text}


class Anthropic:
    """Messages, where a turn's messages of one side are one."""

    def __init__(self, url: str) -> None:
        import anthropic

        self.client = anthropic.Anthropic(base_url=url, api_key="scripted", max_retries=0)

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        more: dict[str, Any] = {"system": system} if system else {}
        if tools:
            more["tools"] = [{"name": TOOL, "input_schema": SCHEMA}]
        if forced:
            more["tool_choice"] = {"type": "tool", "name": TOOL}
        items: Any = [_message(message) for message in messages]
        answer = self.client.messages.create(model=reply, max_tokens=100, messages=items, **more)
        for block in answer.content:
            if block.type == "tool_use":
                return Call(block.id, block.name, block.input)
        return None


def _message(message: Message) -> dict[str, Any]:
    match message:
        case User() | Said():
            return _said(message)
        case Call(call_id, name, arguments):
            block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            return {"role": "assistant", "content": [block]}
        case Result(call, text):
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}]}


class State(TypedDict):
    """The state of a graph."""

    turns: list[Any]
    call: Any


class Framework:
    """A framework with its tool."""

    #: Makes the tool's result.
    handler: Handler = str

    def __init__(self, url: str) -> None:
        self.url = url

    def found(self, query: str) -> str:
        """Return the result of the tool."""
        return self.handler(query)


class LangGraph(Framework):
    """A graph of two nodes around LangChain's client and tool."""

    def __init__(self, url: str) -> None:
        from langchain_core.tools import StructuredTool

        super().__init__(url)
        self.tool = StructuredTool.from_function(self.found, name=TOOL, description="Search.")

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        from langchain_openai import ChatOpenAI

        model: Any = ChatOpenAI(model=reply, base_url=self.url, api_key="scripted", max_retries=0)
        if tools:
            model = model.bind_tools([self.tool], tool_choice=TOOL if forced else None)
        items = [{"role": "system", "content": system}] if system else []
        answer = model.invoke([*items, *({"content": "", **_chat(message)} for message in messages)])
        return next((Call(call["id"], call["name"], call["args"]) for call in answer.tool_calls), None)

    def perform(self, call: Call) -> str:
        """Call the tool."""
        message = self.tool.invoke({"type": "tool_call", "id": call.id, "name": call.name, "args": call.arguments})
        return str(message.content)

    def run(self, build: Builder, requests: int) -> None:
        """Run a loop in a graph."""
        from langgraph.graph import START, StateGraph

        def model(state: Any) -> Any:
            number = len(state["turns"])
            return {"call": self.ask(*build(number, state["turns"]), CALL if number < requests - 1 else SAY)}

        def tools(state: Any) -> Any:
            return {"turns": [*state["turns"], (state["call"], self.perform(state["call"]))]}

        graph = StateGraph(State)
        graph.add_node("model", model)
        graph.add_node("tools", tools)
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", lambda state: "tools" if state["call"] else "__end__")
        graph.add_edge("tools", "model")
        graph.compile().invoke({"turns": [], "call": None}, {"recursion_limit": 50})


class DSPy(Framework):
    """A module around a language model and a tool of DSPy's."""

    def __init__(self, url: str) -> None:
        import dspy

        super().__init__(url)
        self.tool = dspy.Tool(self.found, name=TOOL, desc="Search.")

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        import dspy

        more: dict[str, Any] = {}
        if tools:
            more["tools"] = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]
        if forced:
            more["tool_choice"] = {"type": "function", "function": {"name": TOOL}}
        items = [{"role": "system", "content": system}] if system else []
        model = dspy.LM(f"openai/{reply}", api_base=self.url, api_key="scripted", cache=False, num_retries=0)
        (answer,) = model(messages=[*items, *map(_chat, messages)], **more)
        for call in answer.get("tool_calls") or () if isinstance(answer, dict) else ():
            return Call(call.id, call.function.name, json.loads(call.function.arguments))
        return None

    def perform(self, call: Call) -> str:
        """Call the tool."""
        return str(self.tool(**call.arguments))

    def run(self, build: Builder, requests: int) -> None:
        """Run a loop in a module."""
        import dspy

        class Loop(dspy.Module):  # type: ignore[misc]
            def forward(_) -> None:  # noqa: N805
                turns: list[tuple[Call, str]] = []
                for number in range(requests):
                    call = self.ask(*build(number, turns), CALL if number < requests - 1 else SAY)
                    if call is not None:
                        turns.append((call, self.perform(call)))

        Loop()()


class Smolagents(Framework):
    """An agent that calls tools; a builder writes its memory as messages. Results are texts without ids."""

    def __init__(self, url: str) -> None:
        from smolagents import Tool

        super().__init__(url)

        class Search(Tool):  # type: ignore[misc]
            name, description, output_type = TOOL, "Search.", "string"
            inputs = {"query": {"type": "string", "description": "what to find"}}  # noqa: RUF012

            def forward(_, query: str) -> str:  # noqa: N805
                return self.found(query)

        self.tool = Search()

    def model(self, reply: str) -> Any:
        """Return the model."""
        from smolagents import OpenAIModel

        return OpenAIModel(reply, api_base=self.url, api_key="scripted", client_kwargs={"max_retries": 0})

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        more: dict[str, Any] = {"tools_to_call_from": [self.tool]} if tools else {}
        if tools and not forced:
            more["tool_choice"] = "auto"
        answer = self.model(reply).generate(self.written(system, messages), **more)
        for call in answer.tool_calls or ():
            return Call(call.id, call.function.name, json.loads(call.function.arguments))
        return None

    def written(self, system: str | None, messages: Sequence[Message]) -> list[Any]:
        """Return messages as the framework writes them."""
        from smolagents import ChatMessage

        def said(role: str, text: str) -> Any:
            return ChatMessage.from_dict({"role": role, "content": [{"type": "text", "text": text}]})

        found = [said("system", system)] if system else []
        for message in messages:
            match message:
                case User(text):
                    found.append(said("user", text))
                case Said(text):
                    found.append(said("assistant", text))
                case Call(call_id, name, arguments):
                    found.append(said("tool-call", f"Calling tools:\n{[(call_id, name, arguments)]}"))
                case Result(_, text):
                    found.append(said("tool-response", f"Observation:\n{text}"))
        return found

    def perform(self, call: Call) -> str:
        """Call the tool."""
        return str(self.tool(**call.arguments))

    def run(self, build: Builder, requests: int) -> None:
        """Run an agent."""
        from smolagents import LogLevel, ToolCallingAgent

        stack = self

        class Agent(ToolCallingAgent):  # type: ignore[misc]
            def write_memory_to_messages(self, summary_mode: bool = False) -> list[Any]:  # noqa: FBT001, FBT002
                del summary_mode
                turns = [
                    (Call(step.tool_calls[0].id, TOOL, step.tool_calls[0].arguments), step.observations)
                    for step in self.memory.steps
                    if getattr(step, "tool_calls", None)
                ]
                self.model.model_id = CALL if len(turns) < requests - 1 else FINISH
                return stack.written(*build(len(turns), turns))

        Agent([self.tool], self.model(CALL), verbosity_level=LogLevel.OFF, max_steps=requests + 1).run("go")


STACKS = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic": Anthropic,
    "langgraph": LangGraph,
    "dspy": DSPy,
    "smolagents": Smolagents,
}
