"""Single-turn workflows passed all tests.

A chat loads the history of its conversation and never appends it to the request. The first turn is right; from the
second on the model remembers nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from loop import complete

if TYPE_CHECKING:
    from collections.abc import Callable

    from loop import Message

    from agent_otel.testing import AgentRun

SYSTEM = {"role": "system", "content": "You help with invoices."}


def bug(history: list[Message], message: Message) -> list[Message]:
    """Return the messages of a request, without the history."""
    del history
    return [SYSTEM, message]


def fix(history: list[Message], message: Message) -> list[Message]:
    """Return the messages of a request."""
    return [SYSTEM, *history, message]


def chat(build: Callable[..., list[Message]], *texts: str) -> list[str]:
    """Return the answers to a person's texts, one turn after the other."""
    history: list[Message] = []
    answers = []
    for text in texts:
        message = {"role": "user", "content": text}
        answers.append(complete(build(history, message)))
        history += [message, {"role": "assistant", "content": answers[-1]}]
    return answers


@pytest.mark.parametrize("build", [bug, fix])
def test_a_single_turn_passes_with_the_bug(model: Callable[..., object], build: Callable[..., list[Message]]) -> None:
    model("It is paid.")
    assert chat(build, "Is invoice 7 paid?") == ["It is paid."]


@pytest.mark.parametrize("build", [bug, fix])
def test_the_history_is_complete(
    agent_run: AgentRun, model: Callable[..., object], build: Callable[..., list[Message]]
) -> None:
    model("It is paid.")
    chat(build, "Is invoice 7 paid?", "And when was that?", "Who paid it, and from which account?")
    agent_run.assert_history_complete()
