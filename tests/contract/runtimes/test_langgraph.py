"""LangGraph's savers: memory, SQLite, and a real PostgreSQL.

A program's case says what its saver has stored, which is what must have been counted, byte for byte.
"""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from tests.contract.runtimes.steps import produce
from tests.contract.runtimes.suite import Case, Json, Payload, Runs, RuntimeContract
from tests.system.engines import postgres, starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

STATE, OUTPUT = "state", "output"
SIZE, PATHS = "agent_otel.workflow.payload.size", ["messages[].content", "raw[].result"]
MIB = 1024 * 1024
LIMIT_BYTES = 2 * 1024 * 1024
TURNS, LETTERS = 12, 100_000
KIB_100 = 100 * 1024
JSONB_BYTES = 268_435_455


def _payloads(workflow: str, checkpoints: int, **writes: int) -> tuple[Payload, ...]:
    """So many checkpoints, and how often each node has written; their bytes are the saver's to say."""
    written = [Payload(workflow, node.strip("."), OUTPUT, 0) for node, times in writes.items() for _ in range(times)]
    return (*([Payload(workflow, "", STATE, 0)] * checkpoints), *written)


def _letters(turns: int, n: int) -> int:
    return sum(len(produce(n + turn)) for turn in range(turns))


def _agent(workflow: str = "agent", turns: int = 3, n: int = 1000, **given: Any) -> Case:
    """Checkpoints: the input, the start, the model with each turn and at the end, the tools with each turn."""
    said = {"messages": 2 + 2 * turns, "raw": _letters(turns, n) * (given.get("copies", 2) - 1)}
    payloads = _payloads(workflow, 3 + 2 * turns, __start__=1, model=turns + 1, tools=turns)
    return Case(workflow, {"turns": turns, "n": n, **given}, said, payloads, ())


def _other(workflow: str, said: Any, payloads: tuple[Payload, ...], **given: Any) -> Case:
    return Case(workflow, {"turns": 3, "n": 1000, "saver": "counting", **given}, said, payloads, ())


