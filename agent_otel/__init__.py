"""Observability of AI agents' tool calls, model requests and payloads, with opt-in remedies for oversized ones.

Set ``AGENT_OTEL=1`` on an unchanged Python agent, and its tool calls become OpenTelemetry spans and Prometheus
metrics. This module imports nothing while the variable is unset, because it may be loaded at every interpreter start;
its exports are loaded on first use. With the variable set, its import activates the package in programs whose start-up
files do not run, such as packages on ``PYTHONPATH``, Lambda layers, zip archives and ``python -S``.

pytest would warn that the package of its plugin is imported already: PYTEST_DONT_REWRITE.
"""

import os as _os

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from agent_otel import remedies
    from agent_otel._internal import __version__
    from agent_otel.api import execution, flush, payload, tool, tool_call
    from agent_otel.caps import payload_caps

__all__ = ["__version__", "execution", "flush", "payload", "payload_caps", "remedies", "tool", "tool_call"]

_EXPORTS = {
    "__version__": "agent_otel._internal",
    "execution": "agent_otel.api",
    "flush": "agent_otel.api",
    "payload": "agent_otel.api",
    "payload_caps": "agent_otel.caps",
    "remedies": "agent_otel.remedies",
    "tool": "agent_otel.api",
    "tool_call": "agent_otel.api",
}


if _os.environ.get("AGENT_OTEL"):
    from agent_otel._bootstrap import startup as _startup

    _startup.start()


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    from agent_otel._internal import fork  # noqa: PLC0415 - nothing is imported before first use

    return fork.load(__name__, _EXPORTS, name)


def __dir__() -> list[str]:
    return sorted(__all__)
