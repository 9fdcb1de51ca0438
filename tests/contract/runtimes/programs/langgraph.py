"""Graphs on LangGraph's savers. A run says what its caller gets, and what the saver has stored of its thread."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import operator
import os
import pickle
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig  # noqa: TC002 - read at run time
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from opentelemetry import trace

from tests.contract.runtimes.steps import produce

try:
    from langgraph.channels import DeltaChannel
except ImportError:
    DeltaChannel = None

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

Json = dict[str, Any]

HELLO = {"messages": [HumanMessage("hello", id="m")]}


# --- savers ----------------------------------------------------------------------------------------------------------


class Counting(InMemorySaver):
    """A program's own saver, which calls the one that it is derived from."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = [0, 0]

    def put(self, *args: Any, **kwargs: Any) -> Any:
        """Count, and go on."""
        self.calls[0] += 1
        return super().put(*args, **kwargs)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """Count, and go on."""
        self.calls[1] += 1
        super().put_writes(config, writes, task_id, task_path)


class Handing(BaseCheckpointSaver):
    """A program's own saver, which hands everything on to another; its arguments have names of their own."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def put(self, settings: Any, state: Any, about: Any, versions: Any) -> Any:
        """Hand on."""
        return self.inner.put(config=settings, checkpoint=state, metadata=about, new_versions=versions)

    def put_writes(self, settings: Any, written: Any, task_id: str, task_path: str = "") -> None:
        """Hand on."""
        self.inner.put_writes(settings, written, task_id=task_id, task_path=task_path)

    def get_tuple(self, config: Any) -> Any:
        """Hand on."""
        return self.inner.get_tuple(config)

    def get_next_version(self, current: Any, channel: Any) -> Any:
        """Hand on."""
        return self.inner.get_next_version(current, channel)


class Cipher:
    """Sixteen bytes more, and all the others turned round."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """Turn round."""
        return "turned", bytes(16) + plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """Turn back."""
        assert ciphername == "turned"
        return ciphertext[16:][::-1]


class Pickled:
    """A program's own serializer."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Pickle."""
        return "pickle", pickle.dumps(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Unpickle what has just been pickled."""
        return pickle.loads(data[1])  # noqa: S301


class Given(Pickled):
    """One that a saver gets after it was made; no other saver has it."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Pickle for the oldest readers, in more bytes."""
        return "pickle", pickle.dumps(obj, 0)


@contextlib.contextmanager
def saver_of(kind: str, engine: Json) -> Iterator[Any]:
    """One saver, by the name of its kind."""
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "counting":
        yield Counting()
    elif kind == "pickled":
        yield InMemorySaver(serde=Pickled())
    elif kind == "given later":
        saver = InMemorySaver()
        saver.serde = Given()
        yield saver
    elif kind == "postgres":
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(engine["dsn"]) as saver:
            saver.setup()
            yield saver
    else:
        with contextlib.closing(sqlite3.connect(engine["file"], check_same_thread=False)) as connection:
            if kind == "limited":
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * 1024 * 1024)  # type: ignore[attr-defined]
            encrypted = EncryptedSerializer(Cipher()) if kind == "encrypted" else None
            saver = SqliteSaver(connection, serde=encrypted)
            yield Handing(saver) if kind == "handing" else saver


@contextlib.asynccontextmanager
async def async_saver_of(kind: str, engine: Json) -> AsyncIterator[Any]:
    """One saver for asynchronous graphs."""
    if kind == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(engine["file"]) as saver:
            yield saver
    elif kind == "postgres":
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        async with AsyncPostgresSaver.from_conn_string(engine["dsn"]) as saver:
            await saver.setup()
            yield saver
    else:
        with saver_of(kind, engine) as saver:
            yield saver


# --- what is stored --------------------------------------------------------------------------------------------------

SQLITE = (
    "SELECT count(*), sum(length(checkpoint)) FROM checkpoints WHERE thread_id = ?",
    "SELECT 0, sum(length(value)) FROM writes WHERE thread_id = ?",
)
POSTGRES = (
    "SELECT count(*), 0 FROM checkpoints WHERE thread_id = %s",
    "SELECT 0, sum(length(blob)) FROM checkpoint_blobs WHERE thread_id = %s",
    """SELECT 0, sum(octet_length(value #>> '{}')) FROM checkpoints, jsonb_each(checkpoint -> 'channel_values')
    WHERE thread_id = %s AND jsonb_typeof(value) = 'string'""",
    "SELECT 0, sum(length(blob)) FROM checkpoint_writes WHERE thread_id = %s",
)


