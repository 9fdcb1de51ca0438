"""The examples of the test kit: one turn passes with each bug, the assertions fail with it and pass with the fix."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "testing"
OF_ONE_TURN = {"test_one_big_turn_passes_with_the_bug", "test_a_single_turn_passes_with_the_bug"}
#: Lines of the failures with the bugs: what is wrong, where, and by how much.
MESSAGES = (
    "search_orders is not as its snapshot:",
    "key 'rows[].order_id' is missing",
    "key 'rows[].order_ref' is new",
    "search_orders: 2 of 3 calls repeat an earlier one",
    "get_orders: a result of 16,000 bytes was cut by the layer 'tool' (cut_json); the tool itself cuts: let it return",
    "get_orders: a result of 16,000 bytes was cut by the layer 'tool' (cut_json), 1 times ignored",
    "get_orders: 1 answers on a part of a result (cut_json)",
    "dapr has room for 5 more turns, 50 are wanted:",
    "cap of activity_input: 2,097,152 bytes for one payload",
    "2 requests had none of the earlier turns' messages",
    "append what was fetched to the messages that are sent; bytes of the requests: 18 → 18 → 36",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the examples."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "testing", ignore=shutil.ignore_patterns("__pycache__")))


def outcomes(environment: Environment, folder: Path, *options: str) -> tuple[dict[str, set[str]], str]:
    """Return the tests that passed and failed, and the output of a run of pytest."""
    command = (str(environment.python), "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rpf", *options)
    with environment.start(*command, cwd=folder) as child:
        stdout, stderr = child.communicate(timeout=600)
    assert not stderr
    found: dict[str, set[str]] = {"PASSED": set(), "FAILED": set()}
    for outcome, name in re.findall(r"^(PASSED|FAILED) test_\w+\.py::([\w\[\]]+)", stdout, re.MULTILINE):
        found[outcome].add(name)
    return found, stdout


@pytest.mark.shows("000.single_turn_tests", "000.paginated_after_cut", "003.lost_history")
def test_the_examples_fail_with_the_bug_and_pass_with_the_fix(
    environment: Callable[[str], Environment], folder: Path
) -> None:
    found, output = outcomes(environment("test-kit"), folder)
    fixed = {name.removesuffix("[fix]") for name in found["PASSED"] if name.endswith("[fix]")}
    assert len(fixed) == 9, output
    assert found["FAILED"] == {f"{name}[bug]" for name in fixed - OF_ONE_TURN}, output
    assert found["PASSED"] == {f"{name}[fix]" for name in fixed} | {f"{name}[bug]" for name in OF_ONE_TURN}
    for message in MESSAGES:
        assert message in output, message


def test_an_update_writes_the_keys_and_the_arguments(environment: Callable[[str], Environment], folder: Path) -> None:
    file = folder / "agent_otel_contracts" / "search_orders.json"
    kept = file.read_text()
    only = ("-k", "snapshot and fix")
    file.unlink()
    assert outcomes(environment("test-kit"), folder, *only, "--agent-otel-update")[0]["PASSED"]
    assert file.read_text() == kept
    # The tool's definition is compared too: the snapshot has another argument.
    changed = json.loads(kept)
    changed["arguments"]["text"] = changed["arguments"].pop("query")
    file.write_text(json.dumps(changed))
    _, output = outcomes(environment("test-kit"), folder, *only)
    assert "argument 'query' is new (string)" in output
    assert "argument 'text' is gone" in output
