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
import signal
import sys
from collections import Counter
from opcode import opname
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from agent_otel._internal.failures import arguments_of, class_name, classes_of, members_of, traceback_of
from agent_otel._internal.lazy import pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from types import FrameType

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


#: Instructions that call nothing and raise nothing. Python runs signal handlers and raises other threads' exceptions
#: after them, and after calls.
_PAUSES: Final = frozenset({"JUMP_ABSOLUTE", "JUMP_BACKWARD"})
#: Instructions at which Python code itself raises, or at which a caller has thrown an exception into it.
_RAISES: Final = frozenset(
    {"JUMP_BACKWARD_NO_INTERRUPT", "POP_TOP", "RAISE_VARARGS", "RERAISE", "RETURN_GENERATOR", "SEND", "THROWN"}
) | {"YIELD_FROM", "YIELD_VALUE"}
#: Exceptions that functions in C raise without arguments: by class, and by the package of the class.
_WITHOUT_ARGUMENTS: Final = frozenset({StopIteration, StopAsyncIteration, EOFError, MemoryError, RecursionError})
_PACKAGES_WITHOUT_ARGUMENTS: Final = frozenset({"_queue", "asyncio", "cryptography"})
_GREENLETS: Final = frozenset({"eventlet", "gevent", "greenlet"})
#: Flags of a code object: of a function, of one that takes ``*args``, and of generators and coroutines.
_OPTIMIZED, _VARARGS, _SUSPENDS = 1, 4, 0x20 | 0x80 | 0x200
#: Bytes of the code that compiled modules put in a traceback for a function of theirs: it only raises.
_COMPILED = 6


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


def is_foreign(error: BaseException) -> bool:
    """Return true if an exception comes from outside of a ``try`` block and of all code that the block called.

    The part of the traceback that begins at the block shows it:

    - A signal handler gets a number and the frame that it interrupts. It may have been replaced since. Where it has
      changed its arguments, it is one of the installed handlers.
    - An instruction that calls nothing and raises nothing, such as a jump, has raised or has called something.
    - Another thread sets a class. Python makes an instance of it without arguments, and no ``raise`` statement has been
      executed. Functions in C give a reason.
    - A timeout of gevent or eventlet is thrown into the switch between greenlets.
    """
    before: set[int] = set()
    kind, step, frame, instruction = type(error), traceback_of(error), None, ""
    while step is not None:
        frame = step.tb_frame
        instruction = _instruction(frame, step.tb_lasti)
        if instruction in _PAUSES and not issubclass(kind, RecursionError | MemoryError):
            return True
        if before and _is_handler(frame, before):
            return True
        before.add(id(frame))
        step = step.tb_next
    if frame is None or instruction in _RAISES:
        return False
    if _package(frame.f_globals.get("__name__")) in _GREENLETS:
        # A socket's own timeout is thrown, too.
        is_of_socket = issubclass(kind, TimeoutError) and arguments_of(error) == ("timed out",)
        return not is_of_socket and _package(_member(kind, "__module__")) not in _GREENLETS
    return instruction != "" and _is_set(kind, error)


def _instruction(frame: FrameType, position: int) -> str:
    """Return the name of the instruction at which a frame was left; an empty name for frames of compiled code."""
    code = frame.f_code
    bytecode = code.co_code
    if not code.co_flags & _OPTIMIZED or (len(bytecode) <= _COMPILED and opname[bytecode[-2]] == "RAISE_VARARGS"):
        return ""
    if position < 0:  # Python 3.10, before the first instruction
        return "THROWN" if code.co_flags & _SUSPENDS else "JUMP_ABSOLUTE"
    while opname[bytecode[position]] == "EXTENDED_ARG":
        position += 2
    name, argument = opname[bytecode[position]], bytecode[position + 1]
    if name == "RESUME":  # at the start of a function, after a yield, or after an await
        return ("JUMP_BACKWARD", "RESUME", "THROWN", "THROWN")[argument & 3]
    return name


def _is_handler(frame: FrameType, before: set[int]) -> bool:
    """Return true for a function that Python calls with a frame that it interrupts, one of those before."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARARGS)
    names, values = code.co_varnames[:count], frame.f_locals
    given: list[object] = []
    for name in names:
        value = values.get(name)
        given.extend(value if type(value) is tuple else (value,))
    known = [id(value) in before for value in given]
    if any(is_next and issubclass(type(value), int) for value, is_next in zip(given, known[1:], strict=False)):
        return True
    is_changed = any(known) or not all(map(values.__contains__, names))
    return len(given) > 1 and is_changed and code in _handlers()


def _handlers() -> list[object]:
    """Return the code objects of the installed signal handlers."""
    found: list[object] = []
    for number in signal.valid_signals():
        handler: object = signal.getsignal(number)
        while type(handler) in {MethodType, functools.partial}:
            handler = handler.__func__ if isinstance(handler, MethodType) else handler.func  # type: ignore[attr-defined]
        called = handler if type(handler) is FunctionType else _member(type(handler), "__call__")
        found.append(called.__code__ if isinstance(called, FunctionType) else None)
    return found


def _is_set(kind: type[BaseException], error: BaseException) -> bool:
    """Return true if Python may have made this exception from a class that another thread has set."""
    module = _member(kind, "__module__")
    file = getattr(sys.modules.get(module) if type(module) is str else None, "__file__", None)
    is_compiled = type(file) is str and file.endswith((".so", ".pyd"))  # such as pydantic's ValidationError
    if is_compiled or kind in _WITHOUT_ARGUMENTS or _package(module) in _PACKAGES_WITHOUT_ARGUMENTS:
        return False
    made = _member(kind, "__init__")
    if not isinstance(made, FunctionType):
        return not arguments_of(error)
    code, defaults = made.__code__, made.__defaults__ or ()
    has_no_other = not arguments_of(error) or not code.co_flags & _VARARGS
    return code.co_argcount - len(defaults) <= 1 and has_no_other


def _member(kind: type, name: str) -> object:
    return next((members_of(owner)[name] for owner in classes_of(kind) if name in members_of(owner)), None)


def _package(module: object) -> str:
    return module.partition(".")[0] if type(module) is str else ""


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
