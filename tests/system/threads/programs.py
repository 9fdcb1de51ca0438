"""Hand-written loops over real SDKs: some builders lose their history, others keep it.

``python -m tests.system.threads.programs STACK URL`` prints the counters of each shape.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,unused-ignore"
# The SDKs are not installed where types are checked.

from __future__ import annotations

import contextvars
import json
import sys
from typing import TYPE_CHECKING, Any

import agent_otel
from tests.contract.child import Messages, Telemetry
from tests.system.threads.stacks import CALL, SAY, STACKS, Builder, Call, Message, Result, Said, User

if TYPE_CHECKING:
    from collections.abc import Callable

#: Requests of a run: all but the last ask for a call.
REQUESTS = 6
TASK = "Find out which of our lamps sells best in the stores of Berlin, and why."
CONTEXT = "These are the files of the repository that you work in. " * 20
NAMES = ("Alice Weber", "Bob Meyer", "Carla Schmidt", "Dan Fischer", "Eva Wagner", "Finn Becker", "Gia Hoffmann")
_numbers = iter(range(1_000_000))


def document(number: int) -> str:
    """Return a result of some thousand characters that shares no line with another number's."""
    lines = (
        f"Order {number}-{line}: {NAMES[(line * 7 + number) % 7]} bought {line * 31 % 17} lamps of type {number * line}"
        for line in range(80)
    )
    return "\n".join(lines)


@agent_otel.tool
def search(query: str) -> str:
    """Return the document with this number."""
    return document(int(query))


def perform(call: Call) -> str:
    """Call the tool of a hand-written loop."""
    return search(**call.arguments)


def result_of(call: Call | None) -> str:
    """Call the tool as the loop does: with the model's arguments, and without its id."""
    assert call is not None
    return perform(call)


def loop(stack: Any, build: Builder) -> None:
    """Run a loop: with the framework, if the stack has one."""
    if hasattr(stack, "run"):
        stack.run(build, REQUESTS)
        return
    turns: list[tuple[Call, str]] = []
    for number in range(REQUESTS):
        system, messages = build(number, turns)
        call = stack.ask(system, messages, CALL if number < REQUESTS - 1 else SAY)
        if call is not None:
            turns.append((call, result_of(call)))


def conversation(turns: list[tuple[Call, str]]) -> list[Message]:
    """Return the messages of turns."""
    return [message for call, text in turns for message in (call, Result(call, text))]


def observations(turns: list[tuple[Call, str]]) -> str:
    """Return turns as text."""
    return "\n".join(f"Action: {call.arguments}\nObservation: {text}" for call, text in turns)


def questions(number: int) -> str:
    """Return a question that differs in each turn."""
    return ("Which lamp sells best?", "And in Hamburg?", "Who bought most?", "Why?", "What next?", "Sum it up.")[number]


