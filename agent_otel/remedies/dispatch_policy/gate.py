"""The gate: a tool call passes it, is denied before its handler runs, or gets the arguments that the policy injects.

A failure of the policy, of one of its functions or of this package denies the call.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel._internal.signatures import function_named
from agent_otel.core import execution_context
from agent_otel.core.captured_content import without
from agent_otel.core.types import LEFT_ALONE, NOT_HERE, PRODUCED, Denial, Replacement, ToolDeniedError
from agent_otel.measure.size import Size
from agent_otel.remedies.claim_check.serialization import JSON, raw_of
from agent_otel.remedies.dispatch_policy.rules import (
    UnreadableError,
    are_required,
    has_forbidden,
    read_arguments,
    values_at,
)
from agent_otel.remedies.limits import too_large
from agent_otel.settings.kinds import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.core.tool_invocation import Dispatch
    from agent_otel.core.types import Invocation, ToolCall, ToolReader
    from agent_otel.remedies.dispatch_policy.rules import Rule, Source, ToolPolicy
    from agent_otel.remedies.dispatch_policy.source import PolicySource

_given: ContextVar[dict[str, Any] | None] = ContextVar("agent_otel_policy_values", default=None)


@dataclass(frozen=True, slots=True)
class DispatchedCall:
    """A tool call as the functions of a policy get it; ``arguments`` are the model's, a copy.

    ``attempt`` counts the attempts of the durable runtime's step from 1: a call of a second attempt may have run
    before. ``args_hash`` is the hash on the span, the same for a retry.
    """

    tool: str
    arguments: dict[str, Any]
    agent: str | None
    workflow: str | None
    execution: str | None
    call_id: str | None
    attempt: int
    args_hash: str | None


@contextmanager
def policy_values(**values: object) -> Iterator[None]:
    """Set values that a policy injects with ``{context = "name"}``, for all tool calls inside the block."""
    token = _given.set({**(_given.get() or {}), **values})
    try:
        yield
    finally:
        _given.reset(token)


async def _called(named: str | Callable[..., Any], *args: object, blocks: bool) -> Any:
    """Call a function of the program off the event loop, and await its result when it is awaitable."""
    call = functools.partial(function_named(named) if isinstance(named, str) else named, *args)
    if not blocks:
        value = await asyncio.to_thread(call) if is_in_asyncio() else call()
        return await value if inspect.isawaitable(value) else value
    value = call()
    if not inspect.isawaitable(value):
        return value

    async def awaited() -> Any:
        return await value

    if not is_in_asyncio():
        return asyncio.run(awaited())
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, asyncio.run, awaited()).result()


_HINTS: Final = {
    semconv.RULE_TOOLS: "The policy of this agent does not allow this tool. Do not call it again; answer without it.",
    semconv.RULE_REQUIRE: "The policy requires another value of `{}`. Call again only with a value you are allowed.",
    semconv.RULE_FORBID: "The policy forbids this value of `{}`. Do not try to get around it.",
    semconv.RULE_ARGUMENTS: "The policy cannot read these arguments. Call again with one JSON object.",
    semconv.RULE_APPROVE: "This call was not approved. Do not call it again with the same arguments.",
    semconv.RULE_INJECT: "This call cannot be prepared, and no other arguments change that. Answer without it.",
    semconv.RULE_UNREADABLE: "The policy of this agent cannot be read, so that no tool may be called. Answer now.",
}


class _DeniedError(Exception):
    """A denial; its arguments are the rule that denies the call, and the argument that it is about."""


class Gate:
    """The policy of this process, applied to one call at a time."""

    def __init__(self, source: PolicySource) -> None:
        self._source = source

    async def check(self, record: Dispatch, reader: ToolReader, invocation: Invocation, *, blocks: bool) -> Any:
        """Return LEFT_ALONE for a call that may run, else the answer in place of its result.

        Raises:
            ToolDeniedError: no answer can take the place of the result.
        """
        put = _answer(record, reader, invocation, await self._decide(record, reader, invocation, blocks=blocks))
        return await put if not blocks and inspect.isawaitable(put) else put

    async def _decide(
        self, record: Dispatch, reader: ToolReader, invocation: Invocation, *, blocks: bool
    ) -> Denial | None:
        """Return the denial of a call; with the mode ``monitor`` one that the conditions deny runs."""
        denial = None
        record.is_gated, record.injected = False, None
        try:
            if self._source.is_due:
                await _called(self._source.refresh, blocks=blocks)
            policy, workflow = self._source.policy, _workflow()
            rule = _rule(policy, record, workflow)
            if not (rule.require or rule.forbid or rule.inject or rule.approve):
                return None
            call = _dispatched(record, reader.call(invocation), workflow)
            try:
                _compare(rule, call.arguments)
                if rule.approve is not None and not record.is_asked:
                    await _approve(rule.approve, call, blocks=blocks)
            except _DeniedError as denied:
                denial = self._denial(denied)
            if denial is None or denial.mode == semconv.MONITOR:
                await _inject(rule, call, record, reader, invocation, blocks=blocks)
            if denial is None and reader.validated is not None and (rule.require or rule.forbid):
                _compare_validated(rule, reader.validated, invocation)
        except _DeniedError as denied:
            return denial or self._denial(denied)
        except UnreadableError:
            return denial or self._denial(_DeniedError(semconv.RULE_ARGUMENTS))
        except errors.ours(Exception):
            errors.report_error("tool_call.policy")
            return denial or self._denial(_DeniedError(semconv.RULE_UNREADABLE))
        return denial

    def _denial(self, denied: _DeniedError) -> Denial:
        rule, *argument = denied.args
        mode = semconv.ENFORCE if self._source.policy is None else self._source.policy.mode
        return Denial(rule, mode, *argument)

    def left(
        self, record: Dispatch, reader: ToolReader, read: object, value: Any, invocation: Invocation
    ) -> tuple[object, Any]:
        """Return the result of a handler without injected values; log once that a handler ran without a decision."""
        if record.injected:
            return hide(record, reader, read, value, invocation)
        if not record.is_gated and reader.station == PRODUCED:
            adapter = reader.call.__module__
            errors.warn_once(
                f"policy passed by {adapter}",
                f"AGENT_OTEL_TOOL_POLICY: a handler ran through {adapter.rpartition('.')[2]} on which the policy did "
                "not decide; a hand-written loop has to call `refused` before it runs a tool.",
            )
        return read, value


def _rule(policy: ToolPolicy | None, record: Dispatch, workflow: str | None) -> Rule:
    """Return the rule that decides on a call; raise _DeniedError without one."""
    if policy is None:
        raise _DeniedError(semconv.RULE_UNREADABLE)
    if not record.is_readable:
        raise _DeniedError(semconv.RULE_ARGUMENTS)
    rule = policy.rule_for(workflow, execution_context.agent_of(record.agent), record.tool or record.call.name)
    if rule is None:
        raise _DeniedError(semconv.RULE_TOOLS)
    return rule


async def _inject(  # noqa: PLR0913 - the call and its rule
    rule: Rule, call: DispatchedCall, record: Dispatch, reader: ToolReader, invocation: Invocation, *, blocks: bool
) -> None:
    """Put the injected arguments into the call; raise _DeniedError where that is not possible."""
    first = record.charged_to if record.is_asked else None
    if first is not None:  # this is a further function of the call, which may have lost the values
        known = {*call.arguments, *(reader.parameters(invocation) if reader.parameters else ())}
        values = {name: value for name, value in (first.injected or {}).items() if name in known}
    else:
        values = {name: await _value_of(name, source, call, blocks=blocks) for name, source in rule.inject.items()}
    record.injected = values
    missing = {name: value for name, value in values.items() if first is None or call.arguments.get(name) != value}
    # Frameworks show arguments in the messages of their exceptions, by `repr`.
    hidden = {name: Secret(value) if type(value) is str else value for name, value in missing.items()}
    if missing and (reader.inject is None or reader.inject(invocation, hidden) is False):
        record.injected = None
        adapter = reader.call.__module__
        errors.warn_once(
            f"policy inject {adapter}",
            "AGENT_OTEL_TOOL_POLICY: arguments cannot be injected into this call through "
            f"{adapter.rpartition('.')[2]}; calls that need them are denied.",
        )
        raise _DeniedError(semconv.RULE_INJECT)


def _workflow() -> str | None:
    """Return the workflow of the call: the one that the program named, else the durable runtime's."""
    identity = execution_context.explicit.get()
    if identity is not None and identity.workflow:
        return identity.workflow
    step = execution_context.current_step()
    return None if step is None else step.workflow


