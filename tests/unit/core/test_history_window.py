"""What a window drops from the history, through OpenAI's client over real HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.core.test_delivery import counted, told

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

__all__ = ["told"]

#: A loop over a window: the task has 20 bytes, each call's arguments 2, each result 100 + its number.
LOOP = """
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {}}}]
def loop(view, turns=6, name="helper", tools=TOOLS):
    with agent_otel.execution(name, agent=name):
        history = [user("t" * 20)]
        for number in range(turns + 1):
            send(system(), *view(history), tools=tools)
            text = tool(f"call_{number}", "r" * (100 + number), page=number)
            history += [asks(f"call_{number}"), answers(f"call_{number}", text)]
"""

#: Bytes, turns and tasks that are dropped, by what is done to a history of up to 13 messages before each request.
VIEWS = {
    # The last 4 are left: the task and 4 turns are gone.
    "history[-4:]": (20 + 4 * 2 + 100 + 101 + 102 + 103, 4, 1),
    # 2 are left, which the request before did not hold.
    "history[-2:]": (20 + 5 * 2 + 100 + 101 + 102 + 103 + 104, 5, 1),
    # 3 are left: a result without its call in front; of the 5th turn its call is gone.
    "history[-3:]": (20 + 5 * 2 + 100 + 101 + 102 + 103, 5, 1),
    # The task is kept.
    "[history[0], *history[1:][-4:]]": (4 * 2 + 100 + 101 + 102 + 103, 4, 0),
    "history": (0, 0, 0),
    "history[-20:]": (0, 0, 0),
    # A summary in the place of the messages, and one that says so little that it might be anything.
    "[user(f'Summary of {len(history)} messages.'), *history[-4:]]": (0, 0, 0),
    "[says(f'They looked at {len(history)} pages.'), *history[-4:]]": (0, 0, 0),
    # Results are cleared or reordered; each second request asks for a title.
    "[{**m, 'content': '-'} if m['role'] == 'tool' and m not in history[-2:] else m for m in history]": (0, 0, 0),
    "[history[0], *reversed(history[1:])]": (0, 0, 0),
    "history[:1] if len(history) % 4 == 1 else history": (0, 0, 0),
}

#: The same by the messages of a chat: ``u`` are the user's, ``a`` the model's; each has 10 bytes.
CHATS = {
    # A window of 3: a question and an answer go in each turn, the first question only once.
    "u1, u1 a1 u2, u2 a2 u3, u3 a3 u4": (4 * 10, 2, 1),
    # A conversation that another process began: its newest question is the task.
    "u1 a1 u2, u2 a2 u3, u3 a3 u4": (4 * 10, 2, 1),
    # A retry.
    "u1 a1 u2, u1 a1 u2": (0, 0, 0),
    # A new conversation, and two conversations in turns.
    "u1 a1 u2, u3, u3 a3 u4": (0, 0, 0),
    "u1, u2 a0, u1 a1 u3, u2 a0 u4, u1 a1 u3 a3 u5": (0, 0, 0),
    # One question without its history, as for a judgement of it.
    "u1 a1 u2, u2, u1 a1 u2 a2 u3": (0, 0, 0),
    # A turn is taken back; branches share their beginning.
    "u1 a1 u2 a2 u3, u1 a1 u2, u1 a1 u2 a4 u5": (0, 0, 0),
    "u1 a1 u2 a2 u3, u1 a1 u4": (0, 0, 0),
    # The model's reasoning is taken out.
    "u1 a1 a2 u2, u1 a2 u2 a3 u3": (0, 0, 0),
    # A reminder at the end of each request.
    "u1 a1 u9, u1 a1 u2 a2 u9, u1 a1 u2 a2 u3 a3 u9": (0, 0, 0),
    # The same message is in two places, and one of them goes.
    "u1 a1 u1 a1 u2, u1 a1 u2 a2 u3": (0, 0, 0),
    "u1 a1 u1 a1 u1, u1 a1 u1 a2 u3": (0, 0, 0),
}


def dropped(report: Json, agent: str = "helper") -> tuple[float, ...]:
    """Return the bytes, the turns and the tasks that an agent's window dropped."""
    names = ("model.history.dropped", "model.history.dropped_turns", "model.history.dropped_tasks")
    return tuple(counted(report, name).get(agent, 0) for name in names)


def test_what_a_view_of_the_history_drops(told: Callable[..., Json]) -> None:
    loops = (f"loop(lambda history: {view}, name='view {number}')" for number, view in enumerate(VIEWS))
    report = told("\n".join((LOOP, *loops)))
    assert {view: dropped(report, f"view {number}") for number, view in enumerate(VIEWS)} == VIEWS


def test_what_a_chat_drops(told: Callable[..., Json]) -> None:
    report = told(
        f"""
        for number, chat in enumerate({[*CHATS]!r}):
            with agent_otel.execution(f"chat {{number}}", agent=f"chat {{number}}"):
                for request in chat.split(", "):
                    send(*({{"u": user, "a": says}}[m[0]](m.ljust(10, ".")) for m in request.split()))
        """
    )
    assert {chat: dropped(report, f"chat {number}") for number, chat in enumerate(CHATS)} == CHATS


#: System prompts of the n-th request, which have another text each time.
CLOCKS = {
    "f'It is 2026-11-22 09:3{number}. Be kind.'": True,
    "f'Be kind. The time is {8 + number}:00 a.m.'": True,
    "f'Now: 17638123{number}1.25, {number}.12.2026.'": True,
    # Workers of an agent, each with a history of its own.
    "f'You are worker {number}.'": False,
    "f'You are one of {number} workers.'": False,
}


