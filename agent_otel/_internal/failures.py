"""Exceptions, read without running their code: their text and type for spans and metrics, and where they come from."""

from __future__ import annotations

import functools
import signal
import sys
from opcode import opname
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import FrameType, TracebackType

# A metaclass may define attributes of the same names, and they would run its code.
classes_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
members_of: Callable[[type], dict[str, Any]] = type.__dict__["__dict__"].__get__
class_name: Callable[[type], str] = type.__dict__["__qualname__"].__get__
# An exception's class may have properties of these names.
arguments_of: Callable[[BaseException], tuple[Any, ...]] = vars(BaseException)["args"].__get__
put_arguments: Callable[[BaseException, tuple[Any, ...]], None] = vars(BaseException)["args"].__set__
fields_of: Callable[[BaseException], dict[str, Any]] = vars(BaseException)["__dict__"].__get__
cause_of: Callable[[BaseException], BaseException | None] = vars(BaseException)["__cause__"].__get__
context_of: Callable[[BaseException], BaseException | None] = vars(BaseException)["__context__"].__get__
traceback_of: Callable[[BaseException], TracebackType | None] = vars(BaseException)["__traceback__"].__get__
_FILES: Final = tuple(vars(OSError)[name].__get__ for name in ("filename", "filename2"))
#: The ways of the built-in classes to make a text of their arguments.
_TEXTS: Final = tuple(vars(kind)["__str__"] for kind in (BaseException, KeyError, OSError))


def member_of(kind: type, name: str) -> object:
    """Return a member of a class or of its bases; None without."""
    return next((members_of(owner)[name] for owner in classes_of(kind) if name in members_of(owner)), None)


#: Packages whose functions stand between a framework and its tools' handlers.
_BETWEEN: Final = frozenset({"agent_otel", "anyio", "asyncio", "concurrent", "contextvars", "pydantic", "wrapt"})


def is_raised_within(error: BaseException, *packages: str) -> bool:
    """Return true for an exception that came out of functions of these packages alone, and of no tool's handler."""
    step = traceback_of(error)
    while step is not None:
        package = _package(step.tb_frame.f_globals.get("__name__"))
        if package not in packages and package not in _BETWEEN:
            return False
        step = step.tb_next
    return True


def text_of(error: BaseException, limit: int, trusted: Collection[str] = ()) -> str:
    """Return the text of an exception, cut at ``limit`` characters, without running its code or its arguments'.

    Where its class has a ``__str__`` of its own, the texts among its arguments stand for it, unless this function is
    of a package in ``trusted``.
    """
    arguments = arguments_of(error)
    owner = next(cls for cls in classes_of(type(error)) if members_of(cls).get("__str__") is not None)
    if _package(members_of(owner).get("__module__")) in trusted:
        return str(error)[:limit]
    made = members_of(owner)["__str__"]
    parts = arguments
    if issubclass(type(error), OSError):
        parts = (*arguments, *(file(error) for file in _FILES))
    if any(made is known for known in _TEXTS) and all(map(_is_plain, parts)):
        text: str = made(error)
        return text[:limit]
    return ", ".join(part for part in arguments if type(part) is str)[:limit]


def _is_plain(value: object) -> bool:
    kind = type(value)
    return value is None or kind is str or kind is int or kind is float or kind is bool or kind is bytes


def error_type(error: BaseException) -> str:
    """Return the conventions' ``error.type``: the class's ``_gen_ai_error_type``, else its qualified name."""
    kind = type(error)
    for owner in classes_of(kind):
        own = members_of(owner).get("_gen_ai_error_type")
        if type(own) is str:
            return own
    module = members_of(kind).get("__module__", "builtins")
    name = class_name(kind)
    return name if type(module) is not str or module == "builtins" else f"{module}.{name}"


# Where an exception comes from.

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
        return not is_of_socket and _package(member_of(kind, "__module__")) not in _GREENLETS
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
        called = handler if type(handler) is FunctionType else member_of(type(handler), "__call__")
        found.append(called.__code__ if isinstance(called, FunctionType) else None)
    return found


def _is_set(kind: type[BaseException], error: BaseException) -> bool:
    """Return true if Python may have made this exception from a class that another thread has set."""
    module = member_of(kind, "__module__")
    file = getattr(sys.modules.get(module) if type(module) is str else None, "__file__", None)
    is_compiled = type(file) is str and file.endswith((".so", ".pyd"))  # such as pydantic's ValidationError
    if is_compiled or kind in _WITHOUT_ARGUMENTS or _package(module) in _PACKAGES_WITHOUT_ARGUMENTS:
        return False
    made = member_of(kind, "__init__")
    if not isinstance(made, FunctionType):
        return not arguments_of(error)
    code, defaults = made.__code__, made.__defaults__ or ()
    has_no_other = not arguments_of(error) or not code.co_flags & _VARARGS
    return code.co_argcount - len(defaults) <= 1 and has_no_other


def _package(module: object) -> str:
    return module.partition(".")[0] if type(module) is str else ""
