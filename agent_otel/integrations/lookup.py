"""The look-up of entries: which module applies which integrations, and which one checks a version.

It is imported when the first module is imported that an entry names; interpreter start reads the names alone, from
`agent_otel._internal.trigger_modules`. An adapter is loaded when its framework is.
"""

from __future__ import annotations

from functools import partial

from agent_otel._internal import env
from agent_otel.integrations.registry import INTEGRATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from agent_otel.integrations.registry import Integration, Site

_waiting: dict[str, list[Callable[[str], None]]] = {}


def imported(module: str) -> None:
    """Run the callbacks that wait for a module that has just been imported."""
    if not _waiting:
        _waiting.update(watched(INTEGRATIONS))
    for act in _waiting.get(module, ()):
        act(module)


def watched(integrations: Collection[Integration]) -> dict[str, list[Callable[[str], None]]]:
    """Map each module that interpreter start watches to its callbacks: sites, and the check of its version."""
    waiting: dict[str, list[Callable[[str], None]]] = {}
    for integration in integrations:
        for site in integration.sites:
            act = partial(_watch if site.beside else _apply, integration, site)
            for module in site.beside or {candidate.module for candidate in site.candidates}:
                waiting.setdefault(module, []).append(act)
    for integration in integrations:
        for module in integration.packages:
            waiting.setdefault(module, []).append(partial(_check, integration))
    return waiting


def _check(integration: Integration, module: str) -> None:
    from agent_otel.integrations import versions  # noqa: PLC0415 - not at interpreter start

    versions.check(integration, module)


def _watch(integration: Integration, site: Site, _: str) -> None:
    """Wait for the modules of a site: it is wrapped beside an instrumentation that is here."""
    from agent_otel._bootstrap import import_hook  # noqa: PLC0415 - installed already, or we would not be called

    apply = partial(_apply, integration, site)
    import_hook.install({candidate.module: apply for candidate in site.candidates}, each_time=True)


def _apply(integration: Integration, site: Site, module: str) -> None:
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