class _Savers(RuntimeContract):
    """All that is true of every saver. Nothing of it is a step: a node's own span is others' to open."""

    program = "langgraph"
    environment = "langgraph-savers"
    runtime = "langgraph"
    integrations: ClassVar[dict[str, list[str]]] = {
        "langgraph-checkpoint": ["langgraph.checkpoint.base:BaseCheckpointSaver.__init__"],
        "langgraph": ["langgraph.pregel.main:Pregel.stream", "langgraph.pregel._loop:PregelLoop.put_writes"],
    }
    env: ClassVar[dict[str, str]] = {"AGENT_OTEL_CAPS": "", "AGENT_OTEL_PAYLOAD_WARN_RATIO": "0.2"}
    #: What a thread that has ended and is run again from before its last search does.
    again: ClassVar[tuple[Payload, ...]] = _payloads("again", 12, __start__=1, model=5, tools=4)

    @classmethod
    def _run(cls, environment: Environment, mode: str, plan: Json, folder: Any) -> Json:
        report = super()._run(environment, mode, plan, folder)
        for case in report["cases"].values():
            case.update(case["said"] or {})
        return report

    def numbers(self, runs: Runs, case_name: str, metric: str) -> Counter[str]:
        """Add up a metric by direction."""
        found: Counter[str] = Counter()
        for each in runs.on["cases"][case_name]["metrics"]:
            if each["name"] == f"agent_otel.workflow.payload.{metric}":
                found[each["attributes"].get("direction", "")] += each["sum"]
        return found

    def told(self, runs: Runs, case_name: str) -> list[Json]:
        """What the spans of payloads say, in the order they ended."""
        spans = (span for span in runs.on["cases"][case_name]["spans"] if span["name"].startswith("workflow_payload"))
        return [span["attributes"] for span in spans]

    def test_each_payload_is_counted_once(self, runs: Runs, case_name: str) -> None:
        case, report = self.cases()[case_name], runs.on["cases"][case_name]
        counted: Counter[tuple[str, str, str]] = Counter()
        for metric in report["metrics"]:
            if metric["name"] == SIZE:
                labels = metric["attributes"]
                key = (labels.get("gen_ai.workflow.name", ""), labels.get("workflow.activity", ""), labels["direction"])
                counted[key] += metric["count"]
        assert counted == Counter((p.workflow, p.activity, p.direction) for p in case.payloads)
        assert report["stored"]["count"] == sum(p.direction == STATE for p in case.payloads) - self.refusals(case_name)

    def refusals(self, case_name: str) -> int:
        """How many checkpoints of a case are made and not stored."""
        return 2 if case_name == "dies" else 0

    def test_what_is_counted_is_what_is_stored(self, runs: Runs, case_name: str) -> None:
        stored, counted = runs.on["cases"][case_name]["stored"], self.numbers(runs, case_name, "size")
        refused = sum(said["workflow.payload.bytes"] for said in self.told(runs, case_name) if _is_refused(said))
        assert counted[STATE] - refused == stored["state"]
        assert counted[OUTPUT] == stored["output"]

    def test_each_step_is_a_span(self, runs: Runs, case_name: str) -> None:
        """None is, and what comes near a cap is told below the program's own span, from whatever thread."""
        for span in runs.on["cases"][case_name]["spans"]:
            assert not span["name"].startswith("execute_activity")
            if "workflow.runtime" in span["attributes"]:
                assert span["parent"] == "program"
                assert span["attributes"]["workflow.execution.id"] == runs.on["cases"][case_name]["thread"]

    def test_what_has_moved_is_told_and_the_program_runs(self, runs: Runs) -> None:
        """Once for each distribution."""
        name, case = next(iter(self.cases().items()))
        assert runs.moved["cases"][name]["said"] == case.said
        assert [runs.moved["integrations"][name] for name in self.integrations] == [["unmatched"]] * len(
            self.integrations
        )
        said = [text.split()[0] for text in runs.moved["cases"][name]["messages"] if "is not instrumented" in text]
        assert len(said) == len(set(said)) == len(self.integrations)
        assert runs.moved["errors"] == {}

    def test_a_tool_in_a_step_belongs_to_it(self, runs: Runs) -> None:
        """Both say the thread, so that whose results fill a checkpoint is found by the ids of the calls."""
        case = runs.on["cases"][next(iter(self.cases()))]
        tools = [span["attributes"] for span in case["spans"] if span["name"] == "execute_tool search"]
        assert [tool["gen_ai.conversation.id"] for tool in tools] == [case["thread"]] * 3

    def test_what_an_agent_stores_grows_with_the_square_of_its_turns(self, runs: Runs) -> None:
        """After the model's turn and after the tools' all results so far, and each once more as what a node wrote."""
        results = (2 * sum(range(21)) + 20) * KIB_100
        stored = runs.on["cases"]["quadratic"]["stored"]
        beside = stored["state"] + stored["output"] - results
        assert 0 < beside < results / 50
        counted = self.numbers(runs, "quadratic", "size")
        assert counted[STATE] + counted[OUTPUT] == results + beside


