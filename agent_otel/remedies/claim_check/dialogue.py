"""Reading on without code: models get the tool ``get_tool_result``, and its calls are answered at the model boundary.

The request is sent again with the response and the answer behind it, until a response has no such call. Neither the
program's history nor a durable runtime's state grows by it. Other tools beside such a call are not run.
"""

from __future__ import annotations

import contextlib
import functools
import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_otel._internal import errors
from agent_otel._internal.object_kinds import reworded
from agent_otel.core.executions import executions
from agent_otel.core.remedy_hooks import message_ids
from agent_otel.core.switches import added_messages
from agent_otel.core.thread import model_request
from agent_otel.core.tool_names import keep
from agent_otel.core.tool_visit import enter_tool
from agent_otel.core.types import LEFT_ALONE, Invocation, ToolCall, ToolReader, ToolResult
from agent_otel.messages import CALL, NEUTRAL, Answer, Tool
from agent_otel.messages.fields import fields, is_list, names_of, text
from agent_otel.messages.formats import FORMATS
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.envelope import PREFIX
from agent_otel.remedies.claim_check.get_tool_result import aget_tool_result, get_tool_result
from agent_otel.remedies.claim_check.policy import GET_TOOL_RESULT
from agent_otel.remedies.history.summarizer import MARK
from agent_otel.semconv import SYSTEM, TOOL_RESULTS, TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_otel.core.types import ModelReader, RequestPart
    from agent_otel.messages import Call, Format
    from agent_otel.settings import Settings

    _Item: TypeAlias = tuple[Any, Mapping[str, Any]]

_MOST: Final = 10_000


class Threads:
    """The known threads at Anthropic that have the tool: a thread keeps the tools of its first request."""

    def __init__(self) -> None:
        self._responses: dict[str, None] = {}
        self._has_own = False

    def lacks(self, body: Mapping[str, Any]) -> bool:
        """Return True for a request in a thread that is not known to have the tool."""
        thread = fields(body.get("thread"))
        if thread.get("type") == "create" and GET_TOOL_RESULT in names_of(body.get("tools")):
            self._has_own = True  # the program's own; its responses are not read
        is_known = self._has_own or text(thread.get("previous_message_id")) in self._responses
        return thread.get("type") == "continue" and not is_known

    def responded(self, body: Mapping[str, Any], response: Mapping[str, Any]) -> None:
        """Read a response, or the first event of its stream."""
        if not fields(body.get("thread")) or self.lacks(body):
            return
        response_id = text(response.get("id")) or text(fields(response.get("message")).get("id"))
        if response_id is not None:
            keep(self._responses, response_id, None, _MOST)


MOST_ROUNDS: Final = 16
"""Rounds of answers to one request; the request behind the last of them allows no tool call."""

_TEXT: Final = {"type": "string"}
TOOL: Final = Tool(
    GET_TOOL_RESULT,
    "Read a stored tool result, one page at a time. Call it alone, not beside other tools.",
    {
        "type": "object",
        "properties": {
            "ref": {
                **_TEXT,
                "description": "The reference in the shortened result, unchanged: claim:v2:..., or an executionId.",
            },
            "cursor": {**_TEXT, "description": "next_cursor of the page before, with the same other arguments."},
            "lines": {**_TEXT, "description": "Only these lines, such as 120-180; the first is 1."},
            "json_path": {**_TEXT, "description": "Only this part of a JSON result, such as items[3].body."},
            "grep": {**_TEXT, "description": "Only lines that contain this text, with their numbers."},
        },
        "required": ["ref"],
    },
)

_NOT_RUN: Final = {
    "error": "not_run",
    "hint": f"The call stood beside {GET_TOOL_RESULT}, which is answered first. Call the tool again if you need it.",
}
_REPEATED: Final = {
    "error": "read_before",
    "hint": "This page is above. Read on with its next_cursor, or answer with what you have.",
}
#: Rounds with nothing but such pages after which the request allows no tool call.
_MOST_REPEATS: Final = 2
_ENOUGH: Final = {
    "error": "too_many_reads",
    "hint": "No more is read for this request. Answer with what you have, and say what you have not read.",
}
_READER: Final = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda *_: LEFT_ALONE)


