"""What telemetry goes through must not reach the agent: dead and hanging collectors, taken ports, wrong settings."""

from __future__ import annotations

import json
import socket
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import Deadline, communicate
from tests.unit.telemetry import wire
from tests.unit.telemetry.conftest import CALL
from tests.unit.telemetry.wire import key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    from tests.environments import Environment
    from tests.servers.otlp import OtlpReceiver

_AGENT = (
    CALL
    + """
import json
print(json.dumps([call("search", "x" * 300), call("search", ["y"])]), flush=True)
"""
)
_ANSWER = ["x" * 300, ["y"]]
#: What an exit waits for at most.
_EXIT_SECONDS = 5


def _warnings(child: CompletedProcess[str]) -> list[str]:
    """The lines of ours on standard error: logging's handler of last resort prints the bare message."""
    return child.stderr.splitlines()


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_hanging_exporter(environment: Callable[[str], Environment], hanging: OtlpReceiver, protocol: str) -> None:
    env = {"AGENT_OTEL": "1", **hanging.environment(protocol), "OTEL_METRICS_EXPORTER": "otlp"}
    with environment("bare").start(str(environment("bare").python), "-c", _AGENT, env=env) as child:
        assert child.stdout is not None
        assert _ANSWER == json.loads(child.stdout.readline())
        deadline = Deadline(3 * _EXIT_SECONDS)
        _, complaints = communicate(child, 60)
        is_late = deadline.has_passed()

    assert 0 == child.returncode
    assert hanging.exports_begun >= 2
    assert complaints.count("Telemetry could not be delivered within 5 s") == 1
    assert not is_late


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_an_unreachable_endpoint(environment: Callable[[str], Environment], free_port: int, protocol: str) -> None:
    env = {
        "AGENT_OTEL": "1",
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port}",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    child = environment("bare").run(_AGENT, env=env, check=True)

    assert _ANSWER == json.loads(child.stdout)
    assert "Traceback" not in child.stderr


def test_a_taken_port(environment: Callable[[str], Environment]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
        child = environment("bare").run(_AGENT, env=env, check=True)

    assert _ANSWER == json.loads(child.stdout)
    (warning,) = _warnings(child)
    assert warning.startswith(f"agent_otel cannot serve metrics on 127.0.0.1:{port}, which AGENT_OTEL_PROMETHEUS_PORT ")
    assert "PROMETHEUS_MULTIPROC_DIR" in warning


def test_a_host_that_does_not_exist(environment: Callable[[str], Environment], free_port: int) -> None:
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_PROMETHEUS_PORT": str(free_port),
        "AGENT_OTEL_PROMETHEUS_HOST": "host.invalid",
    }
    child = environment("bare").run(_AGENT, env=env, check=True)

    assert _ANSWER == json.loads(child.stdout)
    (warning,) = _warnings(child)
    assert warning.startswith(f"agent_otel cannot serve metrics on host.invalid:{free_port}")


_REPORT = (
    _AGENT
    + """
import prometheus_client
from agent_otel import settings
print(json.dumps(prometheus_client.generate_latest().decode()))
print(settings.current() == settings.Settings())
"""
)


def test_a_wrong_value_in_every_setting(environment: Callable[[str], Environment]) -> None:
    wrong = {
        "AGENT_OTEL_SPANS": "some",
        "AGENT_OTEL_METRICS": "graphite",
        "AGENT_OTEL_PROMETHEUS_PORT": "70000",
        "AGENT_OTEL_SDK": "maybe",
        "AGENT_OTEL_LARGE_RESULT_BYTES": "16 parsecs",
        "AGENT_OTEL_FLUSH_ON_SIGTERM": "sometimes",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "A_LITTLE",
    }
    defaults_again = {"AGENT_OTEL_LOG_LARGE_RESULTS": ""}
    child = environment("bare").run(_REPORT, env={"AGENT_OTEL": "1", **defaults_again, **wrong}, check=True)

    answer, exposed, defaults = child.stdout.splitlines()
    assert (_ANSWER, "True") == (json.loads(answer), defaults)
    assert (
        2 == wire.scraped(json.loads(exposed))[key("agent_otel_tool_args_size_bytes_count", gen_ai_tool_name="search")]
    )
    warnings = _warnings(child)
    assert len(wrong) == len(warnings)
    for variable, value in wrong.items():
        assert [True] == [f"{variable}={value!r}" in line for line in warnings if variable in line]


