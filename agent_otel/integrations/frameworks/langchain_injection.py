"""Arguments that a policy injects into LangChain's tools, behind the callbacks, which get a call's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import is_dict, is_text
from agent_otel.integrations.hooks import Injecting
from agent_otel.settings.kinds import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.types import Invocation


def inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Return true where `_parse` can inject: not here, because callbacks and tracers get these arguments."""
    schema = invocation.instance.args_schema
    has_no_fields = isinstance(schema, type) and not getattr(
        schema, "model_fields", getattr(schema, "__fields__", None)
    )
    return bool(values) and is_dict(invocation.arg(0, "tool_input")) and not has_no_fields


def _parse(wrapped: Callable[..., Any], invocation: Invocation) -> Any:
    """Add the injected arguments to those that the tool's schema checks; texts are hidden from its error messages."""
    values = handler.injected()
    if not values:
        return wrapped(*invocation.args, **invocation.kwargs)
    hidden = {name: Secret(value) if type(value) is str else value for name, value in values.items()}
    invocation.put(0, "tool_input", {**invocation.arg(0, "tool_input"), **hidden})
    parsed = wrapped(*invocation.args, **invocation.kwargs)
    shown = {name: str(parsed[name]) if is_text(parsed[name]) else parsed[name] for name in values if name in parsed}
    return {**parsed, **values, **shown}


parsing = Injecting(_parse)
