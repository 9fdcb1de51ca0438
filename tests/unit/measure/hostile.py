"""Values that a measuring function must survive, and that tell whether any of their own code ran."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

import wrapt

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterator as Yields

ran: list[str] = []
"""Names of the methods of these classes that were called."""


@contextlib.contextmanager
def untouched() -> Yields[None]:
    """Fail the test, or the row of a test, if code of a hostile value runs in it."""
    ran.clear()
    yield
    assert [] == ran


def _trap(name: str) -> Callable[..., NoReturn]:
    def method(*_: object, **__: object) -> NoReturn:
        ran.append(name)
        raise RuntimeError(name)

    return method


_OBSERVING = (
    "__bool__", "__contains__", "__eq__", "__float__", "__format__", "__ge__", "__getattr__", "__getattribute__",
    "__getitem__", "__gt__", "__hash__", "__index__", "__int__", "__iter__", "__le__", "__len__", "__lt__", "__ne__",
    "__reduce_ex__", "__repr__", "__reversed__", "__sizeof__", "__str__",
    "copy", "encode", "get", "isascii", "items", "keys", "model_dump", "model_dump_json", "values",
)  # fmt: skip


class _Meta(type):
    """A metaclass that is as hostile as the instances."""

    __hash__ = _trap("type.__hash__")
    __eq__ = _trap("type.__eq__")
    __instancecheck__ = _trap("type.__instancecheck__")
    __subclasscheck__ = _trap("type.__subclasscheck__")
    __getattribute__ = _trap("type.__getattribute__")


def _hostile(base: type, value: tuple[Any, ...], **members: Any) -> Any:
    traps = {name: _trap(f"{base.__name__}.{name}") for name in _OBSERVING}
    traps["__class__"] = property(_trap("__class__"))  # type: ignore[assignment]
    cls: Any = _Meta("Hostile", (base,), traps | members)
    made: Any = base.__new__(cls, *value)
    if base in (list, dict, set):
        base.__init__(made, *value)
    return made


def everything() -> dict[str, Any]:
    """One hostile instance of each kind."""
    plain = _hostile(object, ())
    object.__setattr__(plain, "field", "value")
    hidden = _hostile(object, (), __dict__=property(_trap("__dict__")))
    slotted = _hostile(object, (), __slots__=("field",))
    object.__setattr__(slotted, "field", "value")
    return {
        "object": plain,
        "object with a property called __dict__": hidden,
        "object with slots": slotted,
        "str": _hostile(str, ("text",)),
        "int": _hostile(int, (7,)),
        "float": _hostile(float, (0.5,)),
        "list": _hostile(list, ([1, 2],)),
        "tuple": _hostile(tuple, ((1, 2),)),
        "dict": _hostile(dict, ({"a": 1},)),
        "set": _hostile(set, ({1},)),
        "frozenset": _hostile(frozenset, ({1},)),
        "bytes": _hostile(bytes, (b"ab",)),
        "proxy": wrapt.LazyObjectProxy(_trap("proxy")),
    }


def self_containing() -> list[Any]:
    """A list that is its own only element."""
    value: list[Any] = []
    value.append(value)
    return value


def shared(levels: int = 30) -> list[Any]:
    """Two references to two references to ...: two to the power of levels leaves."""
    value: list[Any] = ["leaf"]
    for _ in range(levels):
        value = [value, value]
    return value


def deep(levels: int = 100_000) -> list[Any]:
    """A list in a list in a list ..."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def chain_of_wide(levels: int = 1_000, width: int = 5_000) -> dict[str, Any]:
    """Wide dictionaries, each the first value of the next; the rest of their values are shared."""
    rest = {f"key {number}": number for number in range(width)}
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value} | rest
    return value


def release(value: list[Any]) -> None:
    """Take a deep list apart from outside, because some Pythons free it by recursion."""
    while value:
        value = value.pop()


async def coroutine() -> str:
    """Return a text, if anybody awaited it."""
    await asyncio.sleep(0)
    return "awaited"


class Iterator:
    """Its own iterator, which is not to be advanced."""

    def __init__(self) -> None:
        self.rows = ["a", "b"]

    def __iter__(self) -> Iterator:
        ran.append("Iterator.__iter__")
        return self

    def __next__(self) -> str:
        ran.append("Iterator.__next__")
        return self.rows.pop()
