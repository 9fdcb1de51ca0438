"""Copies of arguments and results on a span, for programs that ask for content."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from fnmatch import fnmatchcase
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel._internal.failures import arguments_of, cause_of, context_of, put_arguments, text_of
from agent_otel._internal.object_kinds import class_of
from agent_otel._internal.signatures import function_named
from agent_otel.core import switches
from agent_otel.core.execution_context import text_or_none
from agent_otel.measure.preview import preview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_otel.settings import Settings

#: Bytes that a redaction reads for each byte that is captured: a secret that the limit cuts in two is found whole.
_REACH: Final = 4
#: Bytes beyond the limit by which a longer copy is recognised, whatever its last character.
_MORE_BYTES: Final = 4


def capture(
    before: dict[str, Any] | None, attribute: str, value: object, chosen: Settings, tool: str
) -> dict[str, Any]:
    """Return the attributes of copies with one more, as the settings limit and redact it; a shortened one is named."""
    found = dict(before or {})
    patterns = chosen.capture_tools  # without it, all tools
    if patterns and not any(fnmatchcase(tool.lower(), pattern) for pattern in patterns):
        return found
    limit_bytes = chosen.capture_bytes
    copy = preview(value, limit_bytes * _REACH if chosen.redact else limit_bytes + _MORE_BYTES)
    whole = _redacted(chosen, tool, attribute, copy) if chosen.redact else copy
    if whole is None:
        return found
    kept = found[attribute] = preview(whole, limit_bytes)
    if kept != whole or (chosen.redact and _is_cut(copy, chosen)):
        found[semconv.CONTENT_TRUNCATED] = (*found.get(semconv.CONTENT_TRUNCATED, ()), attribute)
    return found


def failure_text(error: BaseException, chosen: Settings, tool: str) -> str | None:
    """Return the text of an exception, as the settings limit and redact it; None where it is not captured."""
    text = text_of(error, chosen.capture_bytes * _REACH)
    return capture(None, semconv.ERROR_TYPE, text, chosen, tool).get(semconv.ERROR_TYPE)


def _redacted(chosen: Settings, tool: str, attribute: str, text: str) -> str | None:
    """Return what the program's own function makes of a copy; None, which captures nothing, when it fails.

    A copy may end within a secret, which the function does not recognise then. Of such a copy the end is left out,
    however short the function makes the rest.
    """
    named = chosen.redact or ""
    redact = _function(named)
    if redact is None:
        return None
    muting = switches.muted.set(True)  # what the function calls itself is no call of the agent
    try:
        made = redact(tool, attribute, text)
    except errors.ours(Exception) as error:
        _say(named, f"raised {errors.described(error)}")
        return None
    finally:
        switches.muted.reset(muting)
    shown = text_or_none(made)
    if type(made) is CoroutineType:  # isinstance() would read __class__ from the value
        made.close()
        _say(named, "is async, and is called where nothing can be awaited")
    elif shown is None and made is not None:
        _say(named, f"returned {class_of(made)}, which is no text")
    if shown is None:
        return None
    return shown[: -chosen.capture_bytes] if _is_cut(text, chosen) else shown


def _function(named: str) -> Callable[..., object] | None:
    """Return the program's function; a module that cannot be imported is looked for again when something loads it."""
    module = named.partition(":")[0]
    if module in _absent and module not in sys.modules:
        return None
    try:
        return redactor(named)
    except errors.ours(Exception) as error:
        _absent.add(module)
        _say(named, f"cannot be imported ({type(error).__name__})")
        return None


def _is_cut(text: str, chosen: Settings) -> bool:
    """Return true for a text as long as a redaction reads."""
    return len(text.encode("utf-8", "replace")) + _MORE_BYTES > chosen.capture_bytes * _REACH


def _say(named: str, what: str) -> None:
    errors.warn_once(
        f"redact {named} {what}", f"AGENT_OTEL_REDACT: {named} {what}; what it does not redact is not captured."
    )


#: Modules of functions that could not be imported.
_absent: set[str] = set()
#: Returns the function of the program that redacts copies; the program names one.
redactor = functools.lru_cache(maxsize=1)(function_named)


#: Shorter values, such as a tenant's name, are words that a result may have by itself.
_SHORTEST_HIDDEN = 8
_HIDDEN = "[injected]"
_MOST_CAUSES = 10


def without(text: str, injected: dict[str, Any]) -> str:
    """Return a text without the values that a policy has injected: a tool or a framework may repeat them."""
    for value in injected.values():
        if type(value) is str and len(value) >= _SHORTEST_HIDDEN:
            for written in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
                text = text.replace(written, _HIDDEN)
    return text


def hidden(captured: dict[str, Any], injected: dict[str, Any]) -> dict[str, Any]:
    """Return copies of content without injected values."""
    return {name: _shown(value, injected) for name, value in captured.items()}


def hiding(function: Callable[..., Any], values: dict[str, Any], injected: dict[str, Any]) -> Callable[..., Any]:
    """Return a function that gets the values, and shows no injected ones in its text or in its exception."""

    def call(**arguments: Any) -> Any:
        try:
            result = function(**{**arguments, **values})
        except Exception as error:
            hide_in(error, injected)
            raise
        return _awaited(result, injected) if inspect.isawaitable(result) else _shown(result, injected)

    return call


async def _awaited(result: Awaitable[Any], injected: dict[str, Any]) -> Any:
    try:
        return _shown(await result, injected)
    except Exception as error:
        hide_in(error, injected)
        raise


def _shown(result: Any, injected: dict[str, Any]) -> Any:
    return without(result, injected) if type(result) is str else result


@errors.guarded("tool_call.injected")
def hide_in(error: BaseException, injected: dict[str, Any]) -> None:
    """Take injected values out of the texts of an exception, which frameworks log and send to the model."""
    within: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if within is None:
            return
        texts = arguments_of(within)
        shown = tuple(_shown(text, injected) for text in texts)
        if any(new is not old for new, old in zip(shown, texts, strict=True)):
            put_arguments(within, shown)
        cause = cause_of(within)
        within = context_of(within) if cause is None else cause
