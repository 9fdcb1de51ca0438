"""The named tuples of this package act as those of `typing`."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import typing
from typing import Any, Generic, TypeVar

import pytest

from agent_otel._internal import named_tuples
from tests.rows import each_row

Value = TypeVar("Value")


class Own(named_tuples.NamedTuple):
    """A call."""

    name: str
    size: int = 3
    parts: tuple[str, ...] = ()

    @property
    def doubled(self) -> int:
        """Return the size twice."""
        return 2 * self.size


class Theirs(typing.NamedTuple):
    """A call."""

    name: str
    size: int = 3
    parts: tuple[str, ...] = ()

    @property
    def doubled(self) -> int:
        """Return the size twice."""
        return 2 * self.size


class Held(named_tuples.NamedTuple, Generic[Value]):
    """A value of any type."""

    value: Value


class Longer(Own):
    """A class below a named tuple."""


def _outcome(act: Any, kind: Any) -> Any:
    try:
        return act(kind)
    except (TypeError, AttributeError) as error:
        return type(error)


@each_row(
    "act",
    [
        lambda kind: kind("a"),
        lambda kind: kind("a", 4, ("b",)),
        lambda kind: kind(size=4, name="a"),
        lambda kind: kind(),
        lambda kind: kind("a", 4, (), 5),
        lambda kind: kind("a", other=5),
        lambda kind: kind("a", name="b"),
        lambda kind: kind("a")._replace(size=5),
        lambda kind: kind("a").__replace__(size=5) if sys.version_info >= (3, 13) else None,
        lambda kind: kind._make(["a", 4, ()]),
        lambda kind: kind._make(iter("ab")),
        lambda kind: kind("a")._asdict(),
        lambda kind: kind("a").size,
        lambda kind: kind("a").doubled,
        lambda kind: setattr(kind("a"), "size", 4),
        lambda kind: setattr(kind("a"), "other", 4),
        lambda kind: copy.copy(kind("a")),
        lambda kind: kind.__new__(kind, "a"),
        lambda kind: [kind._fields, kind._field_defaults, kind.__match_args__],
        lambda kind: [kind.__doc__, kind.__annotations__.keys(), kind.__module__],
        lambda kind: repr(kind("a", parts=("b",))).replace("Own", "Theirs"),
        lambda kind: kind("a") == ("a", 3, ()),
    ],
)
def test_they_act_as_those_of_typing(act: Any) -> None:
    theirs, ours = _outcome(act, Theirs), _outcome(act, Own)

    assert theirs == ours
    assert isinstance(ours, Own) == isinstance(theirs, Theirs)


def test_a_field_that_they_have_not_is_not_replaced() -> None:
    with pytest.raises(TypeError, match="Own has no fields 'other'"):
        Own("a")._replace(other=5)  # type: ignore[call-arg]


def test_arguments_that_do_not_fit_are_reported_with_the_class() -> None:
    with pytest.raises(TypeError, match=r"Own\.__new__\(\) missing 1 required positional argument: 'name'"):
        Own()  # type: ignore[call-arg]


def test_they_are_pickled_and_matched_and_have_their_signature_from_the_first_instance_on() -> None:
    found = pickle.loads(pickle.dumps(Own("a", 4)))  # noqa: S301 - our own bytes
    assert (Own, ("a", 4, ())) == (type(found), found)
    assert ["_cls", "name", "size", "parts"] == [*inspect.signature(Own.__new__).parameters]
    match found:
        case Own(name, size=4):
            assert "a" == name
        case _:
            pytest.fail("no match")


def test_they_can_be_generic_and_have_subclasses() -> None:
    longer = Longer("a", size=5)

    assert (Longer, "a", 5) == (type(longer), longer.name, longer.size)
    assert Own is type(Own("b"))
    assert "Held(value=1)" == repr(Held(1))
    assert 2 == Held[int](2).value