@pytest.mark.parametrize("view", ["history", "history[-4:]"])
def test_a_clock_in_the_system_prompt(told: Callable[..., Json], view: str) -> None:
    report = told(
        "\n".join(
            LOOP.replace("system()", f"system({prompt})") + f"loop(lambda history: {view}, name='agent {at}')"
            for at, prompt in enumerate(CLOCKS)
        )
    )
    none = (0, 0, 0)
    found = {prompt: dropped(report, f"agent {at}") for at, prompt in enumerate(CLOCKS)}
    assert found == {prompt: VIEWS[view] if is_clock else none for prompt, is_clock in CLOCKS.items()}
    assert not [m for m in report["metrics"] if m["name"] == "agent_otel.model.history.lost" and m["sum"]]


def test_the_span_around_a_request_names_what_was_dropped(told: Callable[..., Json]) -> None:
    report = told(
        f"""{LOOP}
TRACER = trace.get_tracer("program")
def traced(*parts, **more):
    with TRACER.start_as_current_span("chat"):
        send_it(*parts, **more)
send_it, send = send, traced
loop(lambda history: history[-4:], turns=4)
"""
    )
    chats = [span for span in report["spans"] if span["name"] == "chat"]
    assert [{name: value for name, value in span["attributes"].items() if ".history." in name} for span in chats] == [
        {},
        {},
        {"agent_otel.history.task_dropped": True},
        {},
        {},
    ]
    assert [[(e["name"], e["attributes"]) for e in span["events"]] for span in chats] == [
        [],
        [],
        [
            (
                "history_dropped",
                {
                    "agent_otel.history.dropped_bytes": 20,
                    "agent_otel.history.dropped_turns": 0,
                    "agent_otel.history.task_dropped": True,
                },
            )
        ],
        [("history_dropped", {"agent_otel.history.dropped_bytes": 102, "agent_otel.history.dropped_turns": 1})],
        [("history_dropped", {"agent_otel.history.dropped_bytes": 103, "agent_otel.history.dropped_turns": 1})],
    ]


def test_less_after_an_error_for_the_length_is_dropped(told: Callable[..., Json]) -> None:
    report = told(
        f"""{LOOP}
with agent_otel.execution("run", agent="helper"):
    turns = [m for n in range(3) for m in (asks(f"call_{{n}}"), answers(f"call_{{n}}", tool(f"call_{{n}}", "r" * 90)))]
    send(user("go"), *turns, tools=TOOLS)
    send(*turns[-2:], tools=TOOLS)
    send(*turns[-2:], tools=TOOLS)
"""
    )
    assert dropped(report) == (2 + 2 * (2 + 90), 2, 1)


def test_call_ids_that_are_used_twice_leave_it_open(told: Callable[..., Json]) -> None:
    report = told(
        f"""{LOOP}
with agent_otel.execution("run", agent="helper"):
    history = [user("go")]
    for number in range(5):
        send(*history[-4:], tools=TOOLS)
        history += [asks("call_0"), answers("call_0", tool("call_0", "r" * (90 + number % 2), page=number))]
"""
    )
    assert dropped(report) == (0, 0, 0)


def test_what_the_provider_keeps_is_not_dropped(told: Callable[..., Json]) -> None:
    report = told(
        """
        def said(*ids): return [{"role": "assistant" if i[0] == "a" else "user", "content": i} for i in ids]
        with agent_otel.execution("run", agent="helper"):
            first = client.responses.create(model="scripted", input=said("u1", "a1", "u2"))
            client.responses.create(model="scripted", input=said("u2", "a2", "u3"), previous_response_id=first.id)
        """
    )
    assert dropped(report) == (0, 0, 0)


def test_a_sub_agent_has_a_history_of_its_own(told: Callable[..., Json]) -> None:
    report = told(
        f"""{LOOP}
with agent_otel.execution("run", agent="helper"):
    send(system(), user("one"), tools=TOOLS)
    with agent_otel.tool_call("ask", {{}}, call_id="call_a") as call:
        send(system("You search."), user("two"), tools=TOOLS)
        text = tool("call_b", "r" * 90)
        send(system("You search."), user("two"), asks("call_b"), answers("call_b", text), tools=TOOLS)
        call.result("found")
    send(system(), user("one"), asks("call_a", name="ask"), answers("call_a", "found"), tools=TOOLS)
"""
    )
    assert dropped(report) == (0, 0, 0)


@pytest.mark.shows("003.stable_prefix")
def test_an_agent_without_a_memory_has_no_stable_prefix(told: Callable[..., Json]) -> None:
    report = told(
        f"""{LOOP}
loop(lambda history: history[:1], tools=[], turns=3)
loop(lambda history: [user("c" * 500), history[0]], tools=[], turns=3, name="with context")
"""
    )
    assert not [m for m in report["metrics"] if m["name"] == "agent_otel.model.request.stable_prefix"]


def test_turns_in_one_prompt_have_a_stable_prefix(told: Callable[..., Json]) -> None:
    report = told(
        """
        with agent_otel.execution("run"):
            send(system("s" * 100), user("u" * 100))
            with agent_otel.tool_call("search", {}) as call:
                text = call.result("three lamps in the store of Berlin")
            send(system("s" * 100), user("u" * 266 + text))
        """
    )
    (metric,) = (m for m in report["metrics"] if m["name"] == "agent_otel.model.request.stable_prefix")
    assert (metric["count"], metric["sum"]) == (1, 0.25)
