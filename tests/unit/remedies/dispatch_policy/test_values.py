"""Arguments are read and compared so that no form of a value gets around a rule."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from agent_otel.remedies.dispatch_policy.rules import (
    Glob,
    UnreadableError,
    are_required,
    has_forbidden,
    read_arguments,
    values_at,
)
from tests.rows import each_row

deep: Any = "x"
for _ in range(60):
    deep = [deep]


@each_row(
    ("arguments", "read"),
    [
        (None, {}),
        ("", {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": [true, null]}', {"a": [True, None]}),
    ],
)
def test_arguments_are_a_dictionary_or_json(arguments: object, read: dict[str, Any]) -> None:
    assert read_arguments(arguments) == read


@each_row(
    "arguments",
    ['{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 2}}', "[1]", "1", "not json", '{"a": 1', ["a"], 7, "[" * 100_000],
)
def test_other_arguments_cannot_be_read(arguments: object) -> None:
    with pytest.raises(UnreadableError):
        read_arguments(arguments)


@each_row(
    ("value", "allowed", "expected"),
    [
        ("acme", "acme", True),
        ("acme/x", "acme/*", True),
        ("evil/acme/x", "acme/*", False),
        ("acme\nevil", "acme", False),
        ("ACME", "acme", False),
        ("[a]*", "[a]*", True),
        ("a", "[a]*", False),
        (["acme", "acme"], "acme", True),
        (["acme", "evil"], "acme", False),
        ({"owner": "acme"}, "acme", False),
        ([], "*", False),
        (None, "*", False),
        (5, 5, True),
        (5.0, 5, True),
        ("5", 5, False),
        (True, True, True),
        (1, True, False),
        (True, 1, False),
        ("true", True, False),
        (object(), "*", False),
    ],
)
def test_a_required_value_matches_by_type_and_value(value: object, allowed: Any, expected: bool) -> None:  # noqa: FBT001
    wanted = Glob(allowed) if isinstance(allowed, str) else allowed
    assert are_required(value, (wanted,)) is expected


@each_row(
    ("value", "forbidden", "expected"),
    [
        ("/etc/passwd", "/etc/*", True),
        (" /etc/passwd\n", "/etc/*", True),
        (["/home", "/etc/passwd"], "/etc/*", True),
        ({"paths": [{"p": "/etc/x"}]}, "/etc/*", True),
        ("/home/etc/", "/etc/*", False),
        (True, True, True),
        (1, True, True),
        ("True", True, True),
        (" yes ", True, True),
        ("on", True, True),
        (1.0, True, True),
        (False, True, False),
        ("false", True, False),
        (0, False, True),
        ("off", False, True),
        ("0", 0, True),
        ("0e0", 0, True),
        (False, 0, True),
        (7, 0, False),
        (None, "*", True),
        (object(), "x", True),
        ([], "*", False),
    ],
)
def test_a_forbidden_value_matches_in_every_form_of_it(value: object, forbidden: Any, expected: bool) -> None:  # noqa: FBT001
    wanted = Glob(forbidden) if isinstance(forbidden, str) else forbidden
    assert has_forbidden(value, (wanted,)) is expected


#: Kind and values of a rule, the values that it lets pass, and those that it denies; each is a verdict by hand.
BIG, NEXT = 9007199254740993, 9007199254740992
PAIRS: tuple[tuple[str, Any, tuple[Any, ...], tuple[Any, ...]], ...] = (
    (
        "require",
        "acme",
        ("acme", ["acme"], ["acme", "acme"], ("acme",), [["acme"]], {"acme"}, frozenset({"acme"})),
        (
            *("Acme", "ACME", " acme", "acme ", "acme\n", "acme\0", "\u0430cme", "acme.", "", "evil", "acme/evil"),
            *(None, True, 0, 1.5, b"acme", [], {}, [[]], ["acme", "evil"], ["acme", None], ["acme", {}]),
            *({"$ne": "acme"}, {"owner": "acme"}, {"owner": {"x": "acme"}}, {"acme": "acme"}, [{"x": "acme"}]),
            *('["acme"]', '"acme"', '{"owner": "acme"}', "YWNtZQ==", "%61cme", object(), {"acme", "evil"}, set(), len),
        ),
    ),
    (
        "require",
        "/srv/*",
        ("/srv/", "/srv/x", "/srv/x/y", ["/srv/a", "/srv/b"], "/srv/../etc/passwd"),
        ("/srv", "srv/x", "/SRV/x", " /srv/x", "//srv/x", "/etc/passwd", {"/srv/x": "/srv/x"}, ["/srv/x", "/etc/y"]),
    ),
    (
        "require",
        5,
        (5, 5.0, Decimal(5), Decimal("5.00"), [5], [5, 5.0]),
        ("5", "5.0", 6, 5.000000001, True, None, [], {}, {"n": 5}, [5, 6], [5, "5"], [True], float("nan")),
    ),
    (
        "require",
        BIG,
        (BIG, [BIG], Decimal(BIG)),
        (NEXT, NEXT + 2, float(BIG), float(NEXT), -BIG, str(BIG), BIG * 10, {"n": BIG}),
    ),
    ("require", 0.1, (0.1, [0.1]), (0.2, "0.1", 0, 1, 0.1000001, [0.1, 0.2], {"x": 0.1}, None)),
    ("require", True, (True, [True]), (False, 1, 1.0, "true", "True", "yes", None, [], {}, [True, 1], {"x": True})),
    ("require", False, (False, [False]), (True, 0, 0.0, "false", "", None, [], {}, [False, 0])),
    ("require", "*", ("", "a", "a\nb", ["a", ""]), (None, 1, True, {}, [], {"a": "b"}, ["a", 1], object())),
    (
        "forbid",
        "evil",
        (
            "good",
            "evi",
            "evils",
            "Evil",
            "EVIL",
            "\u0435vil",
            "ZXZpbA==",
            "%65vil",
            "",
            None,
            5,
            True,
            [],
            ["good"],
            {"good"},
        ),
        (
            *("evil", " evil", "evil\n", "\tevil ", ["evil"], ["good", "evil"], [["evil"]], ("evil",)),
            *('["evil"]', '"evil"', '["good", "evil"]', ' ["evil"]', {}, {"x": "good"}, {"x": "evil"}, {"evil": 1}),
            *([{"x": "good"}], object(), b"good", {"good", "evil"}, len),
        ),
    ),
    (
        "forbid",
        "/etc/*",
        ("/etc", "etc/x", "/home/etc/x", "/srv/../etc/passwd", "//etc/x", "/ETC/x", ["/home/x"], None),
        ("/etc/", "/etc/passwd", " /etc/passwd", ["/home/x", "/etc/x"], {"path": "/home/x"}, '["/etc/x"]'),
    ),
    (
        "forbid",
        BIG,
        (NEXT, NEXT + 2, float(NEXT), str(NEXT), f"{NEXT}.0", BIG * 10, -BIG, None, True, "x", [], [NEXT]),
        (
            *(BIG, str(BIG), f" {BIG} ", f"{BIG}.0", f"+{BIG}", f"{BIG:_}", [BIG], [NEXT, BIG], Decimal(BIG)),
            *({"n": NEXT}, {}, f"[{BIG}]", "9007199254740993e0", "0" + str(BIG)),
        ),
    ),
    ("forbid", 10**40 + 1, (10**40, 10**40 + 2, 1e40, str(10**40)), (10**40 + 1, str(10**40 + 1), [10**40 + 1])),
    ("forbid", 0.1, (0.2, "0.2", 0, 1, "x", None), (0.1, "0.1", "1e-1", ".1", "0.10000000000000001", [0.1], {})),
    (
        "forbid",
        0,
        (1, "1", "x", None, "", "-1", 0.5, True, "inf", "nan", "sNaN", "1e999999999"),
        (0, "0", "0.0", "-0", "0e9", 0.0, -0.0, False, [0], {}),
    ),
    ("forbid", True, (False, 0, "false", "no", "x", None, 2), (True, 1, 1.0, "1", "true", "TRUE", "yes", "on", "t")),
    ("forbid", False, (True, 1, "true", "x", None), (False, 0, 0.0, "0", "false", "No", "off", "F", [False])),
)


def test_pairs_of_a_rule_and_a_value() -> None:
    wrong = []
    for kind, rule, passing, denied in PAIRS:
        wanted = (Glob(rule) if isinstance(rule, str) else rule,)
        for value, passes in [*((each, True) for each in passing), *((each, False) for each in denied)]:
            found = are_required(value, wanted) if kind == "require" else not has_forbidden(value, wanted)
            if found is not passes:
                wrong.append((kind, rule, value, passes))
    assert sum(len(passing) + len(denied) for _, _, passing, denied in PAIRS) >= 200
    assert wrong == []


class Options:
    """An object that a framework has made of the model's arguments."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


