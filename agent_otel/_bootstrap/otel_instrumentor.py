"""OpenTelemetry's instrumentor entry point, by which ``opentelemetry-instrument`` activates this package.

It activates the same import hook as ``AGENT_OTEL=1``; the hook is installed once. ``AGENT_OTEL=0`` overrides both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[import-not-found,unused-ignore]

from agent_otel._bootstrap import startup
from agent_otel._internal import errors

if TYPE_CHECKING:
    from collections.abc import Collection


class AgentOtelInstrumentor(BaseInstrumentor):  # type: ignore[misc,unused-ignore]
    """An instrumentor that activates the import hook; it never raises, because that would stop later instrumentors."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return no dependency: each integration checks the version of its own framework."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:  # noqa: ARG002 - providers are resolved at first use
        startup.activate()

    def _uninstrument(self, **kwargs: Any) -> None:  # noqa: ARG002
        errors.guarded("uninstrument")(startup.deactivate)()
