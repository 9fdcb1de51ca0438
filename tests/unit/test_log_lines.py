"""Log lines name the class and the place of an exception, never its text, in which a value or a password may stand."""

from __future__ import annotations

import ast
import errno
from pathlib import Path

import pytest

from agent_otel._internal import errors
from agent_otel.remedies.claim_check.stores.base import StoreError, library, said, translated

PACKAGE = Path(errors.__file__).parent.parent
LOGGING = ("warn_once", "_complain", "_say", "_say_unusable")
#: Modules whose line holds the text of an exception that only code of the same package raises, with a text of its own.
OURS = {"settings/__init__", "settings/kinds"}


def test_a_place_stands_for_the_text() -> None:
    with pytest.raises(ValueError, match="canary") as raised:
        int("canary")
    assert errors.described(raised.value).startswith("ValueError at test_log_lines.py:")


def test_an_error_of_the_operating_system_is_in_its_words() -> None:
    error = OSError(errno.ENOENT, "canary", "/srv/canary")
    assert errors.described(error).startswith("FileNotFoundError: No such file or directory at ")


def test_what_a_library_says_is_no_part_of_an_error_of_a_store() -> None:
    with (
        pytest.raises(StoreError, match=r"redis: RuntimeError at .*test_log_lines.py:\d+") as raised,
        translated("redis"),
    ):
        raise RuntimeError("redis://user:canary@host")
    assert "canary" not in said(raised.value)
    assert "not a store" == said(StoreError("not a store"))
    assert "canary" not in said(ValueError("canary"))
    with pytest.raises(StoreError, match="no_such_module cannot be imported; install the packages of the extra 'none'"):
        library("no_such_module", "none")


def _holds_text(call: ast.Call, name: str) -> bool:
    """Return whether an exception stands in a message as it is, or by `str`."""
    shown = [node.value for node in ast.walk(call) if isinstance(node, ast.FormattedValue)]
    shown += [node.args[0] for node in ast.walk(call) if isinstance(node, ast.Call) and ast.unparse(node.func) == "str"]
    return any(isinstance(value, ast.Name) and value.id == name for value in shown)


def test_no_line_of_the_log_holds_the_text_of_an_exception() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "cli"):
            continue  # a command's user reads what became of the command
        for function in ast.walk(ast.parse(path.read_text())):
            names = {function.name} if isinstance(function, ast.ExceptHandler) and function.name else set()
            if isinstance(function, ast.FunctionDef):
                names |= {arg.arg for arg in function.args.args if arg.arg in ("error", "exc", "exception")}
            for call in ast.walk(function) if names else ():
                if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in LOGGING:
                    found |= {path for name in names if _holds_text(call, name)}
    assert OURS == {str(path.relative_to(PACKAGE).with_suffix("")) for path in found}
