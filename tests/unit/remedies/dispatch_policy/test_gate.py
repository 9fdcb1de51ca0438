"""Calls at the gate: denied ones do not run, injected values show nowhere, and a failure denies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAM = Path(__file__).parent / "gate_program.py"
CANARY = "canary-5d01"
ENV = {
    "AGENT_OTEL": "1",
    "AGENT_OTEL_TOOL_POLICY": "code",
    "CANARY": CANARY,
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
}


class Ran:
    """What the program printed, and its log."""

    def __init__(self, stdout: str, stderr: str) -> None:
        self.stdout, self.stderr = stdout, stderr
        self.cases: dict[str, Any] = json.loads(stdout)["cases"]
        self.metrics: Any = json.loads(json.loads(stdout)["metrics"])

    def found(self, name: str) -> Any:
        """What the calls of a case returned; texts that are JSON as objects."""
        return _read(self.cases[name]["found"])

    def events(self, name: str) -> list[Any]:
        """The attributes of the events of a case."""
        return [attributes for span in self.cases[name]["spans"] for _, attributes in span["events"]]


def _read(found: Any) -> Any:
    if isinstance(found, list):
        return [_read(each) for each in found]
    return json.loads(found) if isinstance(found, str) and found.startswith("{") else found


@pytest.fixture(scope="module")
def ran(environment: Callable[[str], Environment]) -> Ran:
    child = environment("bare").run(PROGRAM, env=ENV, check=True)
    return Ran(child.stdout.splitlines()[-1], child.stderr)


def denied(rule: str, tool: str = "search", argument: str | None = None) -> Any:
    return [tool, rule, argument]


def errors(found: Any) -> Any:
    """The tool, the rule and the argument of each error; other results as they are."""
    if isinstance(found, list):
        return [errors(each) for each in found]
    if isinstance(found, dict) and found.get("error") == "tool_denied":
        return [found["tool"], found["rule"], found.get("argument")]
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("no policy yet", denied("unreadable")),
        ("no rule", denied("tools")),
        ("injected", ["x 5 True", "x 7 True", "x 5 True", "('a',) True"]),
        ("injected, async", "x True"),
        ("no such parameter", denied("inject", "plain")),
        ("a generator", ["x", "True"]),
        ("a generator that is denied", ["raised", denied("require", "lines", "query")]),
        ("by hand", ["x 5 True", "x 5 True"]),
        (
            "inside an argument",
            [
                "[{'owner': 'a', 'force': 0}] 5 False",
                denied("require", argument="query.owner"),
                denied("forbid", argument="query.force"),
            ],
        ),
        ("by hand, unreadable", [denied("arguments")] * 3),
        ("from the environment", "x 5 True"),
        ("not in the environment", denied("inject", argument="token")),
        ("from the context", "x 5 True"),
        ("not in the context", denied("inject", argument="token")),
        ("a source that fails", denied("inject", argument="token")),
        ("an approval that fails", denied("approve")),
        ("an approval that is not there", denied("approve")),
        ("approved", [denied("approve"), "yes 5 False"]),
        (
            "approved in a loop",
            [denied("approve"), "yes 5 False", denied("approve", "fetch"), "yes False"],
        ),
        ("approved by hand, async", denied("approve")),
        ("monitor", ["no 5 True", "yes 5 True"]),
        ("a result with the secret", "x [injected]"),
        (
            "of a workflow",
            ["x 5 True", denied("tools"), ["search", {"query": "x"}, "bot", "triage", "run-1", 1]],
        ),
        ("retried", ["x 5 True", ["search", {"query": "x"}, None, "flow", "run-3", 2]]),
    ],
)
def test_calls_at_the_gate(ran: Ran, name: str, expected: Any) -> None:
    assert errors(ran.found(name)) == expected


def test_spans_have_the_event_and_the_attempt(ran: Ran) -> None:
    [span] = ran.cases["not in the context"]["spans"]
    assert span["attributes"]["error.type"] == "tool_denied"
    assert "tool.result.bytes" not in span["attributes"]
    assert ran.events("not in the context") == [{"rule": "inject", "mode": "enforce", "argument": "token"}]
    assert ran.events("monitor") == [{"rule": "approve", "mode": "monitor"}]
    assert all("error.type" not in span["attributes"] for span in ran.cases["monitor"]["spans"])
    [span] = ran.cases["retried"]["spans"]
    assert span["attributes"]["workflow.activity.attempt"] == 2
    first, second = ran.cases["injected"]["spans"][0], ran.cases["from the environment"]["spans"][0]
    assert first["attributes"]["tool.args_hash"] == second["attributes"]["tool.args_hash"]
    assert first["attributes"]["tool.args.bytes"] == len('{"query":"x"}')


def test_the_counter_has_tool_rule_and_mode(ran: Ran) -> None:
    points = [
        (point["attributes"]["gen_ai.tool.name"], point["attributes"]["rule"], point["attributes"]["mode"])
        for resource in ran.metrics["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
        if metric["name"] == "agent_otel.policy.denied"
        for point in metric["data"]["data_points"]
    ]
    assert set(points) == {
        ("search", "unreadable", "enforce"),
        ("search", "tools", "enforce"),
        ("plain", "inject", "enforce"),
        ("lines", "require", "enforce"),
        ("search", "arguments", "enforce"),
        ("search", "forbid", "enforce"),
        ("search", "require", "enforce"),
        ("search", "inject", "enforce"),
        ("search", "approve", "enforce"),
        ("fetch", "approve", "enforce"),
        ("search", "approve", "monitor"),
    }


def test_the_secret_shows_nowhere(ran: Ran) -> None:
    # The exception is the tool's own, and frameworks send its text to the model.
    assert ran.found("an exception with the secret") == ["ValueError", "x [injected]"]
    assert CANARY not in json.dumps(ran.cases)
    assert CANARY not in json.dumps(ran.metrics)
    assert CANARY not in ran.stderr


def test_what_failed_is_said_once(ran: Ran) -> None:
    said = [line for line in ran.stderr.splitlines() if "AGENT_OTEL_TOOL_POLICY" in line]
    assert [line.partition(" at ")[0] for line in said] == [
        (
            "AGENT_OTEL_TOOL_POLICY: arguments cannot be injected into this call through api; calls that need them "
            "are denied."
        ),
        "AGENT_OTEL_TOOL_POLICY: there is no value to inject for token; calls that need it are denied.",
        "AGENT_OTEL_TOOL_POLICY: The source of token failed with KeyError",
        "AGENT_OTEL_TOOL_POLICY: The approval failed with KeyError",
        "AGENT_OTEL_TOOL_POLICY: The approval failed with ModuleNotFoundError",
    ]


REPEATING = """
    import json, os
    import agent_otel.auto, agent_otel
    secret = os.environ["CANARY"]
    agent_otel.remedies.use_policy({"rules": [{"tools": "*", "inject": {"account": {"call": lambda _: secret}}}]})
    @agent_otel.tool
    def balance(account: str = "", rows: int = 0) -> dict:
        number = {"account": int(account)} if account.isdigit() else {}
        return {"text": f"of {account}", **number, "rows": ["x" * 50] * rows}
    with agent_otel.execution("run"):
        print(json.dumps([balance(rows=0), balance(rows=40)]))
