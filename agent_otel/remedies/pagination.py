"""Pages instead of whole lists, for tools that return rows: a sealed cursor, and a description for the model."""

from __future__ import annotations

import base64
import functools
import hashlib
import inspect
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict, overload

from agent_otel import settings
from agent_otel.remedies.claim_check.references import Signer

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE_SIZE: Final = 20
LARGEST_PAGE: Final = 50
_LONGEST_CURSOR: Final = 256
_ADVICE: Final = (
    "Returns one page: `items`, and `next_cursor` when there are more. To go on, call it again with the same arguments "
    "and `cursor` set to that value."
)


class BadCursorError(ValueError):
    """A cursor that belongs to other arguments, was changed, or comes from another process without a common key."""


class Page(TypedDict):
    """A page of rows. ``next_cursor`` is None on the last page; ``total_estimate`` is None for an iterator."""

    items: list[Any]
    next_cursor: str | None
    total_estimate: int | None


@functools.lru_cache(maxsize=1)
def signer() -> Signer:
    """Return the signer of cursors: with ``AGENT_OTEL_CLAIM_CHECK_KEY``, else with a key of this process."""
    chosen = settings.current()
    return Signer(chosen.claim_check_key, chosen.claim_check_tenant)


def paginate(
    rows: Iterable[Any], *, cursor: str | None = None, page_size: int = PAGE_SIZE, scope: object = None
) -> Page:
    """Return one page of rows.

    ``page_size`` is 1 to 50; a value that is no number means 20. ``scope`` is the question that the rows answer, such
    as the tool's arguments: a cursor is valid for the same scope only. Of an iterator, only the rows up to the page's
    end are read, and there is no total. Raises BadCursorError.
    """
    start = 0 if not cursor else offset_of(cursor, scope)
    size = _size(page_size)
    if isinstance(rows, Sequence):
        items, total = list(rows[start : start + size]), len(rows)
        is_last = start + size >= total
    else:
        taken = list(itertools.islice(rows, start, start + size + 1))
        items, total, is_last = taken[:size], None, len(taken) <= size
    return Page(items=items, next_cursor=None if is_last else cursor_of(start + size, scope), total_estimate=total)


def _size(page_size: object) -> int:
    """Return a valid page size; the model may pass any value."""
    try:
        return max(1, min(int(page_size), LARGEST_PAGE))  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        return PAGE_SIZE


@overload
def paginated(function: Callable[..., Any]) -> Callable[..., Any]: ...
@overload
def paginated(*, page_size: int = ...) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def paginated(function: Callable[..., Any] | None = None, *, page_size: int = PAGE_SIZE) -> Any:
    """Make a tool that returns a list return pages of it.

    The decorator adds two parameters, ``cursor`` and ``page_size``, to the function's signature, from which frameworks
    build the schema for the model, and a paragraph about them to its docstring. Each page calls the function again. An
    invalid cursor is answered with an error for the model, not raised, and the function is not called. Works for sync
    and async functions.
    """

    def decorate(target: Callable[..., Any]) -> Any:
        signature = inspect.signature(target)

        def scope(*call: Any) -> tuple[Any, ...]:
            return (target.__name__, *_arguments(signature, *call))

        if inspect.iscoroutinefunction(target):

            @functools.wraps(target)
            async def wrapped_async(
                *args: Any, cursor: str | None = None, page_size: int = page_size, **kwargs: Any
            ) -> Any:
                bad = _refusal(cursor, scope, args, kwargs)
                return bad or _pages(await target(*args, **kwargs), cursor, page_size, scope, args, kwargs)

            return _described(wrapped_async, target, signature, page_size)

        @functools.wraps(target)
        def wrapped(*args: Any, cursor: str | None = None, page_size: int = page_size, **kwargs: Any) -> Any:
            bad = _refusal(cursor, scope, args, kwargs)
            return bad or _pages(target(*args, **kwargs), cursor, page_size, scope, args, kwargs)

        return _described(wrapped, target, signature, page_size)

    return decorate if function is None else decorate(function)


def _arguments(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a call in one form: positional or by name, with defaults filled in."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _refusal(cursor: str | None, scope: Callable[..., object], *call: Any) -> dict[str, str] | None:
    """Return the answer to a cursor that is not valid for the call; None for a valid one, and for none."""
    try:
        if cursor:
            offset_of(cursor, scope(*call))
    except BadCursorError as error:
        return {"error": "bad_cursor", "hint": str(error)}
    return None


def _pages(rows: Any, cursor: str | None, page_size: int, scope: Callable[..., object], *call: Any) -> Any:
    """Return a page of rows, and anything that is not rows unchanged."""
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | dict):
        return rows
    try:
        return paginate(rows, cursor=cursor, page_size=page_size, scope=scope(*call))
    except BadCursorError as error:  # the function has changed an argument in place
        return {"error": "bad_cursor", "hint": str(error)}


def _described(wrapped: Any, target: Callable[..., Any], signature: inspect.Signature, page_size: int) -> Any:
    """Add the two parameters to the wrapper's signature, annotations and docstring."""
    parameters = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    rest = [each for each in signature.parameters.values() if each.kind is inspect.Parameter.VAR_KEYWORD]
    hints: dict[str, Any] = {"cursor": str | None, "page_size": int}
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in (("cursor", None), ("page_size", page_size))
    ]
    returns = dict[str, Any]
    wrapped.__signature__ = signature.replace(parameters=[*parameters, *rest], return_annotation=returns)
    wrapped.__annotations__ = {**getattr(target, "__annotations__", {}), **hints, "return": returns}
    wrapped.__doc__ = f"{inspect.getdoc(target) or ''}\n\n{_ADVICE}".strip()
    del wrapped.__wrapped__  # inspect.signature follows it to a signature without the two
    return wrapped


def cursor_of(offset: int, scope: object) -> str:
    """Return a cursor for this offset, valid for this scope only."""
    seal = signer().seal("cursor", *_bound(offset, scope))
    return base64.urlsafe_b64encode(f"{offset}:{seal}".encode()).decode().rstrip("=")


def offset_of(cursor: str, scope: object) -> int:
    """Return the offset of a cursor that was made for this scope; BadCursorError for any other."""
    try:
        cursor = cursor[:_LONGEST_CURSOR]
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        offset, _, seal = text.partition(":")
        is_sealed = signer().is_seal(seal, "cursor", *_bound(int(offset), scope))
        if is_sealed and cursor == cursor_of(int(offset), scope):  # base64 has other spellings of the same bytes
            return int(offset)
    except (TypeError, ValueError):
        pass
    raise BadCursorError(
        "This cursor does not belong to these arguments, or is damaged. Ask again without a cursor, or with the "
        "arguments that it came with."
    )


def _bound(offset: int, scope: object) -> tuple[bytes, bytes]:
    """Return the parts that a cursor's seal binds."""
    try:
        text = json.dumps(scope, sort_keys=True, default=_told)
    except (TypeError, ValueError):  # keys that are no texts, or a value that contains itself
        text = str(scope)
    return str(offset).encode(), hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _told(value: Any) -> str:
    """Return an argument as text; its class name when its text would only be its address in memory."""
    kind: Any = type(value)
    is_silent = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    return str(kind.__qualname__) if is_silent else str(value)
