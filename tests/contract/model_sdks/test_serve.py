"""The command ``serve``: each provider's own SDK calls a tool and gets the answer, by variables alone."""

from __future__ import annotations

import json
import signal
import urllib.request
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

SCRIPT = [[{"name": "search", "arguments": {"query": "größe"}}], "Three."]
MODULE = ("-m", "agent_otel.testing", "serve")
CHAT = """
import json, openai
client, messages = openai.OpenAI(), [{"role": "user", "content": "go"}]
said = client.chat.completions.create(model="any", messages=messages).choices[0].message
call = said.tool_calls[0]
messages += [said, {"role": "tool", "tool_call_id": call.id, "content": "xyz"}]
answer = client.chat.completions.create(model="any", messages=messages).choices[0].message.content
print(json.dumps([call.function.name, json.loads(call.function.arguments), answer]))
"""
RESPONSES = """
import json, openai
client, items = openai.OpenAI(), [{"role": "user", "content": "go"}]
call = client.responses.create(model="any", input=items).output[0]
items += [call, {"type": "function_call_output", "call_id": call.call_id, "output": "xyz"}]
answer = client.responses.create(model="any", input=items).output_text
print(json.dumps([call.name, json.loads(call.arguments), answer]))
"""
ANTHROPIC = """
import anthropic, json
client, messages = anthropic.Anthropic(), [{"role": "user", "content": "go"}]
said = client.messages.create(model="any", max_tokens=99, messages=messages).content
result = {"type": "tool_result", "tool_use_id": said[0].id, "content": "xyz"}
messages += [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
answer = client.messages.create(model="any", max_tokens=99, messages=messages).content[0].text
print(json.dumps([said[0].name, said[0].input, answer]))
"""
GEMINI = """
import json
from google import genai
from google.genai import types
client, contents = genai.Client(), [types.Content(role="user", parts=[types.Part(text="go")])]
said = client.models.generate_content(model="any", contents=contents).candidates[0].content
call = said.parts[0].function_call
result = types.FunctionResponse(id=call.id, name=call.name, response={"result": "xyz"})
contents += [said, types.Content(role="user", parts=[types.Part(function_response=result)])]
answer = client.models.generate_content(model="any", contents=contents).text
print(json.dumps([call.name, call.args, answer]))
"""
BEDROCK = """
import boto3, json
client, messages = boto3.client("bedrock-runtime"), [{"role": "user", "content": [{"text": "go"}]}]
said = client.converse(modelId="us.any-v1:0", messages=messages)["output"]["message"]
call = said["content"][0]["toolUse"]
result = {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": "xyz"}]}}
messages += [said, {"role": "user", "content": [result]}]
answer = client.converse(modelId="us.any-v1:0", messages=messages)["output"]["message"]["content"][0]["text"]
print(json.dumps([call["name"], call["input"], answer]))
"""
COHERE = """
import cohere, json
client, messages = cohere.ClientV2(), [{"role": "user", "content": "go"}]
said = client.chat(model="any", messages=messages).message
call = said.tool_calls[0]
messages += [said, {"role": "tool", "tool_call_id": call.id, "content": "xyz"}]
answer = client.chat(model="any", messages=messages).message.content[0].text
print(json.dumps([call.function.name, json.loads(call.function.arguments), answer]))
"""
GROQ = CHAT.replace("openai.OpenAI", "groq.Groq").replace("openai", "groq")
OLLAMA = """
import json, ollama
messages = [{"role": "user", "content": "go"}]
said = ollama.chat(model="any", messages=messages).message
call = said.tool_calls[0]
messages += [said, {"role": "tool", "tool_name": call.function.name, "content": "xyz"}]
answer = ollama.chat(model="any", messages=messages).message.content
print(json.dumps([call.function.name, call.function.arguments, answer]))
"""


@pytest.mark.parametrize(
    ("row", "program"),
    [
        pytest.param("openai-agents", CHAT, id="chat"),
        pytest.param("openai-agents", RESPONSES, id="responses"),
        pytest.param("anthropic", ANTHROPIC, id="anthropic"),
        pytest.param("google-genai", GEMINI, id="gemini"),
        pytest.param("bedrock", BEDROCK, id="bedrock"),
        pytest.param("cohere", COHERE, id="cohere"),
        pytest.param("groq", GROQ, id="groq"),
        pytest.param("ollama", OLLAMA, id="ollama"),
    ],
)
def test_a_command_runs_against_the_script(
    environment: Callable[[str], Environment], tmp_path: Path, row: str, program: str
) -> None:
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    (tmp_path / "agent.py").write_text(program)
    found = environment(row)
    with found.start(
        str(found.python), *MODULE, "--script", "script.json", "--", str(found.python), "agent.py", cwd=tmp_path
    ) as child:
        stdout, stderr = child.communicate(timeout=300)
    assert child.returncode == 0, stderr
    assert json.loads(stdout) == ["search", {"query": "größe"}, "Three."]
    assert stderr.splitlines()[-2:] == [
        "request 1: tool results: 0 (0 bytes); reply: calls search",
        'request 2: tool results: 1 (3 bytes); reply: "Three."',
    ]


def test_variables_for_a_shell_until_an_interrupt(environment: Callable[[str], Environment]) -> None:
    bare = environment("bare")
    with bare.start(str(bare.python), *MODULE, "--port", "0", "--quiet") as child:
        assert child.stdout is not None
        lines = [child.stdout.readline().removeprefix("export ").rstrip() for _ in range(15)]
        variables = dict(line.split("=", 1) for line in lines)
        body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "go"}]}).encode()
        with urllib.request.urlopen(f"{variables['OPENAI_BASE_URL']}/chat/completions", body) as response:  # noqa: S310
            message = json.load(response)["choices"][0]["message"]
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate(timeout=300)
    assert message["content"] == "This is the answer of the scripted model."
    assert (child.returncode, stderr) == (0, "")
    assert {value for name, value in variables.items() if "KEY" in name} == {"scripted"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("{", "script.json is no script: Expecting property name enclosed in double quotes"),
        ('{"a": 1}', "script.json is no script: a script is a list of replies"),
        ("[3]", "script.json is no script: a reply is a text, or a list of calls with name and arguments: 3"),
        ("[]", "script.json is no script: a model needs at least one reply"),
    ],
)
def test_what_is_no_script(
    environment: Callable[[str], Environment], tmp_path: Path, script: str, message: str
) -> None:
    bare = environment("bare")
    (tmp_path / "script.json").write_text(script)
    with bare.start(str(bare.python), *MODULE, "--script", "script.json", cwd=tmp_path) as child:
        _, stderr = child.communicate(timeout=300)
    assert child.returncode == 1
    assert message in stderr
    assert "Traceback" not in stderr