"""


@pytest.mark.parametrize(
    ("value", "first"),
    [
        ("12345678", {"content": '{"text":"of [injected]","account":[injected],"rows":[]}'}),
        ('pässwörd"\\x', {"text": "of [injected]", "rows": []}),
    ],
)
def test_an_injected_value_is_taken_out_of_a_result_however_json_writes_it(
    environment: Callable[[str], Environment], value: str, first: Any
) -> None:
    ceiling = {"AGENT_OTEL_RESULT_CEILING_BYTES": "500"}
    child = environment("bare").run(REPEATING, env={**ENV, **ceiling, "CANARY": value}, check=True)
    found, withheld = json.loads(child.stdout)
    assert found == first
    assert (withheld["error"], withheld["hint"]) == (
        "result_too_large",
        "Nothing was cut: the whole result was withheld. Narrow it with `rows`.",
    )
    assert child.stderr == ""


STORING = """
    import json, os, time
    import agent_otel.auto, agent_otel
    from agent_otel import remedies
    rules = [{"tools": "*", "inject": {"token": {"env": "CANARY"}}}]
    @agent_otel.tool
    def report(token: str = "") -> dict:
        return remedies.summarize_result({"owner": token}, tool="report", artifacts=[f"made by {token}"])
    @remedies.streamed_artifacts
    def pages(token: str = ""):
        yield f"a page of {token}"
        raise ValueError(f"no page of {token}")
    pages = agent_otel.tool(pages)
    remedies.use_policy({"rules": rules})
    with agent_otel.execution("run"):
        made, begun = report(), pages()
        remedies.use_policy({"rules": [{"tools": "*"}]})
        refs = [made["full_payload_id"], *made["artifact_ids"], *begun["artifact_ids"]]
        while remedies.get_tool_result(refs[2])["status"] == "streaming":
            time.sleep(0.01)
        print(json.dumps([remedies.get_tool_result(ref)["content"] for ref in refs]))
        print(remedies.get_tool_result(refs[2])["error"])
