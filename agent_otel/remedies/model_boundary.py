"""Results that no adapter has had, as of a hand-written loop, in a request that is about to be sent.

One above a threshold is replaced in a copy of the request, by the same text in each request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors, fork
from agent_otel._internal.object_kinds import sole
from agent_otel.core import handler, remedy_hooks, tool_names
from agent_otel.core.execution_context import agent_of, current_run
from agent_otel.core.executions import executions
from agent_otel.core.payload_cap import budget_of
from agent_otel.core.thread import model_calls
from agent_otel.core.thread.delivery import execution_of
from agent_otel.core.thread.threads import open_calls, threads
from agent_otel.core.thread.tool_definitions import definitions
from agent_otel.core.tool_invocation import Dispatch
from agent_otel.core.types import LEFT_ALONE, Invocation, ToolCall, ToolReader, ToolResult
from agent_otel.measure.arguments_hash import arguments as digest_arguments
from agent_otel.measure.size import Size
from agent_otel.messages.fields import is_list
from agent_otel.messages.formats import transcript
from agent_otel.messages.openai import chat_head, chat_parts, item_parts
from agent_otel.remedies.claim_check.serialization import Content
from agent_otel.remedies.history.turns import Changes, History, replaced, weight
from agent_otel.semconv import OWN_TOOLS
from agent_otel.settings import current as settings_in_force
from agent_otel.telemetry.setup import telemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.core.types import ModelReader, ModelRequest
    from agent_otel.remedies.history.turns import Result

#: Decisions that are kept; without one, a result is stored again under the same key.
_MOST_DECISIONS = 8_192
#: Characters that identify a structured result.
_READ = 1024 * 1024
_READER = ToolReader(
    lambda invocation: invocation.instance,
    ToolResult,
    replace=lambda *_: LEFT_ALONE,
    parameters=lambda invocation: invocation.args,
)


class _Delivered(Dispatch):
    """A call for the remedies. The request has its result."""

    def __init__(self, call: ToolCall, result: Size, digest: str, execution: str | None) -> None:
        self.call, self.name, self.agent = call, call.name, call.agent
        self.produced, self.args_hash = result, digest
        self.run = current_run()
        self.execution, self.state = execution, None if execution is None else executions.known(execution)

    def budget(self) -> Any:
        """Return the budget of the result."""
        return budget_of(self.state, settings_in_force(), self.call)


class ModelBoundary:
    """The ceiling and the claim check for results in requests."""

    def __init__(self) -> None:
        #: Replacements: how many characters of the result stay, and the text after them; None where all stay.
        self._decisions: dict[int, tuple[int, str | None]] = {}
        fork.after_fork(self._decisions.clear)

    async def act(self, reader: ModelReader, invocation: Invocation, *, blocks: bool) -> None:
        """Replace the results of a request that are above a threshold."""
        remedies, rewrite, found = remedy_hooks.result_remedies(), reader.rewrite, list[Any]()
        if remedies is None or remedies.least_bytes < 0 or rewrite is None:
            return

        def read(messages: Any, **_: object) -> Any:
            found.append(messages)
            return messages

        with errors.reported("model_request.results"):
            rewrite(invocation, read)
            changes = None if not found else await self._changes(reader, invocation, found[0], blocks=blocks)
            if changes is not None:
                made, _ = changes.apply(found[0])
                rewrite(invocation, lambda *_, **__: made)

    async def _changes(
        self, reader: ModelReader, invocation: Invocation, messages: Sequence[Any], *, blocks: bool
    ) -> Changes | None:
        """Return the replacements in these messages; None without one."""
        least, seen = remedy_hooks.result_remedies().least_bytes, [transcript(message) for message in messages]
        if not any(_size(each.content, least) for one in seen for each in one.answered):
            return None
        request = request_of(reader, invocation, messages)
        if request is None:
            return None
        parts = list(request.parts)
        execution = threads.enter(parts, execution_of(request, parts))
        changes = None
        for result in History(messages, seen).results:
            content = result.answered.content
            whole = None if result.name in OWN_TOOLS else _size(content, least)
            if whole is None:
                continue
            # Without the images beside it, and without the object that Gemini requires around it.
            if is_list(content):
                value: Any = [block for block in content if weight([block]).characters]
            else:
                value = sole("output", sole("result", content))
            text = value if type(value) is str else Content(value, 0).beginning(_READ)
            key = hash((execution, result.answered.id or result.name, whole.bytes, text))
            decision = self._decisions.get(key)
            if decision is None:
                decision = await self._decide(result, value, whole, execution, request, blocks=blocks)
                tool_names.keep(self._decisions, key, decision, _MOST_DECISIONS)
            kept, tail = decision
            if tail is not None:
                text = (Content(value, 0).beginning(kept) or "")[:kept] + tail
                changes = changes or Changes()
                changes.put(result.at, result.answered.path, replaced(content, text))
        return changes

    async def _decide(  # noqa: PLR0913 - a result in a request
        self, result: Result, value: Any, whole: Size, execution: str | None, request: ModelRequest, *, blocks: bool
    ) -> tuple[int, str | None]:
        call_id, name = result.answered.id, result.name
        if _is_an_adapters(execution, call_id, name):
            return 0, None
        arguments = None if result.call is None else result.call.asked.arguments
        digest = digest_arguments(arguments, telemetry().args_key).digest
        call = ToolCall(name or "tool", arguments, call_id, agent_of(request.agent), request.execution)
        record: Any = _Delivered(call, whole, digest, execution)
        parameters = {path.partition("[")[0].partition(".")[0] for path in definitions.schema(call.name) or ()}
        dispatched = Invocation(call, tuple(sorted(parameters)), {})
        found = await remedy_hooks.result_remedies().replacement(record, _READER, value, dispatched, blocks=blocks)
        if found is None:
            return 0, None
        model_calls.replace(value, arguments, record.produced or whole, found)
        text = found.replacement.text
        both = zip(Content(value, 0).beginning(len(text)) or "", text, strict=False)
        kept = next((at for at, (mine, other) in enumerate(both) if mine != other), 0)
        return kept, text[kept:]


def _size(content: Any, least_bytes: int) -> Size | None:
    """Return the size of a result's text, without images and files; None for one that no remedy acts on."""
    heavy = weight(content)
    is_large = heavy.characters and (heavy.bytes > least_bytes or not heavy.exact)
    return Size(heavy.bytes, heavy.exact) if is_large else None


def _is_an_adapters(execution: str | None, call_id: str | None, name: str | None) -> bool:
    """Return True for a result that an adapter has read, which the remedies have had."""
    state = None if execution is None else executions.known(execution)
    noted = None if call_id is None else open_calls.of_result(state, call_id)
    if noted is not None:
        return noted.produced >= 0 and not noted.shown
    if call_id is not None and open_calls.is_an_adapters(call_id):
        return True
    return name is not None and tool_names.is_called(name)


def request_of(reader: ModelReader, invocation: Invocation, messages: Sequence[Any]) -> ModelRequest | None:
    """Return a request with its parts, also of a layer that builds them later, from these messages."""
    read = reader.request(invocation)
    request = None if read is None else handler.plain_request(read)
    if request is None or not reader.outermost:
        return request
    found = None if reader.exchange is None else reader.exchange.body(invocation)
    parts = [part for message in messages for part in (item_parts if found is None else chat_parts)(message)]
    return request._replace(parts=[*chat_head({} if found is None else found[1]), *parts])
