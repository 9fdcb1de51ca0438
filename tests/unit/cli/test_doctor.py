"""The doctor names the cause in its first line, for set-ups that are broken in the ways in which they break."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.doctor import findings, observed
from agent_otel.testing.servers.openai import OpenAIServer
from tests.environments import ROOT
from tests.servers.otlp import OtlpReceiver
from tests.unit.cli.running import Ran, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

ON = {"AGENT_OTEL": "1"}
AGENT = """
import agent_otel

@agent_otel.tool
def read_file(path):
    return "x" * 20_000 + "... [truncated]"

@agent_otel.tool
def list_files(path):
    return ["a", "b"]

with agent_otel.execution("run-1", workflow="review"):
    for _ in range(3):
        read_file("a")
    list_files(".")
print("the agent's own output")
raise SystemExit(7)
"""


@pytest.fixture
def doctor(environment: Callable[[str], Environment]) -> Callable[..., Ran]:
    """Return a function that examines an interpreter, by default that of the environment without frameworks."""

    def examine(env: dict[str, str], *, python: str | None = None, name: str = "bare") -> Ran:
        ours = {key: "" for key in os.environ if key.startswith(("AGENT_OTEL", "OTEL_", "PYTHONPATH"))}
        # The paths of a machine may be long: no row of the table continues in the next line.
        wide = {"COLUMNS": "1000"}
        return run("doctor", "--python", python or str(environment(name).python), env={**ours, **wide, **env})

    return examine


def first(ran: Ran) -> str:
    """Return the first line, of an examined interpreter that has something wrong."""
    assert (1, "") == (ran.code, ran.err)
    return ran.out.splitlines()[0]


@pytest.mark.parametrize(
    ("env", "line"),
    [
        ({}, "agent_otel is off: AGENT_OTEL is not set: set AGENT_OTEL=1"),
        ({"AGENT_OTEL": "off"}, "agent_otel is off: AGENT_OTEL=off: set AGENT_OTEL=1"),
        ({"AGENT_OTEL": "sure"}, "agent_otel is off: AGENT_OTEL=sure is none of 1, true, yes, on: set AGENT_OTEL=1"),
        (
            {**ON, "AGENT_OTEL_RESULT_CEILING": "16000"},
            (
                "AGENT_OTEL_RESULT_CEILING is no setting of agent_otel and has no effect. Do you mean "
                "AGENT_OTEL_RESULT_CEILING_BYTES?"
            ),
        ),
        (
            {**ON, "AGENT_OTEL_RESULT_CEILING_BYTES": "0"},
            "AGENT_OTEL_RESULT_CEILING_BYTES='0' is not a size above 0, such as 16000, 64Ki or 2MiB; it stays unset",
        ),
        (
            {**ON, "AGENT_OTEL_METRICS": "otel"},
            (
                "AGENT_OTEL_METRICS=otel, but the program has no MeterProvider and no OTEL_* variable names an "
                "exporter: what is counted until the program sets one is lost"
            ),
        ),
    ],
)
def test_variables(doctor: Callable[..., Ran], env: dict[str, str], line: str) -> None:
    assert line == first(doctor(env))


def test_start_up_files_are_switched_off(doctor: Callable[..., Ran], environment: Callable[[str], Environment]) -> None:
    packages = next((environment("bare").python.parent.parent / "lib").glob("python*/site-packages"))
    path = f"{ROOT}{os.pathsep}{packages}"
    ran = doctor({**ON, "PYTHONPATH": path}, python=f"{environment('bare').python} -S")
    assert first(ran) == (
        "start-up files do not run: Python was started with -S: begin the program with `import agent_otel`"
    )


def test_the_package_lies_on_the_path(
    doctor: Callable[..., Ran], environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    bare = environment("bare")
    packages = next((bare.python.parent.parent / "lib").glob("python*/site-packages"))
    folder = tmp_path / "layer"
    shutil.copytree(packages, folder, ignore=shutil.ignore_patterns("*.pth", "*.start", "__pycache__", "agent_otel*"))
    shutil.copytree(ROOT / "agent_otel", folder / "agent_otel", ignore=shutil.ignore_patterns("__pycache__"))
    interpreter = Path(os.path.realpath(bare.python))
    line = first(doctor({**ON, "PYTHONPATH": str(folder)}, python=str(interpreter)))
    assert line.startswith(f"the start-up file is not installed: {folder} is no folder for start-up files")
    assert line.endswith("begin the program with `import agent_otel`")


def test_the_package_is_not_installed(doctor: Callable[..., Ran], environment: Callable[[str], Environment]) -> None:
    interpreter = os.path.realpath(environment("bare").python)
    ran = doctor(ON, python=f"{interpreter} -I")
    expected = f"Error: agent_otel is not installed for {interpreter}: run {interpreter} -m pip install {ROOT}\n"
    assert (1, "", expected) == ran


def test_an_interpreter_without_site_packages(
    doctor: Callable[..., Ran], environment: Callable[[str], Environment]
) -> None:
    python = f"{environment('bare').python} -S"
    expected = f"Error: {python} has no site-packages, because of -S: agent_otel cannot be imported there\n"
    assert (1, "", expected) == doctor(ON, python=python)


def test_a_remedy_that_cannot_act_is_a_warning() -> None:
    row = {"variables": "AGENT_OTEL_TRIM_RESULTS", "acts": ["openai"], "without_effect": ["example"]}
    assert [
        ("ok", "AGENT_OTEL_TRIM_RESULTS: on openai"),
        ("warning", "AGENT_OTEL_TRIM_RESULTS: without effect on example"),
    ] == [(finding.level, finding.text) for finding in findings._remedies({"remedies": [row]})]


def test_the_folder_of_several_processes_is_not_there(doctor: Callable[..., Ran], tmp_path: Path) -> None:
    folder = tmp_path / "absent"
    assert first(doctor({**ON, "PROMETHEUS_MULTIPROC_DIR": str(folder)})) == (
        f"PROMETHEUS_MULTIPROC_DIR={folder} is no folder that this process can write to: make it, empty, before the "
        "first worker starts"
    )


def test_there_is_no_such_interpreter(doctor: Callable[..., Ran]) -> None:
    assert doctor(ON, python="/nowhere/python") == (
        1,
        "",
        "Error: /nowhere/python cannot be started: No such file or directory\n",
    )


def test_an_interpreter_whose_path_has_a_blank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "with a blank"
    monkeypatch.setattr(sys, "executable", str(python))
    assert run("doctor").err == f"Error: {python} cannot be started: No such file or directory\n"
    assert json.loads(run("run", "--json", "agent.py").out)["arguments"] == [str(python), "agent.py"]
    for name in ("doctor", "run"):
        ran = run(name, "--python", "'abc", "agent.py") if name == "run" else run(name, "--python", "'abc")
        assert (1, "Error: 'abc is no command: No closing quotation\n") == (ran.code, ran.err)


def test_a_framework_is_too_old(doctor: Callable[..., Ran], tmp_path: Path) -> None:
    package = tmp_path / "langchain_core"
    package.mkdir()
    (package / "__init__.py").touch()
    metadata = tmp_path / "langchain_core-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: langchain-core\nVersion: 0.1.0\n")
    line = first(doctor({**ON, "PYTHONPATH": str(tmp_path)}))
    assert line.startswith("langchain-core 0.1.0 is not instrumented: older than ")


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_nothing_listens_at_the_endpoint(doctor: Callable[..., Ran], protocol: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free_port = server.getsockname()[1]
    endpoint = f"http://127.0.0.1:{free_port}"
    line = first(doctor({**ON, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}))
    assert line.startswith("traces to ")
    assert f"127.0.0.1:{free_port}" in line
    assert " are not taken: " in line


def test_the_endpoint_has_a_path_too_many(doctor: Callable[..., Ran]) -> None:
    with OtlpReceiver() as receiver:
        env = receiver.environment("http/protobuf")
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] += "/v1/traces"
        line = first(doctor({**ON, **env}))
    assert line.endswith(
        "nothing is served at that path: OTEL_EXPORTER_OTLP_ENDPOINT is the base address, without /v1/traces"
    )


def test_an_exporter_that_there_is_not(doctor: Callable[..., Ran]) -> None:
    line = first(doctor({**ON, "OTEL_TRACES_EXPORTER": "jaeger"}))
    assert line == (
        "traces to jaeger: no exporter of the name 'jaeger' can be made: install the package that has it, or name "
        "another in OTEL_TRACES_EXPORTER"
    )


def test_the_port_is_taken(doctor: Callable[..., Ran]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = first(doctor({**ON, "AGENT_OTEL_PROMETHEUS_PORT": str(port)}))
    assert line.startswith(
        f"agent_otel cannot serve metrics on 127.0.0.1:{port}, which AGENT_OTEL_PROMETHEUS_PORT names"
    )


def test_what_is_right(doctor: Callable[..., Ran]) -> None:
    with OtlpReceiver() as receiver:
        env = {"AGENT_OTEL_RESULT_CEILING_BYTES": "64Ki", "AGENT_OTEL_TRIM_RESULTS": "1"}
        ran = doctor({**ON, **env, **receiver.environment("http/protobuf")}, name="langchain")
        assert ["agent_otel_doctor"] == [span.name for span in receiver.spans]
        assert [1] == [point.value for point in receiver.latest("agent_otel_doctor")]
    assert (0, "") == (ran.code, ran.err)
    assert f"on, agent_otel 0.1.0 in Python {sys.version_info.major}." in ran.out.splitlines()[0]
    assert any(row[:2] == ["ok", "integrations"] and row[2].startswith("langchain-core ") for row in ran.rows)
    assert ["ok", "settings", "AGENT_OTEL_RESULT_CEILING_BYTES=65536, from the environment"] in ran.rows
    assert ["ok", "settings", "AGENT_OTEL_TRIM_RESULTS=on, from the environment"] in ran.rows
    assert ["ok", "remedies", "AGENT_OTEL_RESULT_CEILING_BYTES: on langchain, openai, langgraph"] in ran.rows
    # The requests of LangChain pass OpenAI's SDK.
    assert ["ok", "remedies", "AGENT_OTEL_TRIM_RESULTS: on openai"] in ran.rows
    (start,) = (row[2] for row in ran.rows if row[:2] == ["ok", "start-up"])
    assert start.startswith("AGENT_OTEL=1; ")
    assert "agent_otel_startup.pth starts it in " in start


def test_a_secret_is_not_printed(doctor: Callable[..., Ran]) -> None:
    ran = doctor({**ON, "AGENT_OTEL_HASH_KEY": "a-key-of-20-bytes-xx"})
    assert "AGENT_OTEL_HASH_KEY=(secret)" in ran.out
    assert "a-key-of-20" not in ran.out + ran.err


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """Return the file of an agent whose tool cuts its result, three times with the same arguments."""
    path = tmp_path / "agent.py"
    path.write_text(AGENT)
    return path


def test_a_program_that_runs_is_reported(
    environment: Callable[[str], Environment], agent: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = run("doctor", "--", environment("bare").python, agent)
    assert "the agent's own output\n" == capfd.readouterr().out
    assert (7, "") == (ran.code, ran.err)
    assert [
        ["tool", "calls", "bytes of results", "large", "truncated", "repeats", "incomplete answers"],
        ["read_file", "3", "60,045", "3", "3", "2", "0"],
        ["list_files", "1", "9", "0", "0", "0", "0"],
        ["4 tool calls, 0 payloads, 0 internal errors"],
        ["1. 3 results were truncated, most of read_file: let it return pages or a summary"],
        [
            "2. 3 results were large, most of read_file: let it return pages or a summary",
        ],
        ["3. 2 calls repeat earlier ones, most of read_file: look at what it returns"],
    ] == ran.rows


_SERVING = """
import signal, sys, time
import agent_otel