@pytest.mark.parametrize(
    "env",
    [
        {"AGENT_OTEL_LARGE_RESULT_BYTES": "9" * 400},
        {"AGENT_OTEL_HASH_KEY": "k" * 200},
        {"AGENT_OTEL_DISABLED_INTEGRATIONS": "no-such-thing,,"},
    ],
)
def test_odd_but_possible_values(environment: Callable[[str], Environment], env: dict[str, str]) -> None:
    child = environment("bare").run(_REPORT, env={"AGENT_OTEL": "1", **env}, check=True)

    answer, exposed, _ = child.stdout.splitlines()
    assert _ANSWER == json.loads(answer)
    assert (
        2 == wire.scraped(json.loads(exposed))[key("agent_otel_tool_args_size_bytes_count", gen_ai_tool_name="search")]
    )
    assert "Traceback" not in child.stderr
    assert len(_warnings(child)) <= 1


def test_a_hash_key_that_is_no_text(environment: Callable[[str], Environment]) -> None:
    """A key of bytes that are not UTF-8 reaches Python with lone surrogates."""
    program = "import os; os.environb[b'AGENT_OTEL_HASH_KEY'] = b'\\xff\\xfe' * 8\n" + _REPORT
    child = environment("bare").run(program, env={"AGENT_OTEL": "1"}, check=True)

    assert _ANSWER == json.loads(child.stdout.splitlines()[0])
    assert "" == child.stderr


def test_unknown_exporters(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    env = {
        **receiver.environment(),
        "AGENT_OTEL": "1",
        "OTEL_TRACES_EXPORTER": "pigeon,otlp",
        "OTEL_METRICS_EXPORTER": "pigeon",
    }
    child = environment("bare").run(_REPORT, env=env, check=True)

    answer, exposed, _ = child.stdout.splitlines()
    assert _ANSWER == json.loads(answer)
    assert 2 == len(receiver.wait_for_spans(2)), "the exporter that exists is used"
    assert (
        2 == wire.scraped(json.loads(exposed))[key("agent_otel_tool_args_size_bytes_count", gen_ai_tool_name="search")]
    )
    assert ["metrics", "traces"] == sorted(line.split("ask for the ")[1].split()[0] for line in _warnings(child))
    assert all("'pigeon'" in line for line in _warnings(child))


def test_a_name_that_the_program_has_taken(environment: Callable[[str], Environment]) -> None:
    taken = 'import prometheus_client; prometheus_client.Counter("agent_otel_tool_repeats", "Theirs.").inc(42)\n'
    child = environment("bare").run(taken + _REPORT, env={"AGENT_OTEL": "1"}, check=True)

    answer, exposed, _ = child.stdout.splitlines()
    scraped = wire.scraped(json.loads(exposed))
    assert _ANSWER == json.loads(answer)
    assert 42 == scraped[key("agent_otel_tool_repeats_total")]
    assert key("agent_otel_tool_repeats_total", gen_ai_tool_name="search", by="arguments") not in scraped
    assert 2 == scraped[key("agent_otel_tool_args_size_bytes_count", gen_ai_tool_name="search")]
    (warning,) = _warnings(child)
    assert warning.startswith("Another part of the program already exposes agent_otel_tool_repeats;")


@pytest.mark.parametrize(("folder", "error"), [("missing", "FileNotFoundError"), ("a file", "NotADirectoryError")])
def test_an_unusable_multiprocess_folder(
    environment: Callable[[str], Environment], tmp_path: Path, receiver: OtlpReceiver, folder: str, error: str
) -> None:
    (tmp_path / "a file").touch()
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_METRICS": "both",
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / folder),
        **receiver.environment(),
    }
    child = environment("bare").run(_AGENT, env=env, check=True)

    assert _ANSWER == json.loads(child.stdout)
    assert [2] == [point.count for point in receiver.latest("agent_otel.tool.result.size")]
    (warning,) = _warnings(child)
    assert warning.endswith(error)


