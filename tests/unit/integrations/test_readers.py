"""Functions that tool readers share, on exceptions as programs and frameworks raise them."""

from __future__ import annotations

import json

import pytest

from agent_otel._internal.failures import cause_of, context_of
from agent_otel.core.types import Invocation
from agent_otel.integrations.readers import cause_behind, inject_into, raises, raises_within
from tests.rows import each_row


class ToolInvocationError(Exception):
    """As a framework raises it."""


class NoRecordsError(Exception):
    """An exception of a tool that is empty, and one whose truth is code."""

    def __len__(self) -> int:
        return 0


class FatalError(Exception):
    """An exception of a tool whose truth must not be asked for."""

    def __bool__(self) -> bool:
        raise AssertionError


def raised(own: BaseException, *, chained: bool) -> BaseException:
    """Return the framework's exception, raised from a tool's own or within it."""

    def handler() -> None:
        raise own

    def framework() -> None:
        try:
            handler()
        except BaseException as error:
            raise ToolInvocationError from (error if chained else None)

    with pytest.raises(ToolInvocationError) as found:
        framework()
    return found.value


@each_row("own", [NoRecordsError(), FatalError(), KeyError("a")], ids=lambda own: type(own).__name__)
def test_the_tool_s_own_exception_is_found_whatever_its_truth(own: BaseException) -> None:
    assert cause_behind("ToolInvocationError")(raised(own, chained=True)) is own
    assert cause_behind("ToolInvocationError", of=context_of)(raised(own, chained=False)) is own
    assert cause_behind("ToolInvocationError")(own) is own


def test_an_exception_without_a_cause_is_its_own() -> None:
    error = ToolInvocationError()
    assert cause_behind("ToolInvocationError")(error) is error


def test_control_flow_is_known_by_names() -> None:
    is_theirs = raises("GraphInterrupt", "ToolInvocationError")
    assert [True, False] == [is_theirs(ToolInvocationError()), is_theirs(NoRecordsError())]


def test_what_a_package_raises_is_no_handlers() -> None:
    with pytest.raises(ValueError, match="Expecting value") as found:
        json.loads("")
    # The test itself is the framework here, and the tool's handler elsewhere.
    assert raises_within(("tests", "json"), "ValueError", "JSONDecodeError")(found.value)
    assert not raises_within("json", "JSONDecodeError")(found.value)
    assert not raises_within(("tests", "json"), "KeyError")(found.value)


def test_a_refusal_may_stand_behind_the_framework_s_exception() -> None:
    behind = raises_within("tests", "KeyError", cause=cause_of)
    assert behind(raised(KeyError("a"), chained=True))
    assert not behind(raised(KeyError("a"), chained=False))
    assert not behind(KeyError("a"))


def test_arguments_go_into_a_copy_by_position_or_by_name() -> None:
    given = {"key": "a"}
    by_position, by_name = Invocation(None, ("tool", given), {}), Invocation(None, ("tool",), {"arguments": given})
    inject = inject_into(1, "arguments")
    inject(by_position, {"tenant": "t"})
    inject(by_name, {"tenant": "t"})
    assert ("tool", {"key": "a", "tenant": "t"}) == by_position.args
    assert {"arguments": {"key": "a", "tenant": "t"}} == by_name.kwargs
    assert {"key": "a"} == given
