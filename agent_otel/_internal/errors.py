"""Error policy: a failure of this package never reaches the user's code, and no exception of the user's is swallowed.

The user's call is always outside our ``try``. An internal failure is counted (``agent_otel.internal.errors``) and
logged once per place. Tests replace ``handler`` with a function that raises.

A signal handler, another thread or a greenlet's timeout may raise anywhere, so also inside our ``try``. Each ``except``
clause therefore names its classes through `ours`, which is empty for such an exception.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from agent_otel._internal.failures import class_name, is_foreign, traceback_of
from agent_otel._internal.lazy import pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

_P = ParamSpec("_P")
_R = TypeVar("_R")
_E = TypeVar("_E", bound=BaseException)
_D = TypeVar("_D")

_log = logging.getLogger("agent_otel")
_said: set[str] = set()
_warnings: list[str] = []
_FRAMES_SHOWN = 3
_errno = OSError.__dict__["errno"].__get__

#: Text without blanks, up to the next address.
_PIECE = pattern(r"(?i)(?:(?![,;|][a-z][a-z0-9+.-]{0,31}:/)\S)+")
_NAME = pattern(r"[\w.-]*[='\"(`<]+")
_PORT = pattern(r"\[|[\w.-]+:\d")
#: A long part of a path with letters and digits may be a token.
_TOKEN = pattern(r"(?<=/)(?=[^/\d]*\d)(?=[^/A-Za-z]*[A-Za-z])[\w:%=~+-]{20,}")
_HIDDEN = "***"

#: Internal failures by place since the start of the process.
errors: Counter[str] = Counter()


def _count_and_log(where: str) -> None:
    errors[where] += 1
    warn_once(
        f"error in {where}",
        f"agent_otel failed in {where}: {described(sys.exc_info()[1])}. Your program is not affected and goes on. "
        "This is logged once per place.",
    )


def described(error: BaseException | None) -> str:
    """Return the class of an exception and the place that raised it; never its text, which may contain user data.

    An error number of the operating system is put into the system's own words.
    """
    number = _errno(error, type(error)) if issubclass(type(error), OSError) else None
    words = f": {os.strerror(number)}" if type(number) is int else ""
    found = None if error is None else traceback_of(error)
    places = []
    while found is not None:
        places.append(f"{found.tb_frame.f_code.co_filename.rpartition(os.sep)[2]}:{found.tb_lineno}")
        found = found.tb_next
    return f"{class_name(type(error))}{words} at {' > '.join(places[-_FRAMES_SHOWN:])}"


def masked(text: str) -> str:
    """Return a text with `***` for the users, passwords, queries and tokens in addresses, with and without a scheme."""
    return _PIECE.sub(_masked_piece, text) if "@" in text or "/" in text or "?" in text else text


def _masked_piece(piece: re.Match[str]) -> str:
    scheme, slashes, address = piece[0].partition(":/")
    if not slashes:
        name = _NAME.match(scheme)
        scheme, address = (name[0], scheme[name.end() :]) if name else ("", scheme)
    owner, _, host = address.rpartition("@")
    if owner and (slashes or ":" in owner or _PORT.match(host)):
        address = f"{'/' * owner.startswith('/')}{_HIDDEN}@{host}"
    place, mark, query = address.partition(next((mark for mark in address if mark in "?#;"), "?"))
    if query and (slashes or ("=" in query and mark != ";")):
        query = _HIDDEN
    if slashes and not scheme.endswith("file"):
        place = _TOKEN.sub(_HIDDEN, place)
    return f"{scheme}{slashes}{place}{mark}{query}"


#: Handles an internal failure; called inside the ``except`` block.
handler: Callable[[str], None] = _count_and_log


def ours(*kinds: type[_E]) -> tuple[type[_E], ...]:
    """Return the classes of an ``except`` clause; return none where the exception being handled is foreign.

    ``except ours(ValueError):`` costs nothing until something is raised. A foreign exception then leaves the block.
    """
    error = sys.exc_info()[1]
    return () if error is not None and issubclass(type(error), kinds) and is_foreign(error) else kinds


class suppressed:  # noqa: N801 - reads as a function, like contextlib.suppress
    """A block that ends at exceptions of these classes, as with ``contextlib.suppress``; foreign ones leave it."""

    __slots__ = ("_kinds", "_where")

    def __init__(self, *kinds: type[BaseException], where: str | None = None) -> None:
        self._kinds = kinds
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> bool:
        if kind is None or not issubclass(kind, ours(*self._kinds)):
            return False
        if self._where is not None:
            report_error(self._where)
        return True


def reported(where: str) -> suppressed:
    """Return a block that ends at an exception of our code and reports it."""
    return suppressed(Exception, where=where)


class finishing(functools.partial[object]):  # noqa: N801 - as `suppressed`
    """A block that calls a function after an exception: an interrupt may end the ``__exit__`` of an inner block.

    A second interrupt may end this block, too. Then the call is made when this object is freed. After a normal end
    nothing may run there: if a signal handler raises while Python frees an object, Python swallows the exception.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self()
        self.__class__ = _Discarded  # type: ignore[assignment]

    def __del__(self) -> None:
        self()

    def discard(self) -> None:
        """Leave the call out."""
        self.__class__ = _Discarded  # type: ignore[assignment]


class _Discarded(functools.partial[object]):
    __slots__ = ()

    def discard(self) -> None:
        """Do nothing: a consumer may ask a generator that has ended again."""


def attempt(function: Callable[..., _R], *arguments: Any, default: _D = None) -> _R | _D:  # type: ignore[assignment]
    """Return the result of a function, or the default if it refuses the arguments, such as text that is not JSON."""
    try:
        return function(*arguments)
    except ours(ValueError, TypeError, RecursionError):
        return default


def report_error(where: str) -> None:
    """Report the exception being handled; call this only inside ``except ours(Exception)``, never in a wider one."""
    handler(where)


def warn_once(key: str, message: str, *, level: int = logging.WARNING) -> None:
    """Log a message the first time its key is used in this process."""
    if key in _said:
        return
    _said.add(key)
    message = masked(message)
    if level >= logging.WARNING:
        _warnings.append(message)
    try:
        _log.log(level, message)
    except ours(Exception):  # a logging handler or filter of the program raised
        errors["logging"] += 1


def warnings() -> list[str]:
    """Return the messages that were logged as warnings; each is there once."""
    return list(_warnings)


def guarded(where: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R | None]]:
    """Return a decorator that reports exceptions of a function and returns None instead of raising."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R | None]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
            try:
                return function(*args, **kwargs)
            except ours(Exception):
                report_error(where)
                return None

        return call

    return decorate
