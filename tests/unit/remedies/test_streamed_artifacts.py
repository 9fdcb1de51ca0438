"""A tool that yields artifacts: an acknowledgement at once, ids, and the next action in each answer."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import typing
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel.remedies import artifacts, get_tool_result, streamed_artifacts
from tests.patience import Deadline

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

READ = "get_tool_result"


@pytest.fixture(autouse=True)
def _stored(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_CLAIM_CHECK="memory:", AGENT_OTEL_CLAIM_CHECK_KEY="the secret of this test")


def action(ref: str, **more: str) -> dict[str, Any]:
    """Return the next action that reads an artifact."""
    return {"tool": READ, "arguments": {"ref": ref, **more}}


def when(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    deadline = Deadline(60)
    while not condition():
        assert not deadline.has_passed()
        threading.Event().wait(0.01)


@pytest.mark.shows("001.streamed_artifacts")
def test_the_model_reads_the_first_artifact_while_the_tool_makes_the_second() -> None:
    goes_on = threading.Event()

    @streamed_artifacts
    def render(topic: str) -> Generator[object, None, None]:
        """Render charts."""
        yield f"chart 1 of {topic}"
        goes_on.wait(60)
        yield {"chart": 2}

    with agent_otel.execution("run-1"):
        acknowledged = render("sales")
        (first,) = acknowledged["artifact_ids"]
        assert acknowledged == {
            "tool": "render",
            "status": "streaming",
            "artifact_ids": [first],
            "next_action": action(first),
        }
        waiting = get_tool_result(first)
        assert waiting == {
            "content": "chart 1 of sales",
            "size_bytes": 16,
            "start": 0,
            "end": 16,
            "status": "streaming",
            "artifact_ids": [],
            "next_action": action(first),  # ask again
        }
        goes_on.set()
        when(lambda: get_tool_result(first)["status"] == "complete")
        (second,) = get_tool_result(first)["artifact_ids"]
        assert get_tool_result(first)["next_action"] == action(second)
        last = get_tool_result(second)
    assert (last["content"], last["status"], last["artifact_ids"], last["next_action"]) == (
        '{"chart":2}',
        "complete",
        [],
        None,
    )
    with agent_otel.execution("run-2"):
        assert get_tool_result(first)["error"] == "tool_result_unavailable"


@pytest.mark.shows("001.streamed_artifacts")
def test_an_artifact_of_several_pages_names_its_next_page_first() -> None:
    @streamed_artifacts
    def logs() -> Generator[str, None, None]:
        yield "x" * 20_000
        yield "short"

    with agent_otel.execution("run-1"):
        first = logs()["artifact_ids"][0]
        page = get_tool_result(first)
        assert page["next_action"] == action(first, cursor=page["next_cursor"])
        when(lambda: get_tool_result(first)["status"] == "complete")
        rest = get_tool_result(**page["next_action"]["arguments"])
        assert (rest["start"], rest["end"], rest["next_action"]) == (16_384, 20_000, action(rest["artifact_ids"][0]))


@pytest.mark.shows("001.streamed_artifacts")
def test_an_asynchronous_tool_goes_on_in_the_event_loop() -> None:
    async def run() -> list[Any]:
        goes_on = asyncio.Event()

        @streamed_artifacts
        async def render() -> AsyncGenerator[str, None]:
            yield "one"
            await goes_on.wait()
            yield "two"

        with agent_otel.execution("run-1"):
            acknowledged = await render()
            (first,) = acknowledged["artifact_ids"]
            goes_on.set()
            await asyncio.gather(*artifacts._tasks)
            seen = get_tool_result(first)
            return [acknowledged["status"], seen["content"], get_tool_result(seen["artifact_ids"][0])["content"]]

    assert asyncio.run(run()) == ["streaming", "one", "two"]


def test_an_exception_before_the_first_artifact_is_the_call_s_and_a_later_one_is_in_the_answers() -> None:
    @streamed_artifacts
    def broken(after: int) -> Generator[str, None, None]:
        for number in range(after):
            yield f"artifact {number}"
        raise ValueError("the disk is full")

    @streamed_artifacts
    async def broken_later(after: int) -> AsyncGenerator[str, None]:
        for number in range(after):
            yield f"artifact {number}"
        raise ValueError("the disk is full")

    with agent_otel.execution("run-1"):
        with pytest.raises(ValueError, match="the disk is full"):
            broken(0)
        with pytest.raises(ValueError, match="the disk is full"):
            asyncio.run(broken_later(0))
        first = broken(1)["artifact_ids"][0]
        when(lambda: get_tool_result(first)["status"] == "failed")
        answer = get_tool_result(first)
    assert (answer["error"], answer["content"], answer["next_action"]) == (
        "ValueError: the disk is full",
        "artifact 0",
        None,
    )


def test_a_failed_tool_leaves_none_of_its_variables_in_memory() -> None:
    class Rows(list[str]):
        """A list that a weak reference may name."""

    made: list[weakref.ref[Rows]] = []

    @streamed_artifacts
    def broken() -> Generator[str, None, None]:
        rows = Rows(["a row"])
        made.append(weakref.ref(rows))
        yield rows[0]
        raise ValueError("the disk is full")

    with agent_otel.execution("run-1"):
        first = broken()["artifact_ids"][0]
        when(lambda: get_tool_result(first)["status"] == "failed")
        assert get_tool_result(first)["error"] == "ValueError: the disk is full"
    when(lambda: gc.collect() >= 0 and made[0]() is None)


def test_a_tool_that_yields_nothing_is_complete() -> None:
    @streamed_artifacts
    def nothing() -> Generator[str, None, None]:
        yield from ()

    with agent_otel.execution("run-1"):
        assert nothing() == {"tool": "nothing", "status": "complete", "artifact_ids": [], "next_action": None}


def test_a_tool_without_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MOST_ARTIFACTS", 3)
    closed = threading.Event()

    @streamed_artifacts
    def endless() -> Generator[int, None, None]:
        number = 0
        try:
            while True:
                yield (number := number + 1)
        finally:
            closed.set()

    with agent_otel.execution("run-1"):
        first = endless()["artifact_ids"][0]
        assert closed.wait(60)
        when(lambda: get_tool_result(first)["status"] == "complete")
        assert len(get_tool_result(first)["artifact_ids"]) == 2


def test_artifacts_of_no_execution_are_counted_as_lost() -> None:
    @streamed_artifacts
    def render() -> Generator[str, None, None]:
        yield "one"

    when(lambda: render()["status"] == "complete")
    assert render()["artifacts_lost"] == 1
    assert render()["artifact_ids"] == []


def test_without_a_claim_check_the_artifacts_are_the_result(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL_CLAIM_CHECK="")

    @streamed_artifacts
    def render(count: int) -> Generator[int, None, None]:
        yield from range(count)

    @streamed_artifacts
    async def render_later() -> AsyncGenerator[int, None]:
        yield 5

    assert render(3) == [0, 1, 2]
    assert asyncio.run(render_later()) == [5]


def test_what_a_framework_reads_of_the_tool_is_a_function_that_returns_an_object() -> None:
    @streamed_artifacts
    def render(topic: str) -> Generator[str, None, None]:
        """Render charts."""
        yield topic

    assert not inspect.isgeneratorfunction(render)
    assert list(inspect.signature(render).parameters) == ["topic"]
    assert typing.get_type_hints(render)["return"] == dict[str, Any]
    assert str(inspect.getdoc(render)).startswith("Render charts.\n\nAnswers at once with `artifact_ids`")
