"""Every ``except`` clause of the package lets exceptions from outside pass; a new one that may not is found here."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "agent_otel"
#: Folders in which no call of an agent runs, with the reason why their guards may be plain ones.
APART = {
    "_bootstrap": "runs while the interpreter starts, before the program can install a handler",
    "_pyinstaller": "runs while a program is bundled",
    "alerts": "makes rule files from the command line",
    "cli": "is a command, a process without calls",
    "doctor": "is a command, a process without calls",
    "explain": "is a command, a process without calls",
    "testing": "runs around tests, in no call",
}
#: Clauses that name no class through `agent_otel._internal.errors.ours`, with the reason.
PLAIN = {
    ("_internal/daemon_pool.py", "StopIteration"): "the end of a coroutine, which no signal handler raises",
    ("_internal/env.py", "Exception"): "writes to standard error while the interpreter starts",
    ("_internal/fork.py", "RuntimeError"): "in a hook of a fork, from which Python lets no exception out",
    ("remedies/history/summarizer.py", "asyncio.CancelledError"): "a BaseException, of a task that this module cancels",
}


def _classes() -> set[str]:
    """Return the exceptions of the package, which only its own code raises."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    classes = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return classes - set(dir(builtins))


def _is_judged(kind: ast.expr | None) -> bool:
    return isinstance(kind, ast.Call) and ast.unparse(kind.func).rpartition(".")[2] == "ours"


def _plain(tree: ast.Module, own: set[str]) -> set[str]:
    """Return the classes of the clauses and of ``suppress`` that may swallow an exception from outside."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            reraises = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if _is_judged(node.type) or reraises:
                continue
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"suppress", "contextlib.suppress"}:
            kinds = node.args
        else:
            continue
        names = ["everything" if kind is None else ast.unparse(kind) for kind in kinds]
        if not all(name.rpartition(".")[2] in own for name in names):
            found.add(", ".join(names))
    return found


def test_every_guard_lets_exceptions_from_outside_pass() -> None:
    own, found = _classes(), set()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        if place.parts[0] not in APART:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {(place.as_posix(), names) for names in _plain(tree, own)}
    assert set(PLAIN) == found