@agent_otel.tool
def search(query):
    return query

search("x")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
try:
    print("serving", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit(3)
"""


def test_an_interrupt_ends_the_program_and_not_its_report(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    agent = tmp_path / "serving.py"
    agent.write_text(_SERVING)
    command = (sys.executable, "-m", "agent_otel", "doctor", "--", str(environment("bare").python), str(agent))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as doctor:
        assert doctor.stdout is not None
        assert doctor.stdout.readline() == "serving\n"
        os.killpg(doctor.pid, signal.SIGINT)
        report = doctor.stdout.read()
    assert doctor.returncode == 3
    assert "search" in report


def test_a_program_that_dies_of_a_signal_has_the_exit_code_that_a_shell_gives(
    environment: Callable[[str], Environment],
) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run("doctor", "--", environment("bare").python, "-c", code).code == 137


def test_the_report_as_json(environment: Callable[[str], Environment], agent: Path) -> None:
    report: dict[str, Any] = json.loads(run("doctor", "--json", "--", environment("bare").python, agent).out)
    assert {
        "name": "read_file",
        "calls": 3,
        "result_bytes": 60_045,
        "large": 3,
        "truncated": 3,
        "repeats": 2,
        "incomplete_answers": 0,
    } == report["tools"][0]
    assert 3 == len(report["advice"])


def test_a_program_without_a_tool_call(environment: Callable[[str], Environment]) -> None:
    ran = run("doctor", "--", environment("bare").python, "-c", "pass")
    assert (0, "") == (ran.code, ran.err)
    assert ran.out.splitlines()[0] == "no tool call was seen; `agent-otel doctor` without a program says why"


_OFFERS = """
import sys
import agent_otel, openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
tools = [
    {"type": "function", "function": {"name": name, "description": "Look it up. " * 20, "parameters": {}}}
    for name in ("search", "tickets__fetch", *(f"tool_{number:02}" for number in range(39)))
]
for name in ("search", "fetch"):
    with agent_otel.tool_call(name, {}) as call:
        call.result("found")
for _ in range(3):
    client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "Find it."}], tools=tools)
