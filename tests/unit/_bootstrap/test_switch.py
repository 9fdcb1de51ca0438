"""The switch on every Python: off costs one module at most, on installs one finder, and nothing ever escapes."""

import textwrap
from collections.abc import Callable
from pathlib import Path

from tests.environments import Environment
from tests.patience import communicate
from tests.rows import each_row
from tests.unit._bootstrap.conftest import STATE, site_packages

_MODULES = "import sys; print(*sorted(sys.modules))"
_STATE = f"{STATE}print(state())\n"
_ON = "True 1\n"
_OFF = "False 0\n"
_NOT_STARTED = "False 0\n"


def _outcome(environment: Environment, code: str, *options: str, **env: str) -> tuple[str, str, int]:
    child = environment.run(code, env=env, options=options)
    return child.stdout, child.stderr, child.returncode


def test_unset_loads_nothing_of_the_package(installed: Environment, plain: Environment, version: str) -> None:
    """The line of the ``.pth`` file reads the variable itself; a ``.start`` file has to name a module's function."""
    ours, complaints, _ = _outcome(installed, _MODULES)
    theirs, _, _ = _outcome(plain, _MODULES)

    expected = {"agent_otel_startup"} if version == "3.15" else set()
    assert expected == set(ours.split()) - set(theirs.split())
    assert "" == complaints


@each_row("value", ["", "0", "false", "no", "off", "OFF", " 0 "])
def test_off(installed: Environment, value: str) -> None:
    assert (_OFF, "", 0) == _outcome(installed, _STATE, AGENT_OTEL=value)


@each_row("value", ["1", "true", "yes", "on", "TRUE", " 1 "])
def test_on(installed: Environment, value: str) -> None:
    assert (_ON, "", 0) == _outcome(installed, _STATE, AGENT_OTEL=value)


def test_on_loads_nothing_but_our_own_and_the_standard_library(installed: Environment, plain: Environment) -> None:
    # The environment holds none of our dependencies: importing one would be an error, and said.
    ours, complaints, _ = _outcome(installed, _MODULES, AGENT_OTEL="1")
    theirs, _, _ = _outcome(plain, _MODULES)
    gained = set(ours.split()) - set(theirs.split())

    assert "" == complaints
    assert {"asyncio", "importlib.metadata", "inspect", "json", "logging", "threading", "typing"}.isdisjoint(gained)
    assert {"agent_otel._bootstrap.import_hook", "agent_otel._internal.trigger_modules"} <= gained
    assert not {name for name in gained if name.startswith("agent_otel.integrations")}
    foreign = "import sys; print(*[name for name in sys.argv[1:] if name.split('.')[0] not in sys.stdlib_module_names])"
    named = installed.run(foreign, *gained).stdout.split()
    assert [] == [name for name in named if name.split(".")[0] not in ("agent_otel", "agent_otel_startup")]


def test_on_loads_no_dependency_that_is_installed(environment: Callable[[str], Environment]) -> None:
    modules, complaints, _ = _outcome(environment("bare"), _MODULES, AGENT_OTEL="1")
    packages = {name.split(".")[0] for name in modules.split()}

    assert "" == complaints
    assert {"asyncio", "opentelemetry", "prometheus_client", "wrapt"}.isdisjoint(packages)


def test_on_starts_no_thread_and_writes_nothing(installed: Environment) -> None:
    code = "import os; print(len(os.listdir('/proc/self/task')))"

    assert ("1\n", "", 0) == _outcome(installed, code, AGENT_OTEL="1")


def test_a_wrong_value_is_one_warning_and_off(installed: Environment) -> None:
    state, complaints, code = _outcome(installed, _STATE, AGENT_OTEL="ture")

    assert (_OFF, 0) == (state, code)
    assert 1 == len(complaints.splitlines())
    assert complaints.startswith("agent_otel: AGENT_OTEL='ture' ")


@each_row("redirection", ["2>&-", "2>/dev/full"])
def test_a_warning_that_cannot_be_written_does_not_stop_python(installed: Environment, redirection: str) -> None:
    shell = f"exec {installed.python} -c 'print(42)' {redirection}"
    with installed.start("sh", "-c", shell, env={"AGENT_OTEL": "ture"}) as child:
        assert ("42\n", "") == communicate(child, 60)


