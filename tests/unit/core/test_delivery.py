"""The model boundary: what a request to a model says of the tools' results, through OpenAI's client over real HTTP."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.forks import Forks

Json = dict[str, Any]
WORKFLOW = "gen_ai.workflow.name"

#: What each program begins with; a fork of its own runs each.
BEGIN = """
import contextvars

import openai
from opentelemetry import trace

client = openai.OpenAI(base_url="http://localhost", api_key="scripted", max_retries=0)
client.chat.completions, client.responses  # loads what they need

def user(text): return {"role": "user", "content": text}
def system(text="Be kind."): return {"role": "system", "content": text}
def says(text): return {"role": "assistant", "content": text}
def asks(*ids, name="search"):
    calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "tool_calls": calls}
def answers(call_id, text): return {"role": "tool", "tool_call_id": call_id, "content": text}
def send(*parts, **more): client.chat.completions.create(model="scripted", messages=list(parts), **more)
def tool(call_id, result, name="search", **arguments):
    with agent_otel.tool_call(name, arguments, call_id=call_id) as call:
        return call.result(result)
"""
PROGRAM = """
client.base_url = {base_url!r}

{body}
"""


@pytest.fixture
def told(forks: Forks) -> Callable[..., Json]:
    """Return a function from a program to what it emitted."""

    def run(body: str, **env: str) -> Json:
        with OpenAIServer(lambda _: "done") as server:
            program = PROGRAM.format(base_url=server.base_url, body=textwrap.dedent(body))
            report: Json = forks.measure("openai-agents", BEGIN, program, env)
        assert report["errors"] == {}
        assert report["messages"] == []
        return report

    return run


def counted(report: Json, name: str) -> dict[str, float]:
    """What a metric counted, by the values of its labels."""
    found: dict[str, float] = {}
    for metric in report["metrics"]:
        if metric["name"] == f"agent_otel.{name}" and metric["sum"]:
            key = " ".join(str(value) for label, value in sorted(metric["attributes"].items()) if label != WORKFLOW)
            found[key] = found.get(key, 0) + metric["sum"]
    return found


def cuts(report: Json) -> list[tuple[Any, ...]]:
    """The spans that tell of cuts: parent, produced, delivered, layer, reason."""
    return [
        (
            span["parent"],
            span["attributes"]["tool.result.bytes"],
            span["attributes"].get("tool.result.delivered_bytes"),
            span["attributes"]["tool.result.truncation.layer"],
            span["attributes"]["tool.result.truncation.reason"],
        )
        for span in report["spans"]
        if span["name"].startswith("tool_result_truncated")
    ]


def test_a_result_that_arrives_whole_is_delivered_once(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            text = tool("call_1", "é" * 50_001)
            send(system(), user("go"), asks("call_1"), answers("call_1", text))
            send(system(), user("go"), asks("call_1"), answers("call_1", text), says("so"), user("more"))
        """
    )
    assert counted(report, "tool.result.size") == {"search": 100_002}
    assert counted(report, "tool.result.delivered") == {"search": 100_002}
    assert counted(report, "tool.results.truncated") == {}
    assert cuts(report) == []


# 17 characters a line
LINES = "''.join(f'line {n:05} of it' + chr(10) for n in range(25_000))"


@pytest.mark.parametrize(
    ("sent", "size", "reason"),
    [
        ("text[:1370]", 1370, "shrunk"),
        ("text[:30_000] + chr(10) + '... [395000 characters truncated] ...'", 30_038, "marker"),
        ("[{'type': 'text', 'text': text[:500]}, {'type': 'text', 'text': text[-500:]}]", 1000, "shrunk"),
        ("f'Tool result too large, the result of this tool call call_1 was saved in the filesystem at this path: /r'",
         103, "offloaded"),
    ],
)  # fmt: skip
@pytest.mark.shows("001.framework_cuts")
def test_a_cut_on_the_way_to_the_model_hangs_below_the_tool_s_span(
    told: Callable[..., Json], sent: str, size: int, reason: str
) -> None:
    report = told(
        f"""
        with agent_otel.execution("run"):
            text = tool("call_1", {LINES})
            for turn in range(2):
                send(user("go"), asks("call_1"), answers("call_1", {sent}))
        """
    )
    assert cuts(report) == [("execute_tool search", 425_000, size, "model_request", reason)]
    assert counted(report, "tool.results.truncated") == {f"search model_request {reason}": 1}
    assert counted(report, "tool.result.delivered") == {"search": size}


