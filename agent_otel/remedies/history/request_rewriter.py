"""Rewriting of model requests: each gets the views of its history, the last one of a run no tools."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal.errors import ours
from agent_otel.core import execution_context, tool_names
from agent_otel.core.cost.model_tokens import may_be_cached, removed
from agent_otel.core.executions import executions
from agent_otel.core.remedy_hooks import message_ids
from agent_otel.core.switches import added_messages
from agent_otel.core.thread import model_request
from agent_otel.core.thread.request_prefix import Messages
from agent_otel.measure.size import estimated_tokens, size
from agent_otel.messages.fields import fields, is_list
from agent_otel.messages.formats import transcript
from agent_otel.remedies import limits
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.argument_compaction import (
    ABOVE_BYTES,
    FAILURE_BYTES,
    FREE,
    LargeArguments,
    bounding,
    compacting,
    compacting_prompt,
    parsed,
)
from agent_otel.remedies.history.trimming import DEDUPLICATE, DEFAULT_FORM, LineForm, View, doubled, trimming
from agent_otel.remedies.history.turns import KEEP_TURNS, STEP_TURNS, Changes, History, text_of
from agent_otel.remedies.model_boundary import request_of
from agent_otel.semconv import SYSTEM, TOOL_RESULTS, USER
from agent_otel.settings import without_effect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_otel.core.execution_state import Totals
    from agent_otel.core.types import Invocation, ModelReader, ModelRequest
    from agent_otel.messages import Transcript
    from agent_otel.remedies.history.turns import Result
    from agent_otel.remedies.limits import Limits
    from agent_otel.settings import Settings
    from agent_otel.telemetry.setup import Telemetry

    Announced = Sequence[tuple[str, str | None]]


class Requests:
    """The enabled views for requests to models."""

    def __init__(self, chosen: Settings) -> None:
        self._maxima = chosen.limits
        self._trims = chosen.trim_results
        self._limits = limits.current()
        self._views = None
        if chosen.views:
            pattern = re.compile(chosen.trim_references) if chosen.trim_references else None
            self._views = Views(
                trim=chosen.trim_results,
                compact=chosen.compact_arguments,
                deduplicate=chosen.deduplicate_history,
                keep_turns=chosen.keep_turns,
                step_turns=chosen.trim_step_turns,
                form=LineForm(chosen.trim_characters, chosen.trim_reference_characters, pattern),
            )
        self._large = LargeArguments(ABOVE_BYTES) if chosen.compact_arguments else None

    def completed(self, arguments: object) -> None:
        """Remember the hashes of a completed call's large arguments, for prompts that are made of the history."""
        if self._large is not None:
            self._large.add(parsed(arguments) or {FREE: arguments})

    def last_note(self, results: Sequence[object]) -> str | None:
        """Return the note in the last request of a run, when one of these results is above a limit."""
        answers = [{"role": "tool", "tool_call_id": "call", "content": result} for result in results]
        return NOTE if self._maxima and is_due(answers, self._maxima) else None

    def rewrite(self, out: Telemetry, reader: ModelReader, invocation: Invocation) -> None:
        """Replace the history in a request by its view. After a call above a limit, ask for the answer."""
        if reader.rewrite is None:
            return
        is_last = False

        def view(messages: Any, *, cached: bool = True, kept: bool = False) -> Any:
            nonlocal is_last
            is_last = bool(self._maxima) and is_due(messages, self._maxima)
            count = len(messages) - added_messages.get()
            own, added = messages[:count], messages[count:]
            is_asked = self._limits is not None or (self._trims and cached)
            request = request_of(reader, invocation, messages) if is_asked else None
            if self._limits is not None and request is not None:
                is_last = count_shown(out, self._limits, request, own) or is_last
            is_last = is_last and not is_noted(messages[:1])
            if self._views is None or kept:
                return messages
            if self._trims and own and is_observed(own[-1]):
                without_effect("texts")
            cached = cached and (request is None or may_be_cached(request.model))
            made = self._views.of(own, self._large, cached=cached, ids=aligned(message_ids.get(), count))
            if self._trims and made.turns and semconv.TRIM not in made.removed_bytes:
                views, turns = self._views, f"{made.turns} turn{'s' * (made.turns != 1)}"
                without_effect("no old results", turns=turns, keep=views.keep_turns, step=views.step_turns)
            for strategy, removed_bytes in made.removed_bytes.items():
                removed(out, strategy, removed_bytes)
            return [*made.messages, *added] if made.removed_bytes else messages

        reader.rewrite(invocation, view)
        message_ids.set(())
        if is_last and reader.answer_only is not None:
            reader.answer_only(invocation, NOTE)