_MANY = (
    CALL
    + """
import json, resource, tracemalloc
import prometheus_client
for number in range(200):
    call(f"tool_{number}", "x")
tracemalloc.start()
before = tracemalloc.get_traced_memory()[0]
for number in range(200, 10_000):
    call(f"invented_{number}", "x", agent=f"agent_{number}")
grown = tracemalloc.get_traced_memory()[0] - before
print(json.dumps([grown, prometheus_client.generate_latest().decode()]))
"""
)


def test_ten_thousand_invented_names(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "both", **receiver.environment(), "OTEL_TRACES_EXPORTER": "none"}
    env["OTEL_METRIC_EXPORT_INTERVAL"] = "900000"  # at an export, the SDK adds its own copy of each series
    child = environment("bare").run(_MANY, env=env, check=True)
    grown, exposed = json.loads(child.stdout)

    scraped = wire.scraped(exposed)
    sizes: Counter[str] = Counter()
    for (name, labels), value in scraped.items():
        if name == "agent_otel_tool_result_size_bytes_count":
            sizes[dict(labels)["gen_ai_tool_name"]] += int(value)
    assert {*(f"tool_{number}" for number in range(100)), "_other"} == set(sizes)
    assert 9_900 == sizes["_other"]
    agents = {dict(labels).get("gen_ai_agent_name") for name, labels in scraped if "duration_seconds_count" in name}
    assert 50 + 1 + 1 == len(agents), "50 names, _other and none"
    assert scraped == wire.pushed(receiver.points)
    assert grown < 4 * 1024 * 1024
    assert [
        "More than 100 distinct values of gen_ai.tool.name",
        "More than 50 distinct values of gen_ai.agent.name",
        "More than 100 distinct values of gen_ai.workflow.name",  # of a run that names only one, both have the name
    ] == [warning.partition(";")[0] for warning in _warnings(child)]


def test_lone_surrogates_lose_nothing(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    program = (
        CALL
        + """
bad = "\\ud800"
with agent_otel.execution("run" + bad, workflow="flow" + bad, agent="agent" + bad):
    call("tool" + bad, "result" + bad, {"key" + bad: "value" + bad}, call_id="call" + bad)
    fail("fails" + bad, type("Odd", (ValueError,), {"__module__": "m" + bad})("message" + bad))
"""
    )
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_METRICS": "both",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
        **receiver.environment(),
    }
    child = environment("bare").run(program + 'call("fine", "x")', env=env, check=True)

    assert ["execute_tool fails?", "execute_tool fine", "execute_tool tool?", "invoke_workflow flow?"] == sorted(
        span.name for span in receiver.wait_for_spans(4)
    )
    names: dict[str, Any] = {
        point.attributes["gen_ai.tool.name"]: point.count for point in receiver.latest("agent_otel.tool.args.size")
    }
    assert {"tool?": 1, "fails?": 1, "fine": 1} == names
    assert "" == child.stderr


_STEPS = (
    CALL
    + """
from agent_otel.core import handler, step_handler
from agent_otel.core.types import Payload, Step, StepReader, Invocation

bad = "\\ud800"


def step_reader(activity):
    step = Step("runtime" + bad, activity, "flow" + bad, "run" + bad)
    return StepReader(
        lambda *_: step, lambda *_: Payload("input", 9, data='{"a": 10}'), lambda *_: None, lambda _error: None
    )


with step_handler.enter_step(step_reader("step" + bad), Invocation(None, (), {})) as visit:
    visit.returned(None)
with step_handler.enter_step(step_reader(7), Invocation(None, (), {})) as visit:
    visit.returned(None)
big = '{"' + "k" * 10 + '": "' + "x" * 2_000_000 + '"}'
agent_otel.payload(big, runtime="temporal" + bad, direction="output" + bad, workflow="w" + bad, activity="sent" + bad)
agent_otel.payload(big, runtime=b"temporal", direction=None, workflow=object(), activity=[1], execution=5)
agent_otel.payload(big, runtime="temporal", direction="output", workflow="fine", activity="fine")
call("fine", "x")
"""
)


