"""Tool calls and model requests wait for tokens and for rate limits, by the arithmetic of the budget."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import agent_otel
from agent_otel import semconv
from agent_otel._internal.daemon_pool import run_now
from agent_otel.core.cost.usage import Usage
from agent_otel.core.execution_state import LastRequest, Tokens, Totals
from agent_otel.core.tool_invocation import ToolInvocation
from agent_otel.core.types import (
    LimitReached,
    ModelReader,
    ModelRequest,
    RequestPart,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.wrap import wrapper_for
from agent_otel.remedies import backpressure
from agent_otel.remedies.backpressure import Backpressure, Pauses, Refusal, TokenBudget, refusal
from agent_otel.remedies.limits import Limits
from agent_otel.settings import Settings
from agent_otel.telemetry.setup import Telemetry
from agent_otel.telemetry.sinks.otel import OTelSink
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

TOOL = ToolReader(lambda _: ToolCall("work", {}), ToolResult, replace=lambda _, found, __: found)
MODEL = ModelReader(
    lambda invocation: ModelRequest((RequestPart(semconv.USER, invocation.args[0]),), model="scripted"),
    usage=lambda value: value if isinstance(value, Usage) else None,
)
PATIENCE = 30
"""Seconds that a test waits before it fails; none waits so long when it passes."""


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        self.meanwhile: Callable[[], object] | None = None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move the clock; the first time something else happens meanwhile."""
        if self.meanwhile is not None:
            self.meanwhile()
            self.meanwhile = None
        self.slept.append(seconds)
        self.now += seconds


class RefusedForItsRate(Exception):  # noqa: N818 - as an SDK's
    """An SDK's exception: a status and the headers of the response."""

    status_code = 429

    def __init__(self, **headers: str) -> None:
        self.response = SimpleNamespace(headers={name.replace("_", "-"): text for name, text in headers.items()})


def test_tokens_come_back_evenly_and_never_above_those_of_a_minute() -> None:
    clock = Clock()
    budget = TokenBudget(600, clock)  # 10 a second
    assert budget.take(500) == 100.0
    assert budget.ready_at(100) == 100.0
    assert budget.ready_at(150) == 105.0
    clock.now = 103.0
    assert budget.ready_at(150) == 105.0
    clock.now = 1_000.0
    assert budget.ready_at(600) == 1_000.0
    assert budget.take(600) == 1_000.0
    assert budget.ready_at(1) == 1_000.1


def test_requests_that_take_more_than_there_is_wait_one_after_the_other() -> None:
    clock = Clock()
    budget = TokenBudget(600, clock)
    assert [budget.take(400) for _ in range(3)] == [100.0, 120.0, 160.0]


def test_a_request_above_the_whole_budget_waits_for_a_full_one_and_is_paid_off_later() -> None:
    clock = Clock()
    budget = TokenBudget(600, clock)
    assert budget.take(1_200) == 100.0
    assert budget.ready_at(0) == 160.0
    assert budget.take(1_200) == 220.0


def test_a_response_corrects_the_estimate() -> None:
    clock = Clock()
    budget = TokenBudget(600, clock)
    budget.take(500)
    budget.correct(500, 300)
    assert budget.ready_at(300) == 100.0
    budget.correct(0, 300)
    assert budget.ready_at(100) == 110.0
    budget.correct(10_000, 0)
    assert budget.ready_at(601) == 100.0


def test_no_response_takes_more_than_a_further_minute_whatever_its_provider_reports() -> None:
    clock = Clock()
    budget = TokenBudget(600, clock)
    budget.take(600)
    budget.correct(600, 10**400)
    assert budget.ready_at(0) == 160.0


