"""The table of integrations: which module triggers each, which versions, what is wrapped. Strings only.

It is read when the first module is imported that a row waits for; their names are in
`agent_otel._bootstrap.trigger_modules`, for interpreter start. The adapter named in a row is loaded when the framework
is. The rows are in ``frameworks.py``, ``model_sdks.py`` and ``runtimes.py``.
"""

from __future__ import annotations

from agent_otel.integrations.registry.frameworks import FRAMEWORKS
from agent_otel.integrations.registry.model_sdks import PROVIDERS
from agent_otel.integrations.registry.packages import PACKAGES
from agent_otel.integrations.registry.runtimes import RUNTIMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.integrations.registry.entries import Integration

INTEGRATIONS = (*FRAMEWORKS, *PROVIDERS, *RUNTIMES)


_triggers: dict[str, Callable[[str], None]] = {}
_checks: dict[str, Callable[[str], None]] = {}


def imported(module: str) -> None:
    """Apply what waits for a module that has just been imported."""
    if not _triggers:
        _triggers.update(triggers())
        _checks.update(checks())
    if module in _triggers:
        _triggers[module](module)
    if module in _checks:
        _checks[module](module)


def watched() -> set[str]:
    """Return all modules that interpreter start watches."""
    return {*triggers(), *checks()}


def checks() -> dict[str, Callable[[str], None]]:
    """Map the first modules of each distribution to what checks its version."""
    return {module: _checker(distribution) for distribution, modules in PACKAGES.items() for module in modules}


def _checker(distribution: str) -> Callable[[str], None]:
    def check(module: str) -> None:
        from agent_otel.integrations import versions  # noqa: PLC0415 - not at interpreter start

        versions.check(distribution, module, [row for row in INTEGRATIONS if row.distribution == distribution])

    return check


def triggers() -> dict[str, Callable[[str], None]]:
    """Map each module that an integration waits for to what applies it."""
    rows: dict[str, list[Integration]] = {}
    neighbours: dict[str, list[Integration]] = {}
    for integration in INTEGRATIONS:
        for module in integration.beside or {candidate.module for candidate in integration.candidates}:
            (neighbours if integration.beside else rows).setdefault(module, []).append(integration)
    return {
        **{module: _watcher(tuple(integrations)) for module, integrations in neighbours.items()},
        **{module: _applier(tuple(integrations)) for module, integrations in rows.items()},
    }


def _watcher(integrations: tuple[Integration, ...]) -> Callable[[str], None]:
    def watch(_: str) -> None:
        """Another instrumentation is here: now the modules of its rows are waited for."""
        from agent_otel._bootstrap import import_hook  # noqa: PLC0415 - installed already, or we would not be called

        for integration in integrations:
            import_hook.install({candidate.module: _applier((integration,)) for candidate in integration.candidates})

    return watch


def _applier(integrations: tuple[Integration, ...]) -> Callable[[str], None]:
    def apply(module: str) -> None:
        """Load the wrapping and apply; this runs inside the user's import and must not raise."""
        try:
            from agent_otel.integrations import wrappers  # noqa: PLC0415 - loads wrapt and OpenTelemetry's API
        except Exception as error:
            from agent_otel._internal import errors  # noqa: PLC0415 - only when something is wrong

            errors.warn_once(
                "load",
                f"agent_otel cannot measure anything: {errors.described(error)}. Is it installed with its "
                "dependencies?",
            )
            return
        _check_disabled()
        for integration in integrations:
            wrappers.apply(integration, module)

    return apply


def _check_disabled() -> None:
    """Warn of integrations that are disabled and do not exist."""
    from agent_otel import settings  # noqa: PLC0415 - not at interpreter start
    from agent_otel._internal import errors  # noqa: PLC0415

    unknown = settings.current().disabled_integrations.difference(known.name for known in INTEGRATIONS)
    if unknown:
        errors.warn_once(
            "disabled", f"AGENT_OTEL_DISABLED_INTEGRATIONS names what there is not: {', '.join(sorted(unknown))}"
        )
