"""The wrapping itself, written once: sync, async, generators, candidates, marks and the way back.

The user's call stands between a shielded "before" and a shielded "after"; same result, same exception object.
"""

from __future__ import annotations

import contextvars
import functools
import importlib
import inspect
import sys
from typing import TYPE_CHECKING, Any

from agent_otel import settings
from agent_otel._internal import errors
from agent_otel.core import handler, switches
from agent_otel.core.types import (
    LEFT_ALONE,
    Around,
    Before,
    Door,
    Family,
    InThread,
    Invocation,
    ModelReader,
    Passing,
    StepReader,
    ToolReader,
    Watch,
)
from agent_otel.integrations import generators, preload, versions
from agent_otel.integrations.stand_ins import stand_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType, TracebackType

    from typing_extensions import Self

    from agent_otel.integrations.registry.entries import Candidate, Integration, Site

    Reader = ToolReader | ModelReader | StepReader | Before | Watch | Around | Family | InThread | Passing | Door
    Wrapper = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]

# A proxy keeps an attribute with the prefix _self_ itself, and the proxies of others ask what they wrap for it.
_MARK = "_self_agent_otel_wrapped"
_wrapped: list[tuple[Any, str, Any, Any]] = []
_matched: set[Site] = set()


def wrapper_for(reader: Reader, wrapped: Callable[..., Any]) -> Wrapper:
    """Choose the wrapper that fits the kind of function, once, when it is wrapped."""
    hooks: dict[type, Callable[..., Wrapper]] = {
        Before: _before,
        Family: _family,
        InThread: _in_thread,
        Passing: _passing,
    }
    if type(reader) in hooks:
        return hooks[type(reader)](reader)
    is_async = inspect.iscoroutinefunction(wrapped)
    if isinstance(reader, Watch):
        return _watch_async(reader) if is_async else _watch(reader)
    is_generator = inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(wrapped)
    if isinstance(reader, ToolReader | ModelReader) and is_generator:
        return _stream(reader)
    is_remedied = isinstance(reader, Door) or (isinstance(reader, ToolReader) and reader.replace is not None)
    if is_remedied and handler.result_remedies() is not None:
        enter_call = _enter_door if isinstance(reader, Door) else handler.enter_tool
        return _remedied_async(reader, enter_call) if is_async else _remedied(reader, enter_call)
    if isinstance(reader, ModelReader) and reader.watch is not None:
        return _watched_async(reader) if is_async else _watched(reader)
    doors: dict[type, Callable[..., Any]] = {
        ToolReader: handler.enter_tool,
        ModelReader: handler.enter_model,
        StepReader: handler.enter_step,
        Door: _enter_door,
    }
    enter = doors.get(type(reader), _surround)
    return _around_async(reader, enter) if is_async else _around(reader, enter)


def _around(reader: Any, enter: Callable[..., Any]) -> Wrapper:
    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        visit = enter(reader, Invocation(instance, args, kwargs))
        if visit is None:
            return wrapped(*args, **kwargs)
        with visit:
            result = wrapped(*args, **kwargs)
            visit.returned(result)
            return result

    return wrapper


def _around_async(reader: Any, enter: Callable[..., Any]) -> Wrapper:
    async def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        visit = enter(reader, Invocation(instance, args, kwargs))
        if visit is None:
            return await wrapped(*args, **kwargs)
        with visit:
            result = await wrapped(*args, **kwargs)
            visit.returned(result)
            return result

    return wrapper


def _watched(reader: ModelReader) -> Wrapper:
    """Wrap a function that sends a model request like `_around`; its value may be a stream."""

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        visit = handler.enter_model(reader, Invocation(instance, args, kwargs))
        if visit is None:
            return wrapped(*args, **kwargs)
        with visit:
            return visit.watched(wrapped(*args, **kwargs))

    return wrapper


def _watched_async(reader: ModelReader) -> Wrapper:
    async def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        visit = handler.enter_model(reader, Invocation(instance, args, kwargs))
        if visit is None:
            return await wrapped(*args, **kwargs)
        with visit:
            return visit.watched(await wrapped(*args, **kwargs))

    return wrapper


def _enter_door(door: Door, invocation: Invocation) -> Any:
    return door.enter(invocation)


def _remedied(reader: Any, enter: Callable[..., Any]) -> Wrapper:
    """Wrap a tool function like `_around`, with a remedy switched on: the returned value may be a replacement."""

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        visit = enter(reader, invocation)
        if visit is None:
            return wrapped(*args, **kwargs)
        with visit:
            skipped = visit.skipped(invocation)
            if skipped is not LEFT_ALONE:
                return skipped
            try:
                value = wrapped(*args, **kwargs)
            except Exception as error:
                visit.raised(error, invocation)
                raise
            return visit.remedied(value, invocation)

    return wrapper


def _remedied_async(reader: Any, enter: Callable[..., Any]) -> Wrapper:
    async def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        visit = enter(reader, invocation)
        if visit is None:
            return await wrapped(*args, **kwargs)
        with visit:
            skipped = visit.skipped(invocation)
            if skipped is not LEFT_ALONE:
                return skipped
            try:
                value = await wrapped(*args, **kwargs)
            except Exception as error:
                await visit.araised(error, invocation)
                raise
            return await visit.aremedied(value, invocation)

    return wrapper


def _stream(reader: ToolReader | ModelReader) -> Wrapper:
    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return generators.measured(wrapped(*args, **kwargs), reader, Invocation(instance, args, kwargs))

    return wrapper


def _watch(hook: Watch) -> Wrapper:
    run = errors.guarded("hook.watch")(hook.run)

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        try:
            result = wrapped(*args, **kwargs)
        except Exception as error:
            run(invocation, None, error)
            raise
        run(invocation, result, None)
        return result

    return wrapper


