"""Answers that are built on a part of a result, and all that only looks so; each response is final here."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.core.test_delivery import counted, told

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]

__all__ = ["told"]

#: A tool's result that was cut, and what most of the programs begin with.
BEGIN = """
CUT = "x" * 300 + "... [9000 characters truncated] ..."
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}]
def ask(*parts, **more): send(system(), *parts, tools=TOOLS, **more)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    {
        "cut by the tool": (
            """
            text = tool("call_1", CUT)
            ask(user("go"), asks("call_1"), answers("call_1", text))
            ask(user("go"), asks("call_1"), answers("call_1", text), says("so"), user("thanks"))
            """,
            {"search marker": 1},
        ),
        "cut for the model": (
            """
            text = tool("call_1", "x" * 9000)
            ask(user("go"), asks("call_1"), answers("call_1", text[:1000]))
            """,
            {"search shrunk": 1},
        ),
        "without tools, at a limit": (
            """
            text = tool("call_1", CUT)
            send(system(), user("go"), asks("call_1"), answers("call_1", text), system("Answer now, without tools."))
            """,
            {"search marker": 1},
        ),
        "never delivered": (
            """
            ask(user("go"))
            tool("call_1", "x" * 9000)
            ask(user("go"))
            """,
            {"search undelivered": 1},
        ),
        "the follow-up has failed": (
            """
            text = tool("call_1", CUT)
            send(system(), user("go"), asks("call_1"), answers("call_1", text), says("wait"), tools=TOOLS)
            try:
                with agent_otel.tool_call("search", {"page": 2}, call_id="call_2"):
                    raise ValueError
            except ValueError:
                pass
            first = (user("go"), asks("call_1"), answers("call_1", text))
            ask(*first, asks("call_2"), answers("call_2", "Error"))
            """,
            {"search marker": 1},
        ),
    }.values(),
)
@pytest.mark.shows("001.wrong_answer")
def test_an_answer_from_a_part_is_counted_once(told: Callable[..., Json], body: str, expected: Json) -> None:
    report = told(BEGIN + _within_an_execution(body))
    assert counted(report, "answers.incomplete") == expected


@pytest.mark.parametrize(
    "body",
    {
        "only suspected": """
            text = tool("call_1", "x" * 10_000)
            ask(user("go"), asks("call_1"), answers("call_1", text))
            """,
        "a request for a title": """
            text = tool("call_1", CUT)
            send(system("Find a title."), user("go"), asks("call_1"), answers("call_1", text), user("A title, please."))
            """,
        "a request for a summary": """
            text = tool("call_1", CUT)
            send(system("Summarize."), user("go"), asks("call_1"), answers("call_1", text))
            ask(user("go"), asks("call_1"), answers("call_1", text), user("Summarize what you have done so far."))
            """,
        "a branch and a sub-agent without the result": """
            tool("call_1", CUT)
            ask(user("another task"))
            text = tool("call_2", "whole")
            ask(user("another task"), asks("call_2"), answers("call_2", text))
            """,
        "an agent inside a tool, with the history of the one outside": """
            text = tool("call_1", CUT)
            first = (user("go"), asks("call_1"), answers("call_1", text))
            send(system(), *first, says("I delegate that."), tools=TOOLS)
            with agent_otel.tool_call("delegate", {}, call_id="call_2"):
                ask(*first)
            """,
        "the provider keeps the history": """
            text = tool("call_1", CUT)
            output = [{"type": "function_call_output", "call_id": "call_1", "output": text}]
            client.responses.create(model="scripted", input=output, previous_response_id="resp_1")
            """,
        "an id of an earlier turn": """
            text = tool("call_1", "whole")
            ask(user("go"), asks("call_1"), answers("call_1", text))
            text = tool("call_1", CUT)
            ask(user("go"), asks("call_1"), answers("call_1", text))
            """,
        "an id twice in a request": """
            text = tool("call_1", CUT)
            ask(user("go"), asks("call_1"), answers("call_1", "whole"), asks("call_1"), answers("call_1", text))
            """,
        "all pages": """
            first = tool("call_1", '{"items": [1, 2], "total": 3}', offset=0)
            ask(user("go"), asks("call_1"), answers("call_1", first), says("wait"))
            last = tool("call_2", '{"items": [3], "total": 3}', offset=2)
            ask(user("go"), asks("call_1"), answers("call_1", first), asks("call_2"), answers("call_2", last))
            """,
    }.values(),
)
def test_what_is_unknown_or_another_request_is_not_counted(told: Callable[..., Json], body: str) -> None:
    assert counted(told(BEGIN + _within_an_execution(body)), "answers.incomplete") == {}


