"""Tools with side effects, which the programs of all runtimes call."""

from __future__ import annotations

from typing import Any

import agent_otel

effects: list[str] = []


@agent_otel.tool
def charge(customer: str) -> str:
    """Charge a customer, with a receipt of 100,000 bytes."""
    effects.append(f"charge {customer}")
    return f"receipt {len(effects)} of {customer}".ljust(100_000, ".")


@agent_otel.tool
def mail(customer: str) -> dict[str, str]:
    """Write to a customer."""
    effects.append(f"mail {customer}")
    return {"sent": customer}


def attempts(spans: list[dict[str, Any]]) -> list[int | None]:
    """Return the attempts that the spans of the tool calls name."""
    calls = [span["attributes"] for span in spans if span["name"].startswith("execute_tool")]
    return [call.get("workflow.activity.attempt") for call in calls]
