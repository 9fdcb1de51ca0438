"""Summaries of histories with items of OpenAI's own kinds: calls of its tools, approvals, compactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel import settings
from agent_otel._internal import env
from agent_otel._internal.daemon_pool import run_now
from agent_otel.core.types import Exchange, Invocation, ModelReader, ModelRequest
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.automatic_summaries import Summaries
from agent_otel.remedies.history.summarizer import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Item = dict[str, Any]
ROWS = "the row of a report\n" * 75


@pytest.fixture(autouse=True)
def remedy(set_variables: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Summaries above 2,000 tokens, by a function of the program."""
    set_variables(
        AGENT_OTEL="1",
        AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS="2000",
        AGENT_OTEL_SUMMARIZE_TARGET_TOKENS="800",
        AGENT_OTEL_CLAIM_CHECK_BUDGET="30",
    )
    monkeypatch.setattr(env, "active", True)
    policy._in_memory.cache_clear()
    agent_otel.remedies.use_summarizer(lambda _: "Short.")
    yield
    agent_otel.remedies.use_summarizer(None)
    policy._in_memory.cache_clear()


async def unasked(_: Invocation) -> tuple[None, None]:
    """Send nothing: the program's function makes the summary."""
    return None, None


def sent(items: list[Item]) -> list[Item]:
    """Return the input of the request that leaves."""
    bodies: list[Item] = [{"model": "scripted", "input": items, "tools": [{"type": "function", "name": "report"}]}]
    exchange = Exchange(lambda _: ("responses", bodies[-1]), lambda _, body: bodies.append(body), apart=lambda i, *_: i)
    reader = ModelReader(lambda _: ModelRequest([], model="scripted"), exchange=exchange)
    with agent_otel.execution("run-1"):
        visit = Summaries(settings.current()).begin(reader, Invocation(None, (), {}))
        if visit is not None:
            run_now(visit.make(unasked, blocks=True))
    made: list[Item] = bodies[-1]["input"]
    return made


def function(number: int) -> list[Item]:
    return [
        {"type": "function_call", "call_id": f"call_{number}", "name": "report", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"call_{number}", "output": ROWS},
    ]


def of_kind(kind: str, number: int) -> list[Item]:
    """Return a call of a tool of OpenAI's own, and its output."""
    call_id = f"own_{number}"
    if kind == "mcp_approval_request":
        return [
            {"type": kind, "id": call_id, "name": "report", "server_label": "s", "arguments": ROWS},
            {"type": "mcp_approval_response", "approval_request_id": call_id, "approve": True},
        ]
    named = {"id" if kind == "local_shell_call" else "call_id": call_id}
    return [
        {"type": kind, "call_id": call_id, "id": f"item_{number}", "action": {"commands": [ROWS]}},
        {"type": f"{kind}_output", **named, "output": "Done."},
    ]


@pytest.mark.parametrize(
    "kind", ["shell_call", "local_shell_call", "apply_patch_call", "computer_call", "mcp_approval_request"]
)
def test_an_output_stays_with_its_call(kind: str) -> None:
    history = [{"role": "user", "content": "Go on."}, *function(0)]
    for number in range(9):
        history += of_kind(kind, number)
    made = sent(history)
    assert len(made) < len(history)
    left = [item for item in made if "own_" in str(item)]
    assert left == history[len(history) - len(left) :]
    assert len(left) % 2 == 0


def test_what_lies_between_a_call_and_its_output_stays_too() -> None:
    shell, output = of_kind("shell_call", 1)
    items = [*function(1), {"type": "reasoning", "id": "rs_1"}, shell, *function(2), output, *function(3)]
    assert list(units(turns.read(items), 0, 9)) == [(0, 2), (2, 7), (7, 9)]


def test_a_compaction_of_the_provider_stays() -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x" * 3000}
    history = [{"role": "user", "content": "Go on."}, compaction]
    for number in range(12):
        history += function(number)
    made = sent(history)
    assert len(made) < len(history)
    assert made[:2] == history[:2]
    assert made[2]["name"] == "context_summarize"


def test_a_summary_in_code_separates_no_call_from_its_output() -> None:
    shell, output = of_kind("shell_call", 1)
    history = [{"role": "user", "content": "Go on."}, *function(1), shell, *function(2), *function(3), output]
    made = agent_otel.remedies.summarize_history(
        history, summarize=lambda _: "Short.", above_tokens=100, target_tokens=50
    )
    assert [item.get("name") for item in made[:3]] == [None, "context_summarize", None]
    assert made[3:] == history[3:]
