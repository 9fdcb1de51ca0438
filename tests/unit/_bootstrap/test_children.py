"""Processes made by Python, and places where start-up files do not run."""

import textwrap
from pathlib import Path

import pytest

from tests import environments
from tests.environments import Environment
from tests.rows import each_row
from tests.unit._bootstrap.conftest import STATE

_ON = "True 1"
_OFF = "False 0"
_NOT_STARTED = "False 0"


@each_row("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(installed: Environment, tmp_path: Path, method: str) -> None:
    script = tmp_path / "children.py"
    script.write_text(
        STATE
        + textwrap.dedent(f"""
            import multiprocessing

            if __name__ == "__main__":
                context = multiprocessing.get_context({method!r})
                with context.Pool(1) as pool:
                    print(pool.apply(state))
        """)
    )
    on = installed.run(script, env={"AGENT_OTEL": "1"}, options=("-W", "error"))
    off = installed.run(script, options=("-W", "error"))

    assert (f"{_ON}\n", "") == (on.stdout, on.stderr)
    assert (f"{_OFF}\n", "") == (off.stdout, off.stderr)


def test_subprocesses_follow_their_own_environment(installed: Environment) -> None:
    child = STATE + "print(state())"
    code = f"""
import subprocess, sys
for env in (None, {{}}, {{"AGENT_OTEL": "1"}}):
    subprocess.run([sys.executable, "-c", {child!r}], env=env, check=True)
"""
    run = installed.run(code, env={"AGENT_OTEL": "1"})

    assert ([_ON, _OFF, _ON], "") == (run.stdout.splitlines(), run.stderr)


@pytest.mark.parametrize("version", ["3.14", "3.15"], indirect=True)
def test_subinterpreters_have_a_state_of_their_own(installed: Environment) -> None:
    code = f"""
from concurrent import interpreters
interpreters.create().exec({STATE + "print(state(), flush=True)"!r})
"""
    run = installed.run(STATE + "print(state(), flush=True)" + code, env={"AGENT_OTEL": "1"})

    assert ([_ON, _ON], "") == (run.stdout.splitlines(), run.stderr)


@pytest.fixture(scope="session")
def target(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that the product was installed into with ``--target``, as for a Lambda layer."""
    folder = tmp_path_factory.mktemp("target")
    environments.uv("pip", "install", "--no-deps", "--target", str(folder), str(wheel))
    return folder


def test_a_folder_on_the_path_is_off_until_imported(plain: Environment, target: Path) -> None:
    env = {"AGENT_OTEL": "1", "PYTHONPATH": str(target)}
    cases = {
        "": _NOT_STARTED,
        "import agent_otel": _ON,
        "import agent_otel.auto": _ON,
        f"import site; site.addsitedir({str(target)!r})": _ON,
    }

    for activation, expected in cases.items():
        run = plain.run(f"{activation}\n{STATE}print(state())", env=env)
        assert (f"{expected}\n", "") == (run.stdout, run.stderr)


@each_row(("value", "expected"), [(None, _ON), ("", _ON), ("1", _ON), ("0", _OFF), ("off", _OFF), ("ture", _OFF)])
def test_explicit_activation_and_the_switch(plain: Environment, target: Path, value: str | None, expected: str) -> None:
    env = {"PYTHONPATH": str(target)} | ({} if value is None else {"AGENT_OTEL": value})
    run = plain.run(f"import agent_otel.auto\n{STATE}print(state())", env=env)

    assert f"{expected}\n" == run.stdout
    assert (1 if value == "ture" else 0) == len(run.stderr.splitlines())


def test_explicit_activation_from_within_an_archive(plain: Environment, wheel: Path) -> None:
    run = plain.run(f"import agent_otel.auto\n{STATE}print(state())", env={"PYTHONPATH": str(wheel)})

    assert (f"{_ON}\n", "") == (run.stdout, run.stderr)