@each_row(
    ("filters", "required", "forbidden"),
    [
        ({"owner": "acme"}, True, False),
        ({"owner": ["acme", "acme"]}, True, False),
        ({"owner": "evil"}, False, True),
        ({"owner": ["acme", "evil"]}, False, True),
        ([{"owner": "acme"}, {"owner": "evil"}], False, True),
        ([{"owner": "acme"}, {}], False, False),
        ({"Owner": "acme"}, False, False),
        ({"inner": {"owner": "evil"}}, False, False),
        ({}, False, False),
        ([], False, False),
        (None, False, False),
        ("acme", False, False),
        # A text that a framework may read as an object is none for the stronger rule.
        ('{"owner": "acme"}', False, False),
        ('{"owner": "evil"}', False, True),
        (['[{"owner": "evil"}]'], False, True),
        (Options(owner="acme"), True, False),
        (Options(owner="evil"), False, True),
        (object(), False, True),
    ],
)
def test_values_inside_an_argument(filters: object, required: bool, forbidden: bool) -> None:  # noqa: FBT001
    arguments, path = {"filter": filters}, ("filter", "owner")
    seen = list(values_at(arguments, path))
    assert (bool(seen) and all(are_required(value, (Glob("acme"),)) for value in seen)) is required
    coerced = values_at(arguments, path, coerces=True)
    assert any(has_forbidden(value, (Glob("evil"),)) for value in coerced) is forbidden


