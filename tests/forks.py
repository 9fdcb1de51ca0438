"""Programs that run in forks of a child that has imported a framework, so that the import is paid for once.

A fork begins as the child has left off, before the first call of the program: no program sees what another has done.
What they begin with starts no thread, which would be missing in each fork.
"""

from __future__ import annotations

import contextlib
import json
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen

    from tests.environments import Environment

#: Runs what all programs begin with, then a fork for each line of input; says how each fork ended, and what it printed.
_CHILD = """
import gc, json, os, signal, sys, tempfile, threading, traceback

def run(program):
    try:
        exec(compile(program, "<program>", "exec"), globals())
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

def fork(program, out, err):
    child = os.fork()
    if not child:
        signal.alarm(240)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        status = run(program)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

sys.path.insert(0, sys.argv[1])
exec(sys.argv[2])
assert threading.active_count() == 1, threading.enumerate()
gc.freeze()
for line in sys.stdin:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        ended = [fork(json.loads(line), out, err)]
        for file in (out, err):
            file.seek(0)
            ended.append(file.read())
    print(json.dumps(ended), flush=True)
"""

#: What measured programs begin with.
_BEGIN = """
import json
from tests.contract.child import Messages, Telemetry
messages, telemetry = Messages(), Telemetry()
import agent_otel.api
report = None
"""

_OPENAI = """
import anyio._backends._asyncio, openai
openai.OpenAI(base_url="http://localhost", api_key="scripted").chat.completions.create
"""

#: What the agents of an environment would load with their first request.
_LOADED = {
    **dict.fromkeys(("langchain", "openai-2", "openai-agents", "pydantic-ai"), _OPENAI),
    "litellm": f"import litellm.proxy._types, litellm.responses.mcp.chat_completions_handler{_OPENAI}",
    "smolagents": f"import smolagents{_OPENAI}",
}
#: The product is on, and LiteLLM starts no thread that asks the web for its map of costs.
_VARIABLES = {"AGENT_OTEL": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

#: What they end with.
_END = """
from agent_otel._internal import errors
print(json.dumps({
    "report": report, "spans": telemetry.spans(), "metrics": telemetry.metrics(), "messages": messages.take(),
    "errors": dict(errors.errors),
}))
"""


def agents(name: str, *modules: str) -> str:
    """Return what programs that run agents of the contract begin with in an environment."""
    return "\n".join([*(f"import tests.contract.agents.{module}" for module in modules), _LOADED.get(name, "")])


class Forks:
    """Children by what they are: their environment's name, what they begin with, and their variables."""

    def __init__(self, environment: Callable[[str], Environment], root: str) -> None:
        self._environment = environment
        self._root = root
        self._children: dict[tuple[object, ...], Popen[str]] = {}
        self.open = contextlib.ExitStack()

    def run(self, name: str, begin: str, program: str, env: Mapping[str, str]) -> CompletedProcess[str]:
        """Run a program in a fork of the child that has run ``begin``; fail the test unless it ends with status 0."""
        child = self._child(name, begin, env)
        assert child.stdin is not None
        assert child.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(json.dumps(program) + "\n")
            child.stdin.flush()
        answer = child.stdout.readline()
        if not answer:
            _, said = child.communicate()
            raise AssertionError(f"exit {child.returncode} before any program\n{said}")
        status, out, said = json.loads(answer)
        assert status == 0, f"exit {status}\n{out}\n{said}"
        return CompletedProcess(program, status, out, said)

    def measure(self, name: str, begin: str, program: str, env: Mapping[str, str] | None = None) -> Any:
        """Run a program with the product on; return its ``report``, spans, metrics, messages and internal errors."""
        done = self.run(name, f"{_BEGIN}{begin}", f"{program}\n{_END}", {**_VARIABLES, **(env or {})})
        return json.loads(done.stdout.splitlines()[-1])

    def _child(self, name: str, begin: str, env: Mapping[str, str]) -> Popen[str]:
        key = (name, begin, *sorted(env.items()))
        child = self._children.get(key)
        if child is None or child.poll() is not None:
            of = self._environment(name)
            command = (str(of.python), "-c", _CHILD, self._root, begin)
            child = self._children[key] = self.open.enter_context(of.start(*command, env=env, is_asked=True))
        return child