def test_starting_again_and_again_installs_one_finder(installed: Environment) -> None:
    again = f"""
        import site
        import agent_otel._bootstrap.startup

        agent_otel._bootstrap.startup.start()
        site.addsitedir({str(site_packages(installed))!r})
        import agent_otel.auto
    """

    code = textwrap.dedent(again) + _STATE

    assert (_ON, "", 0) == _outcome(installed, code, AGENT_OTEL="1")


def test_how_often_python_calls_us(prepared: Callable[[str], Environment], version: str) -> None:
    counting = prepared("""if True:
        import agent_otel._bootstrap.startup as startup

        calls = []
        real = startup.start
        startup.start = lambda: (calls.append(1), real())
    """)
    expected = 1 if version == "3.15" else 2  # .pth lines run twice in virtual environments, .start entries once

    code = "import a_module; print(len(a_module.calls))"
    assert (f"{expected}\n", "", 0) == _outcome(counting, code, "-W", "error", AGENT_OTEL="1")


@each_row("error", ["SystemExit(3)", "ImportError('no')", "RuntimeError('no')", "OSError('no')"])
def test_an_error_while_activating_is_one_line_and_python_starts(
    prepared: Callable[[str], Environment], error: str
) -> None:
    broken = prepared("""if True:
        import os
        import sys
        import types

        def install(callbacks, **_):
            raise eval(os.environ["ERROR"])

        sys.modules["agent_otel._bootstrap.import_hook"] = hook = types.ModuleType("_importhook")
        hook.install = install
    """)
    state, complaints, code = _outcome(broken, _STATE, AGENT_OTEL="1", ERROR=error)

    assert (_OFF, 0) == (state, code)
    assert 1 == len(complaints.splitlines())
    assert complaints.startswith(f"agent_otel: not active, {error.split('(', maxsplit=1)[0]} at ")


def test_an_error_while_importing_our_own_is_one_line_and_python_starts(
    prepared: Callable[[str], Environment],
) -> None:
    broken = prepared("import sys; sys.modules['agent_otel._bootstrap.import_hook'] = None")
    out, complaints, code = _outcome(broken, "print(42)", AGENT_OTEL="1")

    assert ("42\n", 0) == (out, code)
    assert 1 == len(complaints.splitlines())


@each_row("options", [("-I",), ("-E",), ("-s",), ("-P",), ("-W", "error", "-X", "dev", "-bb")])
def test_interpreter_options(installed: Environment, version: str, options: tuple[str, ...]) -> None:
    if options == ("-P",) and version == "3.10":
        options = ("-I",)  # -P came with Python 3.11
    assert (_ON, "", 0) == _outcome(installed, _STATE, *options, AGENT_OTEL="1")
    assert (_OFF, "", 0) == _outcome(installed, _STATE, *options)


def test_without_site_it_is_off_until_imported(installed: Environment) -> None:
    path = str(site_packages(installed))

    assert (_NOT_STARTED, "", 0) == _outcome(installed, _STATE, "-S", AGENT_OTEL="1", PYTHONPATH=path)
    for imported in ("import agent_otel\n", "import agent_otel.auto\n"):
        assert (_ON, "", 0) == _outcome(installed, imported + _STATE, "-S", AGENT_OTEL="1", PYTHONPATH=path)


def test_running_a_module_a_script_and_standard_input(installed: Environment, tmp_path: Path) -> None:
    script = tmp_path / "state.py"
    script.write_text(_STATE)
    piped = f"import subprocess, sys; subprocess.run([sys.executable], stdin=open({str(script)!r}))"
    module = "import runpy; runpy.run_module('state')"

    assert _ON == installed.run(script, env={"AGENT_OTEL": "1"}).stdout
    assert (_ON, "", 0) == _outcome(installed, piped, AGENT_OTEL="1")
    assert (_ON, "", 0) == _outcome(installed, module, AGENT_OTEL="1", PYTHONPATH=str(tmp_path))