def test_a_program_without_an_execution_is_seen_by_its_request(told: Callable[..., Json]) -> None:
    body = """
        text = tool("call_1", CUT)
        ask(user("go"), asks("call_1"), answers("call_1", text))
        """
    report = told(BEGIN + textwrap.dedent(body))
    assert counted(report, "answers.incomplete") == {"search marker": 1}


def test_without_a_span_around_the_request_a_child_of_the_tool_s_span_tells(told: Callable[..., Json]) -> None:
    body = """
        text = tool("call_1", "x" * 9000)
        ask(user("go"), asks("call_1"), answers("call_1", text[:1000]))
        """
    report = told(BEGIN + textwrap.dedent(body))
    (child,) = [span for span in report["spans"] if span["name"].startswith("answer_incomplete")]
    assert (child["name"], child["parent"]) == ("answer_incomplete search", "execute_tool search")
    assert child["attributes"] == {
        "tool.name": "search",
        "gen_ai.tool.call.id": "call_1",
        "tool.result.truncation.reason": "shrunk",
        "tool.result.delivered_bytes": 1000,
        "tool.result.bytes": 9000,
        "tool.followup": "ignored",
    }


def _within_an_execution(body: str) -> str:
    return f"with agent_otel.execution('run'):\n{textwrap.indent(textwrap.dedent(body), '    ')}"


def test_a_loop_without_a_decorator_answers_from_a_part_or_from_all_pages(told: Callable[..., Json]) -> None:
    body = """
        page = '{"items": [1, 2], "next_cursor": "b"}'
        with agent_otel.execution("cut"):
            ask(user("go"))
            ask(user("go"), asks("call_1"), answers("call_1", CUT))
        with agent_otel.execution("all pages"):
            ask(user("list"))
            first = (user("list"), asks("call_2"), answers("call_2", page))
            ask(*first, says("wait"))
            ask(*first, asks("call_3"), answers("call_3", '{"items": [3]}'))
        with agent_otel.execution("a page"):
            ask(user("list one"))
            ask(user("list one"), asks("call_4"), answers("call_4", page))
        """
    report = told(BEGIN + textwrap.dedent(body))
    assert counted(report, "answers.incomplete") == {"search marker": 1, "search page": 1}


def test_the_claim_check_of_a_healthy_agent_makes_no_answer_incomplete(told: Callable[..., Json]) -> None:
    body = """
        import re
        from agent_otel.remedies import get_tool_result
        for name in ("ignored", "read"):
            with agent_otel.execution(name):
                view = tool(f"{name}_1", "line of a text " * 20_000)
                first = (user(name), asks(f"{name}_1"), answers(f"{name}_1", view))
                send(system(), *first, says("wait"), tools=TOOLS)
                if name == "read":
                    reference = re.search(r"claim:v2:[^\\s\\"']+", view)[0]
                    with agent_otel.tool_call("get_tool_result", {"ref": reference}, call_id="read_2") as call:
                        page = json.dumps(call.result(get_tool_result(reference)))
                    assert '"next_cursor"' in page, page
                    first = (*first, asks("read_2", name="get_tool_result"), answers("read_2", page))
                ask(*first)
        """
    stored = {"AGENT_OTEL_CLAIM_CHECK": "memory:", "AGENT_OTEL_CLAIM_CHECK_KEY": "the secret of this test"}
    stored["AGENT_OTEL_LOG_LARGE_RESULTS"] = "off"
    report = told(BEGIN + textwrap.dedent(body), **stored)
    assert counted(report, "answers.incomplete") == {}
    assert counted(report, "tool.followups") == {"search ignored": 1, "search paginated": 1}
    named = {
        each["name"] for each in report["metrics"] if each["attributes"].get("gen_ai.tool.name") == "get_tool_result"
    }
    assert named == set()