def test_lone_surrogates_in_names_of_steps_lose_nothing(
    environment: Callable[[str], Environment], receiver: OtlpReceiver
) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "both", **receiver.environment()}
    child = environment("bare").run(_STEPS, env=env, check=True)

    assert [
        "execute_activity",
        "execute_activity step?",
        "execute_tool fine",
        "workflow_payload",
        "workflow_payload fine",
        "workflow_payload sent?",
    ] == sorted(span.name for span in receiver.wait_for_spans(6))
    labels = ("workflow.runtime", "gen_ai.workflow.name", "workflow.activity", "direction")
    counts = {
        tuple(point.attributes.get(label, "") for label in labels): point.count
        for point in receiver.latest("agent_otel.workflow.payload.size")
    }
    assert {
        ("runtime?", "flow?", "step?", "input"): 1,
        ("runtime?", "flow?", "", "input"): 1,
        ("temporal?", "w?", "sent?", "_other"): 1,
        ("_other", "", "", "_other"): 1,
        ("temporal", "fine", "fine", "output"): 1,
    } == counts
    assert "" == child.stderr


@pytest.mark.parametrize(
    ("more", "count"),
    [({}, 1), ({"AGENT_OTEL_METRICS": "auto"}, 0), ({"OTEL_METRICS_EXPORTER": "console"}, 0)],
    ids=["nowhere", "to the registry", "to an exporter"],
)
def test_metrics_that_go_nowhere(environment: Callable[[str], Environment], more: dict[str, str], count: int) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "otel"} | more
    child = environment("bare").run(CALL + "call('search', 'x'); call('search', 'y')", env=env, check=True)
    assert count == child.stderr.count("AGENT_OTEL_METRICS=otel, but the program has no MeterProvider")
    assert count == len(_warnings(child))


_BROKEN = (
    """
import sys, time

class Broken:
    attempts = 0

    def find_spec(self, name, path=None, target=None):
        if name == "prometheus_client":
            self.attempts += 1
            raise OSError("too many open files")

broken = Broken()
sys.meta_path.insert(0, broken)
clock = 1000.0
time.monotonic = lambda: clock
"""
    + CALL
    + """
from agent_otel._internal import errors
agent_otel.tool_call
broken.attempts = 0
for wait in (0, 0.5, 0.5, 1, 1, 4, 7, 1, 1000, 1000, 1000, 1000, 1000, 299, 1):
    clock += wait
    for _ in range(50):
        assert call("search", "x") == "x"
    print(broken.attempts, end=" ")
sys.meta_path.remove(broken)
call("search", "x")
clock += 300
assert sum(errors.errors.values()) - 1 == 751, errors.errors  # and one before the first call
call("search", "x")
from prometheus_client import generate_latest
print([line for line in generate_latest().decode().splitlines() if "result_size_bytes_count{" in line])
"""
)


def test_a_first_use_that_fails_is_tried_again_ever_more_rarely(environment: Callable[[str], Environment]) -> None:
    """Each attempt costs milliseconds; waits are 1, 2, 4, 8 s and so on, at most 300 s."""
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus"}
    child = environment("bare").run(_BROKEN, env=env, check=True)

    counted = """['agent_otel_tool_result_size_bytes_count{error_type="",gen_ai_tool_name="search"} 1.0']"""
    assert [f"1 1 2 2 3 4 4 5 6 7 8 9 10 10 11 {counted}"] == child.stdout.splitlines()


_ABSURD = (
    CALL
    + """
from agent_otel.core import handler, step_handler
from agent_otel.core.cost import usage
from agent_otel.core.types import Invocation, ModelReader, ModelRequest, RequestPart

request = ModelRequest([RequestPart("tools", [{"function": {"name": "search"}}]), RequestPart("user", "hi")], model="m")
reader = ModelReader(lambda _: request, usage.read)
for tokens in (7, 2**62, 2**62, 10**30, 10**400):
    with agent_otel.execution("run"):
        visit = handler.enter_model(reader, Invocation(None, (), {}))
        with visit:
            visit.returned({"prompt_tokens": tokens, "completion_tokens": tokens})
        call("fine", "x")
"""
)