def test_without_an_execution_the_owner_of_the_results_is_found(told: Callable[..., Json]) -> None:
    report = told(
        """
        from opentelemetry import trace
        tracer = trace.get_tracer("app")
        for number in range(3):
            with tracer.start_as_current_span("turn"):
                tool(f"call_{number}", "x" * 1000)
        send(user("go"), asks("call_1"), answers("call_1", "x" * 100))
        """
    )
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 1}


def test_without_any_execution_a_result_is_found_by_its_id(told: Callable[..., Json]) -> None:
    report = told(
        """
        tool("call_1", "x" * 9000)
        tool("call_2", "y" * 500)
        for turn in range(2):
            send(user("go"), asks("call_1", "call_2"), answers("call_1", "x" * 100), answers("call_2", "y" * 500))
        # Two runs at a time, whose models number their calls alike: no telling which of them is meant.
        for text in ("x" * 9000, "y" * 500):
            contextvars.Context().run(tool, "call_3", text)
        send(user("go"), asks("call_3"), answers("call_3", "y" * 500))
        send(user("go"), asks("call_3"), answers("call_3", "x" * 9000))
        """
    )
    assert counted(report, "tool.result.delivered") == {"search": 600}
    assert cuts(report) == [("execute_tool search", 9000, 100, "model_request", "shrunk")]


def test_a_model_may_number_the_calls_of_each_turn_anew(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            history = [user("go")]
            for size in (9000, 90, 4000, 40):
                history += [asks("call_0"), answers("call_0", tool("call_0", "x" * size))]
                send(*history)
        """
    )
    assert counted(report, "tool.result.delivered") == {"search": 13_130}
    assert counted(report, "tool.results.truncated") == {}
    assert counted(report, "tool.results.unmatched") == {}


def test_ids_as_long_as_a_signature_are_known_again(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            text = tool("call_1" + "s" * 900, "x" * 9000)
            for turn in range(2):
                send(user("go"), asks("call_1" + "s" * 900), answers("call_1" + "s" * 900, text))
        """
    )
    assert counted(report, "tool.result.delivered") == {"search": 9000}
    assert counted(report, "tool.results.unmatched") == {}


def test_what_is_cleared_later_is_no_cut_on_delivery(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            text = tool("call_1", "x" * 9000)
            send(user("go"), asks("call_1"), answers("call_1", text))
            for turn in range(2):
                send(user("go"), asks("call_1"), answers("call_1", "[cleared]"), says("ok"), user("more"))
        """
    )
    assert counted(report, "tool.results.truncated") == {}
    assert counted(report, "tool.results.cleared") == {"search": 1}
    assert counted(report, "tool.result.delivered") == {"search": 9000}
    assert cuts(report) == []


def test_a_result_as_long_as_a_known_cap_is_only_suspected(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            text = tool("call_1", "x" * 30_000)
            send(user("go"), asks("call_1"), answers("call_1", text))
        """
    )
    assert counted(report, "tool.results.suspected") == {"search": 1}
    assert counted(report, "tool.results.truncated") == {}
    assert cuts(report) == []