class TestLangGraph(_Savers):
    """Memory and SQLite, and what programs make of them."""

    @classmethod
    def cases(cls) -> dict[str, Case]:
        sends = Counter({"__start__": 1, "model": 4, "tools": 6})
        found = {
            "memory": _agent(saver="memory"),
            "memory async": _agent(saver="memory", later=True),
            "sqlite": _agent(saver="sqlite"),
            "sqlite async": _agent(saver="sqlite", later=True),
            "counting": _agent(saver="counting"),
            "handing": _agent(saver="handing"),
            "encrypted": _agent(saver="encrypted"),
            "pickled": _agent(saver="pickled"),
            "given later": _agent(saver="given later"),
            # Both tasks of a turn write, and neither's path tells its node.
            "sends": _other(
                "agent", {"messages": 11, "raw": _letters(6, 1000)}, _payloads("agent", 9, **sends), sends=True, width=2
            ),
            # A namespace of its own: the start twice, and the node that the agent is.
            "outer": _other(
                "outer",
                {"messages": 8, "raw": _letters(3, 1000)},
                _payloads("outer", 12, __start__=2, agent=1, model=4, tools=3),
                saver="sqlite",
            ),
            "fan": _other(
                "fan", {"messages": 1, "raw": 700}, _payloads("fan", 4, __start__=1, left=1, right=1, join=1)
            ),
            # The question, the answer, which is no node's, and what the node makes of it.
            "asking": _other("asking", produce(50), _payloads("asking", 3, __start__=1, review=2, **{".": 1})),
            "again": _other("again", [{"messages": 8, "raw": _letters(3, 1000)}] * 3, cls.again),
            "forked": _other("forked", 1000, _payloads("", 1)),
            "flow": _other("flow", [1000, 1000], _payloads("LangGraph", 4, find=2, flow=2)),
            "quadratic": _agent(turns=20, n=KIB_100, copies=1, saver="sqlite"),
            **cls.durable(),
        }
        return {name: case for name, case in found.items() if name not in cls.without}

    @classmethod
    def durable(cls) -> dict[str, Case]:
        """Cases that say when checkpoints are saved."""
        said = {"messages": 8, "raw": _letters(3, 1000)}
        found = {
            "sync": _other("agent", said, _payloads("agent", 9, __start__=1, model=4, tools=3), durability="sync"),
            "exit": _other("agent", said, _payloads("agent", 1), durability="exit"),
            # What nodes wrote, and the checkpoint that it is added to.
            "delta": _other("delta", {"messages": 1, "raw": 0}, _payloads("delta", 5, __start__=1, grow=3)),
            "delta exit": _other("delta", {"messages": 1, "raw": 0}, _payloads("delta", 2, grow=3), durability="exit"),
        }
        if sys.version_info >= (3, 11):  # and sqlite3.Connection.setlimit
            found["swarm"] = _other(
                "swarm",
                {"messages": 1, "raw": 3},
                # Three of the graph, and three of each run.
                _payloads("swarm", 12, __start__=4, one=3, work=3),
                sizes=[700_000, 1_100_000, 1_500_000],
                saver="limited",
            )
            found["dies"] = _other(
                "dies",
                ["DataError: string or blob too big"] * 2,
                # The 24th checkpoint is refused; the node that wrote it does not run again.
                _payloads("dies", 25, __start__=1, model=11, tools=11),
                turns=TURNS,
                n=LETTERS,
                saver="limited",
                durability="sync",
            )
        return found

    def test_a_saver_s_calls_are_payloads(self, runs: Runs, case_name: str) -> None:
        """But for those that store nothing, because a node that runs again finds there what it wrote."""
        calls = runs.on["cases"][case_name]["stored"].get("calls")
        if calls is not None and case_name != "again":
            directions = Counter(payload.direction for payload in self.cases()[case_name].payloads)
            assert calls == [directions[STATE], directions[OUTPUT]]

    def test_a_step_s_span_shows_the_payload_nearer_to_its_cap(self, runs: Runs) -> None:
        """A checkpoint's, from the warn ratio up."""
        first, *_ = self.dying(runs)
        assert first["workflow.payload.direction"] == STATE
        assert first["workflow.payload.cap_bytes"] == LIMIT_BYTES
        assert first["workflow.payload.cap_source"] == "discovered"
        assert first["workflow.payload.bytes"] > 0.2 * LIMIT_BYTES

    def test_turns_to_the_cap_are_known_from_the_third_on(self, runs: Runs) -> None:
        left = [said["workflow.payload.turns_to_cap"] for said in self.dying(runs)]
        # Ten turns of twice 100,000 bytes fit, and the eleventh comes twice. Each is told after the tools have run and
        # again after the model has.
        assert left == [7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0, 0, 0]

    def test_from_the_warn_ratio_up_the_payload_is_looked_into(self, runs: Runs) -> None:
        looked_into = [said for said in self.dying(runs) if "workflow.payload.largest_path" in said]
        assert len(looked_into) == 9  # once at each tenth of the cap
        for turn, said in enumerate(looked_into, 3):
            assert said["workflow.payload.largest_path"] in PATHS
            assert said["workflow.payload.largest_path_bytes"] == pytest.approx(_letters(turn, LETTERS), rel=0.001)
            assert said["workflow.payload.duplicate_bytes"] == pytest.approx(_letters(turn, LETTERS), rel=0.001)
            assert sorted(said["workflow.payload.duplicate_paths"]) == PATHS
            assert said["workflow.payload.largest_tool"] == "search"
            assert said["workflow.payload.largest_tool_bytes"] == pytest.approx(2 * _letters(turn, LETTERS), rel=0.001)
            assert said["workflow.payload.amplification"] == pytest.approx(2, rel=0.01)

    @pytest.mark.parametrize("metric", ["growth", "few_turns_left"])
    def test_runs_side_by_side_are_no_turns(self, runs: Runs, metric: str) -> None:
        """Each has a state and a text of its own, under a limit of 2 MiB: none grows."""
        if "swarm" not in self.cases():
            pytest.skip("no limit to set")
        assert +self.numbers(runs, "swarm", metric) == {}

    def test_a_refused_checkpoint_has_been_told_before(self, runs: Runs) -> None:
        """From 0.8 of the cap on: after the tools and after the model of the ninth turn and of the tenth."""
        self.dying(runs)
        assert self.numbers(runs, "dies", "near_cap") == {STATE: 4}
        assert self.numbers(runs, "dies", "few_turns_left") == {"": 1}

    def test_a_checkpoint_that_is_refused_again_is_a_stuck_retry(self, runs: Runs) -> None:
        refused = [_is_refused(said) for said in self.dying(runs)]
        assert refused == [False] * 16 + [True] * 2
        assert self.numbers(runs, "dies", "over_cap") == {STATE: 2}
        assert self.numbers(runs, "dies", "rejected") == {STATE: 2}
        assert self.numbers(runs, "dies", "stuck_retries") == {STATE: 1}

    def dying(self, runs: Runs) -> list[Json]:
        """What the spans say of the agent that dies at its cap."""
        if "dies" not in self.cases():
            pytest.skip("no limit to set, or no order of checkpoints")
        return self.told(runs, "dies")


