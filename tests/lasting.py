"""Children that run one case after another, where each case would otherwise import the same framework anew.

Cases share the state of a process: a case has ids and executions that no other case of its child has.
"""

from __future__ import annotations

import contextlib
import json
import select
import tempfile
import textwrap
from typing import TYPE_CHECKING, Any

from tests.patience import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from subprocess import Popen

    from tests.environments import Environment

#: How long a case may take, of work.
_SECONDS = 240


class Children(contextlib.ExitStack):
    """The children of a module's cases, one for each environment and each setting of its variables."""

    def __init__(self, environment: Callable[[str], Environment], folder: Path) -> None:
        super().__init__()
        self._environment = environment
        self._folder = folder
        self._children: dict[tuple[str, str], tuple[Popen[str], Path]] = {}

    def run(self, name: str, program: str, env: Mapping[str, str] | None = None) -> Any:
        """Run a program in an environment; return its ``report``, and the metrics, spans, messages and errors.

        What the program raises is an AssertionError with the child's traceback; the child goes on. A child that ends,
        or is not done in time, is replaced for the next case.
        """
        key = (name, json.dumps(env))
        if key not in self._children:
            self._children[key] = self._start(self._environment(name), {"AGENT_OTEL": "1", **(env or {})})
        child, file = self._children[key]
        read = file.stat().st_size
        answer = _answer(child, textwrap.dedent(program))
        if "failure" not in answer:
            return answer
        if child.returncode is not None:
            del self._children[key]
        raise AssertionError(f"{answer['failure']}\n{file.read_bytes()[read:].decode(errors='replace')}")

    def _start(self, environment: Environment, env: Mapping[str, str]) -> tuple[Popen[str], Path]:
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
            command = (str(environment.python), "-m", "tests.lasting_child", file.name)
        started = environment.start(*command, env=env, is_asked=True)
        return self.enter_context(started), self._folder / file.name


def _answer(child: Popen[str], program: str) -> Any:
    """Return a child's answer to a program, or how it failed."""
    assert child.stdin
    assert child.stdout
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(json.dumps(program) + "\n")
        child.stdin.flush()
    deadline = Deadline(_SECONDS)
    while not select.select([child.stdout], [], [], 1)[0]:
        if deadline.has_passed():
            child.kill()
            child.wait()
            return {"failure": f"not done after {_SECONDS} s"}
    if line := child.stdout.readline():
        return json.loads(line)
    return {"failure": f"exit {child.wait()}\n{child.stderr.read() if child.stderr else ''}"}