def test_a_result_of_a_call_that_the_request_does_not_hold_is_unmatched_once(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            send(user("go"))
            for turn in range(3):
                send(user("go"), asks("call_8"), answers("call_9", "x" * (900 - turn)), answers("", "y"))
        """
    )
    assert counted(report, "tool.results.unmatched") == {"": 2}
    assert counted(report, "tool.results.truncated") == {}
    assert counted(report, "tool.result.delivered") == {}


def test_a_result_without_an_id_is_found_by_how_it_begins(told: Callable[..., Json]) -> None:
    body = """
        with agent_otel.execution("run"):
            whole = tool(None, "".join(f"row {n} " for n in range(1000)), name="whole")
            cut = tool(None, "".join(f"cell {n} " for n in range(1000)), name="cut")
            gone = tool(None, "".join(f"gone {n} " for n in range(1000)), name="gone")
            send(user("go"), says("calling"), user("Observation: " + whole), user("Observation: " + cut[:2000]))
            by_id = tool(None, "z" * 3000, name="by_id")
            send(user("go"), asks("call_1", name="by_id"), answers("call_1", by_id[:300]))
        """
    report = told(body)
    # "row 0 " to "row 999 ": 10 * 6 + 90 * 7 + 900 * 8
    assert counted(report, "tool.result.delivered") == {"whole": 7890, "cut": 2000, "by_id": 300}
    assert counted(report, "tool.results.truncated") == {
        "cut model_request shrunk": 1,
        "by_id model_request shrunk": 1,
    }


def test_blanks_around_a_result_may_be_left_out(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            text = tool(None, chr(10) + "".join(f"row {n} " for n in range(1000)) + chr(13) + chr(10))
            send(user("go"), says("calling"), user("Observation: " + text.strip()))
        """
    )
    assert counted(report, "tool.result.delivered") == {"search": 7893}
    assert counted(report, "tool.results.truncated") == {}


def test_an_object_is_shorter_as_python_writes_it(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            page = tool("call_1", {"page": '<a href="/">' * 900})
            send(user("go"), asks("call_1"), answers("call_1", str(page)))
            page = tool("call_2", {"page": '<a href="/">' * 900})
            send(user("go"), asks("call_2"), answers("call_2", str(page)[:10_000]))
        """
    )
    # {"page":"…"} is 11 bytes around 900 * 14, {'page': '…'} 12 around 900 * 12.
    assert counted(report, "tool.result.size") == {"search": 2 * 12_611}
    assert counted(report, "tool.result.delivered") == {"search": 10_812 + 10_000}
    # The second one is written by Python and stops inside a string.
    assert cuts(report) == [("execute_tool search", 12_611, 10_000, "model_request", "cut_json")]


def test_results_that_only_say_their_tool_are_told_by_their_calls(told: Callable[..., Json]) -> None:
    report = told(
        """
        def turn(n, text):
            call = {"name": "search", "arguments": f'{{"n": {n}}}'}
            return {"role": "assistant", "function_call": call}, {"role": "function", "name": "search", "content": text}
        with agent_otel.execution("run"):
            quick, slow = tool(None, "q" * 300, n=1), tool(None, "s" * 9000, n=2)
            send(user("go"), *turn(2, slow), *turn(1, quick))
            third = tool(None, "t" * 40, n=3)
            send(user("go"), *turn(2, "[cleared]"), *turn(1, quick), *turn(3, third))
            tool(None, "u" * 5100, n=4)
            send(user("go"), *turn(1, quick), *turn(3, third), *turn(4, "u" * 100))
            send(user("go"), *turn(2, "[cleared]"), *turn(3, third), *turn(4, "u" * 100))
        """
    )
    assert counted(report, "tool.result.delivered") == {"search": 9440}
    assert counted(report, "tool.results.truncated") == {"search model_request shrunk": 1}
    assert counted(report, "tool.results.cleared") == {"search": 1}
    assert cuts(report) == [("execute_tool search", 5100, 100, "model_request", "shrunk")]


@pytest.mark.parametrize(
    "second",
    [
        "system(), user('one'), says('done'), user('two')",  # as it should be
        "system(), user('Summary of what was said: ' + 's' * 300), user('two')",  # compacted
        "system(), says('Earlier I was asked one.'), user('two')",  # compacted
        "system(), user('<summary> One was asked, and done. </summary>')",  # compacted, as CrewAI does
        "system(), user([{'type': 'text', 'text': 'Here is a summary of the conversation to date: one.'}])",
        "system('You are a sub-agent.'), user('two')",  # a transcript of its own
        "system(), user('one')",  # sent again
    ],
)
def test_what_is_no_loss(told: Callable[..., Json], second: str) -> None:
    report = told(
        f"""
        with agent_otel.execution("run", agent="helper"):
            send(system(), user("one"))
            send({second})
        with agent_otel.execution("another", agent="helper"):
            send(system(), user("new"))
        """
    )
    assert counted(report, "model.history.lost") == {}


def test_state_that_the_provider_keeps_is_no_loss(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run", agent="helper"):
            first = client.responses.create(model="scripted", input="one")
            client.responses.create(model="scripted", input="two", previous_response_id=first.id)
        """
    )
    assert counted(report, "model.history.lost") == {}


