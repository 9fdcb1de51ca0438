"""`typing.NamedTuple` with classes that cost a tenth of the time to make.

An import of a framework makes a hundred of these classes, and `typing` compiles a function and every annotation for
each: 0.15 ms a class. Here the constructor is compiled with the first instance, and annotations stay texts.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NamedTuple"]


class _Tuple(tuple[Any, ...]):
    """The methods that all named tuples share."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _field_defaults: dict[str, Any] = {}  # noqa: RUF012 - as in `typing.NamedTuple`

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Give the class its own constructor, and make its first instance."""
        owner = next(each for each in cls.__mro__ if "_fields" in vars(each))
        names = "".join(f"{name}, " for name in cls._fields)
        made = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", {"_new": tuple.__new__})  # noqa: S307 - our names
        made.__defaults__ = tuple(cls._field_defaults.values())
        made.__name__, made.__qualname__ = "__new__", f"{owner.__qualname__}.__new__"
        owner.__new__ = staticmethod(made)  # type: ignore[method-assign]
        return made(cls, *args, **kwargs)

    def __repr__(self) -> str:
        """Return the class with all fields."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return a plain tuple for copy and pickle."""
        return tuple(self)

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=False))

    def _replace(self, **values: Any) -> Any:
        made = tuple.__new__(type(self), map(values.pop, self._fields, self))
        if values:
            raise TypeError(f"{type(self).__name__} has no fields {', '.join(map(repr, values))}")
        return made

    __replace__ = _replace  # for `copy.replace`, from Python 3.13 on


class _Maker(type):
    """The metaclass of `NamedTuple` alone: a class with this base becomes a plain subclass of `_Tuple`."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if not bases:
            return type.__new__(cls, name, bases, namespace)
        fields = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace[field] for field in fields if field in namespace}
        namespace |= {field: _tuplegetter(place, None) for place, field in enumerate(fields)}
        namespace |= {"__slots__": (), "__match_args__": fields, "_fields": fields, "_field_defaults": defaults}
        return type.__new__(type, name, (_Tuple, *bases[1:]), namespace)


if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class NamedTuple(metaclass=_Maker):
        """The base of named tuples."""
