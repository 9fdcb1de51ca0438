"""The context window: its use, the requests that still fit, and the requests that a provider refuses."""

from __future__ import annotations

from array import array
from functools import partial

import pytest

from agent_otel.core.cost.model_tokens import by_part
from agent_otel.core.cost.models import ModelFacts, Models, Rates
from agent_otel.core.cost.usage import Usage
from agent_otel.core.thread.delivery import add_shares
from agent_otel.core.thread.request_parts import NO_SHARES, Shares, Sized, portions
from agent_otel.core.types import RequestPart
from agent_otel.settings.kinds import WINDOWS
from tests.rows import each_row


def test_the_parts_sum_up_to_the_total() -> None:
    assert portions(1001, [333, 333, 334, 0]) == [333, 333, 335, 0]
    assert sum(portions(7, [333, 333, 334, 0])) == 7
    assert portions(7, []) == []
    assert portions(7, [0]) == [0]


def test_the_largest_part_and_tool_are_those_with_most_bytes() -> None:
    shares = NO_SHARES
    assert (None, None) == (shares.largest_part, shares.largest_tool)
    sizes = [
        *(("user", None, 90), ("tool_arguments", "b", 100), ("tool_results", None, 70), ("tool_results", "c", 0)),
        *(("tool_results", "b", 10), ("tool_results", "a", 35), ("tool_results", "b", 40), ("tool_results", "a", 25)),
    ]
    sized = [Sized(RequestPart(part, "", f"call-{at}", name), size, 0) for at, (part, name, size) in enumerate(sizes)]
    found = []
    for end in range(1, len(sized) + 1):  # as the requests of a conversation have them
        shares, _ = add_shares(shares, sized[end - 1 : end], {}, ())
        found.append((shares.largest_part, shares.largest_tool))
    assert [
        *(("user", None), ("tool_arguments", None), ("tool_arguments", None), ("tool_arguments", None)),
        *(("tool_arguments", "b"), ("tool_results", "a"), ("tool_results", "b"), ("tool_results", "a")),
    ] == found
    assert shares == add_shares(NO_SHARES, sized, {}, ())[0]


def test_a_tier_applies_above_its_number_of_tokens() -> None:
    facts = ModelFacts(200_000, ((0, 3e-6, 3e-7, 3.75e-6, 1.5e-5), (200_000, 6e-6, 6e-7, 7.5e-6, 2.25e-5)))
    cost = facts.cost(Usage(200_000, cached=100_000, output=1000, written=50_000))
    assert cost == pytest.approx((0.15 + 0.03 + 0.1875, 0.015))
    above = facts.cost(Usage(200_001, output=1000))
    assert above == pytest.approx((1.200006, 0.0225))
    assert ModelFacts().cost(Usage(1000)) is None


def test_audio_has_a_price_of_its_own() -> None:
    facts = ModelFacts(None, ((0, 3e-7, 3e-8, 3e-7, 2.5e-6, 1e-6, 1e-5),))
    assert facts.cost(Usage(1000, output=100, media=500, audio=400)) == pytest.approx((0.00058, 0.00025))
    assert facts.cost(Usage(1000, output=100, spoken=40)) == pytest.approx((0.0003, 0.00055))
    assert facts.cost(Usage(100, cached=80, media=100, audio=100)) == pytest.approx((2.24e-5, 0))
    cached = ModelFacts(None, ((0, 3e-7, 3e-8, 3e-7, 2.5e-6, 1e-6, 1e-5, 1e-7),))
    both = Usage(1000, cached=300, media=500, audio=500, cached_audio=100)
    assert cached.cost(both) == pytest.approx((0.000506, 0))
    assert cached.cost(Usage(100, cached=100, media=100, audio=100, cached_audio=100)) == pytest.approx((1e-5, 0))
    assert facts.cost(both) == pytest.approx((0.000499, 0))
    plain = ModelFacts(None, ((0, 3e-7, 3e-8, 3e-7, 2.5e-6),))
    assert plain.cost(Usage(1000, media=400, audio=400)) == pytest.approx((0.0003, 0))


def _keep(found: list[tuple[object, ModelFacts]], at: object, facts: ModelFacts) -> None:
    found.append((at, facts))


