"""Cloudflare's pint has nothing against the rules; ``pint.hcl`` is what it is asked to look at besides.

``scripts/extra`` runs this; ``scripts/test`` has promtool's and vmalert's checks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_otel.alerts import ALERTS, RECORDINGS, render
from tests.system.engines import starting
from tests.system.engines.go_tools import PINT

if TYPE_CHECKING:
    from subprocess import CompletedProcess

ROOT = Path(__file__).resolve().parents[2]
FILES = ("agent-otel.rules.yaml", "agent-otel.rules.no-keep-firing.yaml", "kubernetes/agent-otel.prometheusrule.yaml")


def lint(rules: Path) -> CompletedProcess[str]:
    """Lint rules without a server that has their series, information being an error."""
    options = ("--no-color", "--offline", "--config", Path(__file__).with_name("pint.hcl"))
    return starting.obtained(PINT.run, *options, "lint", "--fail-on=info", "--min-severity=info", rules)


@pytest.mark.parametrize("name", FILES)
def test_pint_has_nothing_against_the_rules(name: str) -> None:
    done = lint(ROOT / "alerts" / name)

    assert done.returncode == 0, done.stderr
    assert f"entries={len(ALERTS) + len(RECORDINGS)} " in done.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("$labels.gen_ai_tool_name }}{{", "$labels.tool }}{{", "alerts/template"),
        ("severity: critical", "severity: page", "rule/label"),
        ("alerts/runbooks/AgentLimitHit.md", "https://example.org/", "alerts/annotation"),
        ("sum by (job, gen_ai_tool_name, gen_ai_agent_name)", "sum by (gen_ai_tool_name)", "promql/aggregate"),
        ("last_over_time(", "last_over_tme(", "promql/syntax"),
    ],
)
def test_pint_finds_what_is_wrong(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    rules = render()
    assert right in rules
    (tmp_path / "rules.yaml").write_text(rules.replace(right, wrong))

    done = lint(tmp_path / "rules.yaml")

    assert done.returncode != 0
    assert said in done.stdout + done.stderr
