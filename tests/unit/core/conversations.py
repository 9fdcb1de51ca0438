"""Random conversations, sent as model requests; prints what each request adds to the telemetry, one line for each.

``python -m tests.unit.core.conversations unread|read SEED...``: ``read`` hands over each request's parts as a list, so
that all of them are read.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from typing import TYPE_CHECKING, Any

from tests.contract.child import Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.types import RequestPart

FORMS = ("chat", "responses", "anthropic", "langchain")
TURNS = 24


class Message:
    """A message of LangChain, as the adapter sees it."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Program:
    """An agent's program, with a history in the format of one API."""

    def __init__(self, draw: random.Random, name: str, form: str) -> None:
        self.draw, self.name, self.form = draw, name, form
        self.items: list[Any] = []
        self.calls = 0
        self.system = "Be kind."
        self.tools = [_tool("search"), _tool("read")]
        self.is_adapted = draw.random() < 0.7
        self.items.append(self.said("user", "where is it " + name))
        for _ in range(draw.randint(0, 12)):
            self.turn()

    def said(self, role: str, text: str) -> Any:
        """Return a message."""
        kind = "input_text" if role == "user" else "output_text"
        if self.form == "responses" and self.draw.random() < 0.5:
            return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        if self.form == "anthropic" and self.draw.random() < 0.5:
            return {"role": role, "content": [{"type": "text", "text": text}]}
        if self.form == "langchain":
            message_id = f"m{len(self.items) // 2 if self.draw.random() < 0.1 else len(self.items)}"
            return Message(type={"user": "human", "assistant": "ai"}[role], content=text, id=message_id)
        return {"role": role, "content": text}

    def turn(self) -> None:
        """Add a turn: calls with their results, or a text and the user's next message."""
        from agent_otel.core.executions import executions

        if self.draw.random() < 0.2:
            self.items += [self.said("assistant", f"done {len(self.items)}"), self.said("user", f"go on {self.calls}")]
            return
        asked, answered = [], []
        for _ in range(self.draw.choice([1, 1, 1, 2, 3])):
            self.calls += 1
            call_id, tool = f"call_{self.calls}", self.draw.choice(["search", "read"])
            if self.draw.random() < 0.03:
                call_id = "call_1"  # a model that uses its ids again
            text = f"result {self.calls} " + "x" * self.draw.choice([3, 700, 3_000, 20_000])
            if self.is_adapted or self.draw.random() < 0.2:
                state, _ = executions.began(self.name, tool, f"{self.calls}", call_id)
                executions.produced(state, tool, len(text) + self.draw.choice([0, 0, 0, 5_000]), call_id)
            asked.append((call_id, tool, {"query": f"q {self.calls % 5}"}))
            answered.append((call_id, text))
        self.items += {"chat": _chat, "responses": _responses, "anthropic": _anthropic, "langchain": _langchain}[
            self.form
        ](asked, answered)

    def change(self) -> None:  # noqa: C901, PLR0912 - the list of changes
        """Change the history as programs do, in place or not."""
        at = self.draw.randrange(len(self.items))
        match self.draw.randrange(12):
            case 0:
                _put(_dictionary(self.items[at]), self.draw, "[removed]")
            case 1:
                _put(_dictionary(self.items[at]), self.draw, "y" * 3_000)
            case 2:
                del self.items[1 : 1 + self.draw.choice([1, 2, 4])]
            case 3:
                self.items[1:3] = [self.said("user", "summary of what was said")]
            case 4:
                self.items = copy.deepcopy(self.items)
            case 5:
                self.system = self.draw.choice(["Be kind.", "Be short.", "It is 2026-11-21 10:00."])
            case 6:
                name = self.draw.choice(["query", "text"])
                self.tools = [_tool("search", name), _tool("read")][: self.draw.choice([1, 2, 2])]
            case 7:
                self.items.append(self.said("user", "a reminder"))
            case 8:
                content = _dictionary(self.items[at]).get("content")
                if type(content) is list and type(content[-1]) is dict:
                    content[-1]["cache_control"] = {"type": "ephemeral"}
            case 9:
                self.items.insert(at, self.said("assistant", "an inserted thought"))
            case 10:
                self.items = self.items[:-2] or self.items
            case _:
                pass

    def request(self, *, reads: bool) -> Any:
        """Return the request."""
        from agent_otel.core.handler import plain_request
        from agent_otel.core.types import ModelRequest
        from agent_otel.integrations.model_sdks import langchain
        from agent_otel.integrations.request_bodies import chat, messages, responses

        items = list(self.items)
        found: Iterable[RequestPart]
        if self.form == "chat":
            found = chat({"tools": self.tools, "messages": [{"role": "system", "content": self.system}, *items]})
        elif self.form == "anthropic":
            found = messages({"tools": self.tools, "system": self.system, "messages": items}).parts
        elif self.form == "langchain":
            found = langchain._parts([Message(type="system", content=self.system), *items], {"tools": self.tools})
        else:
            found = responses({"tools": self.tools, "instructions": self.system, "input": items}).parts
        return plain_request(ModelRequest(list(found) if reads else found, execution=self.name, agent="agent"))