def test_a_model_without_a_price_has_that_of_the_model_that_answers() -> None:
    tiers = ((0, 3e-7, 3e-8, 3e-7, 2.5e-6),)
    dearer = ((0, 3e-6, 3e-7, 3e-6, 2.5e-5),)
    models, found = Models(), list[tuple[object, ModelFacts]]()
    models._known |= {
        "chat-7": ModelFacts(64_000),
        "chat-8": ModelFacts(),
        "openai/ft:real:a::1": ModelFacts(128_000),
        "real": ModelFacts(128_000, tiers),
        "real-2": ModelFacts(None, dearer),
    }
    for model, answered_by in (("chat-7", "real"), ("chat-8", "real"), ("real-2", "real"), (None, "real")):
        models.when_answered(model, answered_by, partial(_keep, found, model))
    models.when_answered("chat-8", "chat-7", lambda facts: found.append((0, facts)))
    models.when_answered("openai/ft:real:a::1", "real", lambda facts: found.append((2, facts)))
    models.when_answered("chat-8", None, lambda facts: found.append((1, facts)))
    assert found == [
        ("chat-7", (64_000, tiers)),
        ("chat-8", (128_000, tiers)),
        ("real-2", (None, dearer)),
        (None, (128_000, tiers)),
        (0, (64_000, ())),
        (2, (128_000, ())),
        (1, (None, ())),
    ]


def test_windows_are_tokens_by_model() -> None:
    assert WINDOWS.parse("gpt-9=128k, team/model:7=200000,llama3.2:1b=8Ki") == {
        ("gpt-9", 128_000),
        ("team/model:7", 200_000),
        ("llama3.2:1b", 8192),
    }


def test_a_bad_window_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    assert WINDOWS.parse("a=1000,b,=7,c=many,d=0") == {("a", 1000)}
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["AGENT_OTEL_CONTEXT_WINDOWS"] * 4


_SYSTEM, _TOOLS, _USER, _ROWS = ("system", ""), ("tools", ""), ("user", ""), ("tool_results", "rows")
_ORDERED = Shares(
    5,
    {_SYSTEM: 100, _USER: 150, _TOOLS: 200, _ROWS: 550},
    array("Q", [100, 550, 50]),
    array("H", [1, 3, 1]),
)


@each_row(
    ("prefix", "behind"),
    [
        (1000, {}),
        (970, {_USER: 30}),
        (600, {_USER: 50, _ROWS: 350}),
        (250, {_USER: 150, _ROWS: 550, _SYSTEM: 50}),
        (50, {_USER: 150, _ROWS: 550, _SYSTEM: 100, _TOOLS: 150}),
    ],
)
def test_tools_and_the_system_prompt_are_the_beginning(prefix: int, behind: dict[tuple[str, str], int]) -> None:
    amounts = [0.0] * 4
    _ORDERED.add_behind(amounts, 1000 - prefix, 2)
    assert dict(zip(_ORDERED.bytes, amounts, strict=True)) == {key: 2 * behind.get(key, 0) for key in _ORDERED.bytes}


def test_cached_tokens_are_those_of_the_beginning() -> None:
    usage = Usage(2000, cached=800, written=1000)
    tokens = portions(2000, list(_ORDERED.bytes.values()))
    rates = Rates(input=1.0, cached=0.1, written=1.25, output=4.0)
    found = by_part(_ORDERED, tokens, usage, rates, total=80 + 1250 + 200)
    by_key = dict(zip(_ORDERED.bytes, found, strict=True))
    assert by_key == pytest.approx({_TOOLS: 40, _SYSTEM: 20, _USER: 20 + 100, _ROWS: 1250 + 100})


def test_what_is_no_text_pays_the_rest() -> None:
    usage = Usage(2500, cached=800, media=500)
    tokens = [*portions(2000, list(_ORDERED.bytes.values())), 500]
    rates = Rates(input=1.0, cached=0.1, written=1.25, output=4.0)
    found = by_part(_ORDERED, tokens, usage, rates, total=80 + 1700)
    assert found[-1] == pytest.approx(500)
    assert sum(found) == pytest.approx(1780)
