"""Automatic summaries at the model boundary: the steps, later requests, bad summarisers, what is left alone."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import prometheus_client
import pytest

import agent_otel
from agent_otel import semconv
from agent_otel._internal import env, errors
from agent_otel.core import remedy_hooks
from agent_otel.core.execution_state import LastRequest
from agent_otel.core.executions import executions
from agent_otel.core.types import Exchange, Invocation, ModelReader, ModelRequest, RequestPart
from agent_otel.integrations import wrap
from agent_otel.integrations.model_sdks import stainless
from agent_otel.remedies import backpressure
from agent_otel.remedies.backpressure import Refusal
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.history import automatic_summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.remedies.backpressure import Backpressure

Item = dict[str, Any]
ABOVE, TARGET, CHUNK = 2_000, 800, 600
ROW = "the row of a report\n"
TASK = "Summarise this transcript:\n"


@pytest.fixture(autouse=True)
def remedy(set_variables: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The remedy, with an archive in memory, and warnings that are logged anew."""
    set_variables(
        AGENT_OTEL="1",
        AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS=str(ABOVE),
        AGENT_OTEL_SUMMARIZE_TARGET_TOKENS=str(TARGET),
        AGENT_OTEL_SUMMARIZE_CHUNK_TOKENS=str(CHUNK),
        AGENT_OTEL_SUMMARIZE_TIMEOUT="30",
        AGENT_OTEL_CLAIM_CHECK_BUDGET="30",
    )
    monkeypatch.setattr(env, "active", True)
    monkeypatch.setattr(errors, "_said", set())
    monkeypatch.setattr(remedy_hooks, "make_summaries", automatic_summaries.Summaries)
    remedy_hooks.summaries.cache_clear()
    policy._in_memory.cache_clear()
    yield
    agent_otel.remedies.use_summarizer(None)
    remedy_hooks.summaries.cache_clear()
    policy._in_memory.cache_clear()


class Model:
    """A scripted model of OpenAI's chat; ``summarise`` answers a request for a summary."""

    def __init__(self, summarise: Callable[[str], Any] = lambda text: f"{len(text)} characters.") -> None:
        self.requests: list[Item] = []
        self.texts: list[str] = []
        self._summarise = summarise
        self.reader = ModelReader(
            lambda invocation: ModelRequest(
                [RequestPart(semconv.USER, message.get("content") or "") for message in invocation.args[0]["messages"]],
                continued="previous_response_id" in invocation.args[0],
                model=invocation.args[0]["model"],
            ),
            stainless.usage,
            exchange=Exchange(
                lambda invocation: ("chat", dict(invocation.args[0])),
                lambda invocation, body: invocation.put(0, "body", body),
                apart=lambda invocation, body, model: Invocation(
                    invocation.instance, ({**body, "model": model or body["model"]},), {}
                ),
            ),
        )
        assert self.reader.exchange is not None
        summarise = functools.partial(wrap.summarise, self.reader, self.reader.exchange)
        self._wrappers = [
            wrap.prepared(_measured, summarise, is_async=False),
            wrap.prepared(_ameasured, summarise, is_async=True),
        ]

    def ask(self, messages: list[Item], **more: Any) -> list[Item]:
        """Send a request as an SDK's function does it; return the messages that leave."""
        body = {"model": "scripted", "messages": messages, "tools": [{"type": "function"}], **more}
        self._wrappers[0](self._respond, None, (body,), {})
        sent: list[Item] = self.requests[-1]["messages"]
        return sent

    async def aask(self, messages: list[Item]) -> list[Item]:
        """Do the same in an event loop."""
        await self._wrappers[1](self._arespond, None, ({"model": "scripted", "messages": messages},), {})
        sent: list[Item] = self.requests[-1]["messages"]
        return sent

    def _respond(self, body: Item) -> Item:
        text = body["messages"][-1]["content"]
        if type(text) is str and text.startswith(TASK):
            assert "tools" not in body
            self.texts.append(text.removeprefix(TASK))
            return _answer(self._summarise(text.removeprefix(TASK)))
        self.requests.append(json.loads(json.dumps(body)))
        return _answer("done")

    async def _arespond(self, body: Item) -> Item:
        text = body["messages"][-1]["content"]
        if type(text) is str and text.startswith(TASK):
            self.texts.append(text.removeprefix(TASK))
            made = self._summarise(text.removeprefix(TASK))
            return _answer(await made if asyncio.iscoroutine(made) else made)
        return self._respond(body)


