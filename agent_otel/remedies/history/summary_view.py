"""Messages with a summary in the place of the old ones, made by a plan."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.measure.size import text_bytes
from agent_otel.messages.fields import fields, is_list, listed
from agent_otel.remedies.claim_check.serialization import raw_of
from agent_otel.remedies.history.placeholders import is_placeholder
from agent_otel.remedies.history.summary_plan import MARK, MARKED, READ, SAID, earlier_summary, identity, is_mark
from agent_otel.remedies.history.trimmed_line import replaced, text_of, weight
from agent_otel.remedies.history.turns import Changes
from agent_otel.remedies.limits import tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_otel.messages.prompts import Prompting
    from agent_otel.remedies.history.summary_plan import Plan, Weight
    from agent_otel.remedies.history.turns import History, Result

_TOOLS: Final = ("tools", "toolConfig", "functions")
_LINE: Final = re.compile(re.escape(MARK) + r"[^'\n]*'[^\n]*")
_CONTINUED: Final = "I go on from this summary."


class Original(NamedTuple):
    """A result that a mark replaces: the id under which it is kept, its tool's name, and its text."""

    id: str
    tool: str
    text: str


def originals(history: History, plan: Plan, weights: Sequence[Weight]) -> dict[tuple[int, int], Original]:
    """Return the results that a plan replaces, by the place of the message and their place in it."""
    uses = Counter(call.asked.id for call in history.calls)
    found: dict[tuple[int, int], Original] = {}
    places = Counter[int]()
    for result in history.results:
        place = (result.at, places[result.at])
        places[result.at] += 1
        if plan.first <= result.at < plan.end and _is_replaced(result):
            own = None if result.call is None else result.call.asked.id
            call_id = identity(result.call, hash((weights[result.at].hash, place[1])), uses[own])
            found[place] = Original(call_id, result.name or "tool", _text(result.answered.content))
    return found


def _is_replaced(result: Result) -> bool:
    """Return True for a result that is longer than its mark and is no summary."""
    content = result.answered.content
    written = text_of(content) or ""
    if result.name == semconv.CONTEXT_SUMMARIZE or is_mark(written):
        return False
    return not is_placeholder(content)


def _text(content: Any) -> str:
    """Return the text of a result, else its JSON."""
    known = fields(content) if not is_list(content) else {}
    if len(known) == 1:  # Gemini's results have an envelope
        content = known.get("result", known.get("output", content))
    return content if type(content) is str else (text_of(content) if _has_one_text(content) else None) or _json(content)


def _has_one_text(content: Any) -> bool:
    return is_list(content) and len(content) == 1 and text_bytes(text_of(content) or "") == weight(content).bytes


def _json(content: Any) -> str:
    return raw_of(content).text or ""


def mark(call_id: str) -> str:
    """Return the text in the place of a call's result."""
    return f"{MARK}{call_id}'"


class Summary(NamedTuple):
    """A summary: the id of its call, its text, and its form.

    ``in_call`` is false for a request without tools, which cannot have a call: there the summary is a message of the
    model. ``names_tool`` is true when the originals can be read with a tool.
    """

    id: str
    text: str
    in_call: bool
    names_tool: bool


def rendered(
    history: History,
    plan: Plan,
    prompting: Prompting,
    summary: Summary,
    kept: Mapping[tuple[int, int], Original],
) -> list[Any]:
    """Return the messages from ``first`` to ``end`` with the summary, and calls whose results are marks."""
    lines = _lines(history, plan, kept)
    most = max(plan.summary_tokens // 2, 1)
    while lines and tokens("\n".join(lines)) > most:
        del lines[0]
    text = "\n".join(
        [summary.text, *([MARKED, *lines] if lines else []), *([READ] if kept and summary.names_tool else [])]
    )
    if summary.in_call:
        made = prompting.pair(summary.id, semconv.CONTEXT_SUMMARIZE, text)
        _sign(made, history)
    else:
        made = [prompting.statement(f"{SAID}{text}")]
    after = [] if plan.asked is None else [history.messages[plan.asked]]
    after += _marked(history, plan, kept)
    follows = plan.asked if plan.asked is not None else plan.fold
    if (
        summary.in_call
        and follows < len(history.seen)
        and history.seen[follows].by_user
        and not history.seen[follows].answered
    ):
        made.append(prompting.statement(_CONTINUED))
    return [*made, *after]


def offers_tools(body: Mapping[str, Any]) -> bool:
    """Return True for a request that offers tools."""
    return any(body.get(name) for name in _TOOLS)


def _lines(history: History, plan: Plan, kept: Mapping[tuple[int, int], Original]) -> list[str]:
    """Return a mark for each call that leaves the transcript, those of an earlier summary first."""
    lines = _LINE.findall(earlier_summary(history, plan.first, plan.fold) or "")
    for result in history.results:
        written = text_of(result.answered.content) or ""
        if plan.first <= result.at < plan.fold and is_mark(written):
            lines.append(f"{written} {result.name or 'tool'}")
    lines += [f"{mark(one.id)} {one.tool}" for (at, _), one in kept.items() if at < plan.fold]
    return lines


def _marked(history: History, plan: Plan, kept: Mapping[tuple[int, int], Original]) -> list[Any]:
    """Return the messages between ``fold`` and ``end`` with marks in the place of results."""
    changes = Changes()
    for (at, place), one in kept.items():
        if plan.fold <= at < plan.end:
            answered = history.seen[at].answered[place]
            changes.put(at, answered.path, _as_content(answered.content, mark(one.id)))
    return changes.apply(history.messages)[0][plan.fold : plan.end]


def _as_content(content: Any, text: str) -> Any:
    """Return a text as the content of a result, in the form that the content has."""
    if is_list(content):
        block = fields(content[0]) if content else {}
        return text if "type" in block or not content else [{"text": text}]
    return text if type(content) is str or content is None else replaced(content, text)


def _sign(pair: list[Any], history: History) -> None:
    """Give Gemini's call the signature that skips validation, where the history's calls are signed."""
    parts = fields(pair[0]).get("parts")
    if not parts:
        return
    signed = (fields(part) for message in history.messages for part in listed(fields(message).get("parts")))
    if any("thoughtSignature" in part for part in signed):
        parts[0]["thoughtSignature"] = "skip_thought_signature_validator"