class TestLangGraph06(TestLangGraph):
    """langgraph-checkpoint 3."""

    environment = "langgraph-savers-0.6"
    without = ("delta", "delta exit")  # its channel is not there
    again = _payloads("again", 11, __start__=1, model=5, tools=3)


class TestLangGraphOldest(TestLangGraph06):
    """langgraph-checkpoint 2."""

    environment = "langgraph-savers-oldest"
    integrations: ClassVar[dict[str, list[str]]] = {
        "langgraph-checkpoint": ["langgraph.checkpoint.base:BaseCheckpointSaver.__init__"],
        "langgraph": ["langgraph.pregel:Pregel.stream", "langgraph.pregel.loop:PregelLoop.put_writes"],
    }

    @classmethod
    def durable(cls) -> dict[str, Case]:
        return {}


class TestPostgres(_Savers):
    """Other channels in a column of bytes for each, texts inside the checkpoint's jsonb."""

    integrations: ClassVar[dict[str, list[str]]] = {
        **_Savers.integrations,
        "langgraph-checkpoint-postgres": ["langgraph.checkpoint.postgres.base:Jsonb.__init__"],
    }

    @classmethod
    @contextlib.contextmanager
    def engine(cls, environment: Callable[[str], Environment]) -> Iterator[Json]:
        del environment
        with starting.or_skip(postgres.server()) as server:
            yield {"dsn": server.dsn}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        return {
            "sync": _agent(saver="postgres"),
            "async": _agent(saver="postgres", later=True),
            "quadratic": _agent(turns=20, n=KIB_100, copies=1, saver="postgres"),
        }

    def test_a_step_s_span_shows_the_payload_nearer_to_its_cap(self, runs: Runs) -> None:
        """None is near: of two caps that of a value in a column of bytes is the larger; 1 MiB is told all the same."""
        assert all(said["workflow.payload.bytes"] >= MIB for name in self.cases() for said in self.told(runs, name))
        caps = {
            (metric["attributes"]["direction"], metric["sum"])
            for metric in runs.on["cases"]["sync"]["metrics"]
            if metric["name"] == "agent_otel.workflow.payload.cap"
        }
        assert caps == {(STATE, 1_073_741_823), (OUTPUT, 1_073_741_823)}

    test_turns_to_the_cap_are_known_from_the_third_on = None  # type: ignore[assignment]
    test_from_the_warn_ratio_up_the_payload_is_looked_into = None  # type: ignore[assignment]


