"""The cost of the parts of requests: the parts sum up to what the provider counts, and to genai-prices' own price."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_otel._internal import price_table
from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.replies import usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

ANSWER = "Fine."
_PROGRAM = """
import json, sys, threading
import openai, prometheus_client
import genai_prices, genai_prices.data
import agent_otel
from agent_otel._internal import errors
from agent_otel.core.cost.models import models, read_facts
from agent_otel.core.cost.usage import Usage
from agent_otel.telemetry.metrics import costliest

ready = threading.Event()
models.when_known("gpt-4o", lambda facts: ready.set())
assert ready.wait(120)
client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
call = {"id": "call-1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
messages = [
    {"role": "user", "content": "Find it."},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call-1", "content": "row " * 500},
]
read = written = 0
with agent_otel.execution("run", workflow="answer"):
    for turn in range(4):
        model = "chat-7" if turn == 3 else "gpt-4o"
        told = client.chat.completions.create(model=model, messages=messages).usage
        read, written = read + told.prompt_tokens, written + told.completion_tokens
        messages += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "more " * 200}]
models.drain(120)
price = genai_prices.calc_price(genai_prices.Usage(input_tokens=read, output_tokens=written), "gpt-4o")
held_out = []
for model, theirs, ours in (
    ("claude-sonnet-4-5", {"input_tokens": 9000, "cache_read_tokens": 5000, "cache_write_tokens": 3000},
     Usage(9000, cached=5000, written=3000)),
    ("claude-sonnet-4-5", {"input_tokens": 250000, "output_tokens": 700}, Usage(250000, output=700)),
    ("gemini-2.5-flash", {"input_tokens": 1000, "input_audio_tokens": 400}, Usage(1000, media=500, audio=400)),
    ("gemini-2.5-flash", {"input_tokens": 1000, "cache_read_tokens": 300, "input_audio_tokens": 500,
     "cache_audio_read_tokens": 100}, Usage(1000, cached=300, media=500, audio=500, cached_audio=100)),
    ("gpt-4o-realtime-preview", {"input_tokens": 1000, "output_tokens": 500, "output_audio_tokens": 300},
     Usage(1000, output=500, spoken=300)),
):
    of_theirs = genai_prices.calc_price(genai_prices.Usage(**theirs), model)
    held_out.append([*read_facts(model).cost(ours), float(of_theirs.input_price), float(of_theirs.output_price)])
names = {name: read_facts(name) for name in sys.argv[2:]}
found = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if sample.name.startswith(("agent_otel_tool_context", "agent_otel_execution_cost", "agent_otel_execution_tok")):
            if not sample.name.endswith(("_bucket", "_created")):
                found.setdefault(sample.name, []).append([sample.labels, sample.value])
