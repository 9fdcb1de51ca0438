"""The look-up of entries: which module applies which integrations, and which one checks a version.

It is imported when the first module is imported that an entry names; interpreter start reads the names alone, from
`agent_otel._internal.trigger_modules`. An adapter is loaded when its framework is.
"""

from __future__ import annotations

from functools import partial

from agent_otel._internal import env
from agent_otel.integrations.registry.table import INTEGRATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_otel.integrations.registry.entries import Integration, Site

    _Sites = list[tuple[Integration, Site]]

_triggers: dict[str, Callable[[str], None]] = {}
_checks: dict[str, Callable[[str], None]] = {}


def imported(module: str) -> None:
    """Apply what waits for a module that has just been imported."""
    if not _triggers:
        _triggers.update(triggers(INTEGRATIONS))
        _checks.update(checks(INTEGRATIONS))
    if module in _triggers:
        _triggers[module](module)
    if module in _checks:
        _checks[module](module)


def watched(integrations: Iterable[Integration]) -> set[str]:
    """Return all modules that interpreter start watches."""
    return {*triggers(integrations), *checks(integrations)}


def checks(integrations: Iterable[Integration]) -> dict[str, Callable[[str], None]]:
    """Map the first modules of each distribution to the function that checks its version."""
    return {module: partial(_check, integration) for integration in integrations for module in integration.packages}


def _check(integration: Integration, module: str) -> None:
    from agent_otel.integrations import versions  # noqa: PLC0415 - not at interpreter start

    versions.check(integration, module)


def triggers(integrations: Iterable[Integration]) -> dict[str, Callable[[str], None]]:
    """Map each module that a wrap site waits for to the function that applies the site."""
    sites: dict[str, _Sites] = {}
    neighbours: dict[str, _Sites] = {}
    for integration in integrations:
        for site in integration.sites:
            for module in site.beside or {candidate.module for candidate in site.candidates}:
                (neighbours if site.beside else sites).setdefault(module, []).append((integration, site))
    return {
        **{module: partial(_watch, waiting) for module, waiting in neighbours.items()},
        **{module: partial(_apply, waiting) for module, waiting in sites.items()},
    }


def _watch(waiting: _Sites, _: str) -> None:
    """Wait for the modules of these sites: the other instrumentation beside which they are wrapped is here."""
    from agent_otel._bootstrap import import_hook  # noqa: PLC0415 - installed already, or we would not be called

    for integration, site in waiting:
        apply = partial(_apply, [(integration, site)])
        import_hook.install({candidate.module: apply for candidate in site.candidates}, each_time=True)


def _apply(waiting: _Sites, module: str) -> None:
    """Load the wrapping and apply; this runs inside the user's import and must not raise."""
    from agent_otel._internal import errors  # noqa: PLC0415 - not at interpreter start

    try:
        from agent_otel.integrations import patching  # noqa: PLC0415 - loads wrapt and OpenTelemetry's API
    except errors.ours(Exception) as error:
        errors.warn_once(
            "load",
            f"agent_otel cannot measure anything: {errors.described(error)}. Is it installed with its dependencies?",
        )
        env.without_policy(module)
        return
    _check_disabled()
    for integration, site in waiting:
        patching.apply(integration, site, module)


def _check_disabled() -> None:
    """Warn of integrations that are disabled and do not exist."""
    from agent_otel import settings  # noqa: PLC0415 - not at interpreter start
    from agent_otel._internal import errors  # noqa: PLC0415

    unknown = settings.current().disabled_integrations.difference(known.name for known in INTEGRATIONS)
    if unknown:
        errors.warn_once(
            "disabled", f"AGENT_OTEL_DISABLED_INTEGRATIONS names what there is not: {', '.join(sorted(unknown))}"
        )