"""


def test_tools_that_are_offered_and_never_called(environment: Callable[[str], Environment]) -> None:
    with OpenAIServer(lambda _: "Fine.") as model:
        python = environment("openai-agents").python
        ran = run("doctor", "--json", "--", python, "-c", _OFFERS, model.base_url)
        tokens = len(json.dumps(model.requests[0]["tools"])) / 4
    definitions = json.loads(ran.out)["definitions"]
    assert (41, 2) == (definitions["offered"], definitions["called"])
    assert definitions["tokens"] == pytest.approx(tokens, rel=0.05)
    assert definitions["uncalled_tokens"] == pytest.approx(tokens * 39 / 41, rel=0.05)
    assert observed.Definitions(**definitions).sentence() == (
        f"41 tools offered, 2 called: {definitions['tokens']:,} tokens of definitions a request, "
        f"{definitions['uncalled_tokens']:,} of them for the 39 never called"
    )


def test_no_address_shows_a_secret(environment: Callable[[str], Environment]) -> None:
    """In the findings, in the facts, and in what an exporter says, of HTTP and gRPC."""
    python, traces = str(environment("bare").python), "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    metrics, headers = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"
    for more in (
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:SECRET-1@127.0.0.1:1/base",
            traces: "http://SECRET-1@[::1]:1/?api_key=SECRET-2#SECRET-3",
            metrics: "http://u:SECRET%401@127.0.0.1:1/SECRET-4567890123456789/x",
            headers: "authorization=Bearer SECRET-4,x-key=SECRET-5",
            "AGENT_OTEL_CLAIM_CHECK": "rediss://u:SECRET@h?x=SECRET",
        },
        {
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            traces: "user:SECRET-1@127.0.0.1:1",
            "OTEL_METRICS_EXPORTER": "none",
            "AGENT_OTEL_CLAIM_CHECK": "nothing://u:SECRET@h?x=SECRET",
            "AGENT_OTEL_CLAIM_CHECK_KEY": "SECRET",
        },
        {"AGENT_OTEL": "http://u:SECRET@h", "AGENT_OTEL_PROMETHEUS_HOST": "u:SECRET@127.0.0.1"},
    ):
        env = {key: "" for key in os.environ if key.startswith(("AGENT_OTEL", "OTEL_"))} | ON | more
        ran = run("doctor", "--python", python, "--json", env=env)
        assert ran.out
        assert "SECRET" not in ran.out + ran.err, (more, ran)
