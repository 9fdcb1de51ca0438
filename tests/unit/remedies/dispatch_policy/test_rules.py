"""A policy is read from tables; the first rule that matches a call decides."""

from __future__ import annotations

from typing import Any

import pytest

from agent_otel.remedies.dispatch_policy.rules import PolicyError, read_policy
from tests.rows import each_row

KEYS = "workflow, agent, tools, require, forbid, inject, approve"


NO_VALUE = "is not a text, a number or a truth value, a list of them, or a table of such"


def rule(**more: Any) -> dict[str, Any]:
    return {"rules": [{"tools": "x", **more}]}


@each_row(
    ("tables", "message"),
    [
        ([], "policy is not a table"),
        ({"rule": []}, "policy has unknown keys: rule; possible are mode, rules"),
        ({"mode": "off"}, "mode is not one of enforce, monitor"),
        ({"mode": True}, "mode is not one of enforce, monitor"),
        ({"rules": {}}, "rules is not a list of tables"),
        ({"rules": ["x"]}, "rules[0] is not a table"),
        ({"rules": [{}]}, "rules[0] has no tools"),
        (rule(tool="x"), f"rules[0] has unknown keys: tool; possible are {KEYS}"),
        (rule(agent=5), "rules[0].agent is not a text, in which * stands for any characters"),
        ({"rules": [{"tools": ["a", 5]}]}, "rules[0].tools is not a text, in which * stands for any characters"),
        ({"rules": [{"tools": ""}]}, "rules[0].tools is not a text, in which * stands for any characters"),
        (rule(require=["a"]), "rules[0].require is not a table with names of arguments"),
        (rule(forbid={"a": {}}), f"rules[0].forbid.a {NO_VALUE}"),
        (rule(require={"a": {"b": [{"c": 1}]}}), f"rules[0].require.a.b {NO_VALUE}"),
        (rule(require={"a": {"b": {5: 1}}}), "rules[0].require.a.b is not a table with names of arguments"),
        (rule(inject={"token": "hunter2"}), "rules[0].inject.token is not a table"),
        (rule(inject={"token": {}}), "rules[0].inject.token does not have exactly one of env, context, call"),
        (rule(inject={"token": {"env": 5}}), "rules[0].inject.token.env is not a name"),
        (rule(inject={"token": {"call": "os.system"}}), "rules[0].inject.token.call is not module:function"),
        (rule(approve="yes"), "rules[0].approve is not module:function"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_without_a_value(tables: object, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_policy(tables)
    assert str(caught.value) == message
    assert "hunter2" not in str(caught.value)


def test_the_first_rule_that_matches_decides() -> None:
    policy = read_policy(
        {
            "rules": [
                {"workflow": "triage", "tools": ["search_*", "get.commit"]},
                {"agent": "writer*", "tools": "write", "forbid": {"path": "/etc/*"}},
                {"tools": "write"},
            ]
        }
    )
    first, second, third = policy.rules
    assert policy.mode == "enforce"
    assert policy.rule_for("triage", None, "search_code") is first
    assert policy.rule_for("triage", "writer", "write") is second
    assert policy.rule_for(None, None, "write") is third
    assert policy.rule_for(None, "writer", "search_code") is None
    assert policy.rule_for("triage", None, "getXcommit") is None
    assert policy.rule_for("triage", None, "search_code\nrm") is first
    assert policy.rule_for("triage", None, "Search_code") is None


def test_a_policy_without_rules_allows_nothing() -> None:
    assert read_policy({}).rule_for("any", "any", "any") is None
