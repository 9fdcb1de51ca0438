"""Two thousand results that are whole and were written for another purpose: source code, documentation, diffs, logs.

``python -m tests.system.false_alarms.real_texts PROGRAM URL`` makes the calls over OpenAI's client, and prints what was
counted of results and answers, and the names of the results that were found cut. The texts are those of the interpreter
that runs it: its standard library, what ``pydoc`` writes of it, the difference of two of its files, and the output of
its compiler and of verbose imports. Files of installed packages follow, because some systems leave out a part of it.
"""

# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import contextlib
import difflib
import dis
import functools
import importlib
import io
import itertools
import json
import pydoc
import random
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import agent_otel
from tests.contract.child import Messages, Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator

EACH: Final = 500
_CALLS_A_RUN: Final = 25
_LONGEST: Final = 60_000
#: Bytes of the files that are compared and compiled.
_SHORT: Final = 10_000
_FOLDERS: Final = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib")))
_COUNTED: Final = (
    *("tool.results.truncated", "tool.results.cleared", "tool.results.unmatched", "tool.result.shape_changes"),
    *("answers.", "tool.followups", "model.history.", "tool.schema_changes", "tool.invalid_arguments"),
)
#: Modules whose documentation is read, beside those that are loaded.
_DOCUMENTED: Final = (
    "asyncio",
    "configparser",
    "ctypes",
    "ftplib",
    "imaplib",
    "mailbox",
    "sqlite3",
    "tarfile",
    "unittest.mock",
    "xmlrpc.client",
)


@functools.cache
def _files() -> list[Path]:
    """Return the files of the standard library, then of packages, whose source is no longer than a result may be."""
    library, packages = (sorted(folder.rglob("*.py")) for folder in _FOLDERS)
    found = [path for path in library if not {"site-packages", "dist-packages"} & {*path.parts}] + packages
    return [path for path in found if 200 < path.stat().st_size <= _LONGEST]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def sources() -> Iterator[tuple[str, str]]:
    """Yield files."""
    for path in _files():
        yield str(path), _read(path)


def diffs() -> Iterator[tuple[str, str]]:
    """Yield the differences of neighbouring files, as `diff -u` writes them."""
    for old, new in itertools.pairwise(_files()):
        if max(old.stat().st_size, new.stat().st_size) < _SHORT:
            lines = difflib.unified_diff(_read(old).splitlines(), _read(new).splitlines(), str(old), str(new), "", "")
            yield f"{old.name} {new.name}", "\n".join(lines)


def documentation() -> Iterator[tuple[str, str]]:
    """Yield the documentation of modules, classes and functions of the standard library."""
    for name in _DOCUMENTED:
        importlib.import_module(name)
    for name in sorted(sys.stdlib_module_names):
        module = sys.modules.get(name)
        for member in (None, *sorted(vars(module))) if module is not None else ():
            value = module if member is None else getattr(module, member)
            if member is None or (callable(value) and getattr(value, "__module__", "") == name):
                text = pydoc.plain(pydoc.render_doc(value))
                if len(text) <= _LONGEST:
                    yield f"{name}.{member}", text


def logs() -> Iterator[tuple[str, str]]:
    """Yield pieces of the log of verbose imports, whole lines each, then the byte code of modules."""
    command = [sys.executable, "-v", "-c", "import asyncio, email.mime.text, http.server, sqlite3, unittest, xml.dom"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    some = random.Random("logs")  # noqa: S311 - the same lengths each time
    while len(lines) > 1:
        length = some.randint(1, 40)
        yield f"import -v {len(lines)}", "\n".join(lines[:length])
        lines = lines[length:]
    for path in _files():
        written = io.StringIO()
        if path.stat().st_size < _SHORT:
            with contextlib.suppress(SyntaxError):  # test data of parsers
                dis.dis(compile(_read(path), path.name, "exec"), depth=0, file=written)
            yield f"dis {path.name}", written.getvalue()


def texts() -> Iterator[tuple[str, str]]:
    """Yield results of each kind."""
    for kind in (sources, diffs, documentation, logs):
        yield from itertools.islice(_whole(kind()), EACH)


def _whole(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    while True:
        try:
            pair = next(pairs)
        except StopIteration:
            return
        if pair[1]:
            yield pair


def main(_: str, url: str) -> None:
    """Make all calls, 25 in each run of the agent."""
    import openai

    messages, telemetry = Messages(), Telemetry()
    client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
    names: dict[str, str] = {}
    pairs = texts()
    while batch := list(itertools.islice(pairs, _CALLS_A_RUN)):
        history: list[Any] = [{"role": "user", "content": "go"}]
        with agent_otel.execution(f"run {len(names)}"):
            for name, text in batch:
                call_id = f"call_{len(names)}"
                names[call_id] = name
                with agent_otel.tool_call("read", {"name": name}, call_id=call_id) as call:
                    call.result(text)
                asked = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
                history += [
                    {"role": "assistant", "tool_calls": [asked]},
                    {"role": "tool", "tool_call_id": call_id, "content": text},
                ]
            client.chat.completions.create(model="scripted", messages=history)
    cut = [
        (names[span["attributes"]["gen_ai.tool.call.id"]], span["attributes"]["tool.result.truncation.reason"])
        for span in telemetry.spans()
        if "tool.result.truncation.reason" in span["attributes"] and "gen_ai.tool.call.id" in span["attributes"]
    ]
    counted = {
        name: metric["sum"]
        for metric in telemetry.metrics()
        if (name := metric["name"].removeprefix("agent_otel.")).startswith(_COUNTED) and metric["sum"]
    }
    print(json.dumps({"calls": len(names), "counted": counted, "cut": cut, "messages": messages.take()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
