"""The gate: a tool call passes it, is denied before its handler runs, or gets the arguments that the policy injects.

A failure of the policy, of one of its functions or of this package denies the call.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.core import execution_context
from agent_otel.core.types import LEFT_ALONE, NOT_HERE, PRODUCED, Denial, Replacement, ToolDeniedError
from agent_otel.remedies.dispatch_policy import hooks
from agent_otel.remedies.dispatch_policy.hiding import hide
from agent_otel.remedies.dispatch_policy.hooks import DispatchedCall
from agent_otel.remedies.dispatch_policy.source import mode_of
from agent_otel.remedies.dispatch_policy.values import (
    UnreadableError,
    are_required,
    has_forbidden,
    read_arguments,
    values_at,
)
from agent_otel.settings.kinds import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.types import Invocation, ToolReader
    from agent_otel.remedies.dispatch_policy.rules import Rule, Source, ToolPolicy
    from agent_otel.remedies.dispatch_policy.source import PolicySource

    #: Yields functions of the program, gets what they return, and returns the denial.
    Steps = Generator[Callable[[], Any], Any, Denial | None]

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
    """A rule that denies the call, and the argument that it is about."""

    def __init__(self, rule: str, argument: str | None = None) -> None:
        super().__init__(rule)
        self.rule = rule
        self.argument = argument


class Gate:
    """The policy of this process, applied to one call at a time."""

    def __init__(self, source: PolicySource) -> None:
        self._source = source

    def check(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Any:
        """Return LEFT_ALONE for a call that may run, else the answer in place of its result.

        Raises:
            ToolDeniedError: no answer can take the place of the result.
        """
        try:
            if self._source.is_due:
                self._source.refresh()
            steps = _Decision(self._steps(record, reader, invocation))
            while steps.call is not None:
                steps.run(hooks.call_now)
            denial = steps.denial
        except Exception:
            denial = self._failed()
        return _answer(record, reader, invocation, denial)

    async def acheck(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Any:
        """Do the same as `check` without blocking the event loop."""
        try:
            if self._source.is_due:
                await hooks.call_async(self._source.refresh)
            steps = _Decision(self._steps(record, reader, invocation))
            while steps.call is not None:
                await steps.arun(hooks.call_async)
            denial = steps.denial
        except Exception:
            denial = self._failed()
        put = _answer(record, reader, invocation, denial)
        return await put if inspect.isawaitable(put) else put

    def _failed(self) -> Denial:
        errors.report_error("tool_call.policy")
        return Denial(semconv.RULE_UNREADABLE, mode_of(self._source.policy))

    def left(
        self, record: ToolInvocation, reader: ToolReader, read: object, value: Any, invocation: Invocation
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

    def _steps(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Steps:
        policy = self._source.policy
        mode = mode_of(policy)
        record.is_gated, record.injected = True, None
        checked = _Checked(record, reader, invocation)
        denial = None
        for step in (checked.conditions(policy), checked.injection()):
            try:
                yield from step
            except _DeniedError as denied:
                denial = denial or Denial(denied.rule, mode, denied.argument)
            except Exception:
                denial = denial or self._failed()
            if denial is not None and mode == semconv.ENFORCE:
                record.injected = None
                break
        return denial


class _Decision:
    """A decision on a call: ``call`` is the next function of the program that it needs, None at the end."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.call: Callable[[], Any] | None = None
        self.denial: Denial | None = None
        self._go_on(lambda: next(steps))

    def run(self, run: Callable[..., Any]) -> None:
        """Run a function of the program."""
        try:
            value = run(self.call)
        except Exception as error:
            self._go_on(functools.partial(self._steps.throw, error))
        else:
            self._go_on(lambda: self._steps.send(value))

    async def arun(self, run: Callable[..., Any]) -> None:
        """Do the same without blocking the event loop."""
        try:
            value = await run(self.call)
        except Exception as error:
            self._go_on(functools.partial(self._steps.throw, error))
        else:
            self._go_on(lambda: self._steps.send(value))

    def _go_on(self, step: Callable[[], Any]) -> None:
        try:
            self.call = step()
        except StopIteration as end:
            self.call, self.denial = None, end.value