@each_row(
    ("error", "seconds"),
    [
        (RefusedForItsRate(retry_after="7"), 7.0),
        (RefusedForItsRate(retry_after="0.5"), 0.5),
        (RefusedForItsRate(retry_after_ms="250", retry_after="1"), 0.25),
        (RefusedForItsRate(retry_after="soon"), None),
        (RefusedForItsRate(retry_after="-1"), None),
        (RefusedForItsRate(retry_after="nan"), None),
        (RefusedForItsRate(retry_after="inf"), None),
        (RefusedForItsRate(), None),
        (RefusedForItsRate(retry_after=formatdate(0, usegmt=True)), 0.0),
    ],
)
def test_a_refusal_gives_its_time_in_headers(error: Exception, seconds: float | None) -> None:
    assert refusal(error) == Refusal(seconds)


def test_a_refusal_may_give_a_date() -> None:
    found = refusal(RefusedForItsRate(retry_after=formatdate(time.time() + 1_000, usegmt=True)))
    assert found is not None
    assert found.seconds is not None
    assert 900 < found.seconds <= 1_000


def test_a_date_without_a_zone_is_greenwichs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        found = refusal(RefusedForItsRate(retry_after=formatdate(time.time() + 1_000)))  # ends in -0000
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found is not None
    assert found.seconds is not None
    assert 900 < found.seconds <= 1_000


@each_row(
    "value",
    [
        *("5s", "0x10", "1e400", "-inf", "\ud800", "2026-11-24T00:00:00Z", "Mon, 99 Jan 2026 00:00:00 GMT"),
        *("Mon, 01 Jan 99999 00:00:00 GMT", "Mon, 01 Jan 2026 00:00:00 +9999", 5, 5.0, b"5", ["5"], None),
    ],
)
def test_a_header_that_gives_no_time_is_a_refusal_without_one(value: Any) -> None:
    assert refusal(RefusedForItsRate(retry_after_ms=value, retry_after=value)) == Refusal(None)
    later = refusal(RefusedForItsRate(retry_after_ms=value, retry_after="7"))
    assert later == Refusal(7.0)


def test_other_errors_are_no_refusals_for_the_rate() -> None:
    unavailable = RefusedForItsRate(retry_after="3")
    unavailable.status_code = 503
    assert refusal(unavailable) == Refusal(3.0)
    plain = RefusedForItsRate()
    plain.status_code = 503
    bad = RefusedForItsRate(retry_after="3")
    bad.status_code = 400
    assert [refusal(each) for each in (plain, bad, ValueError("429"))] == [None, None, None]


