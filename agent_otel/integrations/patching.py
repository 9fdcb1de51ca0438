"""Applies and restores wrappers: candidates for versions, marks against a second wrapping, and the way back."""

from __future__ import annotations

import importlib
import inspect
import sys
import weakref
from functools import partial
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import wrapt

from agent_otel import settings
from agent_otel._internal import env, errors
from agent_otel.core import handler, switches
from agent_otel.integrations import preload, versions, wrap
from agent_otel.integrations.hooks import Family, Injecting, on_return
from agent_otel.integrations.wrap import stand_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.integrations.registry import Integration, Site

# A proxy keeps an attribute with the prefix _self_ itself, and the proxies of others ask what they wrap for it.
_MARK = "_self_agent_otel_wrapped"
#: Packages of instrumentors, and the attribute of their wrappers that has the wrapped function.
_INSTRUMENTORS = ("openinference.instrumentation.", "opentelemetry.instrumentation.")
_INSIDE = "__wrapped__"
_wrapped: list[tuple[Any, str, Any, Any]] = []
#: The classes of families, by id, with the names of their wrapped methods. Programs make classes in functions, too:
#: nothing here keeps one alive.
_adopted: dict[int, tuple[weakref.ref[type], set[str]]] = {}
#: The sites that are applied, each with the module that matched and its spec: a module that is reloaded gets a new one.
_matched: dict[Site, tuple[str, Any]] = {}


def apply(integration: Integration, site: Site, module_name: str) -> None:
    """Wrap what a site of an integration names in a module that has just been imported; nothing is raised."""
    with errors.reported(f"integration.{integration.name}"):
        _apply(integration, site, module_name)
        return
    env.without_policy(integration.distribution)


def _apply(integration: Integration, site: Site, module_name: str) -> None:
    name, spec = _matched.get(site, (None, None))
    if name is not None and (name != module_name or getattr(sys.modules.get(name), "__spec__", None) is spec):
        return  # it is applied, and its module has not been reloaded
    if integration.is_disabled(settings.current().disabled_integrations):
        versions.without_policy(integration)
        return
    version = versions.imported(integration.distribution, module_name)
    if version is not None and versions.is_older(version, integration.minimum):
        versions.say_unmatched(integration, version, f"older than {integration.minimum}, the oldest supported")
        return
    if version is not None and versions.is_older(version, site.minimum):
        return  # a part of the framework that is not supported yet; the others are
    adapter = importlib.import_module(f"agent_otel.integrations.{site.adapter}")
    for candidate in integration.whole().sites[site.number].candidates:
        module = sys.modules.get(candidate.module)
        # A module that is still running has its turn when it has run.
        if module is None or (candidate.module != module_name and versions.is_running(module)):
            continue
        if all(_find(module, wrap.target) is not None for wrap in candidate.wraps):
            for wrap in candidate.wraps:
                _wrap(module, wrap.target, getattr(adapter, wrap.reader))
            _matched[site] = candidate.module, getattr(module, "__spec__", None)
            switches.hooked.update([integration.name] if site.beside else [])
            handler.report_integration(
                integration.name, version or "", f"{candidate.module}:{candidate.wraps[0].target}"
            )
            preload.load()
            return
    modules = [candidate.module for candidate in site.candidates]
    if any(map(versions.is_to_come, modules[: modules.index(module_name)])):
        return  # the module of an older version is still there, and the newer form is elsewhere
    # Without a version, the program's own module has the name; `agents.tool` is not so rare.
    versions.say_unmatched(integration, version, f"nothing this package knows in {module_name}")


def _find(module: ModuleType, target: str) -> tuple[Any, str, Any] | None:
    """Return (parent, attribute, value) of ``Class.method`` or ``function``; the value as stored, unbound.

    A method of an object is bound.
    """
    parent: Any = module
    *path, attribute = target.split(".")
    for name in path:
        parent = getattr(parent, name, None)
    if parent is None:
        return None
    is_object = not isinstance(parent, type | ModuleType)
    value = getattr(parent, attribute, None) if is_object else inspect.getattr_static(parent, attribute, None)
    return None if value is None else (parent, attribute, value)