# OpenAI's chat has one message for each of a framework's. Anthropic, Gemini and Bedrock have the system prompt apart
# and a turn's results in one message; Anthropic and Bedrock have the user's text in the same.


def aligned(announced: Announced, count: int) -> Sequence[str | None]:
    """Return the ids of so many messages of a provider's format; none when no known format has so many."""
    if len(announced) == count:
        return [own for _, own in announced]
    said = [one for one in announced if one[0] != SYSTEM]
    for joined in ((), (TOOL_RESULTS,), (TOOL_RESULTS, USER)):
        ids: list[str | None] = []  # one for each message, and for each sequence of messages of these parts
        for is_joined, messages in groupby(said, lambda one, parts=joined: one[0] in parts):  # type: ignore[misc]
            own: list[Any] = [each for _, each in messages]
            ids += own if not is_joined else [None if None in own else "\n".join(own)]
        if len(ids) == count:
            return ids
    return ()


NOTE: Final = (
    "The limit of tool calls for this request is reached. Answer now and directly, with the results above. Do not call "
    "any tool: no further call will be run."
)

"""The text in the system message behind a call above a limit; the history alone decides, up to the user's next."""

#: Agents without tool calls write this before the results of a turn, each of which begins a line.
_OBSERVED: Final = "Observation:"
#: The beginning of the answer to a call above a limit.
_ANSWER: Final = re.compile(rf'(\A\s*|\n[ \t]*|{_OBSERVED}\s*)(?=\{{"error":\s*"limit_reached")')
_DEEPEST: Final = 4


def is_due(messages: Sequence[Any], maxima: Mapping[str, int]) -> bool:
    """Return True when a call since the user's last message was above one of the limits, by name and maximum."""
    is_asked = False
    for message in reversed(messages):
        seen = transcript(message)
        if seen.answered:
            contents = [answered.content for answered in seen.answered]
        elif seen.asked:
            if is_asked:
                return False
            continue
        else:
            contents = [text_of(fields(message).get("content"))]
        if any(maxima.get(answer["limit"]) == answer["maximum"] for each in contents for answer in _answers(each)):
            return not is_asked or fields(message).get("role") == "assistant"
        if is_asked:
            return False
        is_asked = seen.by_user and not seen.answered
    return False


def is_noted(messages: Sequence[Any]) -> bool:
    """Return True when a layer above has asked for the answer already."""
    return any(NOTE in (text_of(fields(message).get("content")) or "") for message in messages)


def is_observed(message: Any) -> bool:
    """Return True for a message that begins with a result which the agent has written into its text."""
    text = text_of(fields(message).get("content"))
    return text is not None and text.startswith(_OBSERVED) and not transcript(message).answered


def _answers(content: Any, depth: int = _DEEPEST) -> Iterator[Mapping[str, Any]]:
    """Yield the answers to calls above a limit in the content of a result: text, blocks, or an object around them."""
    if type(content) is str:
        # A search for a word from the end costs a hundredth of a pattern's. An answer begins the text, or is observed.
        places = _ANSWER.finditer(content) if content.rfind(semconv.LIMIT_REACHED) >= 0 else ()
        ends = (place.end() for place in places if not place.start() or _OBSERVED in content[: place.end()])
        found = next(ends, None)
        try:
            content = json.JSONDecoder().raw_decode(content, found)[0] if found is not None else None
        except ours(ValueError):  # another program's text
            return
    known = fields(content)
    if known.get("error") == semconv.LIMIT_REACHED:
        if type(known.get("limit")) is str:
            yield {"limit": known["limit"], "maximum": known.get("maximum")}
    elif depth:
        for inner in content if is_list(content) else known.values():
            if type(inner) is str or is_list(inner) or fields(inner):
                yield from _answers(inner, depth - 1)


# Calls that no adapter records are counted when a model request delivers their results. In the run of a framework a
# call counts when no request of the process has offered its tool: the framework's own tools are offered. The
# calls of the program's own loop all count, unless an adapter has recorded them.