def stored(saver: Any, kind: str, engine: Json, thread: str) -> Json:
    """How many checkpoints there are of a thread, their bytes, and the bytes of what nodes have written."""
    if isinstance(saver, InMemorySaver):
        checkpoints = [row for rows in saver.storage[thread].values() for row in rows.values()]
        state = sum(len(value) for key, (_, value) in saver.blobs.items() if key[0] == thread)
        state += sum(len(value) for row in checkpoints for _, value in row[:2])
        written = [row[2][1] for key, rows in saver.writes.items() if key[0] == thread for row in rows.values()]
        counted = {"calls": saver.calls} if isinstance(saver, Counting) else {}
        return {"count": len(checkpoints), "state": state, "output": sum(map(len, written)), **counted}
    if kind == "postgres":
        import psycopg

        with psycopg.connect(engine["dsn"]) as connection:
            rows: list[Any] = [connection.execute(query, (thread,)).fetchone() for query in POSTGRES]
    else:
        with contextlib.closing(sqlite3.connect(engine["file"])) as connection:
            rows = [connection.execute(query, (thread,)).fetchone() for query in SQLITE]
    *state_rows, (_, output) = rows
    return {
        "count": sum(count for count, _ in state_rows),
        "state": sum(int(size or 0) for _, size in state_rows),
        "output": int(output or 0),
    }


# --- graphs ----------------------------------------------------------------------------------------------------------


class State(MessagesState):
    """Each result is there twice, and a text stands for itself."""

    raw: Annotated[list[Json], operator.add]
    report: Annotated[str, lambda _, new: new]
    turns: int
    width: int
    copies: int
    n: int


def _append(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*state, *(each for write in writes for each in write)]


class Texts(State):
    """With a channel that is stored as what was added to it."""

    texts: Annotated[list[str], DeltaChannel(_append) if DeltaChannel else operator.add]


@tool
def search(n: int) -> str:
    """Find so many letters."""
    return produce(n)


def model(state: State) -> Json:
    """Ask for one search after the other, or for two at once."""
    asked = sum(isinstance(message, ToolMessage) for message in state["messages"])
    if asked >= state["turns"] * state["width"]:
        return {"messages": [AIMessage("done")]}
    numbers = range(asked, asked + state["width"])
    calls = [
        {"name": "search", "args": {"n": state["n"] + number}, "id": f"call_{number}", "type": "tool_call"}
        for number in numbers
    ]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def tools(state: Any, config: RunnableConfig) -> Json:
    """Search, and keep the result twice."""
    (call,) = state["messages"][-1].tool_calls
    message = search.invoke(call, config)
    copies = [{"id": call["id"], "result": message.content}] * (state.get("copies", 2) - 1)
    return {"messages": [message], "raw": copies, "report": "é" * 100}


def _coming(state: State) -> Any:
    return "tools" if state["messages"][-1].tool_calls else END


def _sent(state: State) -> Any:
    calls = state["messages"][-1].tool_calls
    return [Send("tools", {"messages": [AIMessage("", tool_calls=[call])]}) for call in calls] or END


def agent(given: Json) -> Any:
    """A model and its tools, in turn."""
    graph = StateGraph(State)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _sent if given.get("sends") else _coming, ["tools", END])
    graph.add_edge("tools", "model")
    return graph


def outer(given: Json) -> Any:
    """The agent as a node of another graph."""
    graph = StateGraph(State)
    inner = agent(given).compile()
    inner.name = "inner"
    graph.add_node("agent", inner)
    graph.add_edge(START, "agent")
    return graph


def swarm(given: Json) -> Any:
    """Three runs of a graph side by side; the longer the text, the later it comes."""

    def work(state: State) -> Json:
        time.sleep(state["turns"] / 4)
        return {"report": produce(state["n"])}

    def one(state: Any, config: RunnableConfig) -> Json:
        inner.invoke(state, config)
        return {"raw": [{"result": "a"}]}

    within = StateGraph(State)
    within.add_node("work", work)
    within.add_edge(START, "work")
    inner = within.compile()
    graph = StateGraph(State)
    graph.add_node("one", one)
    sizes = enumerate(given["sizes"])
    sent = [Send("one", {**_start(given), "turns": number, "n": n}) for number, n in sizes]
    graph.add_conditional_edges(START, lambda _: sent, ["one"])
    return graph


def fan(_: Json) -> Any:
    """Two nodes at once, and one that waits for both."""
    graph = StateGraph(State)
    for name, letters in (("left", 300), ("right", 400)):
        graph.add_node(name, lambda _, n=letters: {"raw": [{"result": produce(n)}]})
        graph.add_edge(START, name)
    graph.add_node("join", lambda state: {"report": produce(len(state["raw"]))})
    graph.add_edge(["left", "right"], "join")
    return graph