class Dialogues:
    """Offers the tool in requests that hold a reference."""

    def __init__(self, chosen: Settings) -> None:
        self._is_of_use = policy.archive() is not None
        self._marks = (PREFIX, MARK) if chosen.summarize_above_tokens else (PREFIX,)
        self._threads = Threads()

    def begin(self, reader: ModelReader, invocation: Invocation) -> _Dialogue | None:
        """Offer the tool in a request; return None without a reference in it, and where the program has the tool."""
        exchange = reader.exchange
        if exchange is None or not self._is_of_use:
            return None
        unnamed = functools.partial(self.unnamed, reader.request.__module__)
        if exchange.reword is not None:
            exchange.reword(invocation, unnamed)
        found = exchange.body(invocation)
        if found is None:
            return None
        name, body = found
        form = FORMATS[name]
        messages = body.get(form.messages)
        if not (form.hides(body) or any(mentions(messages, mark) for mark in self._marks)):
            return None
        if form.fixes(body) or self._threads.lacks(body):
            body = {**body, form.messages: reworded(messages, unnamed)}
            exchange.put(invocation, body)
        if form.fixes(body) or not form.takes(body, GET_TOOL_RESULT):
            return None
        dialogue = _Dialogue(reader, invocation, form, form.offering(body, TOOL), self._threads)
        exchange.put(invocation, dialogue.body)
        return dialogue

    def left_out(self, adapter: str, parts: Iterable[RequestPart]) -> None:
        """Warn once when a request of a layer that no tool can be added to names the tool without having it."""
        named = {part.part for part in parts if mentions(part.value, GET_TOOL_RESULT)}
        if TOOL_RESULTS in named and named.isdisjoint((TOOLS, SYSTEM)):
            errors.warn_once(
                f"reading on in {adapter}",
                f"AGENT_OTEL_CLAIM_CHECK: {GET_TOOL_RESULT} cannot be offered in requests through "
                f"{adapter.rpartition('.')[2]}, in this version of it or of agent_otel. Add "
                f"agent_otel.remedies.{GET_TOOL_RESULT} to the agent's tools, or set AGENT_OTEL_CLAIM_CHECK_TOOL=off.",
            )

    def unnamed(self, adapter: str, text: str) -> str:
        """Return a view that names no tool; warn once for a layer to whose requests none can be added."""
        made = policy.without_tool(text)
        if made != text:
            errors.warn_once(
                f"reading on in {adapter}",
                f"AGENT_OTEL_CLAIM_CHECK: {GET_TOOL_RESULT} cannot be offered in a request through "
                f"{adapter.rpartition('.')[2]}; the result's view has the reference and names no tool.",
            )
        return made


def mentions(value: Any, text: str = PREFIX) -> bool:
    """Return True when a message, or a list of them, holds this text; the last ones are searched first."""
    cls = type(value)
    if cls is str:
        return str.rfind(value, text) >= 0  # half the time of a search from the beginning, until Python 3.14
    if is_list(value):
        return any(mentions(each, text) for each in reversed(value))
    if any(cls is plain for plain in (int, float, bool, bytes, type(None))):
        return False
    return any(mentions(each, text) for each in fields(value).values())