def _watch_async(hook: Watch) -> Wrapper:
    run = errors.guarded("hook.watch")(hook.run)

    async def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        invocation = Invocation(instance, args, kwargs)
        try:
            result = await wrapped(*args, **kwargs)
        except Exception as error:
            run(invocation, None, error)
            raise
        run(invocation, result, None)
        return result

    return wrapper


def _before(hook: Before) -> Wrapper:
    run = errors.guarded("hook.before")(hook.run)

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        run(Invocation(instance, args, kwargs))
        return wrapped(*args, **kwargs)

    return wrapper


def _passing(hook: Passing) -> Wrapper:
    async def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return await hook.run(wrapped, Invocation(instance, args, kwargs))

    return wrapper


def _in_thread(_: InThread) -> Wrapper:
    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ARG001 - the signature of wrappers
        decorate = wrapped(*args, **kwargs)
        return functools.partial(_decorate_in_context, decorate) if switches.enabled else decorate

    return wrapper


def _decorate_in_context(decorate: Callable[..., Any], function: Callable[..., Any]) -> Any:
    here = contextvars.copy_context()

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return here.copy().run(function, *args, **kwargs)

    return decorate(run)


class _Surrounded:
    """A call of a wrapped function with what is to be run after it."""

    __slots__ = ("_after", "_invocation", "_value")

    def __init__(self, after: Callable[..., None], invocation: Invocation) -> None:
        self._after = after
        self._invocation = invocation
        self._value: Any = None

    def __enter__(self) -> Self:
        return self

    def returned(self, value: Any) -> None:
        """Keep the value until the call is left."""
        self._value = value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._after(self._invocation, self._value, error)
        except Exception:
            errors.report_error("hook.around")


@errors.guarded("hook.around")
def _surround(hook: Around, invocation: Invocation) -> _Surrounded | None:
    invocation.state = hook.before(invocation)
    return None if invocation.state is None else _Surrounded(hook.after, invocation)


def _family(hook: Family) -> Wrapper:
    adopt = errors.guarded("hook.family")(_adopt)

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = wrapped(*args, **kwargs)
        if switches.enabled:
            adopt(hook, instance)
        return result

    return wrapper


def _adopt(hook: Family, instance: Any) -> None:
    """Wrap methods where they are defined: what a method overrides and may call is another's until it has instances."""
    for kind, name, reader in hook.methods(instance):
        for owner in kind.__mro__:
            if name in vars(owner):
                _wrap_found(owner, name, vars(owner)[name], reader)
                break


def apply(integration: Integration, site: Site, module_name: str) -> None:
    """Wrap what a site of an integration names in a module that has just been imported; nothing is raised."""
    try:
        _apply(integration, site, module_name)
    except Exception:
        errors.report_error(f"integration.{integration.name}")


def _apply(integration: Integration, site: Site, module_name: str) -> None:
    if site in _matched or integration.is_disabled(settings.current().disabled_integrations):
        return
    version = versions.installed(integration.distribution)
    minimum = site.minimum or integration.minimum
    if version is not None and versions.is_older(version, minimum):
        versions.say_unmatched(integration, version, f"older than {minimum}, the oldest supported")
        return
    adapter = importlib.import_module(f"agent_otel.integrations.{site.adapter}")
    module = sys.modules[module_name]
    for candidate in site.candidates:
        if candidate.module == module_name and _resolves(module, candidate):
            for wrap in candidate.wraps:
                _wrap(module, wrap.target, getattr(adapter, wrap.reader))
            _matched.add(site)
            switches.hooked.update([integration.name] if site.beside else [])
            handler.report_integration(integration.name, version or "", f"{module_name}:{candidate.wraps[0].target}")
            preload.load()
            return
    # Without a version, the program's own module has the name; `agents.tool` is not so rare.
    versions.say_unmatched(integration, version, f"nothing this package knows in {module_name}")


def _resolves(module: ModuleType, candidate: Candidate) -> bool:
    return all(_find(module, wrap.target) is not None for wrap in candidate.wraps)


def _find(module: ModuleType, target: str) -> tuple[Any, str, Any] | None:
    """Return (parent, attribute, value) of ``Class.method`` or ``function``; the value as stored, unbound."""
    parent: Any = module
    *path, attribute = target.split(".")
    for name in path:
        parent = getattr(parent, name, None)
    value = inspect.getattr_static(parent, attribute, None) if parent is not None else None
    return None if value is None else (parent, attribute, value)


def _wrap(module: ModuleType, target: str, reader: Reader) -> None:
    found = _find(module, target)
    if found is not None:
        _wrap_found(*found, reader)


def _wrap_found(parent: Any, attribute: str, original: Any, reader: Reader) -> None:
    if getattr(original, _MARK, False):
        return
    plain = original.__func__ if isinstance(original, staticmethod | classmethod) else original
    wrapped = stand_in(original, wrapper_for(reader, plain), parent, attribute)
    setattr(wrapped, _MARK, True)
    inherited = attribute not in vars(parent)
    setattr(parent, attribute, wrapped)
    _wrapped.append((parent, attribute, wrapped, None if inherited else original))


def restore() -> None:
    """Put back every original that is still where we left it; where others have wrapped ours, ours stays silent."""
    switches.enabled = False
    while _wrapped:
        parent, attribute, wrapped, original = _wrapped.pop()
        if vars(parent).get(attribute) is not wrapped:
            continue
        if original is None:
            delattr(parent, attribute)
        else:
            setattr(parent, attribute, original)
    _matched.clear()
    switches.hooked.clear()
