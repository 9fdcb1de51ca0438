"""Limits of one execution: calls, the bytes and tokens of results, tokens of models; and of a conversation's calls.

The answer above a limit is returned, never raised: a durable runtime would retry a raised error.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv, settings
from agent_otel._internal import errors, fork
from agent_otel.core.tool_names import keep
from agent_otel.core.types import LimitReached
from agent_otel.measure.size import estimated_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent_otel.measure.size import Size
    from agent_otel.settings import Settings


_MAX_EXECUTIONS: Final = 10_000
_MAX_CALLS: Final = 1_000
_ANSWER_NOW: Final = "This call was not run. Answer now with what you have; do not call any more tools."

_WITHOUT_EXECUTION: Final = (
    "The limits of tool calls and tokens do not hold for a call that belongs to no execution, such as one that an MCP "
    "server answers. Set them for the agent, or name the execution with agent_otel.execution."
)

_count_tokens: Callable[[str], int] | None = None


def token_counter(count: Callable[[str], int] | None) -> None:
    """Set the function that counts tokens; None restores the estimate, characters ÷ 4 rounded up."""
    global _count_tokens  # noqa: PLW0603 - one per process, as the settings are
    _count_tokens = count


def has_counter() -> bool:
    """Return True where the program's own function counts tokens."""
    return _count_tokens is not None


def tokens(text: str) -> int:
    """Return the tokens of a text, counted by the program's function, else estimated."""
    return tokens_of(len(text), lambda: text)


def tokens_of(characters: int, text: Callable[[], str]) -> int:
    """Return the tokens of so many characters; ``text`` is called only for the program's function."""
    if _count_tokens is not None:
        try:
            counted: Any = _count_tokens(text())
            return int(round(counted))  # noqa: RUF046 - a number of a library's may round to its own kind
        except errors.ours(Exception) as error:  # the program's function must not fail the tool call
            errors.warn_once(
                "token counter",
                f"agent_otel.remedies.token_counter raised {type(error).__qualname__}; tokens are estimated instead.",
            )
    return estimated_tokens(characters)


def answer(reached: LimitReached) -> dict[str, Any]:
    """Return the answer that the model reads in place of a result."""
    limit = {"limit": reached.limit, "maximum": reached.maximum}
    return {"error": semconv.LIMIT_REACHED, **limit, "message": _ANSWER_NOW}


def repeated(tool: str, made: Made, maximum: int) -> dict[str, Any]:
    """Return the answer to a call that repeats earlier ones too often: it names what the model already has."""
    before = f"answer to {made.call_id}" if made.call_id else f"answer to the same call of {tool}"
    has = f"its result is the {before}, {made.bytes} bytes. Use it"
    if made.bytes is None:
        has = f"the {before} has no result, and the same arguments give no other. Answer without it"
    return {
        "error": semconv.REPEATED_CALL,
        "tool": tool,
        "call_id": made.call_id,
        "result_bytes": made.bytes,
        "maximum": maximum,
        "hint": f"This call was not run: {has}, or call with other arguments.",
    }


def without_execution() -> None:
    """Warn once that the limits do not hold for a call without an execution."""
    errors.warn_once("limits_without_execution", _WITHOUT_EXECUTION)


@dataclass(eq=False, slots=True)
class Made:
    """The calls with one tool and the same arguments: the id of the first one, and the bytes of the last result."""

    call_id: str | None
    bytes: int | None = None
    repeats: int = 0


