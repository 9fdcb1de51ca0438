"""OpenTelemetry's instrumentor entry point: ``opentelemetry-instrument`` activates this package as any other.

The same installation as the switch; whichever comes first does it, once. ``AGENT_OTEL=0`` wins over both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[import-not-found,unused-ignore]

from agent_otel._bootstrap import startup
from agent_otel._internal import errors

if TYPE_CHECKING:
    from collections.abc import Collection


class AgentOtelInstrumentor(BaseInstrumentor):  # type: ignore[misc,unused-ignore]
    """Activates the import hook. Nothing is ever raised: an exception here would stop every later instrumentor."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: each integration checks its own framework's version."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:  # noqa: ARG002 - the providers in force are found at first use
        startup.activate()

    def _uninstrument(self, **kwargs: Any) -> None:  # noqa: ARG002
        errors.guarded("uninstrument")(startup.deactivate)()