def _compare_validated(rule: Rule, validated: Callable[[Invocation], object], invocation: Invocation) -> None:
    """Compare the arguments that the framework makes: aliases, defaults and validators change them."""
    try:
        made = validated(invocation)
    except errors.ours(ValueError):  # the framework refuses them itself; pydantic's looks like one of another thread
        return
    _compare(rule, read_arguments(made))


def _compare(rule: Rule, arguments: dict[str, Any]) -> None:
    """Raise _DeniedError for the first argument that a rule denies."""
    path: tuple[str, ...] = ()
    try:
        for path, allowed in rule.require.items():
            values = list(values_at(arguments, path))
            if not values or not all(are_required(value, allowed) for value in values):
                raise _DeniedError(semconv.RULE_REQUIRE, ".".join(path))
        for path, forbidden in rule.forbid.items():
            if any(has_forbidden(value, forbidden) for value in values_at(arguments, path, coerces=True)):
                raise _DeniedError(semconv.RULE_FORBID, ".".join(path))
    except UnreadableError:
        raise _DeniedError(semconv.RULE_ARGUMENTS, ".".join(path)) from None


def _dispatched(record: Dispatch, call: ToolCall | None, workflow: str | None) -> DispatchedCall:
    """Return the call with the arguments that its handler is about to get: a middleware may have changed them."""
    step = execution_context.current_step()
    return DispatchedCall(
        record.tool or record.call.name,
        read_arguments(None if call is None else call.arguments),
        execution_context.agent_of(record.agent),
        workflow,
        record.execution,
        record.call.call_id,
        1 if step is None else step.attempt,
        record.args_hash,
    )