def _tool(name: str, argument: str = "query") -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object", "properties": {argument: {"type": "string"}}}}


def _chat(asked: list[Any], answered: list[Any]) -> list[Any]:
    calls = [
        {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for i, name, args in asked
    ]
    results = [{"role": "tool", "tool_call_id": i, "content": text} for i, text in answered]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def _responses(asked: list[Any], answered: list[Any]) -> list[Any]:
    calls = [
        {"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": name, "arguments": json.dumps(args)}
        for i, name, args in asked
    ]
    return [*calls, *({"type": "function_call_output", "call_id": i, "output": text} for i, text in answered)]


def _anthropic(asked: list[Any], answered: list[Any]) -> list[Any]:
    calls = [{"type": "tool_use", "id": i, "name": name, "input": args} for i, name, args in asked]
    results = [{"type": "tool_result", "tool_use_id": i, "content": text} for i, text in answered]
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def _langchain(asked: list[Any], answered: list[Any]) -> list[Any]:
    calls = [{"id": i, "name": name, "args": args, "type": "tool_call"} for i, name, args in asked]
    message = Message(type="ai", content="", tool_calls=calls, invalid_tool_calls=[], id=f"ai {asked[0][0]}", name=None)
    return [message, *(Message(type="tool", content=text, tool_call_id=i, artifact=object()) for i, text in answered)]


def _dictionary(item: Any) -> dict[str, Any]:
    return item if type(item) is dict else vars(item)


def _put(item: dict[str, Any], draw: random.Random, text: str) -> None:
    """Replace a text somewhere in a message."""
    for key in ("content", "output", "arguments"):
        if type(item.get(key)) is str:
            item[key] = text
        elif type(item.get(key)) is list and item[key]:
            _put(draw.choice(item[key]), draw, text)
    if item.get("tool_calls"):
        call = item["tool_calls"][0]
        call.get("function", call)["arguments" if "function" in call else "args"] = text


def main(way: str, *seeds: str) -> None:
    """Send the conversations of each seed: two programs in turns, one of them with a sub-agent's requests between."""
    telemetry = Telemetry()
    from opentelemetry import trace

    from agent_otel import settings
    from agent_otel._internal import errors
    from agent_otel.core.thread import delivery, request_prefix
    from agent_otel.telemetry.setup import telemetry as out

    tracer, find, found = trace.get_tracer("program"), request_prefix.find, list[Any]()

    def finding(*given: Any) -> Any:
        found.append(find(*given))
        return found[-1]

    request_prefix.__dict__["find"] = finding  # to count how many requests are read from their first new message on
    for seed in seeds:
        draw = random.Random(seed)  # noqa: S311 - the same cases in every run
        programs = [Program(draw, f"run {seed} {n}", draw.choice(FORMS)) for n in range(2)]
        inner = Program(draw, programs[0].name, programs[0].form)
        inner.system = "You are another."
        for turn in range(TURNS):
            for program in draw.choice([programs, programs[:1], [*programs, inner]]):
                for _ in range(draw.choice([0, 1, 1, 1, 1, 2])):
                    program.turn()
                if draw.random() < 0.25:
                    program.change()
                with tracer.start_as_current_span("chat"):
                    sent = delivery.take(out(), program.request(reads=way == "read"))
                    if sent.pending is not None and draw.random() < 0.3:
                        sent.pending.responded(asks=False)
                spans = [{**span, "trace": None} for span in telemetry.spans()]
                metrics = [one for one in telemetry.metrics() if one["name"] != "agent_otel.process.start_time"]
                shares = sent.shares
                told = [
                    shares.parts,
                    sorted(shares.bytes.items()),
                    shares.sizes.tolist(),
                    shares.duplicate_bytes,
                    (shares.by_part(), shares.largest_part, shares.largest_tool),
                ]
                saved = shares.savable.by_remedy(settings.current())
                line = [seed, turn, program.name, sent.bytes, told, saved, spans, metrics]
                print(json.dumps(line, sort_keys=True, default=str))
    print(json.dumps([sum(one is not None for one in found), dict(errors.errors)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
