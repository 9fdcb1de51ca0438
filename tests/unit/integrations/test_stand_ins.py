"""On is off for whoever copies, pickles, inspects, subclasses or imitates what is wrapped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

ROOT = str(Path(__file__).parent.parent)

# Each line of what is printed is one use; the pool's processes are new ones, which import this file.
DECORATED = """
import asyncio, copy, functools, json, multiprocessing, os, pickle, sys
from concurrent.futures import ProcessPoolExecutor
sys.path.insert(0, {root!r})
import agent_otel
from tests.contract import likeness

@agent_otel.tool
def double(n): return n * 2
@agent_otel.tool
async def later(n): return n * 2
@agent_otel.tool
def letters(n):
    yield from "l" * n
@agent_otel.tool
async def aletters(n):
    for letter in "l" * n:
        yield letter

class Tools:
    def __init__(self, factor=2): self.factor = factor
    def __eq__(self, other): return self.factor == other.factor
    __hash__ = None
    @agent_otel.tool
    def method(self, n): return n * self.factor
    @agent_otel.tool
    async def amethod(self, n): return n * self.factor
    @agent_otel.tool
    def letters(self, n):
        yield from "l" * n * self.factor
    @agent_otel.tool
    async def aletters(self, n):
        for letter in "l" * n * self.factor:
            yield letter
    @agent_otel.tool
    @classmethod
    def of_class(cls, n): return n * 3
    @staticmethod
    @agent_otel.tool
    def static(n): return n * 4
    @agent_otel.tool
    @staticmethod
    def static_letters(n):
        yield from "s" * n

class More(Tools):
    def method(self, n): return super().method(n) + 1
    async def amethod(self, n): return await super().amethod(n) + 1
    def letters(self, n):
        yield from super().letters(n)
        yield "m"

async def gathered(stream):
    return [item async for item in stream]

def used(make, kind):
    function = make()
    result = function(2)
    if kind == "async":
        return asyncio.run(result)
    if kind == "stream":
        return asyncio.run(gathered(result))
    return list(result) if kind == "list" else result

def makers():
    tools, more = Tools(), More(5)
    everything = [
        (double, ""), (later, "async"), (letters, "list"), (aletters, "stream"), (tools.method, ""),
        (tools.amethod, "async"), (tools.letters, "list"), (tools.aletters, "stream"), (Tools.of_class, ""),
        (tools.of_class, ""), (Tools.static, ""), (tools.static, ""), (Tools.static_letters, "list"),
        (more.method, ""), (more.amethod, "async"), (more.letters, "list"), (functools.partial(tools.letters), "list"),
        (functools.partial(tools.method), ""),
    ]
    for function, kind in everything:
        for make in (lambda: function, lambda: copy.copy(function), lambda: copy.deepcopy(function),
                     lambda: pickle.loads(pickle.dumps(function)), lambda: copy.deepcopy([function])[0]):
            yield make, kind

def main():
    said = [used(make, kind) for make, kind in makers()]
    plain = (double, later, letters, aletters, Tools.of_class, Tools.static, Tools.static_letters)
    said += [likeness.of_function(function) for function in plain]
    said += [likeness.of_method(cls, name) for cls in (Tools, More)
             for name in ("method", "amethod", "letters", "aletters", "of_class")]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for function in (double, Tools(7).method, functools.partial(Tools(7).method), Tools.of_class, Tools.static):
            said.append(pool.submit(function, 2).result())
        said.append(pool.submit(consumed, Tools(3).letters).result())
    print(json.dumps(said, default=repr))

def consumed(function): return list(function(2))

if __name__ == "__main__":
    main()
"""

FRAMEWORK = """
import asyncio, copy, functools, json, multiprocessing, pickle, sys
from concurrent.futures import ProcessPoolExecutor
sys.path.insert(0, {root!r})
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, Tool
from tests.contract import likeness

class Search(BaseTool):
    name: str = "search"
    description: str = "Search."
    def _run(self, query): return query * 2
    async def _arun(self, query): return query * 3
    def run(self, *args, **kwargs): return super().run(*args, **kwargs)

search = Search()

def main():
    said = []
    for cls in (Search, BaseTool):
        said += [likeness.of_place(cls, name) for name in ("run", "arun")]
    for made in (
        search.run, functools.partial(search.run), Tool(name="t", description="d", func=search.run),
        RunnableLambda(search.run), RunnableLambda(search.arun), search,
    ):
        for copied in (made, copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            called = getattr(copied, "invoke", copied)
            arun = isinstance(made, RunnableLambda) and made == RunnableLambda(search.arun)
            said.append("not called" if arun else called("ab"))
    for arun in (search.arun, copy.deepcopy(search.arun), pickle.loads(pickle.dumps(search.arun))):
        said.append(asyncio.run(arun("ab")))
    said.append(asyncio.run(copy.deepcopy(RunnableLambda(search.arun)).ainvoke("ab")))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        tool = Tool(name="t", description="d", func=search.run)
        for function in (search.run, functools.partial(search.run), tool.run):
            said.append(pool.submit(function, "ab").result())
    print(json.dumps(said, default=repr))

if __name__ == "__main__":
    main()
"""


def _said(environment: Environment, program: str, folder: Path, variables: dict[str, str]) -> list[object]:
    path = folder / "program.py"
    path.write_text(program.replace("{root!r}", repr(ROOT)))
    child = environment.run(path, env=variables, check=True, timeout=300)
    assert child.stderr == ""
    said: list[object] = json.loads(child.stdout)
    return said


@pytest.mark.parametrize("name", ["bare", "oldest", "bare-newest"])
def test_decorated_functions_are_copied_pickled_and_inspected_as_with_the_switch_off(
    environment: Callable[[str], Environment], tmp_path: Path, name: str
) -> None:
    off = _said(environment(name), DECORATED, tmp_path, {})
    on = _said(environment(name), DECORATED, tmp_path, {"AGENT_OTEL": "1"})
    assert on == off
    # Five ways to come by each function: as it is, copied, deeply copied, pickled, in a list.
    of_two = [4, 4, ["l"] * 2, ["l"] * 2, 4, 4, ["l"] * 4, ["l"] * 4, 6, 6, 8, 8, ["s"] * 2]
    of_two += [11, 11, ["l"] * 10 + ["m"], ["l"] * 4, 4]
    assert off[:90] == [each for each in of_two for _ in range(5)]
    assert off[-6:] == [4, 14, 14, 6, 8, ["l"] * 6]


@pytest.mark.parametrize("name", ["langchain", "langchain-oldest"])
def test_bound_methods_of_a_framework_are_copied_and_pickled_as_with_the_switch_off(
    environment: Callable[[str], Environment], tmp_path: Path, name: str
) -> None:
    off = _said(environment(name), FRAMEWORK, tmp_path, {})
    on = _said(environment(name), FRAMEWORK, tmp_path, {"AGENT_OTEL": "1"})
    assert on == off
    assert off[4:20] == ["abab"] * 16
    assert off[-7:] == ["ababab"] * 4 + ["abab"] * 3
