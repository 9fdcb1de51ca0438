"""Wrappers find their way to methods that another instrumentation has wrapped before."""

from __future__ import annotations

import functools
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import wrapt

from agent_otel.core import switches
from agent_otel.integrations import patching
from agent_otel.integrations.hooks import Hook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_MODULE = """
import functools

def checked(function):
    @functools.wraps(function)
    def check(self, text):
        return function(self, text)
    return check

class Base:
    @checked
    def send(self, text):
        return text.upper()

class Client(Base):
    pass

class Loud(Base):
    def send(self, text):
        return super().send(text) + "!"
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the module of a framework; what is wrapped in it is put back."""
    monkeypatch.setattr(switches, "enabled", True)  # `restore` switches the process off
    (tmp_path / "sender_of_test.py").write_text(textwrap.dedent(_MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    try:
        yield __import__("sender_of_test")
    finally:
        patching.restore()
        del sys.modules["sender_of_test"]


def test_a_wrapper_that_stands_on_a_subclass_is_wrapped_too(module: Any) -> None:
    """It calls the method as it was: what is put onto the base class only, it never passes."""
    before = module.Base.send

    @functools.wraps(before)
    def another(self: Any, text: str) -> str:
        return f"<{before(self, text)}>"

    module.Client.send = another
    seen: list[str] = []
    patching._wrap(module, "Base.send", Hook(lambda invocation: seen.append(invocation.arg(0, "text"))))

    assert ["<A>", "B!", "C"] == [module.Client().send("a"), module.Loud().send("b"), module.Base().send("c")]
    assert ["a", "b", "c"] == seen
    patching.restore()
    assert (another, before) == (vars(module.Client)["send"], module.Base.send)


@pytest.mark.parametrize("package", ["opentelemetry.instrumentation.any", "openinference.instrumentation.any"])
def test_the_wrapper_of_an_instrumentor_stays_around_ours(module: Any, package: str) -> None:
    """Its span of a call is open when ours begins, whoever was first."""
    before, order = module.Base.send, list[str]()

    def theirs(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        order.append("theirs")
        return wrapped(*args, **kwargs)

    theirs.__module__ = package
    wrapt.wrap_function_wrapper(module, "Base.send", theirs)
    patching._wrap(module, "Base.send", Hook(lambda _: order.append("ours")))
    patching._wrap(module, "Base.send", Hook(lambda _: order.append("ours, again")))

    assert module.Base().send("a") == "A"
    assert order == ["theirs", "ours"]
    patching.restore()
    assert vars(module.Base)["send"].__wrapped__ is before


def test_the_wrapper_of_a_program_stays_inside_of_ours(module: Any) -> None:
    order = list[str]()

    def theirs(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        order.append("theirs")
        return wrapped(*args, **kwargs)

    wrapt.wrap_function_wrapper(module, "Base.send", theirs)
    patching._wrap(module, "Base.send", Hook(lambda _: order.append("ours")))

    assert module.Base().send("a") == "A"
    assert order == ["ours", "theirs"]
