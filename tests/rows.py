"""A loop over rows where a test for each row would cost more than the row itself."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

#: A text that the names of rows contain; other rows are left out. The option `--row` sets it.
only = ""


@dataclass(frozen=True)
class _Table:
    """The arguments of one decorator."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Any, ...]], ...]  # names of rows with their values
    around: Callable[[], AbstractContextManager[Any]]


def each_row(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Iterable[object] | Callable[[Any], Any] | None = None,
    around: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
) -> Callable[[Any], Any]:
    """Pass each row to the test, as `pytest.mark.parametrize` does, within one test.

    All rows run. A row that fails is a subtest with the row's name. Several decorators make the product of their rows.
    ``around`` returns a context for each row. Each row gets a new ``monkeypatch`` and ``tmp_path``, and an empty
    ``caplog`` and ``capsys``. Rows share all other fixtures. Use `pytest.mark.parametrize` for rows that run a process
    or need a new fixture.
    """
    split = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
    table = _Table(split, tuple(_named(split, list(values), ids)), around)
    assert table.rows, f"no rows of {split}"

    def decorate(test: Any) -> Any:
        tables: tuple[_Table, ...] = (*getattr(test, "tables", ()), table)
        function = test.__wrapped__ if hasattr(test, "tables") else test
        parameters = inspect.signature(function).parameters
        takes_subtests = "subtests" in parameters
        of_rows = {name for each in tables for name in each.names}
        assert of_rows <= set(parameters), of_rows.difference(parameters)

        @functools.wraps(function)
        def looped(*instance: Any, subtests: pytest.Subtests, **fixtures: Any) -> None:
            ran = 0
            for number, (name, row) in enumerate(_product(tables)):
                if only not in name:
                    continue
                ran += 1
                with contextlib.ExitStack() as stack:
                    fresh = _fresh(fixtures, stack, number)
                    if takes_subtests:
                        fresh["subtests"] = subtests
                    try:
                        with contextlib.ExitStack() as contexts:
                            for each in tables:
                                contexts.enter_context(each.around())
                            function(*instance, **fresh, **row)
                    except (Exception, pytest.fail.Exception, pytest.skip.Exception):
                        with subtests.test(name):
                            raise
            if not ran:
                pytest.skip(f"no row has {only!r} in its name")

        left = [each for each in parameters.values() if each.name not in of_rows | {"subtests"}]
        left.append(inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY))
        vars(looped).update(tables=tables, __signature__=inspect.Signature(left))
        return looped

    return decorate


def _named(names: tuple[str, ...], values: list[Any], ids: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each row with its name: the one that it has, that ``ids`` gives it, or one made of its values."""
    given = iter(ids) if ids is not None and not callable(ids) else itertools.repeat(None)
    for number, (value, name) in enumerate(zip(values, given, strict=False)):
        own = value.id if isinstance(value, type(pytest.param())) else None
        content = value.values if isinstance(value, type(pytest.param())) else value
        if isinstance(value, type(pytest.param())):
            assert not value.marks, f"a row has no marks of its own: {value}"
        row = tuple(content) if len(names) > 1 or isinstance(value, type(pytest.param())) else (content,)
        assert len(names) == len(row), f"{names}: {row}"
        texts = (_text(key, part, number, ids if callable(ids) else None) for key, part in zip(names, row, strict=True))
        yield str(own or name or "-".join(texts)), row


def _text(name: str, value: Any, number: int, make: Callable[[Any], Any] | None) -> str:
    """Return a text for a value of a row."""
    made = make(value) if make is not None else None
    if made is not None:
        return str(made)
    if isinstance(value, str | bytes | int | float | None):
        return ascii(value)[:100]
    return str(getattr(value, "__name__", f"{name}{number}"))


def _product(tables: tuple[_Table, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of all tables, each with each."""
    for combined in itertools.product(*(table.rows for table in tables)):
        merged: dict[str, Any] = {}
        for table, (_, row) in zip(tables, combined, strict=True):
            merged.update(zip(table.names, row, strict=True))
        yield "-".join(name for name, _ in combined), merged


def _fresh(fixtures: dict[str, Any], stack: contextlib.ExitStack, number: int) -> dict[str, Any]:
    """Return the fixtures of a row: a fixture with a memory begins again."""
    made = dict(fixtures)
    if "monkeypatch" in made:
        made["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
    if "tmp_path" in made:
        made["tmp_path"] /= f"row{number}"
        made["tmp_path"].mkdir()
    if "caplog" in made:
        made["caplog"].clear()
    if "capsys" in made:
        made["capsys"].readouterr()
    return made
