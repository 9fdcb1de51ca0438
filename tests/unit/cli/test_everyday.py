"""The small commands: run, settings, integrations, metrics, version, completion; JSON, and tables at 80 columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_otel.cli.app import app
from tests.rows import each_row
from tests.system.engines import starting
from tests.unit.cli.running import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

PROGRAM = Path(sys.executable).parent / "agent-otel"
_STATE = "import os, sys; from agent_otel._internal import env; print(env.active, *sys.argv[1:], {!r})"
# Three results, of 20,000 and 10,000 bytes and 17 MB; then it waits to be read.
_AGENT = """
import threading
import agent_otel

@agent_otel.tool
def search(query):
    return query * 10_000

search("ab")
search("c")
with agent_otel.tool_call("dump") as call:
    call.result("x" * 17_000_000)
agent_otel.payload("x" * 1_800_000, runtime="dapr", workflow="triage", activity="ask", direction="input")
print("ready", flush=True)
threading.Event().wait()
"""


@each_row(
    ("arguments", "out"),
    [
        (("{folder}/app.py", "--flag", "-x"), "True --flag -x app\n"),
        (("-m", "app", "1"), "True 1 app\n"),
        (("-c", "import agent_otel._internal.env as e; print(e.active)"), "True\n"),
        ((sys.executable, "{folder}/app.py"), "True app\n"),
    ],
)
def test_run_switches_on(tmp_path: Path, arguments: tuple[str, ...], out: str) -> None:
    (tmp_path / "app.py").write_text(_STATE.format("app"))
    command = (str(PROGRAM), "run", *(argument.format(folder=tmp_path) for argument in arguments))
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (0, out, "") == (done.returncode, done.stdout, done.stderr)


def test_run_ends_with_the_exit_code_of_the_program_and_names_what_cannot_be_started() -> None:
    ended = subprocess.run((PROGRAM, "run", "-c", "raise SystemExit(7)"), check=False)
    assert 7 == ended.returncode
    absent = subprocess.run((PROGRAM, "run", "no-such-program"), capture_output=True, text=True, check=False)
    assert (1, "Error: no-such-program cannot be started: No such file or directory\n") == (
        absent.returncode,
        absent.stderr,
    )


def test_settings_have_their_values_and_origins() -> None:
    env = {
        "AGENT_OTEL_LARGE_RESULT_BYTES": "8Ki",
        "AGENT_OTEL_CLAIM_CHECK": "redis://me:word@host",
        "AGENT_OTEL_PRT": "1",
    }
    ran = run("settings", "--set", "--json", env=env)
    found = json.loads(ran.out)
    assert [("AGENT_OTEL_LARGE_RESULT_BYTES", "8192"), ("AGENT_OTEL_CLAIM_CHECK", "(secret)")] == [
        (row["variable"], row["value"]) for row in found["settings"]
    ]
    assert "word" not in ran.out
    assert ["AGENT_OTEL_SPANS", "auto"] in [row[:2] for row in run("settings", "spans").rows]
    message = "Error: no setting has CLAIM_CHEK in its name. Do you mean CLAIM_CHECK?\n"
    assert message == run("settings", "CLAIM_CHEK").err


def test_integrations_that_this_interpreter_has() -> None:
    found = json.loads(run("integrations", "--installed", "--json").out)
    assert ["bedrock"] == [row["name"] for row in found if row["distribution"] == "botocore"]
    assert {"measured"} == {row["state"] for row in found if row["name"] != "httpx"}
    assert ["off: AGENT_OTEL_HTTPX"] == [row["state"] for row in found if row["name"] == "httpx"]
    disabled = run("integrations", "--installed", "--json", env={"AGENT_OTEL_DISABLED_INTEGRATIONS": "bedrock"})
    assert ["disabled"] == [row["state"] for row in json.loads(disabled.out) if row["name"] == "bedrock"]
    assert 30 < len(json.loads(run("integrations", "--json").out))


def test_metrics_of_an_endpoint(environment: Callable[[str], Environment]) -> None:
    bare, port = environment("bare"), starting.free_port()
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    with bare.start(str(bare.python), "-c", _AGENT, env=env) as agent:
        assert agent.stdout
        assert "ready\n" == agent.stdout.readline()
        shown = run("metrics", f"localhost:{port}").rows
        found = json.loads(run("metrics", f"localhost:{port}", "--json").out)
        top = json.loads(run("top", f"localhost:{port}", "--json").out)
    assert ["search", "2", "29.3 KiB", "19.5 KiB", "1", "0", "0", "0"] in shown
    assert ["triage", "dapr", "input", "85.8%", "290.2 KiB", "-", "1", "0", "0"] in shown
    rows = [("dump", 1, 17_000_000, 17_000_000), ("search", 2, 30_000, 20_000)]
    assert rows == [(row["name"], row["calls"], row["result_bytes"], row["largest"]) for row in found["tools"]]
    assert found == top


def test_metrics_of_an_endpoint_that_does_not_answer() -> None:
    ran = run("metrics", "localhost:1")
    message = "the agent at http://localhost:1/metrics does not answer"
    assert (1, "") == (ran.code, ran.out)
    assert ran.err.startswith(f"Error: {message}")
    for name in ("metrics", "top"):
        ran = run(name, "localhost:1", "--json")
        found = json.loads(ran.out)
        assert (1, [], []) == (ran.code, found["tools"], found["workflows"])
        assert found["failures"][0].startswith(message)


class Answers(BaseHTTPRequestHandler):
    """Answers with a status and a text."""

    status, text = 200, ""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@each_row(
    ("status", "text", "code"),
    [
        (503, "", 1),
        (200, 'agent_otel_tool_args_size_bytes_count{gen_ai_tool_name="a"} NaN\n', 0),
        (200, 'agent_otel_tool_args_size_bytes_count{other="a"} 3\n', 0),
        (200, 'agent_otel_tool_result_size_bytes_bucket{gen_ai_tool_name="a"} 3\n', 0),
        (200, 'agent_otel_tool_result_size_bytes_sum{gen_ai_tool_name="a"} -3\n', 0),
    ],
)
def test_metrics_of_something_else(status: int, text: str, code: int) -> None:
    answers = type("Answers", (Answers,), {"status": status, "text": text})
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/metrics"
        ran = run("metrics", address)
        server.shutdown()
    assert ran.code == code
    assert ran.err == (f"Error: {address} answers with 503: Service Unavailable\n" if code else "")


@each_row(
    ("arguments", "proxy"),
    [
        (("metrics", "http://[::1"), None),
        (("report", "--url", "http://..:1"), None),
        (("report", "--url", "http://xn--:1"), None),
        (("report", "--url", "http://localhost:1"), "::::"),
    ],
)
def test_an_address_that_is_none_is_a_message(arguments: tuple[str, ...], proxy: str | None) -> None:
    ran = run(*arguments, env={"NO_PROXY": "", "HTTP_PROXY": proxy} if proxy else {})
    assert ran.code == 1
    assert ran.err.startswith("Error: ")


def test_a_locale_without_the_characters_shows_others() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    env = {**plain, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    command = (sys.executable, "-m", "agent_otel", "settings")
    done = subprocess.run(command, capture_output=True, env=env, check=False)
    assert (0, b"") == (done.returncode, done.stderr)


def test_version_in_detail() -> None:
    found = json.loads(run("version", "--json").out)
    assert "0.1.0" == found["versions"]["agent-otel"]
    assert sys.executable == found["places"]["interpreter"]


def test_completion_completes_commands_and_options() -> None:
    script = run("completion", "bash").out
    code = (
        f"{script}\nCOMP_WORDS=(agent-otel cap); COMP_CWORD=1; _agent_otel_completion {PROGRAM}; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(("bash", "-c", code), capture_output=True, text=True, check=True)
    assert "caps\n" == done.stdout
    assert "#compdef agent-otel" in run("completion", "zsh").out
    assert "complete --no-files --command agent-otel" in run("completion", "fish").out
    assert "Error: name a shell: bash, fish, zsh\n" == run("completion", env={"SHELL": "/bin/tcsh"}).err


@each_row(
    "arguments",
    [("alerts", "list"), ("alerts", "thresholds"), ("caps",), ("dashboards", "list"), ("settings",), ("integrations",)],
)
def test_no_word_is_cut_at_80_columns(arguments: tuple[str, ...]) -> None:
    """Every word of the wide table is a word of the narrow one, which has no line above 80 but for longer words."""
    wide, narrow = (run(*arguments, env={"COLUMNS": columns}) for columns in ("100000", "80"))
    assert set(wide.out.split()) <= set(narrow.out.split())
    too_long = [line for line in narrow.out.splitlines() if len(line.rstrip()) > 80]
    assert [] == [line for line in too_long if len(line.split()[-1]) < 40]


def test_a_terminal_without_a_size_shows_tables_all_the_same() -> None:
    """A terminal that a container or a runner of CI has opened may say that it has no columns."""
    assert (
        run("caps", "temporal", env={"COLUMNS": "200"}).out == run("caps", "temporal", env={"COLUMNS": "0"}).out != ""
    )


@each_row(
    ("arguments", "message"),
    [
        (("alerts", "lst"), "No such command 'lst'. Do you mean list?"),
        (("verson",), "No such command 'verson'. Do you mean version?"),
        (("caps", "tempral"), "Do you mean temporal?"),
        (("alerts", "list", "--set", "erors_ratio=1"), "errors_ratio"),
    ],
)
def test_did_you_mean(arguments: tuple[str, ...], message: str) -> None:
    ran = run(*arguments)
    assert 0 != ran.code
    assert message in ran.err


def _leaves(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield all commands that have no commands below them, with their names."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner
        yield from _leaves(inner, *path, name)


def test_every_command_has_an_option_for_json() -> None:
    without = [path for path, command in _leaves(app) if not any("--json" in param.opts for param in command.params)]
    assert [] == without


def test_every_command_that_needs_no_server_prints_json(tmp_path: Path) -> None:
    for arguments in (
        ("alerts", "list"),
        ("alerts", "thresholds"),
        ("caps", "temporal"),
        ("dashboards", "list"),
        ("integrations",),
        ("settings",),
        ("version",),
        ("completion", "bash"),
        ("alerts", "export", tmp_path / "rules"),
        ("dashboards", "export", tmp_path / "boards"),
    ):
        ran = run(*arguments, "--json")
        assert (0, True) == (ran.code, bool(json.loads(ran.out))), arguments


def test_run_prints_as_json_what_it_would_run() -> None:
    ran = run("run", "--json", "--port", "9464", "--python", "python3 -X dev", "-m", "app", "--json")
    assert (0, "") == (ran.code, ran.err)
    variables = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": "9464"}
    assert {"arguments": ["python3", "-X", "dev", "-m", "app", "--json"], "variables": variables} == json.loads(ran.out)
