"""The pages of the stacks: the program of each runs as it stands on the page, with the variables of the page."""

from __future__ import annotations

import http.client
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, call_once
from tests.servers.otlp import OtlpReceiver
from tests.system.engines import redis, starting, temporal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

PAGES = Path(__file__).resolve().parents[3] / "docs" / "stacks"
#: "order 0 of Jane: delayed" and so on: 23 bytes and the digits of 1,000 numbers, and the line breaks between them.
BYTES = 1000 * 23 + (10 + 90 * 2 + 900 * 3) + 999
#: Seconds of work that a program of a page may take.
SLOW = 240
STEP = "execute_activity tasks.investigate"
METRICS = {"OTEL_METRICS_EXPORTER": "otlp"}

#: Lists the tools of the page's server, as its host, and prints the result of one call.
HOST = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

async def main(server):
    parameters = StdioServerParameters(command=sys.executable, args=server["args"], env=server["env"])
    host = types.Implementation(name="codex-mcp-client", version="1")
    async with stdio_client(parameters) as (read, write), ClientSession(read, write, client_info=host) as session:
        await session.initialize()
        result = await session.call_tool("search_orders", {"customer": "Jane"})
    print(json.dumps([bool(result.isError), result.content[0].text]))

asyncio.run(main(json.loads(sys.argv[1])))
"""
#: Runs the cells in a kernel and prints the text of the last one.
NOTEBOOK = """
import json, sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in json.loads(sys.argv[1])])
NotebookClient(notebook, timeout=None, kernel_name="python3").execute()
print(notebook.cells[-1].outputs[-1]["data"]["text/plain"])
"""


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    """Return a collector that takes spans and metrics."""
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    """Return a model that calls the tool of the pages once, and answers."""
    with OpenAIServer(call_once([ToolCall("call_1", "search_orders", {"customer": "Jane"})])) as server:
        yield server


def test_openai_agents(
    environment: Callable[[str], Environment], collector: OtlpReceiver, model: OpenAIServer, tmp_path: Path
) -> None:
    (code,) = _blocks("openai-agents", "python")
    environ = {
        **_switch("openai-agents"),
        **collector.environment(),
        **model.environment,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }
    file = _written(tmp_path / "agent.py", code)
    printed = environment("openai-agents").run(file, env=environ, timeout=SLOW, check=True, cwd=tmp_path).stdout
    assert "done\n" == printed
    called = _tool_span(collector)
    (run,) = (span for span in collector.spans if span.name == "invoke_agent support")
    assert (run.trace_id, run.span_id) == (called.trace_id, called.parent_span_id)


def test_langgraph_fastapi(environment: Callable[[str], Environment], model: OpenAIServer, tmp_path: Path) -> None:
    (code,) = _blocks("langgraph-fastapi", "python")
    _written(tmp_path / "app.py", code)
    home, port = environment("langchain-fastapi"), starting.free_port()
    environ = home.environ({**_switch("langgraph-fastapi"), **model.environment, "LANGSMITH_TRACING": "false"})
    program = (home.program("uvicorn"), "app:app", "--port", str(port))
    url = f"http://127.0.0.1:{port}"
    with starting.process(*program, answers=lambda: _answers(url), env=environ, cwd=tmp_path, seconds=SLOW):
        assert '"done"' == _read(f"{url}/chats/42?message=Which", "POST")
        metrics = _read(f"{url}/metrics/")
    assert (
        f'agent_otel_tool_result_size_bytes_sum{{error_type="",gen_ai_tool_name="search_orders"}} {BYTES}.0\n'
        in metrics
    )
    assert "agent_otel_workflow_payload_size_bytes_count{" in metrics
    assert 'workflow_runtime="langgraph"' in metrics


@pytest.mark.parametrize(
    ("settings", "is_withheld"), [({}, False), ({"AGENT_OTEL_RESULT_CEILING_BYTES": "auto"}, True)]
)
def test_mcp_server(
    environment: Callable[[str], Environment],
    collector: OtlpReceiver,
    tmp_path: Path,
    settings: dict[str, str],
    is_withheld: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    (code,) = _blocks("mcp-server", "python")
    server = json.loads(_blocks("mcp-server", "json")[0])["mcpServers"]["orders"]
    server["env"] |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.http_endpoint, **settings}
    _written(tmp_path / "orders.py", code)
    done = environment("mcp-1").run(HOST, json.dumps(server), timeout=SLOW, check=True, cwd=tmp_path)
    is_error, text = json.loads(done.stdout)
    assert is_withheld == is_error
    assert ("result_too_large" if is_withheld else "order 0 of Jane: delayed") in text
    assert BYTES == (json.loads(text)["size_bytes"] if is_withheld else len(text))
    assert "host" == _tool_span(collector).attributes["tool.result.budget_layer"]


def test_temporal(environment: Callable[[str], Environment], collector: OtlpReceiver, tmp_path: Path) -> None:
    (code,) = _blocks("temporal", "python")
    file = _written(tmp_path / "worker.py", code)
    with starting.or_skip(temporal.server()) as server:
        environ = {"AGENT_OTEL": _switch("temporal")["AGENT_OTEL"], **collector.environment(), **METRICS}
        environ |= {"TEMPORAL_ADDRESS": server.address}
        done = environment("temporal").run(file, env=environ, timeout=SLOW, check=True, cwd=tmp_path)
    assert f"{BYTES}\n" == done.stdout
    (output,) = (
        point
        for point in collector.wait_for_metric("agent_otel.workflow.payload.size")
        if point.attributes.get("direction") == "output" and "workflow.activity" in point.attributes
    )
    assert ("search_orders", "Investigate") == (
        output.attributes["workflow.activity"],
        output.attributes["gen_ai.workflow.name"],
    )
    # JSON writes the line breaks as two bytes, and quotes; the message of one payload has 32 bytes around it.
    assert BYTES + 999 + 2 + 32 == output.sum


def test_celery(environment: Callable[[str], Environment], collector: OtlpReceiver, tmp_path: Path) -> None:
    (code,) = _blocks("celery", "python")
    _written(tmp_path / "tasks.py", code)
    home = environment("celery")
    with starting.or_skip(redis.server()) as url:
        environ = {"REDIS_URL": url, "PYTHONPATH": str(tmp_path)}
        switched = {**environ, **_switch("celery"), **collector.environment()}
        with home.start(str(home.program("celery")), *_command("celery")[1:], env=switched, cwd=tmp_path):
            call = "from tasks import investigate\nprint(len(investigate.delay('Jane').get()))"
            assert f"{BYTES}\n" == home.run(call, env=environ, timeout=SLOW, check=True, cwd=tmp_path).stdout
            called = _tool_span(collector)
            collector.wait_until(lambda: any(span.name == STEP for span in collector.spans), SLOW)
    (step,) = (span for span in collector.spans if span.name == STEP)
    assert step.span_id == called.parent_span_id


def test_aws_lambda(environment: Callable[[str], Environment], collector: OtlpReceiver, tmp_path: Path) -> None:
    """The handler has returned, and the process is killed as if it were frozen: everything has arrived."""
    (code,) = _blocks("aws-lambda", "python")
    environ = dict(line.split("=", 1) for line in _blocks("aws-lambda", "text")[0].splitlines())
    environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.http_endpoint
    frozen = "\nimport os, signal\nhandler({'customer': 'Jane'}, None)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    environment("bare").run(_written(tmp_path / "function.py", code + frozen), env=environ, timeout=SLOW)
    _tool_span(collector)
    assert [BYTES] == [point.sum for point in collector.latest("agent_otel.tool.result.size")]


def test_notebook(environment: Callable[[str], Environment]) -> None:
    first, last = _blocks("notebook", "python")
    call = "@agent_otel.tool\ndef search():\n    return 'größe'\n\nsearch()"
    printed = environment("notebook").run(NOTEBOOK, json.dumps([first, call, last]), timeout=SLOW, check=True).stdout
    assert "{'search': 7}\n" == printed


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)


def _command(page: str) -> list[str]:
    """Return the words of the page's command after its variables."""
    (command,) = _blocks(page, "console")
    return [word for word in shlex.split(command.removeprefix("$ ")) if "=" not in word]


def _switch(page: str) -> dict[str, str]:
    """Return the variables of the page's command."""
    (command,) = _blocks(page, "console")
    words = shlex.split(command.removeprefix("$ "))
    return dict(word.split("=", 1) for word in words if "=" in word)


def _written(file: Path, code: str) -> Path:
    file.write_text(code, encoding="utf-8")
    return file


def _tool_span(collector: OtlpReceiver) -> Any:
    """Return the span of the one tool call, once it has arrived."""
    name = "execute_tool search_orders"
    collector.wait_until(
        lambda: any(span.name == name or span.name.startswith("tools/call") for span in collector.spans), SLOW
    )
    (span,) = (span for span in collector.spans if "tool.result.bytes" in span.attributes)
    assert BYTES == span.attributes["tool.result.bytes"]
    return span


def _read(url: str, method: str = "GET") -> str:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SLOW)
    try:
        connection.request(method, f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        body = answer.read().decode()
    finally:
        connection.close()
    assert http.client.OK == answer.status, body
    return body


def _answers(url: str) -> bool:
    try:
        return bool(_read(f"{url}/metrics/"))
    except OSError:
        return False
