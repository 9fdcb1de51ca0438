"""Pages instead of whole lists, for tools that return rows: a sealed cursor, and a description for the model."""

from __future__ import annotations

import base64
import functools
import hashlib
import inspect
import itertools
import json
import secrets
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, overload

from agent_otel import settings
from agent_otel._internal import signatures
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import is_named
from agent_otel.core import tool_visit
from agent_otel.remedies.claim_check.envelope import Signer

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
    """The rows of one page, for a tool that reads the page itself; see ``paginated``.

    ``limit`` is one row more than the page holds, which shows that there is a next page. ``offset`` is the number of
    rows before the page; with a key it stays 0, and ``after`` is the key of the last row before the page, None on the
    first page. The tool may set ``total``, an estimate of the number of all rows.
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


def offset_of(cursors: Cursor, cursor: str) -> int:
    """Return the offset of a cursor; BadCursorError for one that was not made for this scope."""
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

    ``page_size`` is 1 to 50; a value that is not a number means 20. ``scope`` is the question that the rows answer,
    such as the tool's arguments: a cursor is valid for the same scope only. An iterator is read up to the page's end,
    and has no total. Raises BadCursorError.
    """
    cursors = Cursor(scope)
    return _page(rows, cursors, offset_of(cursors, cursor) if cursor else 0, _size(page_size))


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

    The decorator adds the parameters ``cursor`` and ``page_size`` to the function's signature, and a paragraph about
    them to its docstring. Each page calls the function again. For an invalid cursor the model gets an error, and the
    function is not called. Works for sync and async functions.

    A function with a parameter annotated ``Window`` reads the page itself: it gets the window by name, and returns at
    most ``window.limit`` rows. The model does not see this parameter. ``key`` returns the key of a row: then the next
    window begins after the key of the page's last row, instead of at an offset.
    """

    def decorate(target: Callable[..., Any]) -> Any:
        tool = _Tool(target, page_size, key)
        if inspect.iscoroutinefunction(target):

            @functools.wraps(target)
            async def wrapped_async(
                *args: Any, cursor: str | None = None, page_size: int = page_size, **kwargs: Any
            ) -> Any:
                asked = tool.asked(cursor, page_size, args, kwargs)
                return asked if isinstance(asked, dict) else asked[2](await target(*asked[0], **asked[1]))

            return tool.described(wrapped_async)

        @functools.wraps(target)
        def wrapped(*args: Any, cursor: str | None = None, page_size: int = page_size, **kwargs: Any) -> Any:
            asked = tool.asked(cursor, page_size, args, kwargs)
            return asked if isinstance(asked, dict) else asked[2](target(*asked[0], **asked[1]))

        return tool.described(wrapped)

    return decorate if function is None else decorate(function)


class _PageSizes:
    """The bounds of a page's size in the JSON schema that pydantic builds. A call with another size is not rejected."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]) -> Any:
        """Add the bounds; pydantic calls this."""
        return {**handler(core_schema), "minimum": 1, "maximum": LARGEST_PAGE}


