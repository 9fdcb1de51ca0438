"""Shows, and stops, the way AI agents die of bytes.

Set ``AGENT_OTEL=1`` on an unchanged Python agent and its tool calls become OpenTelemetry spans and Prometheus
metrics. This module imports nothing: what it exports is loaded on first use, because it is read at every
interpreter start.
"""

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from agent_otel.caps import this as caps
    from agent_otel.handwritten import execution, payload, tool, tool_call

__version__ = "0.1.0"
__all__ = ["__version__", "caps", "execution", "payload", "tool", "tool_call"]

_EXPORTS = {
    "caps": "agent_otel.caps",
    "execution": "agent_otel.handwritten",
    "payload": "agent_otel.handwritten",
    "tool": "agent_otel.handwritten",
    "tool_call": "agent_otel.handwritten",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - nothing is imported before first use

    loaded = importlib.import_module(module)
    # agent_otel.caps() calls the module itself: importing it binds this very name to it, whenever that happens.
    value = loaded if module == f"{__name__}.{name}" else getattr(loaded, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