@each_row("filters", [deep, '{"owner": 1, "owner": "evil"}', "[" * 100_000])
def test_what_is_inside_cannot_be_read(filters: object) -> None:
    with pytest.raises(UnreadableError):
        list(values_at({"filter": filters}, ("filter", "owner"), coerces=True))


def test_too_many_levels_cannot_be_compared() -> None:
    with pytest.raises(UnreadableError):
        has_forbidden(deep, (1,))


@each_row(
    ("glob", "text", "matches"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("*", "a\nb", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a\nb.c", True),
        ("a*b*c", "acb", False),
        ("*b*b*", "ab", False),
        ("*b*b*", "abb", True),
        ("*ab*ab", "abab", True),
        ("*ab*ab", "ab", False),
        ("a**b", "ab", True),
        ("a.c", "abc", False),
        ("[a-z]?", "[a-z]?", True),
        ("größe*", "größe", True),
    ],
)
def test_a_star_stands_for_any_characters_and_nothing_else_does(glob: str, text: str, *, matches: bool) -> None:
    assert Glob(glob).matches(text) is matches


def test_a_text_of_the_model_cannot_hold_the_process() -> None:
    # A regular expression takes minutes for 30 kB, and this a fraction of a millisecond.
    assert Glob("*a*b*c*d*e*f*").matches("abcde" * 200_000) is False
