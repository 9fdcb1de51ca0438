"""Tools with side effects, which the programs of all runtimes call."""

from __future__ import annotations

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
