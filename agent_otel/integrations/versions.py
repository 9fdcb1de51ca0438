"""Versions of the supported distributions: look-up, comparison, and the warning about one that is not instrumented.

At the import of a distribution's first module its version costs the listing of one directory, once, because
``importlib.metadata`` takes milliseconds to import and to parse a distribution's metadata. It stands in only where that
directory does not have the distribution, such as for an editable installation.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder

from agent_otel._internal import env
from agent_otel._internal.errors import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from agent_otel.integrations.registry import Integration

_METADATA = (".dist-info", ".egg-info")
#: The versions of distributions whose modules have been imported.
_imported: dict[str, str | None] = {}


def installed(distribution: str) -> str | None:
    """Return the version of a distribution, None when it is not installed or its metadata cannot be read."""
    import importlib.metadata  # noqa: PLC0415 - slow to import

    try:
        return importlib.metadata.version(distribution)
    except ours(Exception):  # what a broken installation has in place of metadata raises anything
        return None


def imported(distribution: str, module: str) -> str | None:
    """Return the version of a distribution, a module of which has been imported; None when it is not installed."""
    if distribution not in _imported:
        _imported[distribution] = _beside(distribution, module) or installed(distribution)
    return _imported[distribution]


def forget() -> None:
    """Forget the versions, so that another version that is imported later is read."""
    _imported.clear()


def is_older(version: str, than: str) -> bool:
    """Return true when a version is older than another by the first three numbers of its release.

    A version without any, such as ``0+unknown`` or ``0.0.0.post1.dev0``, is what a build without its history gets. It
    can be of any age.
    """
    numbers = _numbers(version)
    return any(numbers) and numbers < _numbers(than)


def check(integration: Integration, module: str) -> None:
    """Warn when the version of a distribution, whose first module has been imported, is not instrumented."""
    version = imported(integration.distribution, module)
    if version is None:
        return  # the program's own module has the name
    if is_older(version, integration.minimum):
        say_unmatched(integration, version, f"older than {integration.minimum}, the oldest supported")
    elif _spec(module) is not None:  # else the modules come from elsewhere than files
        for site in integration.sites:
            is_expected = not (site.beside or is_older(version, site.minimum))
            modules = [candidate.module for candidate in site.candidates]
            packages = {name.partition(".")[0] for name in modules}  # of another distribution, which may be missing
            if is_expected and not _is_there(modules) and _is_there(packages):
                say_unmatched(integration, version, f"it has no module {site.candidates[0].module}")


def say_unmatched(integration: Integration, version: str | None, why: str) -> None:
    """Publish that an integration does not apply to the version found, and warn once for each distribution."""
    from agent_otel import semconv, settings  # noqa: PLC0415 - loaded only when something is wrong
    from agent_otel._internal import errors  # noqa: PLC0415
    from agent_otel.telemetry.setup import report_integration  # noqa: PLC0415

    if version is None or integration.is_disabled(settings.current().disabled_integrations):
        return
    without_policy(integration)
    report_integration(integration.name, version, semconv.UNMATCHED)
    if settings.current().prometheus_port:  # perhaps nothing else is measured here that would open the port
        from agent_otel.integrations import preload  # noqa: PLC0415

        preload.load()
    known = integration.tested or f"{integration.minimum} and later"
    errors.warn_once(
        f"unmatched {integration.distribution}",
        f"{integration.distribution} {version} is not instrumented: {why}. Known to work: {known}. Its calls are not "
        "measured; everything else goes on as before.",
    )


def without_policy(integration: Integration) -> None:
    """Log once that a policy does not act on the tool calls of a framework in use."""
    if integration.adapter.startswith("frameworks."):
        env.without_policy(integration.distribution)


def _beside(distribution: str, module: str) -> str | None:
    """Return the version that the name of the metadata's directory beside an imported package has.

    Installations over each other leave several; the newest is returned, because an older one would end the look-up.
    """
    fields = vars(sys.modules[module])
    path = fields.get("__file__")
    if type(path) is not str:
        return None
    for _ in range(module.count(".") + (2 if "__path__" in fields else 1)):
        path = os.path.dirname(path)  # noqa: PTH120 - pathlib may not be loaded yet
    name = distribution.replace("-", "_")
    try:
        entries = os.listdir(path)  # noqa: PTH208
    except ours(OSError):
        return None
    found = []
    for entry in entries:
        own, _, version = entry.partition("-")
        if entry.endswith(_METADATA) and re.sub(r"[-_.]+", "_", own).lower() == name:
            found.append(version[: -len(_METADATA[0])].partition("-")[0])
    return max(found, key=_numbers, default=None)


def is_running(module: ModuleType) -> bool:
    """Return true for a module whose code has not run to its end."""
    return bool(getattr(vars(module).get("__spec__"), "_initializing", False))


def is_to_come(module: str) -> bool:
    """Return true for a module that can be imported and has not been, or is being imported."""
    loaded = sys.modules.get(module)
    return _spec(module) is not None if loaded is None else is_running(loaded)


def _is_there(modules: Iterable[str]) -> bool:
    return any(name in sys.modules or _spec(name) is not None for name in modules)


def _spec(module: str) -> object:
    """Return the spec of a module without importing the packages above it; None when no file has it."""
    parent = module.rpartition(".")[0]
    path: Iterable[str] | None = None
    if parent:
        path = getattr(sys.modules.get(parent), "__path__", None)
        if path is None:
            path = getattr(_spec(parent), "submodule_search_locations", None)
        if path is None:
            return None
    try:
        return PathFinder.find_spec(module, path)  # type: ignore[arg-type]
    except ours(KeyError):  # a namespace package in a package that is not imported: its spec reads the path of that
        namespace = ModuleSpec(module, None, is_package=True)
        namespace.submodule_search_locations = [os.path.join(each, module.rpartition(".")[2]) for each in path or ()]  # noqa: PTH118 - pathlib takes milliseconds to import
        return namespace


def _numbers(version: str) -> tuple[int, int, int]:
    release = re.match(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", version)
    major, minor, patch = release.groups("0") if release else "000"
    return int(major), int(minor), int(patch)