@pytest.mark.shows("003.deduplicated")
def test_the_same_result_twice_is_doubled_history(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run", agent="helper"):
            text = tool("call_1", "x" * 90)
            turn = [asks("call_1"), answers("call_1", text)]
            send(user("go"), *turn, *turn)
            send(user("go"), asks("call_1"), answers("call_1", "one"), asks("call_1"), answers("call_1", "two"))
        """
    )
    assert counted(report, "model.history.doubled") == {"helper": 1}


@pytest.mark.shows("003.stable_prefix")
def test_the_stable_beginning_of_a_request(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            send(system("s" * 100), user("u" * 100))
            send(system("s" * 100), user("u" * 100), says("a" * 100), user("v" * 100))
            send(system("s" * 100), user("u" * 100), says("b" * 100), user("v" * 100))
        """
    )
    (metric,) = (m for m in report["metrics"] if m["name"] == "agent_otel.model.request.stable_prefix")
    assert (metric["count"], metric["sum"]) == (2, 0.5 + 0.5)


@pytest.mark.shows("000.paginated_after_cut")
def test_what_was_done_after_a_cut_or_a_page(told: Callable[..., Json]) -> None:
    report = told(
        """
        CUT = "x" * 300 + "... [9000 characters truncated] ..."
        PAGE = {"rows": [1, 2], "next_cursor": "abc"}
        def go(name, first, *then):
            with agent_otel.execution(name):
                tool("call_1", first, name=name, q=1)
                for number, (tool_name, arguments) in enumerate(then):
                    tool(f"call_{number + 2}", "ok", name=tool_name, **arguments)
        go("paged", CUT, ("paged", {"q": 1, "offset": 300}))
        go("cursor", PAGE, ("cursor", {"q": 1, "cursor": "abc"}), ("cursor", {"q": 9}))
        go("elsewhere", PAGE, ("get_more", {"id": "page-7"}), ("get_more", {"cursor": "abc"}), ("elsewhere", {}))
        go("url", {"rows": [1], "nextLink": "https://x/?p=2"}, ("fetch", {"url": "https://x/?p=2"}))
        go("page id", {"rows": [1], "next": "abc123"}, ("page id", {"id": "abc123"}))
        go("short", {"rows": [1], "next": "abc"}, ("get_more", {"id": "abc"}))
        go("narrowed", CUT, ("other", {"q": 1}), ("narrowed", {"q": 1, "of": "less"}))
        go("unrelated", CUT, ("unrelated", {"q": "more"}))
        go("repeated", CUT, ("repeated", {"q": 1}))
        go("ignored", CUT, ("other", {"q": 1}))
        go("whole", "fine", ("whole", {"q": 2}))
        with agent_otel.execution("long"):
            tool("call_1", CUT, name="forgotten")
            for turn in range(5):
                send(user("go"), says(str(turn)))
        """
    )
    assert counted(report, "tool.followups") == {
        "paged paginated": 1,
        "cursor paginated": 1,
        "elsewhere paginated": 1,
        "url paginated": 1,
        "page id paginated": 1,
        "short ignored": 1,
        "narrowed narrowed": 1,
        "unrelated ignored": 1,
        "repeated repeated": 1,
        "ignored ignored": 1,
        "forgotten ignored": 1,
    }


@pytest.mark.shows("000.result_drift")
def test_a_change_of_a_tool_s_keys_is_told_without_values(told: Callable[..., Json]) -> None:
    report = told(
        """
        for number in range(40):
            row = {"id": number, "name": "secret"} if number < 20 else {"id": number, "title": "secret"}
            tool(f"call_{number}", {"rows": [row], "total": 1})
        """
    )
    assert counted(report, "tool.result.shape_changes") == {"search": 1}
    (event,) = (event for span in report["spans"] for event in span["events"])
    assert event["attributes"] == {"keys.added": ["rows[].title"], "keys.removed": ["rows[].name"]}