assert errors.errors == {}, errors.errors
found["costliest"] = costliest.rows()
print(json.dumps([found, read, written, float(price.input_price), float(price.total_price), held_out, names]))
"""


#: A router's prefix, Azure's by LiteLLM, a date; a fine-tuned model; deployments, of which the setting knows one.
_NAMES = ["openai/gpt-4o", "azure/gpt-4o", "gpt-4o-2024-08-06", "ft:gpt-4o-2024-08-06:acme::1", "chat-7", "chat-8"]


def test_the_parts_sum_up_to_the_providers_tokens_and_price(environment: Callable[[str], Environment]) -> None:
    def reply(request: Json) -> Reply:
        request["model"] = "gpt-4o-2024-08-06"  # also where the request names a deployment
        return ANSWER

    with OpenAIServer(reply) as model:
        done = environment("pydantic-ai").run(
            _PROGRAM,
            model.base_url,
            *_NAMES,
            env={"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_CONTEXT_WINDOWS": "chat-7=64k"},
            check=True,
            timeout=240,
        )
        counted = [usage(request, ANSWER) for request in model.requests]
    found, read, written, input_price, total_price, held_out, names = json.loads(done.stdout.splitlines()[-1])
    window, tiers = names["openai/gpt-4o"]
    assert (window, len(tiers)) == (128_000, 1)
    assert names["azure/gpt-4o"] == names["gpt-4o-2024-08-06"] == [window, tiers]
    assert names["ft:gpt-4o-2024-08-06:acme::1"] == [window, []]  # its price is another
    assert (names["chat-7"], names["chat-8"]) == ([64_000, []], [None, []])
    assert len(held_out) == 5
    for input_cost, output_cost, input_theirs, output_theirs in held_out:
        assert (input_cost, output_cost) == pytest.approx((input_theirs, output_theirs), rel=1e-9)
    assert (read, written) == (sum(tokens for tokens, _ in counted), sum(tokens for _, tokens in counted))
    tokens, costs = found["agent_otel_tool_context_tokens_total"], found["agent_otel_tool_context_cost_total"]
    assert sum(value for _, value in tokens) == read
    assert sum(value for _, value in costs) == pytest.approx(input_price, abs=1e-9)
    assert max(tokens, key=lambda each: each[1])[0] == {
        "gen_ai_tool_name": "search",
        "gen_ai_request_model": "gpt-4o",
        "part": "tool_results",
        "gen_ai_agent_name": "answer",
        "gen_ai_workflow_name": "answer",
    }
    labels = {"gen_ai_workflow_name": "answer", "gen_ai_agent_name": "answer"}
    assert found["agent_otel_execution_tokens_sum"] == [[labels, read + written]]
    assert found["agent_otel_execution_cost_sum"] == [[labels, pytest.approx(total_price, abs=1e-9)]]
    (row,) = found["costliest"]
    assert row == {
        "execution": "run",
        "trace": "",
        "workflow": "answer",
        "agent": "answer",
        "dollars": pytest.approx(total_price, abs=1e-9),
        "tokens": read + written,
        "requests": 4,
    }


_WINDOW = """
import logging, os, sys, threading
logging.basicConfig(level=logging.INFO)
import openai, prometheus_client
import agent_otel
from agent_otel.core.cost.models import models

client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("none before")
client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Find it."}])
facts, ready = [], threading.Event()
models.when_known("gpt-4o", lambda found: (facts.append(found.window), ready.set()))
assert ready.wait(240)
print(facts[0], "genai_prices.data" in sys.modules)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
"""


@pytest.mark.parametrize(("settings", "window"), [({}, None), ({"AGENT_OTEL_MODEL_PRICES": "1"}, 128_000)])
def test_another_process_reads_the_table_with_the_setting_only(
    environment: Callable[[str], Environment], settings: dict[str, str], window: int | None
) -> None:
    with OpenAIServer(lambda _: ANSWER) as model:
        environ = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", **settings}
        done = environment("pydantic-ai").run(_WINDOW, model.base_url, env=environ, check=True, timeout=240)
    assert ["none before", f"{window} False", "no child"] == done.stdout.splitlines()
    assert ("prices of models are those of genai-prices 0." in done.stderr) is (window is not None)


_OLDEST = """
import json, runpy, sys
from importlib.metadata import version
read = runpy.run_path(sys.argv[1])["read"]
print(json.dumps([version("genai-prices"), *map(read, sys.argv[2:])]))
"""


def test_the_oldest_table_gives_the_same_rates(environment: Callable[[str], Environment]) -> None:
    """By hand from the providers' pages of prices: input, cached, written, output, and audio of each."""
    models = ["claude-sonnet-4-5", "gemini-2.5-flash", "ft:gpt-4o:acme::1", "no-such-model"]
    done = environment("genai-prices-0.0.60").run(_OLDEST, price_table.__file__, *models, check=True, timeout=240)
    version, claude, flash, tuned, unknown = json.loads(done.stdout.splitlines()[-1])
    assert (version, tuned["tiers"], unknown) == ("0.0.60", [], None)
    dollars = [[start, *(pytest.approx(rate / 1e6) for rate in rates)] for start, *rates in (
        (0, 3, 0.3, 3.75, 15, 3, 15, 0.3), (200_000, 6, 0.6, 7.5, 22.5, 6, 22.5, 0.6),
    )]  # fmt: skip
    assert claude["tiers"] == dollars
    assert flash["tiers"] == [[0, *(pytest.approx(rate / 1e6) for rate in (0.3, 0.03, 0.3, 2.5, 1, 2.5, 0.1))]]