async def _approve(approve: str | Callable[..., Any], call: DispatchedCall, *, blocks: bool) -> None:
    """Raise _DeniedError unless the program's function returns True."""
    try:
        answer = await _called(approve, call, blocks=blocks)
    except errors.ours(Exception) as error:
        _report("The approval", error)
        answer = False
    if answer is not True:
        raise _DeniedError(semconv.RULE_APPROVE)


async def _value_of(name: str, source: Source, call: DispatchedCall, *, blocks: bool) -> Any:
    """Return an injected value; raise _DeniedError when there is none."""
    value: Any = None
    try:
        if source.kind == "env":
            value = os.environ.get(str(source.of)) or None
        elif source.kind == "context":
            value = (_given.get() or {})[str(source.of)]
        else:
            value = await _called(source.of, call, blocks=blocks)
    except errors.ours(Exception) as error:
        _report(f"The source of {name}", error)
    if value is None:
        errors.warn_once(
            f"policy value {name}",
            f"AGENT_OTEL_TOOL_POLICY: there is no value to inject for {name}; calls that need it are denied.",
        )
        raise _DeniedError(semconv.RULE_INJECT, name)
    return value


def _report(subject: str, error: Exception) -> None:
    errors.warn_once(
        f"policy {subject} {type(error).__qualname__}",
        f"AGENT_OTEL_TOOL_POLICY: {subject} failed with {errors.described(error)}; the call is denied.",
    )


def _answer(record: Dispatch, reader: ToolReader, invocation: Invocation, denial: Denial | None) -> Any:
    """Record a denial; return the answer in place of the result, LEFT_ALONE where the call may run."""
    if denial is not None:
        record.deny(denial)
    if denial is None or denial.mode == semconv.MONITOR:
        record.is_gated = True
        return LEFT_ALONE
    data = error_of(record.tool or record.call.name, denial)
    written = json.dumps(data, ensure_ascii=False)
    replacement = Replacement(written, data, is_error=True)
    put = LEFT_ALONE
    with errors.reported("tool_call.policy"):
        if reader.answer is not None:
            put = reader.answer(replacement, invocation)
        elif reader.replace is not None:
            put = reader.replace(None, replacement, invocation)
    if put is LEFT_ALONE or put is NOT_HERE:
        raise ToolDeniedError(written)
    return put


def error_of(tool: str, denial: Denial) -> dict[str, Any]:
    """Return the error that the model reads in place of a result; it names no value of the policy."""
    about = {} if denial.argument is None else {"argument": denial.argument}
    hint = _HINTS[denial.rule].format(denial.argument)
    return {"error": semconv.TOOL_DENIED, "tool": tool, "rule": denial.rule, **about, "hint": hint}


def hide(record: Dispatch, reader: ToolReader, read: object, value: Any, invocation: Invocation) -> tuple[object, Any]:
    """Return the result and the value to hand on, both without injected values."""
    if not record.injected or reader.replace is None:
        return read, value
    raw = raw_of(read)
    if raw.text is None:
        return read, value
    text = without(raw.text, record.injected)
    if text == raw.text and raw.is_whole:
        return read, value
    # A value in it that was a number has left no JSON, or it is too deep.
    data = errors.attempt(json.loads, text) if raw.content_type == JSON else None
    data = data if type(data) is dict else {"content": text}
    if not raw.is_whole:  # the rest may repeat them
        data = too_large(record.name, Size(len(raw.data), exact=False), len(raw.data))
        text = json.dumps(data, ensure_ascii=False)
    replacement = Replacement(text, data, record.error_type is not None or not raw.is_whole)
    put = reader.replace(value, replacement, invocation)
    if put is LEFT_ALONE or put is NOT_HERE:
        errors.warn_once(
            f"policy repeats {record.name}",
            f"AGENT_OTEL_TOOL_POLICY: a result of {record.name} repeats an injected value and goes on whole.",
        )
        return read, value
    return text, put