class _Tool:
    """A paginated function; its signature and hints for the model are without the window."""

    def __init__(self, target: Callable[..., Any], page_size: int, key: Callable[[Any], object] | None) -> None:
        self._name = target.__name__
        self._about = f"{inspect.getdoc(target) or ''}\n\n{_ADVICE}".strip()
        self._page_size = page_size
        self._key = key
        try:
            hints = typing.get_type_hints(target, include_extras=True)
        except ours(Exception):  # an annotation names what only a type checker imports
            hints = signatures.annotations_of(target)
        names = {name: str(getattr(hint, "__forward_arg__", hint)) for name, hint in hints.items()}
        windows = (name for name, hint in hints.items() if hint is Window or names[name].rpartition(".")[2] == "Window")
        self._window = next(windows, None)
        hints.pop(self._window or "", None)
        self._hints = hints
        self._whole = signatures.signature_of(target)
        visible = [
            each.replace(annotation=hints.get(each.name, each.annotation))
            for each in self._whole.parameters.values()
            if each.name != self._window
        ]
        self._signature = self._whole.replace(parameters=visible)
        #: Parameters that a framework fills, by the marker of an annotation: LangChain's ``InjectedState``.
        self._injected = [
            name
            for name, hint in hints.items()
            for marker in getattr(hint, "__metadata__", ())
            if str(getattr(marker, "__name__", type(marker).__name__)).startswith("Injected")
        ]

    def asked(
        self, cursor: str | None, page_size: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], Callable[[Any], Any]] | dict[str, str]:
        """Return a call's arguments, with the window, and the function that makes a page; an error for a bad cursor."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        running = tool_visit.running()
        by_policy = (running.injected if running is not None else None) or ()
        given = {name: each for name, each in bound.arguments.items() if name not in (*self._injected, *by_policy)}
        cursors = Cursor((self._name, given))  # before the call, which may change an argument in place
        window = Window(_size(page_size) + 1)
        try:
            if cursor and self._key is not None:
                window.after = cursors.decode(cursor)
            elif cursor:
                window.offset = offset_of(cursors, cursor)
        except BadCursorError as error:
            return {"error": "bad_cursor", "hint": str(error)}
        if self._window is not None:
            kind = self._whole.parameters[self._window].kind
            is_taken = self._window in list(self._whole.parameters)[: len(args)]
            if kind is inspect.Parameter.POSITIONAL_ONLY or (is_taken and kind is not inspect.Parameter.KEYWORD_ONLY):
                # The window stands before arguments that the call gives by their places.
                call = inspect.BoundArguments(self._whole, {**bound.arguments, self._window: window})
                args, kwargs = call.args, call.kwargs
            else:
                kwargs = {**kwargs, self._window: window}
        return args, kwargs, functools.partial(self._page_of, cursors, window)

    def _page_of(self, cursors: Cursor, window: Window, rows: Any) -> Any:
        """Return a page of rows, and anything that is not rows unchanged."""
        if not isinstance(rows, Iterable) or isinstance(rows, _NO_ROWS) or hasattr(type(rows), "model_dump"):
            return rows
        size = window.limit - 1
        if self._window is None:
            return _page(rows, cursors, window.offset, size)
        taken = list(itertools.islice(rows, window.limit))
        items, following = taken[:size], None
        if len(taken) > size:
            following = cursors.encode(window.offset + size if self._key is None else self._key(items[-1]))
        return Page(items=items, next_cursor=following, total_estimate=window.total)

    def described(self, wrapped: Any) -> Any:
        """Add the two parameters to the wrapper's signature, annotations and docstring."""
        shown = self._signature.parameters.values()
        parameters = [each for each in shown if each.kind is not inspect.Parameter.VAR_KEYWORD]
        rest = [each for each in shown if each.kind is inspect.Parameter.VAR_KEYWORD]
        # autogen takes the first part of the annotation for a description.
        page_size = Annotated[int, f"Rows of the page, 1 to {LARGEST_PAGE}.", _PageSizes()]
        hints: dict[str, Any] = {"cursor": str | None, "page_size": page_size}
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
            for name, default in (("cursor", None), ("page_size", self._page_size))
        ]
        returns = dict[str, Any]
        wrapped.__signature__ = self._signature.replace(parameters=[*parameters, *rest], return_annotation=returns)
        wrapped.__annotations__ = {**self._hints, **hints, "return": returns}
        wrapped.__doc__ = self._about
        del wrapped.__wrapped__  # inspect.signature follows it to a signature without the two
        return wrapped


def _told(value: Any) -> str:
    """Return an argument as text; its class name for a context, and when its text would only be its address."""
    kind: Any = type(value)
    is_silent = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    return str(kind.__qualname__) if is_silent or is_named(value, *_CONTEXTS) else str(value)
