"""No alarm where nothing was cut, and an alarm for each cut: ten loops of 200 calls, then the same with planted cuts.

An alarm is ``tool.result.truncated``, a span ``tool_result_truncated``, or a count of truncated results:
that is said of a result which is exactly as long as a known cap, and no rule pages for it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from agent_otel.measure.truncation.paging import is_page
from agent_otel.testing.servers.openai import ToolCall
from tests.system.false_alarms import content, cuts, loops
from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Decider, Reply
    from tests.contract.cases import Json
    from tests.forks import Forks

TOOLS = ("search", "read", "run")
#: Of the lengths in ``content.EXACT`` all but 25,000 and 32,768.
SUSPECTED = [11, 31, 51, 91, 131, 151, 171]

#: What the spans that tell of a cut by the framework, or for the model, say: bytes produced, bytes left.
LEFT = {
    # "result 78" and a line end are 10 bytes, then 2,000 lines of 31; 5,000 are left.
    78: (62_010, 5_000),
    # 4,000 lines of 9 characters and 25 bytes. Of 5,000 characters 11 are in front, then 554 lines and 3 of 3 bytes.
    183: (100_011, 11 + 554 * 25 + 3 * 3),
    # 10,001 characters: 10 in front, then 1,110 lines and one of 3 bytes.
    89: (100_010, 10 + 1_110 * 25 + 3),
    192: (62_011, 6_000),
}
#: The same where a result is known by its ends alone: 89 ends with its last whole line, without the line end.
LEFT_BETWEEN_ENDS = {**LEFT, 89: (100_010, 10 + 1_110 * 25 - 1)}


def asks_for_all(name: str) -> Decider:
    """Return a model that asks for 200 calls, some in each turn, and then says that it is done; and once more."""
    last: Reply = [ToolCall("call_last", "final_answer", {"answer": "done"})] if name == "smolagents" else "done"
    replies: list[Reply] = []
    for run in ("honest", "mixed"):
        calls = [ToolCall(f"call_{run}_{number}", tool(number), {"number": number}) for number in range(content.CALLS)]
        replies += [calls[at : at + loops.CALLS_A_TURN] for at in range(0, content.CALLS, loops.CALLS_A_TURN)]
        replies.append(last)
    left = iter(replies)
    return lambda _: next(left)


def tool(number: int) -> str:
    """Return the tool that has the result with this number."""
    return "query" if number % 10 == 7 else TOOLS[number % 3]


def run_child(forks: Forks, name: str) -> Json:
    """Run a loop twice in its environment."""
    loop = loops.LOOPS[name]
    child = "tests.system.false_alarms.child"
    return report_of(child, name, forks, loop.environment, loop.server, asks_for_all(name))


@pytest.mark.parametrize("name", loops.LOOPS)
def test_what_was_cut_is_told_and_nothing_else(forks: Forks, name: str) -> None:
    report = run_child(forks, name)
    honest, mixed = report["honest"], report["mixed"]
    assert (report["messages"], report["errors"]) == ([], {})
    assert (honest["said"], mixed["said"]) == ("done", "done")
    assert (honest["calls"], mixed["calls"]) == (content.CALLS, content.CALLS)

    assert (honest["cut"], honest["children"]) == ([], [])
    assert (honest["suspected"], honest["whole"]) == (SUSPECTED, content.CALLS - len(SUSPECTED))
    assert alarms(honest) == counted_as_suspected(SUSPECTED)
    assert answers(honest) <= pages(name)  # tests/system/answers has the stacks whose answers are read
    assert honest["counted"]["tool.result.delivered"] >= 0.95 * honest["counted"]["tool.result.size"]

    planted = {number: kind for number, kind in cuts.PLANTED.items() if kind in loops.LOOPS[name].kinds}
    told = {number: cuts.KINDS[kind] for number, kind in planted.items()}
    left = LEFT_BETWEEN_ENDS if name == "smolagents" else LEFT
    on_the_way = sorted([n, *kind, *left[n]] for n, kind in told.items() if n in left)
    assert mixed["children"] == on_the_way
    # What the model was sent is found when the tool's span has ended; so is a framework's cut on a span of its own.
    in_time = [[n, *kind] for n, kind in told.items() if kind.layer != "model_request"]
    in_time = [cut for cut in in_time if cut[1] == "tool" or loops.LOOPS[name].tells_in_time]
    assert mixed["cut"] == sorted(in_time)
    assert mixed["suspected"] == SUSPECTED
    expected = counted_as_suspected(SUSPECTED)
    for number, kind in told.items():
        is_cleared = kind.reason == "cleared"
        cut = f"truncated {tool(number)} {kind.layer} {kind.reason}"
        expected[f"tool.results.{f'cleared {tool(number)}' if is_cleared else cut}"] += 1
    assert alarms(mixed) == expected


def test_texts_that_were_written_for_another_purpose(forks: Forks) -> None:
    """Results of 2,000 calls, none of which this package's markers and rules were made with, through all signals."""
    report = report_of(
        "tests.system.false_alarms.real_texts",
        "",
        forks,
        "openai-agents",
        "openai:OpenAIServer",
        lambda _: "done",
    )
    assert report == {"calls": 2_000, "counted": {}, "cut": [], "messages": []}


def alarms(run: Json) -> Counter[str]:
    """Return what was counted of cuts, lost and doubled histories, changed schemas, and results without a call."""
    results = (f"tool.results.{name}" for name in ("truncated", "suspected", "cleared", "unmatched"))
    names = (*results, "model.history", "tool.schema_changes", "tool.invalid_arguments")
    return Counter({name: count for name, count in run["counted"].items() if name.startswith(names)})


def answers(run: Json) -> Counter[str]:
    """Return what was counted of answers that are built on a part of a result."""
    return Counter({key: count for key, count in run["counted"].items() if key.startswith("answers.incomplete")})


def pages(name: str) -> Counter[str]:
    """Return what is counted of results that name a further page: no call asks for it, each has another number.

    An answer with the tool ``final_answer`` is none of the model's own.
    """
    if name == "smolagents":
        return Counter()
    found = [number for number in range(content.CALLS) if is_page(content.produce(name, number))]
    return Counter(f"answers.incomplete {tool(number)} page" for number in found)


def counted_as_suspected(numbers: list[int]) -> Counter[str]:
    """Return what is counted of results whose length equals a known limit."""
    return Counter(f"tool.results.suspected {tool(number)}" for number in numbers)


def test_all_kinds_are_planted_in_three_loops_or_more() -> None:
    places = Counter(kind for loop in loops.LOOPS.values() for kind in loop.kinds)
    assert set(places) == set(cuts.KINDS)
    assert min(places.values()) >= 3
    assert Counter(cuts.PLANTED.values()) == dict.fromkeys(cuts.KINDS, 2)


def test_what_is_honest_quotes_what_programs_leave_behind() -> None:
    """The test means little if the results are harmless: one in three has a word that a marker has, too."""
    results = [content.produce(name, number) for name in loops.LOOPS for number in range(content.CALLS)]
    texts = [result if isinstance(result, str) else json.dumps(result) for result in results]
    assert len(set(texts)) >= 0.95 * len(texts)
    assert sum("runcated" in text or "omitted" in text or "clipped" in text for text in texts) >= len(texts) / 3
    lengths = sorted(map(len, texts))
    assert lengths[0] == 0
    assert lengths[-1] >= 300_000
    assert {len(content.produce("a", number)) for number in content.EXACT} == set(content.EXACT.values())
