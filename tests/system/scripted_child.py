"""Run a module in a fork of a child of an environment, with a model server that a test scripts."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Decider
    from tests.contract.cases import Json
    from tests.forks import Forks


#: What the children of an environment import before they fork, where more than one program of a file runs in it.
_BEGIN = {
    "langchain": "import langchain.agents, langchain_openai, langgraph.checkpoint.memory, langgraph.prebuilt",
    "openai-agents": "import agents, openai.resources.chat.completions, openai.resources.responses",
}


def report_of(  # noqa: PLR0913, PLR0917 - what is run, where, and with what model
    module: str, argument: str, forks: Forks, row: str, server: str | Callable[[Decider], Any], decide: Decider
) -> Json:
    """Return the report that the module prints in its last line; it gets the argument and the server's address.

    ``server`` is a model server's class, or its module and name, as ``openai:OpenAIServer``.
    """
    with server_of(server)(decide) as running:
        program = f"""
import runpy, sys
sys.argv = {["-", argument, running.base_url]!r}
runpy.run_module({module!r}, run_name="__main__")
"""
        done = forks.run(row, _BEGIN.get(row, ""), program, {"AGENT_OTEL": "1", **QUIET})
    report: Json = json.loads(done.stdout.splitlines()[-1])
    return report


def server_of(server: str | Callable[[Decider], Any]) -> Callable[[Decider], Any]:
    """Return a model server's class; of a text, the class that it names."""
    if not isinstance(server, str):
        return server
    module, _, kind = server.partition(":")
    folder = "" if "." in module else "agent_otel.testing.servers."
    found: Callable[[Decider], Any] = getattr(importlib.import_module(folder + module), kind)
    return found
