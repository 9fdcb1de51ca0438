"""Wrappers find their way to methods that another instrumentation has wrapped before."""

from __future__ import annotations

import functools
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from agent_otel.core import switches
from agent_otel.integrations import patching
from agent_otel.integrations.hooks import Hook

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from agent_otel.core.types import Invocation

_MODULE = """
class Base:
    def send(self, text):
        return text.upper()

class Client(Base):
    pass

class Loud(Base):
    def send(self, text):
        return super().send(text) + "!"
"""


def test_a_wrapper_that_stands_on_a_subclass_is_wrapped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It calls the method as it was: what is put onto the base class only, it never passes."""
    monkeypatch.setattr(switches, "enabled", True)  # `restore` switches the process off
    (tmp_path / "sender_of_test.py").write_text(textwrap.dedent(_MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    module: Any = __import__("sender_of_test")
    before = module.Base.send

    @functools.wraps(before)
    def another(self: Any, text: str) -> str:
        return f"<{before(self, text)}>"

    module.Client.send = another
    seen: list[str] = []

    def note(invocation: Invocation) -> None:
        seen.append(invocation.arg(0, "text"))

    try:
        patching._wrap(module, "Base.send", Hook(note))

        assert ["<A>", "B!", "C"] == [module.Client().send("a"), module.Loud().send("b"), module.Base().send("c")]
        assert ["a", "b", "c"] == seen
    finally:
        patching.restore()
        del sys.modules["sender_of_test"]
    assert (another, before) == (vars(module.Client)["send"], module.Base.send)