def test_tokens_are_estimated_beside_the_bytes(told: Callable[..., Json]) -> None:
    report = told('tool("call_1", "é" * 101)')
    (span,) = report["spans"]
    assert span["attributes"]["tool.result.bytes"] == 202
    assert span["attributes"]["tool.result.estimated_tokens"] == 26


def test_the_items_of_a_request_for_a_response(told: Callable[..., Json]) -> None:
    report = told(
        """
        text = [{"type": "output_text", "text": "a" * 40, "annotations": []}]
        items = [
            {"type": "message", "role": "developer", "content": "d" * 10},
            {"role": "user", "content": [{"type": "input_text", "text": "u" * 20}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "r" * 30},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": text},
            {"type": "custom_tool_call", "call_id": "call_1", "name": "shell", "input": "i" * 50},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "o" * 600},
            {"type": "mcp_call", "id": "mcp_1", "name": "m", "arguments": "{}", "output": "p" * 80},
            {"type": "hologram", "beam": 1},
        ]
        with agent_otel.execution("run", agent="clerk"):
            tool("call_1", "o" * 6000, name="shell")
            client.responses.create(model="scripted", input=items)
            # What is only referred to is at the provider's, and not lost.
            client.responses.create(model="scripted", input=[{"type": "item_reference", "id": "msg_1"}, user("more")])
            client.responses.create(model="scripted", input=[*items[:2], items[3], items[3]])
        """
    )
    sizes = {
        metric["attributes"]["part"]: metric["sum"]
        for metric in report["metrics"]
        if metric["name"] == "agent_otel.model.request.size"
    }
    assert sizes == {
        "system": 10 + 10,
        "user": 20 + 4 + 20,
        "assistant": 30 + 40 + 80 + len('{"type":"hologram","beam":1}'),
        "tool_arguments": 50 + 2,
        "tool_results": 600 + 80,
        "tools": 0,
    }
    assert cuts(report) == [("execute_tool shell", 6000, 600, "model_request", "shrunk")]
    assert counted(report, "model.history.lost") == {}
    assert counted(report, "model.history.doubled") == {"clerk": 1}


@pytest.mark.parametrize(
    "parts",
    [
        "user([{'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,' + 'A' * 9000}}])",
        "{'role': 'user', 'content': [{'type': 'hologram', 'beam': [1, 2]}]}",
        "{'role': 'oracle', 'content': 'x'}, {'content': 'no role'}, {'role': 'tool', 'content': 'no id'}",
        "answers('call_7', 'without a call'), asks('call_8')",
        "{'role': 'assistant', 'tool_calls': [{'id': 5, 'type': 'custom', 'custom': {'name': 'x', 'input': 'y'}}]}",
        "{'role': 'tool', 'tool_call_id': 5, 'content': 7}, {'role': 'assistant', 'content': None}",
    ],
)
def test_strange_requests_are_no_failure_and_no_cut(told: Callable[..., Json], parts: str) -> None:
    report = told(
        f"""
        with agent_otel.execution("run"):
            for turn in range(2):
                send({parts})
        """
    )
    assert counted(report, "tool.results.truncated") == {}
    assert (
        sum(metric["count"] for metric in report["metrics"] if metric["name"] == "agent_otel.model.request.size") == 12
    )


TURNS = """
tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
def turn(*parts): send(*parts, tools=tools)
def branch(*parts): contextvars.copy_context().run(turn, *parts)
rows = "There are three lamps in the store. " * 8
context = user("These are the files of the repository. " * 20)
"""


