"""Programs that run in forks of a child that has imported a framework, so that the import is paid for once.

A fork begins as the child has left off, before the first call of the program: no program sees what another has done.
"""

from __future__ import annotations

import contextlib
import json
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen

    from tests.environments import Environment

#: Runs what all programs begin with, then a fork for each line of input; says how each fork ended, and what it printed.
_CHILD = """
import gc, json, os, signal, sys, tempfile, traceback

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
gc.freeze()
for line in sys.stdin:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        ended = [fork(json.loads(line), out, err)]
        for file in (out, err):
            file.seek(0)
            ended.append(file.read())
    print(json.dumps(ended), flush=True)
"""


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

    def _child(self, name: str, begin: str, env: Mapping[str, str]) -> Popen[str]:
        key = (name, begin, *sorted(env.items()))
        child = self._children.get(key)
        if child is None or child.poll() is not None:
            of = self._environment(name)
            command = (str(of.python), "-c", _CHILD, self._root, begin)
            child = self._children[key] = self.open.enter_context(of.start(*command, env=env, is_asked=True))
        return child
