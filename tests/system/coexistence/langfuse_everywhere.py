"""Langfuse's handler in every LangChain call; the program would name it in each. Switched on as an instrumentor is."""

# In its environment the framework is there, and where types are checked it is not.
# mypy: disable-error-code="import-not-found,unused-ignore"

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_handler: ContextVar[Any] = ContextVar("handler", default=None)


class Everywhere:
    """Registers the handler with LangChain."""

    def instrument(self) -> None:
        """Make a client of the variables ``LANGFUSE_*`` and the handler."""
        from langchain_core.tracers.context import register_configure_hook
        from langfuse import Langfuse
        from langfuse.langchain import CallbackHandler

        Langfuse()
        _handler.set(CallbackHandler())
        register_configure_hook(_handler, inheritable=True)