def test_absurd_numbers_of_tokens_lose_nothing(
    environment: Callable[[str], Environment], receiver: OtlpReceiver
) -> None:
    """OTLP has integers of 64 bits: a larger one, or such a sum, would lose each later batch of the process."""
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "both", "AGENT_OTEL_CONTEXT_WINDOWS": "m=1000"}
    child = environment("bare").run(_ABSURD, env={**env, **receiver.environment()}, check=True)

    assert 5 == sum(span.name == "execute_tool fine" for span in receiver.wait_for_spans(10))
    assert [5] == [point.count for point in receiver.latest("agent_otel.tool.args.size")]
    assert [14] == [point.sum for point in receiver.latest("agent_otel.execution.tokens")]
    assert "" == child.stderr


_STATUS = (
    CALL
    + """
import os, time
from agent_otel._internal import errors
call("search", "x")
until = time.monotonic() + 30
while not errors.warnings() and not os.path.getsize(os.environ["WAITS_FOR"]) and time.monotonic() < until:
    time.sleep(0.01)
"""
)


def test_a_status_file_replaces_nothing_but_a_status(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    """One line of the log for each; `test_status_file.py` has the kinds of files."""
    other = tmp_path / "other"
    other.write_bytes(b"")
    for named, said in (
        (other, "is not a status: it is left alone"),
        (tmp_path / "missing" / "status", "cannot be written: No such file or directory."),
    ):
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_STATUS_FILE": str(named), "WAITS_FOR": str(other)}
        child = environment("bare").run(_STATUS, env=env, check=True)
        assert child.stderr.startswith(f"AGENT_OTEL_STATUS_FILE: {named} {said}")
        assert 1 == len(child.stderr.splitlines())
        assert [other] == list(tmp_path.iterdir())
        assert b"" == other.read_bytes()


_FORKING = """
import json, os, sys, time
import agent_otel

@agent_otel.tool
def search(query): return query

def started():
    data = json.JSONDecoder().raw_decode(said[said.index("{"):])[0]
    found = data["resource_metrics"][0]["scope_metrics"][0]["metrics"]
    by_name = {one["name"]: one["data"]["data_points"] for one in found}
    return {
        tuple(point["attributes"].items()): point["value"] for point in by_name["agent_otel.process.start_time"]
    }

search("a")
time.sleep(0.1)
forked_at = time.time()
ours, theirs = os.pipe()
if os.fork() == 0:
    os.dup2(theirs, 1)
    search("b")
    agent_otel.flush()
    os._exit(0)
os.close(theirs)
said = open(ours).read()
print(json.dumps([[labels, at >= forked_at] for labels, at in started().items()]))
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize(("given", "labels"), [("", []), ("team=search", [["team", "search"]])])
def test_the_counts_of_a_forked_child_begin_with_it(
    environment: Callable[[str], Environment], given: str, labels: list[list[str]]
) -> None:
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_LABELS": given,
        "OTEL_METRICS_EXPORTER": "console",
        "OTEL_TRACES_EXPORTER": "none",
    }
    child = environment("bare").run(_FORKING, env=env, check=True)
    assert [[labels, True]] == json.loads(child.stdout.splitlines()[0])


def test_an_exporter_that_is_not_installed_is_named(environment: Callable[[str], Environment]) -> None:
    program = CALL + 'call("search", "x")'
    env = {"AGENT_OTEL": "1", "OTEL_TRACES_EXPORTER": "absent"}
    child = environment("bare").run(program, env=env, check=True)
    assert child.stderr == (
        "The OTEL_* variables ask for the traces exporter 'absent', which no installed package has; nothing is pushed "
        "through it.\n"
    )


def test_an_empty_protocol_is_none(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    """A variable without a value is as good as unset, as it is for OpenTelemetry's own configuration: gRPC."""
    env = {**receiver.environment("grpc"), "OTEL_EXPORTER_OTLP_PROTOCOL": "", "AGENT_OTEL": "1"}
    child = environment("bare").run(CALL + 'call("search", "x")', env=env, check=True)
    assert ("", ["execute_tool search"]) == (child.stderr, [span.name for span in receiver.spans])


def test_a_flush_without_a_limit_flushes(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    program = CALL + 'call("search", "x")\nassert agent_otel.flush(float("inf"))\nimport os\nos._exit(0)'
    child = environment("bare").run(program, env={**receiver.environment(), "AGENT_OTEL": "1"}, check=True)
    assert ("", "", ["execute_tool search"]) == (child.stderr, child.stdout, [span.name for span in receiver.spans])