class TestPostgresOldest(TestPostgres):
    """All channels in columns of bytes."""

    environment = "langgraph-savers-oldest"
    integrations: ClassVar[dict[str, list[str]]] = {
        **TestLangGraphOldest.integrations,
        "langgraph-checkpoint-postgres": ["langgraph.checkpoint.postgres.base:Jsonb.__init__"],
    }


def test_a_text_that_jsonb_cannot_hold_is_refused(environment: Callable[[str], Environment]) -> None:
    """256 MiB, one byte more than PostgreSQL takes; a list of that size would pass."""
    script = f"""
        import json
        from tests.contract.child import Telemetry
        telemetry = Telemetry()
        from tests.contract.runtimes.programs import langgraph
        try:
            with langgraph.running(json.loads({{engine!r}})) as start:
                start("forked", {{{{"saver": "postgres", "n": {JSONB_BYTES + 1}}}}})
        except Exception as error:
            said = f"{{{{type(error).__name__}}}}: {{{{error}}}}"
        print(json.dumps({{{{"said": said, "metrics": telemetry.metrics()}}}}))
    """
    # Over TCP, which takes megabytes at a time: libpq moves all that is left after each part that a socket has taken.
    port = str(starting.free_port())
    with starting.or_skip(postgres.server(listen_addresses="127.0.0.1", port=port)):
        script = script.format(engine=json.dumps({"dsn": f"postgresql://postgres@127.0.0.1:{port}/postgres"}))
        run = environment("langgraph-savers").run(script, env={"AGENT_OTEL": "1"}, timeout=110, check=True)
    report = json.loads(run.stdout)
    assert report["said"].startswith("ProgramLimitExceeded: string too long to represent as jsonb string")
    numbers = {
        metric["name"].removeprefix("agent_otel.workflow.payload."): metric["sum"]
        for metric in report["metrics"]
        if metric["attributes"].get("direction") == STATE
    }
    assert numbers["size"] == JSONB_BYTES + 1
    assert numbers["cap"] == JSONB_BYTES
    assert numbers["over_cap"] == numbers["rejected"] == 1
    assert numbers["stuck_retries"] == 0


def test_what_a_saver_fails_to_store_is_no_payload(environment: Callable[[str], Environment]) -> None:
    """A database that is read-only stores nothing, and refuses nothing for its size."""
    script = """
        import contextlib, json, sqlite3
        from tests.contract.child import Telemetry
        telemetry = Telemetry()
        from agent_otel._internal import errors
        from langgraph.checkpoint.sqlite import SqliteSaver
        from tests.contract.runtimes.programs import langgraph

        counted, config = [], {"configurable": {"thread_id": "thread"}}
        with contextlib.closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
            saver = SqliteSaver(connection)
            saver.setup()
            app = langgraph.growing({}).compile(checkpointer=saver)
            connection.execute("PRAGMA query_only = ON")
            try:
                app.invoke({"n": 1000, "messages": []}, config)
            except sqlite3.OperationalError as error:
                said = str(error)
            counted.append(telemetry.metrics())
            connection.execute("PRAGMA query_only = OFF")
            app.invoke({"n": 1000, "messages": []}, config)
            counted.append(telemetry.metrics())
            stored = [connection.execute(query, ("thread",)).fetchone()[1] for query in langgraph.SQLITE]
        print(json.dumps([said, counted, stored, dict(errors.errors)]))
    """
    run = environment("langgraph-savers").run(script, env={"AGENT_OTEL": "1"}, check=True)
    said, counted, stored, errors = json.loads(run.stdout)
    assert (said, errors) == ("attempt to write a readonly database", {})
    failed, written = ([each for each in metrics if each["name"] == SIZE] for metrics in counted)
    assert failed == []
    assert [sum(m["sum"] for m in written if m["attributes"]["direction"] == of) for of in (STATE, OUTPUT)] == stored