class _Dialogue:
    """A request, and the further ones that answer the calls in its responses."""

    def __init__(
        self, reader: ModelReader, invocation: Invocation, form: Format, body: dict[str, Any], threads: Threads
    ) -> None:
        self._threads = threads
        self._reader = reader
        self._exchange: Any = reader.exchange
        self._invocation = invocation
        self._form = form
        self.body = body
        self._around = model_request.around()
        self._ids = message_ids.get()
        self._count = self._messages()
        self._rounds = self._repeats = 0
        self._read: set[str] = set()
        #: Of the present stream: its items, those that the consumer got, and those that are held back.
        self._plain: list[Mapping[str, Any]] = []
        self._passed: list[_Item] = []
        self._held: list[_Item] = []
        self._has_call = self._has_text = False
        #: Items of earlier streams that the consumer got, and the blocks that they began.
        self._earlier: list[Any] = []
        self._blocks = 0

    async def continues(self, response: Any, *, blocks: bool) -> bool:
        """Answer the calls in a response, or in the stream that has ended; return True when there were some."""
        try:
            plain: Mapping[str, Any] = {}
            if response is not None:
                plain = fields(self._exchange.plain(response))
                self._threads.responded(self.body, plain)
            elif self._has_call:
                plain = self._form.folded(self._plain)
            calls = self._calls(plain)
            return bool(calls) and self._go_on(plain, [await self._answer(call, blocks=blocks) for call in calls])
        except errors.ours(Exception):
            errors.report_error("remedies.dialogue")
        return False

    def passing(self, item: Any) -> list[Any]:
        """Take an item of a stream; return the items to hand on: texts at once, nothing from the first tool call on."""
        try:
            plain = fields(self._exchange.plain(item))
            if not self._plain:
                self._threads.responded(self.body, plain)
            self._plain.append(plain)
            kind = self._form.kind(plain)
            self._has_call = self._has_call or kind == CALL
            if self._has_call or (kind == NEUTRAL and not self._has_text):
                self._held.append((item, plain))
                return []
            self._has_text = True
            passed, self._held = [*self._held, (item, plain)], []
            self._passed += passed
            return self._joined(passed)
        except errors.ours(Exception):
            errors.report_error("remedies.dialogue")
            return [*self.held(), item]

    def held(self) -> list[Any]:
        """Return the items that were held back."""
        held, self._held = self._held, []
        return self._joined(held)

    def _joined(self, items: list[_Item]) -> list[Any]:
        """Return items as they follow those of earlier streams."""
        if not self._earlier:
            return [item for item, _ in items]
        joined = [(item, self._form.joined(plain, self._blocks)) for item, plain in items]
        return [self._exchange.changed(item, made, self._earlier) for item, made in joined if made is not None]

    def _calls(self, response: Mapping[str, Any]) -> list[Call]:
        """Return the calls to answer; none where the response does not call the tool."""
        calls = self._form.calls(response)
        if all(call.name != GET_TOOL_RESULT for call in calls):
            return []
        if self._rounds >= MOST_ROUNDS:
            errors.warn_once(
                "claim check rounds",
                f"A model calls {GET_TOOL_RESULT} although its request allows no tool call; the program gets the call.",
            )
            return []
        return calls

    def _go_on(self, response: Mapping[str, Any], answers: list[Answer]) -> bool:
        self._rounds += 1
        self._repeats += all(answer.data in (_REPEATED, _NOT_RUN) for answer in answers)
        if self._repeats == _MOST_REPEATS:
            self._rounds = MOST_ROUNDS
        body = self._form.answered(self.body, response, answers)
        self.body = self._form.closed(body) if self._rounds == MOST_ROUNDS else body
        self._exchange.put(self._invocation, self.body)
        message_ids.set(self._ids)
        added_messages.set(max(0, self._messages() - self._count))
        self._earlier += [item for item, _ in self._passed]
        self._blocks += self._form.blocks([plain for _, plain in self._passed])
        self._plain, self._passed, self._held = [], [], []
        self._has_call = self._has_text = False
        return True

    def _messages(self) -> int:
        """Return the number of messages in the request; a text is one."""
        messages: Any = self.body.get(self._form.messages)
        return len(messages) if is_list(messages) else 1

    async def _answer(self, call: Call, *, blocks: bool) -> Answer:
        if call.name != GET_TOOL_RESULT:
            return Answer(call, _NOT_RUN)
        if self._rounds == MOST_ROUNDS - 1:
            return Answer(call, _ENOUGH)
        given = call.arguments  # a model may pass anything
        if type(given) is str:
            given = errors.attempt(json.loads, given or "{}")
        known = TOOL.parameters["properties"]
        # Models fill optional arguments with empty texts.
        arguments = {name: value for name, value in fields(given).items() if name in known and value != ""}
        page = repr(sorted(arguments.items()))
        if page in self._read:
            return Answer(call, _REPEATED)
        execution = self._around.execution or self._owner(arguments.get("ref"))
        asked = ToolCall(GET_TOOL_RESULT, arguments, call.id, self._around.agent, execution)
        visit = enter_tool(_READER, Invocation(asked, (), {}))
        with visit or contextlib.nullcontext():
            read = {"ref": None, **arguments}
            data = get_tool_result(**read) if blocks else await aget_tool_result(**read)
            if "error" not in data:
                self._read.add(page)
            if visit is not None:
                visit.returned(data)
        return Answer(call, data)

    def _owner(self, ref: object) -> str | None:
        """Return the execution whose calls have the results in the request that name this reference."""
        request = self._reader.request(self._invocation) if type(ref) is str and ref else None
        if request is None:
            return None
        parts = [part for part in request.parts if part.part == TOOL_RESULTS and part.call_id is not None]
        return executions.owner(part.call_id for part in parts if part.call_id and mentions(part.value, str(ref)))