def grows(by: int) -> Callable[..., Any]:
    """Return the builder of a user's text that grows at its end."""
    head = "You help with the lamps of our stores in Berlin. Notes: "

    def build(number: int, _: Any) -> Any:
        return None, [User(head + "".join(f"note {at} of the day. " for at in range(number * by // 18 + 1)))]

    return build


#: Builders that lose the history, and how many of the five requests after the first lack it.
LOST: dict[str, tuple[Callable[..., Any], int]] = {
    "slots and another question": (lambda n, _: (f"Be kind. The user is {NAMES[n]}.", [User(questions(n))]), 5),
    "slots and the same task": (lambda n, _: (f"Be kind. The user is {NAMES[n]}.", [User(TASK)]), 5),
    "files and another question": (lambda n, _: ("Be kind.", [User(CONTEXT), User(questions(n))]), 5),
    "the time in the prompt": (lambda n, _: (f"It is 2026-11-28 10:0{n}.", [User(TASK)]), 5),
    "the number of the step": (lambda n, _: (None, [User(f"Step {n + 1} of 6. {TASK}")]), 5),
    "a text that grows by 100": (grows(100), 5),
    "a text that grows by 900": (grows(900), 5),
    "results emptied": (lambda _, turns: (None, [User(TASK), *conversation([(call, "") for call, _ in turns])]), 5),
    "a remark is kept": (lambda n, _: (None, [User(TASK), *([Said("I look for it.")] if n else [])]), 5),
    # The second request after the first holds one of the latest two results.
    "the first turn for ever": (lambda _, turns: (None, [User(TASK), *conversation(turns[:1])]), 3),
}

KEPT: dict[str, Callable[..., Any]] = {
    "whole": lambda _, turns: ("Be kind.", [User(TASK), *conversation(turns)]),
    "whole, with slots": lambda n, turns: (f"The user is {NAMES[n]}.", [User(TASK), *conversation(turns)]),
    "text ReAct": lambda _, turns: (None, [User(f"Task: {TASK}\n{observations(turns)}")]),
    "text ReAct without a line end": lambda _, turns: (None, [User(f"Task: {TASK} {observations(turns)}")]),
    "text ReAct and a thought": lambda _, turns: (None, [User(f"Task: {TASK}\n{observations(turns)}\nThought:")]),
    "text ReAct as JSON": lambda _, turns: (None, [User(json.dumps({"task": TASK, "seen": observations(turns)}))]),
    "text ReAct in the system prompt": lambda _, turns: (f"{TASK}\n{observations(turns)}", [User("Go on.")]),
    "results first": lambda n, turns: (None, [User(f"{observations(turns)}\n{questions(n)}")]),
    "the step and the results": lambda n, turns: (None, [User(f"Step {n + 1} of 6. {TASK}\n{observations(turns)}")]),
    "wrapped anew": lambda _, turns: (None, [User(f"{TASK}\n{wrapped(observations(turns))}")]),
    "the last observation": lambda _, turns: (None, [User(f"{TASK}\n{observations(turns[-1:])}")]),
    "each cut to 100": lambda _, turns: (None, [User(TASK), *conversation([(one, text[:100]) for one, text in turns])]),
    "the last two messages": lambda _, turns: (None, [*([] if turns else [User(TASK)]), *conversation(turns[-1:])]),
    "a summary": lambda _, turns: (
        None,
        [User(TASK), *([User("Summary of the conversation so far: lamps were found.")] if len(turns) > 2 else []),
         *conversation(turns[-2:])],
    ),
}  # fmt: skip


def wrapped(text: str) -> str:
    """Return a text with other line ends."""
    import textwrap

    return textwrap.fill(text, 60)


def branches(stack: Any) -> None:
    """Run four branches in turn. Each has another prompt and begins while earlier branches wait for results."""
    contexts = [contextvars.copy_context() for _ in range(4)]
    histories: list[list[Message]] = [[User(f"Part {number}: {TASK}")] for number in range(4)]
    for turn in range(3):
        for context, history in zip(contexts, histories, strict=True):
            call = context.run(stack.ask, None, history, CALL if turn < 2 else SAY)
            if call is not None:
                history += [call, Result(call, context.run(result_of, call))]


def batch(stack: Any) -> None:
    """Ask for one forced call for each document; the program keeps the results."""
    for number in range(REQUESTS):
        result_of(stack.ask("Read.", [User(f"Read this: {document(number + 100)}")], CALL, forced=True))


def saved(stack: Any) -> None:
    """Ask for a call for each document. The result is a word."""

    @agent_otel.tool(name="save")
    def save(query: str) -> str:
        del query
        return "saved"

    for number in range(REQUESTS):
        call = stack.ask("Save.", [User(f"Save this: {document(number + 200)}")], CALL)
        save(**call.arguments)


def sub_agent(stack: Any) -> None:
    """Run an agent with the same tools inside a tool."""

    @agent_otel.tool(name="delegate")
    def delegate(query: str) -> str:
        inner: list[Message] = [User(f"Find {query}.")]
        call = stack.ask("You look for orders.", inner, CALL)
        inner += [call, Result(call, result_of(call))]
        stack.ask("You look for orders.", inner, SAY)
        return document(int(query) + 300)

    history: list[Message] = [User(TASK)]
    for number in range(3):
        call = stack.ask("Be kind.", history, CALL if number < 2 else SAY)
        if call is not None:
            history += [call, Result(call, delegate(**call.arguments))]


def title(stack: Any) -> None:
    """Ask for a title while a result is on its way."""
    call = stack.ask("Be kind.", [User(TASK)], CALL)
    text = result_of(call)
    stack.ask("Give this chat a title.", [User(TASK)], SAY, tools=False)
    stack.ask("Be kind.", [User(TASK), call, Result(call, text)], SAY)


def again(stack: Any) -> None:
    """Send each request twice."""
    history: list[Message] = [User(TASK)]
    for _ in range(3):
        stack.ask("Be kind.", history, CALL)
        call = stack.ask("Be kind.", history, CALL)
        history += [call, Result(call, result_of(call))]


PROGRAMS = {
    "branches": branches,
    "batch": batch,
    "saved": saved,
    "sub-agent": sub_agent,
    "title": title,
    "again": again,
}


def counted(telemetry: Telemetry) -> dict[str, float]:
    """Return the alarms that were counted since the last time."""
    names = ("model.history.lost", "answers.incomplete", "tool.results.truncated", "tool.results.unmatched")
    found = dict.fromkeys(names, 0.0)
    for metric in telemetry.metrics():
        name = metric["name"].removeprefix("agent_otel.")
        if name in found and metric["attributes"].get("reason") != "suspected":
            found[name] += metric["sum"] or 0
    return found


def main(name: str, url: str) -> None:
    """Run each shape in a separate context, and print the counters."""
    messages, telemetry = Messages(), Telemetry()
    global perform  # noqa: PLW0603
    stack: Any = STACKS[name](url)
    stack.handler = lambda query: document(int(query))
    perform = getattr(stack, "perform", perform)
    report: dict[str, Any] = {}
    for shape, (build, _) in LOST.items():
        contextvars.copy_context().run(loop, stack, build)
        report[shape] = counted(telemetry)
    for shape, build in KEPT.items():
        contextvars.copy_context().run(loop, stack, build)
        report[shape] = counted(telemetry)
    for shape, program in PROGRAMS.items():
        contextvars.copy_context().run(program, stack)
        report[shape] = counted(telemetry)
    said = [text for text in messages.take() if not text.startswith("tool.large_result")]
    print(json.dumps({"shapes": report, "messages": said}))


if __name__ == "__main__":
    main(*sys.argv[1:])