def _answer(text: str) -> Item:
    usage = {"prompt_tokens": 4_000, "completion_tokens": 1_000}
    return {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage}


def _measured(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    return wrapped(*args, **kwargs)


async def _ameasured(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    return await wrapped(*args, **kwargs)


def result(number: int, rows: int = 75) -> str:
    return f"Report {number}\n" + ROW * rows


def chat(turns: int, rows: int = 75) -> list[Item]:
    """A history with a call of 380 tokens in each turn."""
    history: list[Item] = [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": "Compare the reports."},
    ]
    for turn in range(turns):
        function = {"name": "report", "arguments": json.dumps({"number": turn})}
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": result(turn, rows)})
    return history


def tokens(messages: list[Item]) -> int:
    return sum(len(json.dumps(message, ensure_ascii=False)) for message in messages) // 4


def results(messages: list[Item]) -> dict[str, str]:
    return {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}


@pytest.mark.shows("002.summary_steps")
def test_calls_stay_with_their_results_and_chunks_are_merged_until_they_fit() -> None:
    """A summary of each chunk first, then a summary of the summaries."""
    model = Model(lambda text: "One of them. " * 30 if "Report" in text else "They are alike.")
    history = chat(8)
    with agent_otel.execution("run-1"):
        sent = model.ask(history)
    assert chat(8) == history
    assert tokens(sent) <= TARGET
    # Chunks of at most 600 tokens, and a call is never apart from its result, where both fit.
    assert all(len(text) <= CHUNK * 4 for text in model.texts)
    firsts = [text for text in model.texts if "Report" in text]
    assert [len(firsts), len(model.texts)] == [7, 9]
    assert all(re.findall(r'"id": "(\w+)"', text) == re.findall(r'tool_call_id": "(\w+)"', text) for text in firsts)
    assert sent[3]["content"].startswith("They are alike.\nThey are alike.\nResults of earlier calls:\n")
    # The pair, labelled, then the calls with marks.
    (call,) = sent[2]["tool_calls"]
    assert call["function"] == {"name": "context_summarize", "arguments": "{}"}
    assert sent[3]["tool_call_id"] == call["id"]
    # Each call that has left has a line in the summary.
    lines = re.findall(r"^SUMMARIZED executionId:'(\w+)' report$", sent[3]["content"], re.MULTILINE)
    assert {f"call_{turn}" for turn in range(8)} == {*lines, *results(sent)} - {call["id"]}


@pytest.mark.shows("002.summary_knobs")
def test_a_result_that_no_model_has_seen_stays_and_has_a_mark_when_it_is_answered() -> None:
    model, history = Model(), chat(2, rows=600)
    with agent_otel.execution("run-1"):
        sent = model.ask(history)
        assert results(sent)["call_1"] == result(1, rows=600)
        assert not any("Report 1" in text for text in model.texts)
        seen = [*history, {"role": "assistant", "content": "I have read both."}, {"role": "user", "content": "And?"}]
        sent = model.ask(seen)
        assert tokens(sent) <= TARGET
        assert results(sent)["call_1"] == "SUMMARIZED executionId:'call_1'"
        assert agent_otel.remedies.get_tool_result("call_1")["content"].startswith("Report 1\n")
    assert any("Report 1" in text for text in model.texts)


@pytest.mark.shows("002.archive")
def test_originals_are_read_by_the_id_of_their_call() -> None:
    model = Model()
    with agent_otel.execution("run-1"):
        sent = model.ask(chat(8))
        for ref in ("call_0", "SUMMARIZED executionId:'call_0'", "executionId:'call_0'", "'call_0'"):
            assert agent_otel.remedies.get_tool_result(ref)["content"] == result(0)
        assert agent_otel.remedies.get_tool_result("call_9")["error"] == "tool_result_unavailable"
    assert "SUMMARIZED executionId:'call_0'" in json.dumps(sent)
    with agent_otel.execution("run-2"):
        assert agent_otel.remedies.get_tool_result("call_0")["error"] == "tool_result_unavailable"


def test_later_requests_begin_with_the_same_summary() -> None:
    model = Model()
    with agent_otel.execution("run-1"):
        first = model.ask(chat(8))
        asked = len(model.texts)
        second = model.ask(chat(9))
    assert len(model.texts) == asked
    assert second[: len(first)] == first
    assert second[len(first) :] == chat(9)[-2:]


def test_the_bytes_that_each_request_lacks_are_counted_once() -> None:
    """The requests of an agent, also where a new summary takes the place of the earlier one."""
    model, expected = Model(), 0
    before = _removed_bytes()
    with agent_otel.execution("run-1"):
        for turns in range(1, 12):
            history = _russian(chat(turns))
            expected += _bytes(history) - _bytes(model.ask(history))
    assert any("Summary of the work before" in text for text in model.texts)
    assert _removed_bytes() - before == expected


def _russian(history: list[Item]) -> list[Item]:
    """Return the messages with results of two bytes a character."""
    made = [dict(message) for message in history]
    for message in made:
        if message["role"] == "tool":
            message["content"] = message["content"].replace("report", "отчёт!")
    return made


def _bytes(messages: list[Item]) -> int:
    return sum(len(json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode()) for each in messages)


def _removed_bytes() -> float:
    labels = {"strategy": "summarize"}
    return prometheus_client.REGISTRY.get_sample_value("agent_otel_context_removed_bytes_total", labels) or 0


def test_a_new_summary_replaces_the_earlier_one() -> None:
    model = Model()
    with agent_otel.execution("run-1"):
        for turns in range(1, 20):
            sent = model.ask(chat(turns))
            assert tokens(sent) <= ABOVE
            assert sum(call["function"]["name"] == "context_summarize" for call in _calls(sent)) <= 1
        assert agent_otel.remedies.get_tool_result("call_0")["content"] == result(0)
    assert any("Summary of the work before" in text for text in model.texts)
    # The lines of the oldest calls make room for those of later ones.
    named = {*re.findall(r"executionId:'(\w+)'", json.dumps(sent)), *results(sent)} - {_calls(sent)[0]["id"]}
    assert named == {f"call_{turn}" for turn in range(19 - len(named), 19)}
    assert len(named) > 9


def test_executions_share_no_summary() -> None:
    """The marks of a summary are read by the execution that has the originals."""
    model = Model()
    for owner in ("run-1", "run-2"):
        with agent_otel.execution(owner):
            model.ask(chat(8))
            assert agent_otel.remedies.get_tool_result("call_0")["content"] == result(0)
            asked, made = len(model.texts), model.ask(chat(8))
            assert len(model.texts) == asked
            assert made[-2:] == chat(8)[-2:]


def _calls(messages: list[Item]) -> list[Item]:
    return [call for message in messages for call in message.get("tool_calls") or ()]


def test_what_fits_stays_as_it_is() -> None:
    model = Model()
    assert model.ask(chat(3)) == chat(3)
    assert model.texts == []


def _raising(_: str) -> str:
    raise ConnectionError("no route")


@pytest.mark.parametrize(
    ("summarise", "says"),
    [
        (_raising, "ConnectionError"),
        (lambda text: text * 2, "NoSummaryError"),
        (lambda text: text, "NoSummaryError"),
        (lambda _: "", "NoSummaryError"),
        (lambda _: " \n", "NoSummaryError"),
        (lambda _: None, "NoSummaryError"),
    ],
    ids=["fails", "returns more", "returns all", "returns nothing", "returns blanks", "returns null"],
)
def test_a_bad_summariser_leaves_the_request_as_it_is(
    summarise: Callable[[str], Any], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = Model(summarise)
    with agent_otel.execution("run-1"):
        assert model.ask(chat(8)) == chat(8)
        asked = len(model.texts)
        assert model.ask(chat(9)) == chat(9)
    assert len(model.texts) == asked  # the next attempt is made a minute later
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith("AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS: no summary, the request goes on as it is: ")
    assert says in warning


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summariser_that_hangs_costs_the_timeout(
    set_variables: Callable[..., None], caplog: pytest.LogCaptureFixture, *, is_async: bool
) -> None:
    set_variables(AGENT_OTEL_SUMMARIZE_TIMEOUT="0.2")
    remedy_hooks.summaries.cache_clear()
    ended = threading.Event()
    model = Model((lambda _: asyncio.sleep(600)) if is_async else lambda _: ended.wait(600))
    with agent_otel.execution("run-1"):
        sent = asyncio.run(model.aask(chat(8))) if is_async else model.ask(chat(8))
    ended.set()
    assert sent == chat(8)
    assert "TimeoutError" in caplog.text


def test_a_summariser_that_ignores_its_cancellation_costs_the_timeout(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_SUMMARIZE_TIMEOUT="0.2")
    remedy_hooks.summaries.cache_clear()
    model, ended = Model(), False

    async def summarise(_: str) -> str:
        for _attempt in range(100):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0 if ended else 0.1)
        return "All alike."

    async def main() -> list[Item]:
        nonlocal ended
        agent_otel.remedies.use_summarizer(summarise)
        sent = await model.aask(chat(8))
        ended = True
        return sent

    with agent_otel.execution("run-1"):
        assert asyncio.run(main()) == chat(8)


def _ending(_: str) -> str:
    raise SystemExit(3)


async def _cancelled(_: str) -> str:
    raise asyncio.CancelledError


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize(
    ("summarise", "says"),
    [
        (lambda _: None, "the function returned NoneType, not a text"),
        (lambda _: SimpleNamespace(content="All alike."), "the function returned SimpleNamespace, not a text"),
        (_ending, "RuntimeError"),
        (_cancelled, "cancelled"),
    ],
    ids=["nothing", "a message", "ends the program", "cancelled"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # SystemExit ends the thread
def test_a_bad_function_of_the_program_leaves_the_request_as_it_is(
    summarise: Callable[[str], Any], says: str, caplog: pytest.LogCaptureFixture, *, in_loop: bool
) -> None:
    agent_otel.remedies.use_summarizer(summarise)
    model = Model()
    with agent_otel.execution("run-1"):
        sent = asyncio.run(model.aask(chat(8))) if in_loop else model.ask(chat(8))
    assert sent == chat(8)
    assert says in caplog.text
    assert "TimeoutError" not in caplog.text


def test_a_summary_that_no_request_can_carry_is_made_one() -> None:
    agent_otel.remedies.use_summarizer(lambda _: "All \ud800 alike.")
    with agent_otel.execution("run-1"):
        json.dumps(Model().ask(chat(8)), ensure_ascii=False).encode()


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_of_the_program_summarises(*, is_async: bool, in_loop: bool) -> None:
    texts: list[str] = []

    def summarise(text: str) -> str:
        texts.append(text)
        return "All alike."

    async def asummarise(text: str) -> str:
        await asyncio.sleep(0)
        return summarise(text)

    agent_otel.remedies.use_summarizer(asummarise if is_async else summarise)
    model = Model(_raising)
    with agent_otel.execution("run-1"):
        sent = asyncio.run(model.aask(chat(8))) if in_loop else model.ask(chat(8))
    assert "All alike." in json.dumps(sent)
    assert model.texts == []
    assert any("Report 0" in text for text in texts)
    assert all(len(text) <= CHUNK * 4 for text in texts)


def test_a_cancelled_request_is_cancelled() -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.sleep(600)

    model = Model(lambda _: hang())

    async def main() -> None:
        asking = asyncio.ensure_future(model.aask(chat(8)))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(main())
    assert model.requests == []


@pytest.mark.parametrize(
    ("last", "turns", "is_summarised"),
    [
        (None, 4, False),  # 1,550 tokens by characters
        (LastRequest(3_000, 6_000, "scripted"), 4, True),  # two bytes a token: 3,100
        (LastRequest(3_000, 600, "scripted"), 4, False),  # too short to show anything
        (None, 8, True),  # 3,100 tokens by characters
        (LastRequest(1_000, 8_000, "scripted"), 8, False),  # eight bytes a token: 1,550
        (LastRequest(10, 8_000, "scripted"), 8, True),  # no count of the whole request
    ],
)
def test_the_usage_of_the_last_request_decides(last: LastRequest | None, turns: int, *, is_summarised: bool) -> None:
    history, model = chat(turns), Model()
    with agent_otel.execution(f"run-{last}"):
        executions.touched(f"run-{last}").last_requests = None if last is None else {False: last}
        sent = model.ask(history)
    assert (sent != history) is is_summarised


def test_a_counter_of_the_program_is_better_than_usage() -> None:
    agent_otel.remedies.token_counter(lambda text: len(text) // 4)
    history = chat(4)
    with agent_otel.execution("run-counter"):
        executions.touched("run-counter").last_requests = {False: LastRequest(3_000, 6_000, "scripted")}
        assert Model().ask(history) == history


@pytest.fixture
def acting(set_variables: Callable[..., None]) -> Backpressure:
    """A budget of 1,000 tokens a second."""
    set_variables(AGENT_OTEL_TOKENS_PER_MINUTE="60000")
    remedy_hooks.backpressure.cache_clear()
    found = backpressure.current()
    assert found is not None
    return found


@pytest.mark.parametrize("is_async", [False, True])
def test_requests_for_a_summary_count_in_the_budget_and_in_the_execution(
    acting: Backpressure, *, is_async: bool
) -> None:
    model = Model(lambda _: "Short.")
    with agent_otel.execution(f"run-counted-{is_async}"):
        sent = asyncio.run(model.aask(chat(4, 150))) if is_async else model.ask(chat(4, 150))
        state = executions.known(f"run-counted-{is_async}")
    assert sent != chat(4, 150)
    assert state is not None
    assert len(model.texts) >= 4
    assert state.used_tokens == len(model.texts) * 5_000
    acting.budget.ready_at(0)
    assert acting.budget._left < 60_000 - 2 * 5_000  # some have come back


@pytest.mark.parametrize("is_async", [False, True])
def test_a_request_for_a_summary_waits_for_its_model(acting: Backpressure, *, is_async: bool) -> None:
    began: list[float] = []

    def summarise(_: str) -> str:
        began.append(time.monotonic())
        return "Short."

    acting.pauses.refused("scripted", Refusal(0.1))
    until = acting.pauses.until("scripted")
    model = Model(summarise)
    with agent_otel.execution("run-1"):
        asyncio.run(model.aask(chat(8))) if is_async else model.ask(chat(8))
    assert began[0] >= until


@pytest.mark.parametrize("is_async", [False, True])
def test_without_tokens_in_time_no_summary_is_made(
    acting: Backpressure, caplog: pytest.LogCaptureFixture, *, is_async: bool
) -> None:
    acting.budget.take(60_000 + 60_000)  # a minute; the timeout is half of one
    model = Model()
    with agent_otel.execution("run-1"):
        assert (asyncio.run(model.aask(chat(8))) if is_async else model.ask(chat(8))) == chat(8)
    assert model.texts == []
    assert "TimeoutError" in caplog.text
    assert -60_100 < acting.budget._left < -30_000  # its tokens are given back


def test_a_refused_request_for_a_summary_lets_the_agent_wait(acting: Backpressure) -> None:
    def summarise(_: str) -> str:
        remedy_hooks.attempt_refused(SimpleNamespace(status_code=429, headers={"retry-after": "100"}))
        assert remedy_hooks.retry_delay(1.0) > 90
        return "Short."

    with agent_otel.execution("run-1"):
        Model(summarise).ask(chat(4, 150))
    assert acting.pauses.until("scripted") > time.monotonic() + 50


def test_a_conversation_at_the_provider_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    model = Model()
    for _ in range(2):
        assert model.ask(chat(8), previous_response_id="resp_1") == chat(8)
    assert model.texts == []
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "to which the provider adds what it keeps" in warning


def test_without_room_the_request_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    model = Model()
    messages = [{"role": "system", "content": ROW * 600}, *chat(1)[1:]]
    assert model.ask(messages) == messages
    assert model.texts == []
    assert "cannot be met" in caplog.text


def test_a_request_without_tools_gets_a_message_of_the_model() -> None:
    model = Model()
    history: list[Item] = [{"role": "user", "content": "Go on."}]
    for turn in range(20):
        history.append({"role": "assistant", "content": f"{turn} " + ROW * 30})
        history.append({"role": "user", "content": f"And {turn}?"})
    with agent_otel.execution("run-1"):
        sent = model.ask(history, tools=None)
    assert sent[1]["role"] == "assistant"
    assert sent[1]["content"].startswith("[context_summarize]\n")
    assert sent[-1] == history[-1]
    assert tokens(sent) <= TARGET


def test_a_chat_without_tools_still_alternates() -> None:
    for turns in (17, 18, 19, 20):
        model, history = Model(), [{"role": "user", "content": "Go on."}]
        for turn in range(turns):
            history.append({"role": "assistant", "content": f"{turn} " + ROW * (30 + turn % 3)})
            history.append({"role": "user", "content": f"And {turn}?" + ROW * (turn % 5)})
        with agent_otel.execution(f"run-{turns}"):
            sent = model.ask(history, tools=None)
        assert sent[1]["content"].startswith("[context_summarize]\n")
        assert [message["role"] for message in sent] == ["user", "assistant"] * (len(sent) // 2) + ["user"]


def test_a_second_summary_brings_no_result_back() -> None:
    """After the provider's report a token has fewer bytes, so that the request with a summary is too long again."""
    model = Model()
    history = chat(40, 40)
    with agent_otel.execution("run-1"):
        model.ask(history)
        assert len(model.texts) >= 1
        marked = {name for name, content in results(model.requests[-1]["messages"]).items() if len(content) < 60}
        executions.touched("run-1").last_requests = {False: LastRequest(5_000, 8_000, "scripted")}
        for number in range(40, 44):
            history += chat(number + 1, 2)[-2:]
            sent = model.ask(history)
            whole = {name for name, content in results(sent).items() if len(content) > 200}
            assert not whole & marked


def test_a_result_that_has_not_come_yet_keeps_its_call() -> None:
    model = Model()
    history = chat(8)[:-1]
    with agent_otel.execution("run-1"):
        sent = model.ask(history)
    assert sent[-1] == history[-1]


def test_unknown_parts_stay() -> None:
    model = Model()
    history = chat(8)
    history[1] = {"role": "user", "content": [{"type": "a new part", "payload": 1}, {"type": "text", "text": "Go."}]}
    history.insert(2, {"role": "a new role", "content": None, "of": 2})
    with agent_otel.execution("run-1"):
        sent = model.ask(history)
    assert sent[:2] == history[:2]
    assert tokens(sent) <= TARGET


def test_agents_of_one_execution_that_number_their_calls_alike_read_their_own_originals() -> None:
    marks: list[list[str]] = []
    with agent_otel.execution("run-1"):
        for rows in (75, 80):
            sent = Model().ask(chat(8, rows))
            marks.append(re.findall(r"SUMMARIZED executionId:'([^']*)'", json.dumps(sent)))
            for mark in marks[-1]:
                number = int(mark.split("-")[0].removeprefix("call_"))
                assert agent_otel.remedies.get_tool_result(mark)["content"] == result(number, rows)
    assert marks[0][0] == "call_0"
    assert marks[1][0].startswith("call_2-")  # the marks of earlier calls have no room


def test_a_result_that_begins_like_a_mark_is_summarised_and_kept() -> None:
    model = Model()
    history = chat(8)
    history[3]["content"] = f"SUMMARIZED executionId:'call_7' {history[3]['content']}"
    with agent_otel.execution("run-1"):
        model.ask(history)
        assert agent_otel.remedies.get_tool_result("call_0")["content"] == history[3]["content"]
    assert "SUMMARIZED executionId:'call_7' Report 0" in "".join(model.texts)