"""


def test_what_a_tool_stores_itself_has_no_injected_value(environment: Callable[[str], Environment]) -> None:
    store = {"AGENT_OTEL_CLAIM_CHECK": "memory:"}
    child = environment("bare").run(STORING, env={**ENV, **store, "CANARY": "s3cret-of-the-policy"}, check=True)
    stored, error = child.stdout.splitlines()
    assert json.loads(stored) == ['{"owner":"[injected]"}', "made by [injected]", "a page of [injected]"]
    assert error == "ValueError: no page of [injected]"


WITH_A_BROKEN_STORE = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import agent_otel.auto, agent_otel
    agent_otel.remedies.use_policy({"rules": [{"tools": "read"}]})
    @agent_otel.tool
    def read(): return "read"
    @agent_otel.tool
    def delete(): return "deleted"
    with agent_otel.execution("run"):
        print(read(), delete())
        with agent_otel.tool_call("delete", {}) as call:
            print(call.refused())
"""


def test_the_policy_holds_where_the_store_of_the_claim_check_cannot_be_imported(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    (tmp_path / "redis.py").write_text("raise TypeError('Descriptors cannot be created directly.')\n")
    env = {**ENV, "AGENT_OTEL_CLAIM_CHECK": "redis://localhost:6379/0"}
    child = environment("bare").run(WITH_A_BROKEN_STORE, str(tmp_path), env=env, check=True)
    hint = "The policy of this agent does not allow this tool. Do not call it again; answer without it."
    denial = json.dumps({"error": "tool_denied", "tool": "delete", "rule": "tools", "hint": hint})
    assert child.stdout.splitlines() == [f"read {denial}", denial]
    assert child.stderr.startswith(
        "AGENT_OTEL_CLAIM_CHECK is of no use, results stay whole: redis cannot be imported: TypeError at "
    )
    assert child.stderr.count("\n") == 1


WITHOUT_REMEDIES = """
    import agent_otel.auto, agent_otel
    import agent_otel.integrations.preload
    from agent_otel.core import remedy_hooks
    def make(_): raise RuntimeError("broken")
    remedy_hooks.make_result_remedies = make
    ran = []
    @agent_otel.tool
    def delete(): ran.append(1)
    with agent_otel.execution("run"):
        try: delete()
        except agent_otel.remedies.ToolDeniedError as error: print(error, ran)
"""


def test_no_call_runs_while_the_policy_cannot_act(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(WITHOUT_REMEDIES, env=ENV, check=True)
    assert child.stdout == '{"error": "tool_denied", "rule": "unreadable"} []\n'
