"""Pages instead of whole lists, for tools that return rows: a sealed cursor, and a description for the model.

A tool makes all its rows for each page, or with a `Window` reads the page alone: by OFFSET, or by the last row's key.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import inspect
import itertools
import json
import secrets
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypedDict, overload

from agent_otel import settings
from agent_otel._internal import signatures
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import is_named
from agent_otel.core import tool_visit
from agent_otel.remedies.claim_check.references import Signer

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE_SIZE: Final = 20
LARGEST_PAGE: Final = 50
_LONGEST_POSITION: Final = 512
_LONGEST_CURSOR: Final = 1024
#: Iterables that are one value, as are the models of pydantic.
_NO_ROWS: Final = (str, bytes, bytearray, memoryview, Mapping)
#: Classes of what frameworks pass to a tool beside the model's arguments; it changes from call to call.
_CONTEXTS: Final = ("RunContext", "RunContextWrapper", "ToolContext", "ToolRuntime", "Context")
_ADVICE: Final = (
    "Returns one page: `items`, and `next_cursor` when there are more. To go on, call it again with the same arguments "
    "and `cursor` set to that value."
)


class BadCursorError(ValueError):
    """A cursor that belongs to other arguments, was changed, or comes from another process without a common key."""

    def __init__(self) -> None:
        super().__init__(
            "This cursor does not belong to these arguments, or is damaged. Ask again without a cursor, or with the "
            "arguments that it came with."
        )


class Page(TypedDict):
    """A page of rows. ``next_cursor`` is None on the last page; ``total_estimate`` is None for an iterator."""

    items: list[Any]
    next_cursor: str | None
    total_estimate: int | None


@dataclass(slots=True)
class Window:
    """The rows of one page, for a tool that reads the page itself; see `paginated`.

    ``limit`` is one row more than the page holds: the further row shows that there is a next page. ``offset`` is the
    number of rows before the page; with a key it stays 0, and ``after`` is the key of the last row before the page,
    None on the first page. The tool may set ``total``, an estimate of the number of all rows.
    """

    limit: int
    offset: int = 0
    after: Any = None
    total: int | None = None


class Cursor:
    """Encoder and decoder of the cursors of one question.

    ``scope`` is the question, such as a tool's name and arguments: a cursor is valid for the same scope only.
    """

    def __init__(self, scope: object = None) -> None:
        try:
            text = json.dumps(scope, sort_keys=True, default=_told)
        except ours(TypeError, ValueError):  # keys that are no texts, or a value that contains itself
            text = str(scope)
        self._scope = hashlib.sha256(text.encode("utf-8", "replace")).digest()

    def encode(self, position: object) -> str:
        """Return the cursor of a position: an offset, or the key of a row, as a JSON value.

        A value that JSON does not have, such as a date, becomes its text. ValueError for more than 512 bytes of JSON.
        """
        text = json.dumps(position, separators=(",", ":"), default=str)
        if len(text) > _LONGEST_POSITION:
            raise ValueError(f"a position has {len(text)} bytes of JSON; a cursor takes {_LONGEST_POSITION}")
        return _spelled(text, signer().seal("cursor", text.encode(), self._scope))

    def decode(self, cursor: str) -> Any:
        """Return the position of a cursor that was made for this scope; BadCursorError for any other."""
        if not isinstance(cursor, str):  # a model may pass anything
            raise BadCursorError
        try:
            cursor = cursor[:_LONGEST_CURSOR]
            decoded = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
            text, _, seal = decoded.rpartition(":")
            is_sealed = signer().is_seal(seal, "cursor", text.encode(), self._scope)
            if is_sealed and cursor == _spelled(text, seal):  # base64 has other spellings of the same bytes
                return json.loads(text)
        except ours(TypeError, ValueError):
            pass
        raise BadCursorError


def cursor_of(offset: int, scope: object) -> str:
    """Return a cursor for this offset, valid for this scope only."""
    return Cursor(scope).encode(offset)


def offset_of(cursor: str, scope: object) -> int:
    """Return the offset of a cursor that was made for this scope; BadCursorError for any other."""
    return _offset(Cursor(scope), cursor)


def _offset(cursors: Cursor, cursor: str) -> int:
    position = cursors.decode(cursor)
    if type(position) is not int:  # the key of a row
        raise BadCursorError
    return position


def _spelled(text: str, seal: str) -> str:
    return base64.urlsafe_b64encode(f"{text}:{seal}".encode()).decode().rstrip("=")


@functools.lru_cache(maxsize=1)
def signer() -> Signer:
    """Return the signer of cursors: with ``AGENT_OTEL_CLAIM_CHECK_KEY``, else with a key of this process."""
    chosen = settings.current()
    # No other process can read the memory of this one, so that a key of its own is all that pages need.
    in_memory = chosen.claim_check.startswith("memory:") if chosen.claim_check else chosen.summarize_above_tokens
    key = chosen.claim_check_key or (secrets.token_hex(32) if in_memory else "")
    return Signer(key, chosen.claim_check_tenant)


def paginate(
    rows: Iterable[Any], *, cursor: str | None = None, page_size: int = PAGE_SIZE, scope: object = None
) -> Page:
    """Return one page of rows.

    ``page_size`` is 1 to 50; a value that is no number means 20. ``scope`` is the question that the rows answer, such
    as the tool's arguments: a cursor is valid for the same scope only. Of an iterator, only the rows up to the page's
    end are read, and there is no total. Raises BadCursorError.
    """
    cursors = Cursor(scope)
    return _page(rows, cursors, _offset(cursors, cursor) if cursor else 0, _size(page_size))


def _page(rows: Iterable[Any], cursors: Cursor, start: int, size: int) -> Page:
    """Return the page that starts at an offset of all rows."""
    if isinstance(rows, Sequence):
        items, total = list(rows[start : start + size]), len(rows)
        is_last = start + size >= total
    else:
        taken = list(itertools.islice(rows, start, start + size + 1))
        items, total, is_last = taken[:size], None, len(taken) <= size
    return Page(items=items, next_cursor=None if is_last else cursors.encode(start + size), total_estimate=total)


def _size(page_size: object) -> int:
    """Return a valid page size; the model may pass any value."""
    try:
        return max(1, min(int(page_size), LARGEST_PAGE))  # type: ignore[call-overload, no-any-return]
    except ours(TypeError, ValueError, OverflowError):
        return PAGE_SIZE


@overload
def paginated(function: Callable[..., Any]) -> Callable[..., Any]: ...
@overload
def paginated(
    *, page_size: int = ..., key: Callable[[Any], object] | None = ...
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def paginated(
    function: Callable[..., Any] | None = None,
    *,
    page_size: int = PAGE_SIZE,
    key: Callable[[Any], object] | None = None,
) -> Any:
    """Make a tool that returns a list return pages of it.

    The decorator adds two parameters, ``cursor`` and ``page_size``, to the function's signature, from which frameworks
    build the schema for the model, and a paragraph about them to its docstring. Each page calls the function again. An
    invalid cursor is answered with an error for the model, not raised, and the function is not called. Works for sync
    and async functions.

    A function with a parameter annotated `Window` reads the page itself: it gets the window by name, and returns at
    most ``window.limit`` rows. The model does not see this parameter. ``key`` returns the key of a row: then the next
    window begins after the key of the page's last row, instead of at an offset.
    """

    def decorate(target: Callable[..., Any]) -> Any:
        tool = _tool_of(target, page_size, key)
        if inspect.iscoroutinefunction(target):

            @functools.wraps(target)
            async def wrapped_async(
                *args: Any, cursor: str | None = None, page_size: int = page_size, **kwargs: Any
            ) -> Any:
                try:
                    asked = _asked(tool, cursor, page_size, args, kwargs)
                except BadCursorError as error:
                    return _refusal(error)
                return _answer(asked, await target(*asked.args, **asked.kwargs))

            return _described(wrapped_async, tool)

        @functools.wraps(target)
        def wrapped(*args: Any, cursor: str | None = None, page_size: int = page_size, **kwargs: Any) -> Any:
            try:
                asked = _asked(tool, cursor, page_size, args, kwargs)
            except BadCursorError as error:
                return _refusal(error)
            return _answer(asked, target(*asked.args, **asked.kwargs))

        return _described(wrapped, tool)

    return decorate if function is None else decorate(function)


class _Tool(NamedTuple):
    """A paginated function; ``signature`` and ``hints`` are without the window, ``window`` is its name or None.

    ``injected`` are parameters that a framework fills, such as LangChain's ``InjectedState``.
    ``whole`` is the signature with the window, which a call with at most ``most_places`` arguments by their places
    takes by its name.
    """

    name: str
    about: str
    whole: inspect.Signature
    signature: inspect.Signature
    hints: dict[str, Any]
    window: str | None
    injected: frozenset[str]
    most_places: int
    key: Callable[[Any], object] | None
    page_size: int


class _Asked(NamedTuple):
    """A call of a paginated tool, with the window among its arguments; ``cursors`` are those of the others."""

    tool: _Tool
    cursors: Cursor
    window: Window
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _tool_of(target: Callable[..., Any], page_size: int, key: Callable[[Any], object] | None) -> _Tool:
    """Read a function that is to be paginated."""
    try:
        hints = typing.get_type_hints(target, include_extras=True)
    except ours(Exception):  # an annotation names what only a type checker imports
        hints = signatures.annotations_of(target)
    windows = [name for name, hint in hints.items() if hint is Window or _named(hint) == "Window"]
    window = windows[0] if windows else None
    hints.pop(window or "", None)
    signature = signatures.signature_of(target)
    visible = [
        each.replace(annotation=hints.get(each.name, each.annotation))
        for each in signature.parameters.values()
        if each.name != window
    ]
    about = f"{inspect.getdoc(target) or ''}\n\n{_ADVICE}".strip()
    shown, most_places = signature.replace(parameters=visible), _places_before(signature, window)
    injected = frozenset(
        name for name, hint in hints.items() if any(map(_is_injected, getattr(hint, "__metadata__", ())))
    )
    return _Tool(target.__name__, about, signature, shown, hints, window, injected, most_places, key, page_size)


def _is_injected(marker: object) -> bool:
    """Return True for a marker of an annotation, a class or an object, by which a framework fills the parameter."""
    return str(getattr(marker, "__name__", type(marker).__name__)).startswith("Injected")


def _places_before(signature: inspect.Signature, window: str | None) -> int:
    """Return how many arguments a call may give by their places so that the window can be given by its name."""
    for place, each in enumerate(signature.parameters.values()):
        if each.name == window and each.kind is inspect.Parameter.POSITIONAL_ONLY:
            return -1
        if each.name == window and each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            return place
    return sys.maxsize


def _named(hint: object) -> str:
    return str(getattr(hint, "__forward_arg__", hint)).rpartition(".")[2]


def _asked(tool: _Tool, cursor: str | None, page_size: object, args: Any, kwargs: Any) -> _Asked:
    """Read a call; BadCursorError for a cursor that is not valid for its arguments.

    Arguments have one form: positional or by name, with defaults filled in.
    """
    bound = tool.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    running = tool_visit.running()
    injected = {*tool.injected, *((running.injected if running is not None else None) or ())}  # also by the policy
    given = {name: value for name, value in bound.arguments.items() if name not in injected}
    cursors = Cursor((tool.name, given))  # before the call, which may change an argument in place
    window = Window(_size(page_size) + 1)
    if cursor and tool.key is not None:
        window.after = cursors.decode(cursor)
    elif cursor:
        window.offset = _offset(cursors, cursor)
    if tool.window is None:
        return _Asked(tool, cursors, window, args, kwargs)
    if len(args) <= tool.most_places:
        return _Asked(tool, cursors, window, args, {**kwargs, tool.window: window})
    # The window stands before arguments that the call gives by their places.
    call = inspect.BoundArguments(tool.whole, {**bound.arguments, tool.window: window})
    return _Asked(tool, cursors, window, call.args, call.kwargs)


def _answer(asked: _Asked, rows: Any) -> Any:
    """Return a page of rows, and anything that is not rows unchanged."""
    if not isinstance(rows, Iterable) or isinstance(rows, _NO_ROWS) or hasattr(type(rows), "model_dump"):
        return rows
    tool, cursors, window = asked.tool, asked.cursors, asked.window
    size = window.limit - 1
    if tool.window is None:
        return _page(rows, cursors, window.offset, size)
    taken = list(itertools.islice(rows, window.limit))
    items, following = taken[:size], None
    if len(taken) > size:
        following = cursors.encode(window.offset + size if tool.key is None else tool.key(items[-1]))
    return Page(items=items, next_cursor=following, total_estimate=window.total)


def _refusal(error: BadCursorError) -> dict[str, str]:
    return {"error": "bad_cursor", "hint": str(error)}


class _PageSizes:
    """The bounds of a page's size in the JSON schema that pydantic builds. A call with another size is not rejected."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]) -> Any:
        """Add the bounds; pydantic calls this."""
        return {**handler(core_schema), "minimum": 1, "maximum": LARGEST_PAGE}