class _Checked:
    """A call at the gate: first the conditions of its rule, then the arguments that the rule injects.

    The two are apart because in the mode ``monitor`` a call that the conditions deny runs, with injected arguments.
    """

    def __init__(self, record: ToolInvocation, reader: ToolReader, invocation: Invocation) -> None:
        self._record = record
        self._reader = reader
        self._invocation = invocation
        self._rule: Rule | None = None
        self._call: DispatchedCall | None = None

    def conditions(self, policy: ToolPolicy | None) -> Generator[Callable[[], Any], Any, None]:
        """Raise _DeniedError for a call that the policy denies."""
        if policy is None:
            raise _DeniedError(semconv.RULE_UNREADABLE)
        record, workflow = self._record, _workflow()
        rule = self._rule = policy.rule_for(workflow, record.agent, record.call.name)
        if rule is None:
            raise _DeniedError(semconv.RULE_TOOLS)
        if not (rule.require or rule.forbid or rule.inject or rule.approve):
            return
        arguments = _arguments(self._reader, self._invocation)
        self._call = _dispatched(record, arguments, workflow)
        _compare(rule, arguments)
        if rule.approve is not None:
            yield from _approval(rule.approve, self._call)

    def injection(self) -> Generator[Callable[[], Any], Any, None]:
        """Put the injected arguments into the call; raise _DeniedError where that is not possible."""
        rule, call, reader = self._rule, self._call, self._reader
        if rule is None or call is None or not rule.inject:
            return
        values: dict[str, Any] = {}
        for name, source in rule.inject.items():
            values[name] = yield from _value_of(name, source, call)
        self._record.injected = values
        # Frameworks show arguments in the messages of their exceptions, by `repr`.
        hidden = {name: Secret(value) if type(value) is str else value for name, value in values.items()}
        if reader.inject is None or not reader.inject(self._invocation, hidden):
            self._record.injected = None
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


def _arguments(reader: ToolReader, invocation: Invocation) -> dict[str, Any]:
    """Return the arguments that the handler is about to get: a middleware may have changed those of the model."""
    call = reader.call(invocation)
    try:
        return read_arguments(None if call is None else call.arguments)
    except UnreadableError:
        raise _DeniedError(semconv.RULE_ARGUMENTS) from None


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


def _dispatched(record: ToolInvocation, arguments: dict[str, Any], workflow: str | None) -> DispatchedCall:
    step = execution_context.current_step()
    return DispatchedCall(
        record.call.name,
        arguments,
        record.agent,
        workflow,
        record.execution,
        record.call.call_id,
        1 if step is None else step.attempt,
        record.args_hash,
    )


def _approval(approve: str | Callable[..., Any], call: DispatchedCall) -> Generator[Callable[[], Any], Any, None]:
    """Raise _DeniedError unless the program's function returns True."""
    try:
        answer = yield functools.partial(hooks.function_of(approve), call)
    except Exception as error:
        _report("The approval", error)
        raise _DeniedError(semconv.RULE_APPROVE) from None
    if answer is not True:
        raise _DeniedError(semconv.RULE_APPROVE)


def _value_of(name: str, source: Source, call: DispatchedCall) -> Generator[Callable[[], Any], Any, Any]:
    """Return an injected value; raise _DeniedError when there is none."""
    value: Any = None
    try:
        if source.kind == "env":
            value = os.environ.get(str(source.of)) or None
        elif source.kind == "context":
            value = hooks.context_value(str(source.of))
        else:
            value = yield functools.partial(hooks.function_of(source.of), call)
    except Exception as error:
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


def _answer(record: ToolInvocation, reader: ToolReader, invocation: Invocation, denial: Denial | None) -> Any:
    """Record a denial; return the answer in place of the result, LEFT_ALONE where the call may run."""
    if denial is None:
        return LEFT_ALONE
    record.deny(denial)
    if denial.mode == semconv.MONITOR:
        return LEFT_ALONE
    data = error_of(record.call.name, denial)
    written = json.dumps(data, ensure_ascii=False)
    replacement = Replacement(written, data, is_error=True)
    put = LEFT_ALONE
    try:
        if reader.answer is not None:
            put = reader.answer(replacement, invocation)
        elif reader.replace is not None:
            put = reader.replace(None, replacement, invocation)
    except Exception:
        errors.report_error("tool_call.policy")
    if put is LEFT_ALONE or put is NOT_HERE:
        raise ToolDeniedError(written)
    return put


def error_of(tool: str, denial: Denial) -> dict[str, Any]:
    """Return the error that the model reads in place of a result; it names no value of the policy."""
    about = {} if denial.argument is None else {"argument": denial.argument}
    hint = _HINTS[denial.rule].format(denial.argument)
    return {"error": semconv.TOOL_DENIED, "tool": tool, "rule": denial.rule, **about, "hint": hint}