def asking(_: Json) -> Any:
    """A node that asks a person."""
    graph = StateGraph(State)
    graph.add_node("review", lambda _: {"report": interrupt("may I?")})
    graph.add_edge(START, "review")
    return graph


def growing(_: Json) -> Any:
    """A graph with one text."""
    graph = StateGraph(State)
    graph.add_node("grow", lambda state: {"report": produce(state["n"])})
    graph.add_edge(START, "grow")
    return graph


def delta(_: Json) -> Any:
    """A channel of which each checkpoint holds what is new only."""
    graph = StateGraph(Texts)
    graph.add_node("grow", lambda state: {"texts": [produce(state["n"])]})
    graph.add_edge(START, "grow")
    graph.add_conditional_edges("grow", lambda state: "grow" if len(state["texts"]) < state["turns"] else END)
    return graph


@task
def find(n: int) -> str:
    """Find so many letters."""
    return produce(n)


def _flow(saver: Any) -> Any:
    @entrypoint(checkpointer=saver)
    def flow(n: int, *, previous: str | None = None) -> Any:
        return entrypoint.final(value=n, save=(previous or "") + find(n).result())

    return flow


# --- runs ------------------------------------------------------------------------------------------------------------


def _start(given: Json) -> Json:
    chosen = {"turns": given["turns"], "width": given.get("width", 1), "copies": given.get("copies", 2)}
    return {**HELLO, **chosen, "n": given["n"], "raw": []}


def _summary(state: Json) -> Json:
    raw = state.get("raw") or ()
    return {"messages": len(state["messages"]), "raw": sum(len(each["result"]) for each in raw)}


def run(workflow: str, app: Any, saver: Any, given: Json, config: Any) -> Any:
    """Run a workflow; what its caller gets."""
    options = {"durability": given["durability"]} if "durability" in given else {}
    if workflow == "flow":
        flow = _flow(saver)
        return [flow.invoke(given["n"], config) for _ in range(2)]
    if workflow == "asking":
        app.invoke(_start(given), config)
        return app.invoke(Command(resume=produce(50)), config)["report"]
    if workflow == "forked":
        app.update_state(config, {"report": produce(given["n"])})
        return len(app.get_state(config).values["report"])
    if workflow == "dies":
        return [_failure(app, each, config, options) for each in (_start(given), None)]
    said = _summary(app.invoke(_start(given), config, **options))
    if workflow == "again":
        history = list(app.get_state_history(config))
        ended = _summary(app.invoke(None, config))
        # From before the last search: two nodes run again.
        again = _summary(app.invoke(None, history[2].config))
        return [said, ended, again]
    return said


def _failure(app: Any, given: Any, config: Any, options: Json) -> str:
    try:
        app.invoke(given, config, **options)
    except sqlite3.DataError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


async def arun(app: Any, given: Json, config: Any) -> Json:
    """Run the agent; what its caller gets."""
    return _summary(await app.ainvoke(_start(given), config))


GRAPHS = {"outer": outer, "swarm": swarm, "fan": fan, "asking": asking, "forked": growing, "delta": delta}


@contextlib.contextmanager
def running(engine: Json) -> Iterator[Callable[[str, Any], Any]]:
    """Yield what runs a workflow."""
    tracer = trace.get_tracer("program")
    threads = iter(range(1000))
    with tempfile.TemporaryDirectory() as folder:
        engine = {**engine, "file": str(Path(folder) / "checkpoints")}

        def compiled(workflow: str, given: Json, saver: Any) -> Any:
            app = GRAPHS.get(workflow, agent)(given).compile(checkpointer=saver)
            app.name = workflow
            return app

        async def astart(workflow: str, given: Json, thread: str) -> Json:
            config = {"configurable": {"thread_id": thread}, "recursion_limit": 100}
            async with async_saver_of(given["saver"], engine) as saver:
                said = await arun(compiled(workflow, given, saver), given, config)
                return {"said": said, "stored": stored(saver, given["saver"], engine, thread), "thread": thread}

        def start(workflow: str, given: Json) -> Json:
            thread = f"thread-{os.getpid()}-{next(threads)}"
            config = {"configurable": {"thread_id": thread}, "recursion_limit": 100}
            with tracer.start_as_current_span("program"):
                if given.get("later"):
                    return asyncio.run(astart(workflow, given, thread))
                with saver_of(given["saver"], engine) as saver:
                    said = run(workflow, compiled(workflow, given, saver), saver, given, config)
                    return {"said": said, "stored": stored(saver, given["saver"], engine, thread), "thread": thread}

        yield start