def test_without_a_time_pauses_double_until_a_response_and_end_at_a_minute() -> None:
    clock = Clock()
    pauses = Pauses(clock)
    assert [pauses.refused("a", Refusal(None)) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    clock.now = 1_000.0
    pauses.responded("a")
    assert pauses.refused("a", Refusal(None)) == 1


def test_pauses_are_those_of_a_model_and_a_shorter_one_ends_no_longer_one() -> None:
    pauses = Pauses(Clock())
    pauses.refused("a", Refusal(20.0))
    pauses.refused("a", Refusal(5.0))
    pauses.responded("a")
    assert [pauses.until("a"), pauses.until("b"), pauses.until(None)] == [120.0, 0.0, 120.0]
    assert pauses.refused("b", Refusal(86_400.0)) == 0.0
    assert pauses.until("b") == 0.0


def test_models_are_forgotten_above_the_maximum() -> None:
    pauses = Pauses(Clock())
    for number in range(257):
        pauses.refused(str(number), Refusal(1.0))
    assert [pauses.until("0"), pauses.until("256")] == [0.0, 101.0]


def test_an_execution_without_tokens_left_calls_no_further_tool() -> None:
    limits = Limits(Settings(max_execution_tokens=1_000))
    totals = Totals()
    assert limits.enter("a", "thread", totals.used_tokens) is None
    totals.tokens = Tokens()
    totals.tokens.add(Usage(input=700, output=200))
    assert limits.enter("a", "thread", totals.used_tokens) is None
    totals.estimated_tokens = 100
    assert limits.enter("a", "thread", totals.used_tokens) == LimitReached("execution_tokens", 1_000)


def readings() -> tuple[Telemetry, Callable[[], dict[str, tuple[int, float]]]]:
    """Return telemetry, and a function that returns the number and the seconds of the waits by reason."""
    reader = InMemoryMetricReader()
    out = Telemetry(Settings(), None, [OTelSink(MeterProvider([reader]).get_meter("test"))])

    def waits() -> dict[str, tuple[int, float]]:
        data: Any = reader.get_metrics_data()
        return {
            point.attributes["reason"]: (point.count, point.sum)
            for each in (data.resource_metrics[0].scope_metrics[0].metrics if data else ())
            if each.name == "agent_otel.backpressure.wait"
            for point in each.data.data_points
        }

    return out, waits


def call_of(out: Telemetry, last: LastRequest) -> ToolInvocation:
    """Return a tool call of an execution whose last request is given."""
    with agent_otel.execution("run-1"):
        call = ToolInvocation(ToolCall("work", {}), out, ())
    assert call.state is not None
    call.state.last_requests = {False: last}
    return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that sleeping moves."""
    found = Clock()
    monkeypatch.setattr(time, "sleep", found.sleep)
    return found


def test_a_tool_call_waits_for_the_tokens_of_the_next_request(clock: Clock) -> None:
    out, waits = readings()
    acting = Backpressure(600, clock)  # 10 a second
    acting.budget.take(550)
    call = call_of(out, LastRequest(150, 600, "scripted"))
    run_now(acting.before_call(call, None, blocks=True))
    assert waits() == {"tokens": (1, 10.0)}
    [(_, attributes, _)] = call.told
    assert (list(attributes.values()), clock.now) == (["tokens", 10.0], 110.0)
    run_now(acting.before_call(call, None, blocks=True))
    assert waits() == {"tokens": (1, 10.0)}


def test_a_tool_call_waits_for_the_pause_of_its_model_only(clock: Clock) -> None:
    out, waits = readings()
    acting = Backpressure(600, clock)
    acting.pauses.refused("other", Refusal(100.0))
    run_now(acting.before_call(call_of(out, LastRequest(1, 4, "scripted")), None, blocks=True))
    assert waits() == {}
    acting.pauses.refused("scripted", Refusal(7.0))
    run_now(acting.before_call(call_of(out, LastRequest(1, 4, "scripted")), None, blocks=True))
    assert waits() == {"rate_limit": (1, 7.0)}


def test_a_pause_that_grows_during_a_wait_is_waited_for(clock: Clock) -> None:
    out, waits = readings()
    acting = Backpressure(600, clock)
    acting.pauses.refused("scripted", Refusal(7.0))
    clock.meanwhile = lambda: acting.pauses.refused("scripted", Refusal(20.0))
    run_now(acting.before_call(call_of(out, LastRequest(1, 4, "scripted")), None, blocks=True))
    assert waits() == {"rate_limit": (1, 20.0)}
    assert clock.slept == [7.0, 13.0]


def test_a_sync_call_in_the_thread_of_an_event_loop_goes_on_at_once() -> None:
    out, waits = readings()
    acting = Backpressure(1)
    acting.budget.take(1_000_000)

    async def main() -> None:
        run_now(acting.before_call(call_of(out, LastRequest(1, 4, "scripted")), None, blocks=True))

    asyncio.run(main())
    assert waits() == {}


def test_the_event_loop_goes_on_while_a_call_waits_and_a_cancelled_one_leaves() -> None:
    out, waits = readings()
    acting = Backpressure(1)
    acting.budget.take(1_000_000)

    async def main() -> None:
        waiting = asyncio.ensure_future(
            acting.before_call(call_of(out, LastRequest(1, 4, "scripted")), None, blocks=False)
        )
        await asyncio.sleep(0.01)  # another task runs meanwhile
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert waits()["tokens"][0] == 1


@pytest.mark.usefixtures("set_variables")
class TestWrapped:
    """Wrapped functions, as adapters wrap them."""

    @pytest.fixture(autouse=True)
    def budget(self, set_variables: Callable[..., None]) -> None:
        set_variables(AGENT_OTEL="1", AGENT_OTEL_TOKENS_PER_MINUTE="60000")

    @staticmethod
    def acting() -> Backpressure:
        found = backpressure.current()
        assert found is not None
        return found

    def left(self) -> float:
        """The tokens that the budget has, to within those that have come back since."""
        budget = self.acting().budget
        budget.ready_at(0)
        return budget._left

    def test_a_request_takes_its_estimate_and_its_response_corrects_it(self) -> None:
        seen = []

        def send(text: str) -> Usage:
            seen.append(60_000 - self.left())
            assert text
            return Usage(input=30_000, output=1_000)

        wrapper_for(MODEL, send)(send, None, ("x" * 200_000,), {})
        # As far as tokens have come back since: a thousand a second.
        assert 35_000 < seen[0] <= 50_000
        assert 15_000 < 60_000 - self.left() <= 31_000

    def test_a_failed_request_gives_its_tokens_back_and_a_refused_one_lets_the_next_wait(self) -> None:
        errors: list[Exception] = [ValueError("no"), RefusedForItsRate(retry_after="0.05")]
        began: list[float] = []

        def send(_: str) -> Usage:
            began.append(time.monotonic())
            if errors:
                raise errors.pop(0)
            return Usage(input=1)

        send_it = wrapper_for(MODEL, send)
        for error in (ValueError, RefusedForItsRate):
            with pytest.raises(error):
                send_it(send, None, ("x" * 40_000,), {})
        assert 60_000 - self.left() < 1_000
        refused_until = self.acting().pauses.until("scripted")
        send_it(send, None, ("x" * 40_000,), {})
        assert began[0] <= began[1] < refused_until <= began[2]

    def test_a_cancelled_wait_gives_the_tokens_back_and_sends_nothing(self) -> None:
        async def send(_: str) -> Usage:
            raise AssertionError

        async def main() -> None:
            task = asyncio.ensure_future(wrapper_for(MODEL, send)(send, None, ("x" * 40_000,), {}))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        self.acting().pauses.refused("scripted", Refusal(100.0))
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
        assert 60_000 - self.left() < 1_000

    def test_streams_wait_before_their_first_item(self) -> None:
        def stream(_: str) -> Any:
            began.append(time.monotonic())
            yield Usage(input=5)

        async def astream(_: str) -> Any:
            began.append(time.monotonic())
            yield Usage(input=5)

        async def main() -> list[Usage]:
            return [item async for item in wrapper_for(MODEL, astream)(astream, None, ("go",), {})]

        for run in (lambda: list(wrapper_for(MODEL, stream)(stream, None, ("go",), {})), lambda: asyncio.run(main())):
            began: list[float] = []
            self.acting().pauses.refused("scripted", Refusal(0.05))
            until = self.acting().pauses.until("scripted")
            assert run() == [Usage(input=5)]
            assert began[0] >= until

    def test_a_tool_inside_a_tool_waits_as_well_and_nothing_blocks_for_ever(self) -> None:
        def inner() -> str:
            return "inner"

        def outer() -> str:
            found: str = wrapper_for(TOOL, inner)(inner, None, (), {})
            return found

        self.acting().budget.take(60_100)
        with agent_otel.execution("run-nested"):
            assert wrapper_for(TOOL, outer)(outer, None, (), {}) == "inner"


def test_nothing_waits_where_it_is_off(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL="1")

    def send(_: str) -> Usage:
        return Usage(input=1)

    assert wrapper_for(MODEL, send)(send, None, ("go",), {}) == Usage(input=1)
    assert backpressure.current() is None