def test_a_graph_with_its_own_memory_grows_wherever_it_is_started(environment: Callable[[str], Environment]) -> None:
    """Four runs of a sub-agent that keeps its messages, at each second turn sent after another task."""
    script = """
        import json, operator, time
        from typing import Annotated, TypedDict
        from tests.contract.child import Telemetry
        telemetry = Telemetry()
        from agent_otel.core.executions import executions
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, StateGraph
        from langgraph.types import Send

        class Memory(TypedDict, total=False):
            messages: Annotated[list, operator.add]
            turn: int

        agent = StateGraph(Memory)
        agent.add_node("model", lambda state: {"messages": ["a" * 200_000]})
        agent.add_edge(START, "model")
        agent = agent.compile(checkpointer=True)

        def tools(state):
            return {"messages": [len(agent.invoke({"messages": ["b"]})["messages"]) if state["is_agent"] else 0]}

        def send(state):
            before = [Send("tools", {"is_agent": False})] * (state["turn"] % 2)
            return [*before, Send("tools", {"is_agent": True})] if state["turn"] < 5 else "__end__"

        graph = StateGraph(Memory)
        graph.add_node("next", lambda state: {"turn": state.get("turn", 0) + 1})
        graph.add_node("tools", tools)
        graph.add_edge(START, "next")
        graph.add_conditional_edges("next", send, ["tools", "__end__"])
        graph.add_edge("tools", "next")
        app = graph.compile(checkpointer=InMemorySaver())
        said = app.invoke({"messages": []}, {"configurable": {"thread_id": "thread"}})["messages"]
        tracks = executions.known("thread").tracks
        print(json.dumps([said, max((track.sizes for track in tracks.values()), key=max)]))
    """
    run = environment("langgraph-savers").run(script, env={"AGENT_OTEL": "1"}, check=True)
    said, sizes = json.loads(run.stdout)
    assert said == [0, 2, 4, 0, 6, 8]
    # One series of four states, each with 200,000 letters more.
    assert [size // 200_000 for size in sizes] == [1, 2, 3, 4]


def test_the_largest_payload_may_be_of_a_sixth_task(environment: Callable[[str], Environment]) -> None:
    """It has no series, because payloads of four tasks side by side have; the execution's largest it is."""
    script = """
        import json
        from tests.contract.child import Telemetry
        telemetry = Telemetry()
        from langgraph.checkpoint.memory import InMemorySaver
        from tests.contract.runtimes.programs import langgraph

        given = {"turns": 0, "n": 1, "sizes": [1_000, 1_000, 1_000, 1_000, 1_000, 100_000]}
        app = langgraph.swarm(given).compile(checkpointer=InMemorySaver())
        app.invoke({"n": 1}, {"configurable": {"thread_id": "thread"}})
        print(json.dumps([m for m in telemetry.metrics() if m["name"].endswith(".payload.size")]))
    """
    run = environment("langgraph-savers").run(script, env={"AGENT_OTEL": "1"}, check=True)
    metrics = json.loads(run.stdout)
    (largest,) = (m for m in metrics if m["name"] == "agent_otel.execution.payload.size")
    # The state of the sixth run: its text, and less than 2 kB beside it.
    assert (largest["count"], 100_000 < largest["sum"] < 102_000) == (1, True)


def _is_refused(said: Json) -> bool:
    return bool(said.get("workflow.payload.rejected"))
