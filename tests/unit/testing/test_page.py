"""Every block of docs/testing.md runs, and its table has every assertion."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from pathlib import Path

import pytest

from agent_otel.testing import AgentRun, __main__
from agent_otel.testing.servers.replies import from_json

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
#: The agent of the second block, over Bedrock's SDK.
AGENT = """
import agent_otel, boto3

@agent_otel.tool
def search(query):
    return f"three invoices are {query}"

def answer(question):
    client, messages = boto3.client("bedrock-runtime"), [{"role": "user", "content": [{"text": question}]}]
    while True:
        said = client.converse(modelId="any", messages=messages)["output"]["message"]
        messages.append(said)
        uses = [block["toolUse"] for block in said["content"] if "toolUse" in block]
        if not uses:
            return said["content"][0]["text"]
        results = [{"toolUseId": use["toolUseId"], "content": [{"text": search(**use["input"])}]} for use in uses]
        messages.append({"role": "user", "content": [{"toolResult": result} for result in results]})
"""


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_each_python_block_is_a_test_that_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENT_OTEL", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    first, second = _blocks("python")
    pytester.makepyfile(my_agent=AGENT, test_first=first, test_second=second)
    pytester.makeini("[pytest]\nagent_otel = true")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "agent_otel.testing.plugin")
    done.assert_outcomes(passed=2)


def test_commands_parse_and_the_script_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [line.removeprefix("$ ") for block in _blocks("console") for line in block.splitlines()]
    install, *serving = commands
    assert install == "pip install '.[pytest]'"
    for command in serving:
        python, m, module, *arguments = shlex.split(command)
        assert [python, m, module] == ["python", "-m", "agent_otel.testing"]
        with pytest.raises(SystemExit, match="0"):
            __main__.main([*arguments[: arguments.index("--") if "--" in arguments else None], "--help"])
    assert "serve" in capsys.readouterr().out
    [script] = _blocks("json")
    assert callable(from_json(json.loads(script)))


def test_the_table_has_every_assertion_with_its_arguments() -> None:
    documented = dict(re.findall(r"^\| `(assert_\w+)\(([^)]*)\)` \|", PAGE, re.MULTILINE))
    functions = {name: function for name, function in vars(AgentRun).items() if name.startswith("assert_")}
    assert documented.keys() == functions.keys()
    for name, function in functions.items():
        parameters = list(inspect.signature(function).parameters.values())[1:]
        shown = [one.name if one.default is one.empty else f"{one.name}={one.default}" for one in parameters]
        assert documented[name] == ", ".join(shown), name


def test_there_are_no_other_blocks() -> None:
    assert sorted(re.findall(r"^```(\w+)", PAGE, re.MULTILINE)) == ["console", "console", "json", "python", "python"]