def count_shown(out: Telemetry, counting: Limits, request: ModelRequest, messages: Sequence[Any]) -> bool:
    """Count the last turn's calls that only messages show; return True when one was above a limit."""
    offered, since = _offered(request), _since_user(messages)
    if since is None or not (offered or request.continued):
        return False
    framework, run = request.execution or model_request.around().execution, execution_context.current_run()
    execution = execution_context.resolve(framework, trace.get_current_span())
    conversation = framework or (None if run is None else run.conversation) or execution or ""
    totals: Totals | None = None if execution is None else executions.known(execution)
    if run is not None:
        execution, totals = run.id, run.totals
    used_tokens = 0 if totals is None else totals.used_tokens
    shown = {} if execution is None else counting.shown(execution)
    reached, new = None, {}
    times: Counter[tuple[str | None, str | None]] = Counter()
    for result in since.results:
        # A fingerprint: id, name, and which of the results with the same id and name it is.
        same = result.answered.id, result.name
        times[same] += 1
        key = hash((*same, times[same]))
        if key in shown:
            reached = reached or shown[key]
        elif result.turn == since.turns - 1:  # this request delivers it
            new[key] = result
    for key, result in new.items():
        if not _counts(counting, execution, result, offered):
            continue
        if execution is None:
            limits.without_execution()
            return False
        now = counting.enter(execution, conversation, used_tokens)
        counting.show(execution, key, now)
        if now is not None:
            reached = now
            out.metrics.record(semconv.LIMITS_HIT, 1, now.limit)
            continue
        result_bytes, text = size(result.answered.content).bytes, text_of(result.answered.content)
        used = limits.tokens(text) if text is not None else estimated_tokens(result_bytes)
        counting.spend(execution, result_bytes, used)
    return reached is not None


def _since_user(messages: Sequence[Any]) -> History | None:
    """Return the history behind the user's last message; None where it holds no result."""
    seen: list[Transcript] = []
    for message in reversed(messages):
        one = transcript(message)
        if one.by_user and not one.answered:
            break
        seen.append(one)
    if not any(one.answered for one in seen):
        return None
    return History(messages[len(messages) - len(seen) :], seen[::-1])


def _offered(request: ModelRequest) -> set[str]:
    """Return the names of the tools in a request; all requests of the process are remembered."""
    parts = request.parts.head if type(request.parts) is Messages else request.parts
    tools = (part.value for part in parts if part.part == semconv.TOOLS)
    names = {name for value in tools for name, _ in tool_names.definitions_in(value)}
    for name in names:
        tool_names.keep(tool_names.offered, name)
    return names


def _counts(counting: Limits, execution: str | None, result: Result, offered: set[str]) -> bool:
    """Return True for a call that the framework has answered itself, or that is of the program's own loop."""
    call_id, name = result.answered.id, result.name
    if name in semconv.OWN_TOOLS:
        return False
    is_own_loop = execution_context.outermost.get() is None
    by_name = is_own_loop or call_id is None
    if execution is not None and counting.is_recorded(execution, call_id, name, by_name=by_name):
        return False
    if is_own_loop:
        return name is None or not tool_names.is_called(name) or name not in offered
    if name is None:  # the provider has the call
        return call_id is not None and result.answered.failed is True
    return name not in offered and name not in tool_names.offered


@dataclass(frozen=True, slots=True)
class Views:
    """The enabled views, with the options of `history.trim` and `arguments.compact`."""

    trim: bool = True
    compact: bool = True
    deduplicate: bool = True
    keep_turns: int = KEEP_TURNS
    step_turns: int = STEP_TURNS
    form: LineForm = DEFAULT_FORM

    def of(
        self,
        messages: Sequence[Any],
        known: LargeArguments | None = None,
        *,
        cached: bool = True,
        ids: Sequence[str | None] = (),
    ) -> View:
        """Return the view of a history; ``cached`` is whether the provider caches it, ``ids`` are the messages'."""
        history, removed = turns.read(messages, ids), {}
        places = doubled(history) if self.deduplicate else set()
        if places:
            removed[DEDUPLICATE] = sum(size(history.messages[place]).bytes for place in places)
            history = history.without(places)
        cut, changes = history.cut(self.keep_turns, self.step_turns if cached else 1), Changes()
        if self.compact:
            compacting(history, cut, changes, ABOVE_BYTES, known)
            if known is not None:
                compacting_prompt(history, changes, known, ABOVE_BYTES)
            bounding(history, cut if self.trim else 0, changes, FAILURE_BYTES)
        if self.trim:
            trimming(history, cut, changes, self.form)
        made, less = changes.apply(history.messages)
        return View(made, removed | less, history.turns)
