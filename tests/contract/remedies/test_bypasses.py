"""Ways around a dispatch policy: a denied handler does not run, or an error log says that the policy does not act."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAMS = Path(__file__).parent / "bypasses"
CODE = {"AGENT_OTEL": "1", "AGENT_OTEL_TOOL_POLICY": "code"}
OFF = (
    "AGENT_OTEL_TOOL_POLICY does not act on anything in this process, because agent_otel is off: its tool calls run "
    "without a decision."
)
TOOL = """
    import agent_otel
    ran = []
    @agent_otel.tool
    def delete(): ran.append(1)
    def refused():
        with agent_otel.tool_call("delete") as call:
            return call.refused()
"""
CALL = """
    try: delete(); delete()
    except agent_otel.remedies.ToolDeniedError: pass
    print(len(ran), refused() is not None)
"""


def ran_in(environment: Callable[[str], Environment], name: str, program: str, **more: str) -> Any:
    child = environment(name).run(PROGRAMS / f"{program}.py", env={**CODE, **more}, check=True)
    return json.loads(child.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("name", "program", "cases"),
    [
        ("bare", "hand_written", 36),
        ("langchain", "langchain", 30),
        ("mcp-1", "mcp_client", 7),
        ("pydantic-ai", "pydantic_agents", 7),
        ("openai-agents", "openai_agents", 6),
    ],
)
def test_no_denied_handler_runs(environment: Callable[[str], Environment], name: str, program: str, cases: int) -> None:
    found = ran_in(environment, name, program)
    report = found["cases"]
    injected = report.pop("injected", None)
    assert {case: ran for case, (ran, _) in report.items() if ran} == {}
    assert len(report) >= cases
    assert injected is None or injected[1] == str(["tenant acme"] * 4)
    assert found.get("allowed", ["move"]) == ["move"]


def test_a_limit_charges_each_call_of_a_tool_once(environment: Callable[[str], Environment]) -> None:
    limit = {"AGENT_OTEL_MAX_TOOL_CALLS": "3"}
    limits = ran_in(environment, "bare", "hand_written", **limit)["limits"]
    # Three calls of an execution: the outer one is the first, where there is one.
    expected = {"sync": 2, "async": 2, "generator": 2, "recursion": 3, "block": 2, "threads": 2}
    assert {case: len(ran) for case, (ran, _) in limits.items()} == expected
    passed_on = ran_in(environment, "mcp-1", "mcp_client", **limit)["limits"]
    # A tool that passes its call on to a server is charged once; one that makes five calls is charged for each.
    assert ["limit_reached" in answer for answer in passed_on] == [False, False, False, True]
    assert passed_on[3].count("limit_reached") == 3


def test_a_policy_that_does_not_act_is_one_error_log(environment: Callable[[str], Environment]) -> None:
    switches: list[dict[str, str]] = [{}, {"AGENT_OTEL": ""}, {"AGENT_OTEL": "0"}, {"AGENT_OTEL": "yess"}]
    deactivated = "\n    from agent_otel._bootstrap import startup; startup.deactivate()"
    for variables, begin in [*((each, "") for each in switches), ({"AGENT_OTEL": "1"}, deactivated)]:
        env = {"AGENT_OTEL_TOOL_POLICY": "code", **variables}
        child = environment("bare").run(TOOL + begin + CALL, env=env, check=True)
        assert (child.stdout, child.stderr.count(OFF)) == ("2 False\n", 1), (variables, child.stderr)
        strict = environment("bare").run(TOOL + begin + CALL, env={**env, "AGENT_OTEL_TOOL_POLICY_STRICT": "1"})
        assert strict.stdout == "0 True\n", (variables, strict.stderr)


def test_a_policy_denies_where_measuring_fails(environment: Callable[[str], Environment]) -> None:
    failing = {
        "no OpenTelemetry": "import sys; sys.modules['opentelemetry'] = None",
        "the record": "import agent_otel.core.tool_visit as v; v.ToolInvocation = None",
        "the hash": "import agent_otel.core.tool_invocation as v; v.digest_arguments = None",
        "the reader": "import agent_otel.api as v; v._new = None",
        "the settings of remedies": "from agent_otel.core import remedy_hooks as v; v.make_result_remedies = None",
    }
    for name, break_it in failing.items():
        child = environment("bare").run(f"    {break_it}" + TOOL + CALL, env=CODE, check=True)
        assert child.stdout == "0 True\n", (name, child.stdout, child.stderr)
    blank = environment("bare").run(TOOL + CALL, env={**CODE, "AGENT_OTEL_TOOL_POLICY": " "}, check=True)
    assert blank.stdout == "0 True\n"
    assert "cannot be read, every tool call is denied" in blank.stderr


def test_a_framework_that_is_not_gated_is_an_error_log(environment: Callable[[str], Environment]) -> None:
    program = "    from langchain_core.tools import tool"
    env = {**CODE, "AGENT_OTEL_DISABLED_INTEGRATIONS": "langchain"}
    child = environment("langchain").run(program, env=env, check=True)
    assert child.stderr.count("AGENT_OTEL_TOOL_POLICY does not act on langchain-core") == 1
    strict = environment("langchain").run(program, env={**env, "AGENT_OTEL_TOOL_POLICY_STRICT": "1"})
    assert "ImportError: AGENT_OTEL_TOOL_POLICY does not act on langchain-core" in strict.stderr


def test_an_interrupt_in_the_gate_runs_no_handler(environment: Callable[[str], Environment]) -> None:
    program = """
    import signal, time
    class Stop(BaseException): pass
    def stop(*_): raise Stop
    signal.signal(signal.SIGALRM, stop)
    def ask(_):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(5)
        return True
    agent_otel.remedies.use_policy({"rules": [{"tools": "delete", "approve": ask}]})
    try: delete()
    except Stop: print("stopped", len(ran))
    """
    child = environment("bare").run(TOOL + program, env=CODE, check=True)
    assert child.stdout == "stopped 0\n"