@dataclass(eq=False, slots=True)
class _Spent:
    """The usage of an execution: counts, the recorded calls' ids and names, the shown and the repeated ones."""

    calls: int = 0
    bytes: int = 0
    tokens: int = 0
    ids: dict[str, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    shown: dict[int, LimitReached | None] = field(default_factory=dict)
    made: dict[tuple[str, str | None], Made] = field(default_factory=dict)


class Limits:
    """The limits in force and the usage of each execution; above the maximum, the oldest executions are dropped."""

    def __init__(self, chosen: Settings) -> None:
        self._chosen = chosen
        self.reset()
        fork.after_fork(self.reset)

    def reset(self) -> None:
        """Drop all usage; a forked child calls this."""
        self._lock = threading.Lock()
        self._spent: dict[str, _Spent] = {}
        self._conversations: dict[str, _Spent] = {}

    def enter(self, execution: str, conversation: str, model_tokens: int = 0) -> LimitReached | None:
        """Begin a call; return the limit that forbids it, else None. ``model_tokens`` are the execution's."""
        with self._lock:
            spent = _of(self._spent, execution)
            all_spent = (
                spent if self._chosen.max_conversation_tool_calls is None else _of(self._conversations, conversation)
            )
            reached = self._reached(spent, all_spent, model_tokens)
            if reached is None:
                spent.calls += 1
                if all_spent is not spent:
                    all_spent.calls += 1
            return reached

    def repeats(self, execution: str, call: tuple[str, str | None], call_id: str | None) -> Made | None:
        """Count a call; return the earlier ones if it may not repeat them. One with the first's id is its retry."""
        most = self._chosen.max_repeats
        if most is None or call[1] is None:
            return None
        with self._lock:
            spent = _of(self._spent, execution)
            made = spent.made.get(call)
            if made is None:
                keep(spent.made, call, Made(call_id), _MAX_CALLS)
                return None
            if call_id is None or call_id != made.call_id:
                made.repeats += 1
            return made if made.repeats > most else None

    def recorded(self, execution: str, call_id: str | None, name: str) -> None:
        """Note a call that an adapter has recorded and `enter` has counted."""
        with self._lock:
            spent = _of(self._spent, execution)
            if call_id is not None:
                keep(spent.ids, call_id, None, _MAX_CALLS)
            keep(spent.names, name, None, _MAX_CALLS)

    def is_recorded(self, execution: str, call_id: str | None, name: str | None, *, by_name: bool) -> bool:
        """Return True for a counted call that an adapter has recorded: by its id, or by the tool's name."""
        with self._lock:
            spent = self._spent.get(execution)
            if spent is None:
                return False
            if call_id is None and name is None:
                return bool(spent.names)
            return call_id in spent.ids or (by_name and name in spent.names)

    def shown(self, execution: str) -> Mapping[int, LimitReached | None]:
        """Return the calls of an execution that `show` has recorded, with the limit that each one was above."""
        with self._lock:
            spent = self._spent.get(execution)
            return {} if spent is None else spent.shown

    def show(self, execution: str, call: int, reached: LimitReached | None) -> None:
        """Record that a call which a model request alone has shown is counted; ``call`` is its fingerprint."""
        with self._lock:
            keep(_of(self._spent, execution).shown, call, reached, _MAX_CALLS)

    def spend(
        self, execution: str, result_bytes: int, result_tokens: int, call: tuple[str, str | None] | None = None
    ) -> None:
        """Add the size of a result that goes on to the model; ``call`` is its tool and the hash of its arguments."""
        with self._lock:
            spent = _of(self._spent, execution)
            if call in spent.made:
                spent.made[call].bytes = result_bytes
            spent.bytes += result_bytes
            spent.tokens += result_tokens

    def finish(self, execution: str) -> None:
        """Drop the usage of an execution that has ended; the conversation that it was part of goes on."""
        with self._lock:
            self._spent.pop(execution, None)

    def _reached(self, spent: _Spent, all_spent: _Spent, model_tokens: int) -> LimitReached | None:
        chosen = self._chosen
        for limit, maximum, used in (
            (semconv.LIMIT_TOOL_CALLS, chosen.max_tool_calls, spent.calls),
            (semconv.LIMIT_CONVERSATION, chosen.max_conversation_tool_calls, all_spent.calls),
            (semconv.LIMIT_BYTES, chosen.max_result_bytes, spent.bytes),
            (semconv.LIMIT_TOKENS, chosen.max_result_tokens, spent.tokens),
            (semconv.LIMIT_EXECUTION, chosen.max_execution_tokens, model_tokens),
        ):
            if maximum is not None and used >= maximum:
                return LimitReached(limit, maximum)
        return None


def _of(usage: dict[str, _Spent], key: str) -> _Spent:
    """Return the usage of an execution or a conversation; above the maximum, drop the one that was idle longest."""
    spent = usage.pop(key, None) or _Spent()
    keep(usage, key, spent, _MAX_EXECUTIONS)
    return spent


@functools.lru_cache(maxsize=1)
def current() -> Limits | None:
    """Return the limits of this process, which calls and requests share; None where none is set."""
    chosen = settings.current()
    return Limits(chosen) if chosen.limits else None


_CURSORS: Final = ("cursor", "page_token", "next_token", "page", "offset", "start", "after")
_SIZES: Final = ("limit", "page_size", "per_page", "max_results", "first", "count", "top_k", "n")
_SHOWN_FILTERS: Final = 5
_NO_SIZE: Final = (
    "Nothing was cut: the whole result was withheld, because its size cannot be found. Ask for something smaller, or "
    "use another tool."
)

_hints: dict[str, str] = {}


def result_hint(tool: str, hint: str) -> None:
    """Set the hint for the model when a result of this tool is above the ceiling; it replaces the default hint."""
    _hints[tool] = hint


def too_large(tool: str, size: Size, limit_bytes: int, parameters: Iterable[str] = ()) -> dict[str, Any]:
    """Return the error in place of a result; ``parameters`` are those of the tool's schema."""
    is_known = size.exact or size.bytes > limit_bytes
    return {
        "error": semconv.RESULT_TOO_LARGE,
        "tool": tool,
        "size_bytes": size.bytes,
        **({} if size.exact else {"at_least": True}),
        "limit_bytes": limit_bytes,
        "hint": _hints.get(tool) or (_default_hint(list(parameters)) if is_known else _NO_SIZE),
    }


def _default_hint(parameters: list[str]) -> str:
    cursor, size = (next((name for name in names if name in parameters), None) for names in (_CURSORS, _SIZES))
    advice = "Ask for something smaller, or use another tool."
    if cursor:
        advice = f"Ask page by page with `{cursor}`" + (f" and a smaller `{size}`." if size else ".")
    elif size:
        advice = f"Ask for less with a smaller `{size}`."
    elif parameters:
        advice = "Narrow it with " + ", ".join(f"`{name}`" for name in parameters[:_SHOWN_FILTERS]) + "."
    return f"Nothing was cut: the whole result was withheld. {advice}"