@pytest.mark.parametrize(
    "second",
    [
        "system(), context, user('one')",  # the same request
        "system('Be kind. Its name is Bob.'), context, user('one')",  # slots of the system prompt are filled
        "system()",
        "context",
        "system(), context, user('another, longer question')",
        "user('another, longer question')",
    ],
)
@pytest.mark.shows("003.lost_history")
def test_a_builder_that_never_appends_the_conversation_has_lost_it(told: Callable[..., Json], second: str) -> None:
    report = told(
        TURNS
        + textwrap.dedent(f"""
        with agent_otel.execution("run", agent="helper"):
            turn(system(), context, user('one'))
            for number in range(3):
                tool(f'call_{{number}}', rows, number=number)
                with trace.get_tracer("program").start_as_current_span("chat"):
                    turn({second})
        """)
    )
    assert counted(report, "model.history.lost") == {"helper": 3}
    chats = [span["attributes"] for span in report["spans"] if span["name"] == "chat"]
    assert [chat["agent_otel.history.lost"] for chat in chats] == [True] * 3
    names = [["call_0"], ["call_0", "call_1"], ["call_0", "call_1", "call_2"]]
    assert [list(chat["agent_otel.history.undelivered_calls"]) for chat in chats] == names


@pytest.mark.parametrize(
    "second",
    [
        "turn(system(), context, user('one'), asks('call_1'), answers('call_1', rows))",  # as it should be
        "turn(system(), asks('call_1'), answers('call_1', rows))",  # a window dropped the task
        "turn(system(), context, user('one'), asks('call_1'), answers('call_1', '[cleared]'))",
        "turn(system(), asks('call_1'), answers('call_1', ''))",  # emptied once
        "send(system('Summarize the conversation.'), user('one')); turn(system(), asks('call_1'))",
        "turn(system(), context, user('one'), user('Observation: ' + rows))",  # results as texts
        "turn(system(), user('These are the files of the repository. ' * 20 + ' so far: ' + rows))",
        "send(system('Give this chat a title.'), user('one'))",
    ],
)
def test_what_is_no_loss_although_a_result_is_on_its_way(told: Callable[..., Json], second: str) -> None:
    report = told(
        TURNS
        + textwrap.dedent(f"""
        with agent_otel.execution("run", agent="helper"):
            turn(system(), context, user('one'))
            tool('call_1', rows)
            {second}
        with agent_otel.execution("another", agent="helper"):
            turn(system(), context, user('new'))
        """)
    )
    assert counted(report, "model.history.lost") == {}


def test_branches_and_sub_agents_have_lost_nothing(told: Callable[..., Json]) -> None:
    """Each begins anew while a result of another is on its way."""
    report = told(
        TURNS
        + textwrap.dedent("""
        with agent_otel.execution("run", agent="helper"):
            branch(system(), user('first part'))
            branch(system('Second.'), user('second part'))
            tool('call_1', rows)
            branch(system('Third.'), user('third part'))
            branch(system(), user('first part'), asks('call_1'), answers('call_1', rows))
            tool('call_2', rows)
            with agent_otel.tool_call("delegate", {}, call_id="call_3") as call:
                turn(system('Fourth.'), user('fourth part'))
                call.result("done")
        """)
    )
    assert counted(report, "model.history.lost") == {}


def test_a_tool_that_moves_or_changes_is_named(told: Callable[..., Json]) -> None:
    """A list in another order, or a definition of the same length, is another prefix."""
    report = told(
        """
        def define(*names, kind="object"):
            return [
                {"type": "function", "function": {"name": name, "parameters": {"type": kind, "required": [name]}}}
                for name in names
            ]
        def turn(count, tools):
            said = [user("go")]
            for n in range(count):
                said += [asks(f"c{n}"), answers(f"c{n}", "three lamps")]
            with trace.get_tracer("program").start_as_current_span("chat"):
                send(system(), *said, tools=tools)
        with agent_otel.execution("run"):
            turn(1, define("a", "b", "c"))
            turn(2, define("a", "b", "c"))
            turn(3, define("a", "c", "b"))
            turn(4, define("a", "c", "b", kind="object"))
            turn(5, define("a", "c", "b", kind="tcejbo"))
        """
    )
    chats = [span["attributes"] for span in report["spans"] if span["name"] == "chat"]
    changed = [
        (chat.get("agent_otel.context.changed_part"), chat.get("agent_otel.context.changed_tool")) for chat in chats
    ]
    assert changed == [(None, None), (None, None), ("tools", "c"), (None, None), ("tools", "a")]
    assert counted(report, "model.prefix.changes") == {"order tools": 1, "content tools": 1}
