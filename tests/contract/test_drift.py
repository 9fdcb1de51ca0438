"""What is wrapped exists: each row of the registry is matched in the environment of some class of the suite."""

from __future__ import annotations

from agent_otel.integrations.registry import INTEGRATIONS
from tests.contract import test_handwritten, test_langchain, test_mcp, test_openai, test_openai_agents

MODULES = (test_handwritten, test_langchain, test_mcp, test_openai, test_openai_agents)


def test_each_form_of_each_framework_is_kept_to_the_contract() -> None:
    classes = [cls for module in MODULES for cls in vars(module).values() if isinstance(cls, type)]
    matched = {item for cls in classes for item in getattr(cls, "integrations", {}).items()}
    forms = {
        (integration.name, f"{candidate.module}:{candidate.wraps[0].target}")
        for integration in INTEGRATIONS
        for candidate in integration.candidates
        if not integration.beside  # tests/coexistence has those
    }
    assert forms == matched