def _described(wrapped: Any, tool: _Tool) -> Any:
    """Add the two parameters to the wrapper's signature, annotations and docstring."""
    shown = tool.signature.parameters.values()
    parameters = [each for each in shown if each.kind is not inspect.Parameter.VAR_KEYWORD]
    rest = [each for each in shown if each.kind is inspect.Parameter.VAR_KEYWORD]
    # autogen takes the first part of the annotation for a description.
    page_size = Annotated[int, f"Rows of the page, 1 to {LARGEST_PAGE}.", _PageSizes()]
    hints: dict[str, Any] = {"cursor": str | None, "page_size": page_size}
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in (("cursor", None), ("page_size", tool.page_size))
    ]
    returns = dict[str, Any]
    wrapped.__signature__ = tool.signature.replace(parameters=[*parameters, *rest], return_annotation=returns)
    wrapped.__annotations__ = {**tool.hints, **hints, "return": returns}
    wrapped.__doc__ = tool.about
    del wrapped.__wrapped__  # inspect.signature follows it to a signature without the two
    return wrapped


def _told(value: Any) -> str:
    """Return an argument as text; its class name for a context, and when its text would only be its address."""
    kind: Any = type(value)
    is_silent = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    return str(kind.__qualname__) if is_silent or is_named(value, *_CONTEXTS) else str(value)