def _wrap(module: ModuleType, target: str, reader: Family | wrap.Measured) -> None:
    found = _find(module, target)
    if found is None or (isinstance(reader, Injecting) and not settings.current().tool_policy):
        return
    parent, attribute, original = found
    for owner, value in list(_captured(parent, attribute, original)):
        _wrap_found(owner, attribute, value, reader)
    _wrap_found(parent, attribute, original, reader)


def _captured(parent: Any, attribute: str, original: Any) -> Iterator[tuple[type, Any]]:
    """Yield subclasses that another instrumentation has given its wrapper of this method, which calls the original."""
    owners: list[type] = type.__subclasses__(parent) if isinstance(parent, type) else []
    for owner in owners:
        value = vars(owner).get(attribute)
        is_around = inspect.isroutine(value) and inspect.unwrap(value, stop=lambda each: each is original) is original
        if value is not None and is_around:
            yield owner, value
        yield from _captured(owner, attribute, original)


def _wrap_found(
    parent: Any, attribute: str, original: Any, reader: Family | wrap.Measured, *, keeps: bool = True
) -> None:
    if getattr(original, _MARK, False):
        return
    other = _instrumentors(original) if keeps else None
    if other is not None:
        original = other.__wrapped__
    plain = original.__func__ if isinstance(original, staticmethod | classmethod) else original
    if isinstance(reader, Family):
        family: Family = reader
        reader = on_return(lambda invocation, _: adopt(family, invocation.instance))
    wrapped = stand_in(original, wrap.wrapper_for(reader, plain), parent, attribute)
    setattr(wrapped.__func__ if type(wrapped) is MethodType else wrapped, _MARK, True)
    if other is not None:
        parent, attribute = other, _INSIDE
    inherited = attribute != _INSIDE and attribute not in vars(parent)
    setattr(parent, attribute, wrapped)
    if not keeps:
        _, names = _adopted.setdefault(id(parent), (weakref.ref(parent, partial(_adopted.pop, id(parent))), set()))
        names.add(attribute)
        return
    _wrapped.append((parent, attribute, wrapped, None if inherited else original))


def _instrumentors(function: Any) -> Any:
    """Return the innermost wrapper that an OpenTelemetry instrumentor has put around a function, or None.

    Inside of it, the span that it opens for a call is open, and gets the numbers.
    """
    innermost = None
    while issubclass(type(function), wrapt.FunctionWrapper):
        if getattr(getattr(function, "_self_wrapper", None), "__module__", "").startswith(_INSTRUMENTORS):
            innermost = function
        function = function.__wrapped__
    return innermost


@errors.guarded("hook.family")
def adopt(hook: Family, instance: Any) -> None:
    """Wrap methods where they are defined: what a method overrides and may call is another's until it has instances."""
    for kind, name, reader in hook.methods(instance) if switches.enabled else ():
        for owner in kind.__mro__:
            if name in vars(owner):
                _wrap_found(owner, name, vars(owner)[name], reader, keeps=False)
                break


def restore() -> None:
    """Put back every original that is still where we left it; where others have wrapped ours, ours stays silent."""
    switches.enabled = False
    while _wrapped:
        parent, attribute, wrapped, original = _wrapped.pop()
        if (parent.__wrapped__ if attribute == _INSIDE else vars(parent).get(attribute)) is not wrapped:
            continue
        if original is None:
            delattr(parent, attribute)
        else:
            setattr(parent, attribute, original)
    for reference, names in list(_adopted.values()):
        owner = reference()
        for name in names if owner is not None else ():
            found: Any = vars(owner).get(name)
            if getattr(found, _MARK, False):  # else another's wrapper is around ours, and stays
                setattr(owner, name, found.__wrapped__)
    _adopted.clear()
    _matched.clear()
    versions.forget()
    switches.hooked.clear()
