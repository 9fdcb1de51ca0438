"""The import hook, in the running interpreter; test_everywhere.py runs this file on every Python.

It therefore uses nothing of the other tests.
"""

import importlib
import importlib.util
import runpy
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_otel._bootstrap import import_hook

Write = Callable[..., None]


@pytest.fixture(autouse=True)
def no_finder() -> Iterator[None]:
    """Leave the interpreter as it was."""
    before = list(sys.meta_path)
    yield
    import_hook.uninstall()
    assert before == sys.meta_path


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Return a function that writes modules of a tiny framework, importable until the test ends."""
    modules = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def to(name: str, source: str = "") -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        importlib.invalidate_caches()

    yield to
    for name in set(sys.modules) - modules:
        if name.startswith(("framework", "namespace")):
            del sys.modules[name]


@pytest.fixture
def fired() -> list[str]:
    """Return the list of modules whose callbacks ran, in order."""
    return []


def test_the_callback_runs_after_the_modules_own_code(write: Write) -> None:
    write("framework/__init__.py")
    write("framework/tools.py", "class Tool:\n    pass\n")
    seen = []
    import_hook.install({"framework.tools": lambda name: seen.append((name, hasattr(sys.modules[name], "Tool")))})

    importlib.import_module("framework")
    assert [] == seen
    importlib.import_module("framework.tools")
    assert [("framework.tools", True)] == seen


def test_a_module_that_is_already_imported_fires_at_once(write: Write, fired: list[str]) -> None:
    write("framework.py")
    importlib.import_module("framework")
    import_hook.install({"framework": fired.append})

    assert ["framework"] == fired


def test_a_module_whose_import_is_blocked_does_not_fire(fired: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "framework", None)
    import_hook.install({"framework": fired.append})

    with pytest.raises(ImportError):
        importlib.import_module("framework")
    assert [] == fired


def test_the_module_keeps_its_real_loader_and_spec(write: Write, fired: list[str]) -> None:
    write("framework.py", "LOADER = __loader__\nSPEC = __spec__\n")
    real = importlib.util.find_spec("framework")
    import_hook.install({"framework": fired.append})
    module = importlib.import_module("framework")

    assert real is not None
    assert module.__spec__ is not None
    for loader in (module.__loader__, module.__spec__.loader, module.LOADER, module.SPEC.loader):
        assert type(real.loader) is type(loader)
    assert (real.origin, real.cached) == (module.__spec__.origin, module.__spec__.cached)
    assert ["framework"] == fired


def test_asking_for_the_spec_neither_fires_nor_loses_the_callback(write: Write, fired: list[str]) -> None:
    write("framework.py", "VALUE = 42\n")
    import_hook.install({"framework": fired.append})
    spec = importlib.util.find_spec("framework")

    assert spec is not None
    assert spec.loader is not None
    assert "VALUE = 42\n" == spec.loader.get_source("framework")  # type: ignore[attr-defined]
    assert [] == fired
    assert 42 == importlib.import_module("framework").VALUE
    assert ["framework"] == fired


def test_a_module_executed_from_its_spec_fires(write: Write, fired: list[str]) -> None:
    write("framework.py", "VALUE = 42\n")
    import_hook.install({"framework": fired.append})
    spec = importlib.util.find_spec("framework")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert 42 == module.VALUE
    assert ["framework"] == fired


def test_a_lazily_loaded_module_fires_when_it_is_used(write: Write, fired: list[str]) -> None:
    write("framework.py", "VALUE = 42\n")
    import_hook.install({"framework": fired.append})
    spec = importlib.util.find_spec("framework")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules["framework"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert [] == fired
    assert 42 == module.VALUE
    assert ["framework"] == fired


def test_an_import_that_fails_can_be_repeated(write: Write, fired: list[str]) -> None:
    write("framework.py", "raise RuntimeError('not yet')\n")
    import_hook.install({"framework": fired.append})

    with pytest.raises(RuntimeError, match="not yet"):
        importlib.import_module("framework")
    assert [] == fired
    write("framework.py", "VALUE = 42  # and of another length\n")
    assert 42 == importlib.import_module("framework").VALUE
    assert ["framework"] == fired


def test_a_missing_module_is_missing(fired: list[str]) -> None:
    import_hook.install({"framework": fired.append, "framework.tools": fired.append})

    with pytest.raises(ModuleNotFoundError, match="No module named 'framework'"):
        importlib.import_module("framework.tools")
    assert importlib.util.find_spec("framework") is None
    assert [] == fired


@pytest.mark.parametrize(("each_time", "times"), [(False, 1), (True, 3)])
def test_a_module_that_is_reloaded_or_imported_anew(
    write: Write, fired: list[str], *, each_time: bool, times: int
) -> None:
    write("framework.py")
    import_hook.install({"framework": fired.append}, each_time=each_time)
    importlib.reload(importlib.import_module("framework"))
    del sys.modules["framework"]
    importlib.import_module("framework")

    assert ["framework"] * times == fired


def test_a_module_that_renames_itself_fires_under_its_own_name(write: Write, fired: list[str]) -> None:
    write("framework.py", "__name__ = 'other'\n")
    import_hook.install({"framework": fired.append})
    importlib.import_module("framework")

    assert ["framework"] == fired


def test_a_module_that_replaces_itself(write: Write) -> None:
    write("framework.py", "import sys, types\nsys.modules[__name__] = types.SimpleNamespace(VALUE=42)\n")
    seen = []
    import_hook.install({"framework": lambda name: seen.append(sys.modules[name])})
    module = importlib.import_module("framework")

    assert [module] == seen
    assert isinstance(module, types.SimpleNamespace)


def test_packages_of_a_namespace(write: Write, fired: list[str]) -> None:
    write("namespace/framework.py", "VALUE = 42\n")
    import_hook.install({"namespace": fired.append, "namespace.framework": fired.append})

    assert 42 == importlib.import_module("namespace.framework").VALUE
    assert "namespace.framework" in fired
    assert sys.modules["namespace"].__file__ is None


def test_modules_without_python_code(fired: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    extensions = ("_elementtree", "_xxsubinterpreters", "xxsubtype", "_bisect")
    watched = [name for name in extensions if name not in sys.modules and importlib.util.find_spec(name)]
    for name in watched:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import_hook.install(dict.fromkeys(watched, fired.append))
    for name in watched:
        importlib.import_module(name)

    assert watched == fired
    assert watched


def test_threads_that_import_at_the_same_time(write: Write, fired: list[str]) -> None:
    write("framework.py", "import time\ntime.sleep(0.05)\nREADY = False\n")
    barrier = threading.Barrier(8)
    found: list[bool] = []

    def patch(name: str) -> None:
        fired.append(name)
        sys.modules[name].READY = True  # type: ignore[attr-defined]

    def use() -> None:
        barrier.wait()
        found.append(importlib.import_module("framework").READY)

    import_hook.install({"framework": patch})
    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [True] * 8 == found
    assert ["framework"] == fired


def test_running_a_watched_module_as_the_program(write: Write, fired: list[str], tmp_path: Path) -> None:
    write("framework.py", "print(__name__, 42)\nRAN = __name__\n")
    program = (
        "import agent_otel._bootstrap.import_hook as hook, runpy, sys\n"
        "hook.install({'framework': print})\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "runpy._run_module_as_main('framework')\n"
    )
    child = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=False)
    import_hook.install({"framework": fired.append})

    assert ("__main__ 42\n", "") == (child.stdout, child.stderr)
    assert "__main__" == runpy.run_module("framework", run_name="__main__")["RAN"]
    assert [] == fired


def test_a_finder_of_the_old_kind_or_none_at_all(
    write: Write, fired: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("framework.py")
    monkeypatch.setattr(sys, "meta_path", [object(), *sys.meta_path])
    import_hook.install({"framework": fired.append})

    assert import_hook._finder.find_spec("framework") is not None
    monkeypatch.setattr(sys, "meta_path", [])
    assert import_hook._finder.find_spec("framework") is None


class _Asking:
    """A finder that asks all others."""

    def find_spec(self, *args: Any) -> Any:
        others: list[Any] = [finder for finder in sys.meta_path if type(finder) is not _Asking]
        return next(filter(None, (finder.find_spec(*args) for finder in others)), None)


@pytest.mark.parametrize("place", [0, 1])
def test_beside_a_finder_that_asks_all_others(write: Write, fired: list[str], place: int) -> None:
    write("framework.py", "VALUE = 42\n")
    import_hook.install({"framework": fired.append})
    theirs: Any = _Asking()
    sys.meta_path.insert(place, theirs)
    try:
        module = importlib.import_module("framework")
    finally:
        sys.meta_path.remove(theirs)

    assert 42 == module.VALUE
    assert ["framework"] == fired
    assert not isinstance(module.__loader__, import_hook._Loader)


@pytest.mark.parametrize("ours_first", [True, False])
def test_beside_wrapts_import_hook(write: Write, fired: list[str], *, ours_first: bool) -> None:
    wrapt = pytest.importorskip("wrapt")
    name = f"framework_{ours_first}".lower()  # wrapt remembers for ever what was imported
    write(f"{name}.py", "VALUE = 42\n")
    before = list(sys.meta_path)
    import_hook.install({name: fired.append})
    wrapt.register_post_import_hook(lambda module: fired.append(f"wrapt {module.__name__}"), name)
    theirs = wrapt.importer.ImportHookFinder()
    ours = import_hook._finder
    sys.meta_path[:] = [*((ours, theirs) if ours_first else (theirs, ours)), *before]
    try:
        module = importlib.import_module(name)
    finally:
        sys.meta_path[:] = before

    assert 42 == module.VALUE
    assert [name, f"wrapt {name}"] == sorted(fired)
    assert not isinstance(module.__loader__, import_hook._Loader)


def test_installing_twice_adds_callbacks_and_no_second_finder(write: Write, fired: list[str]) -> None:
    write("framework/__init__.py")
    write("framework/tools.py")
    length = len(sys.meta_path)
    import_hook.install({"framework": fired.append})
    import_hook.install({"framework.tools": fired.append})

    assert length + 1 == len(sys.meta_path)
    importlib.import_module("framework.tools")
    assert ["framework", "framework.tools"] == fired


def test_a_copy_of_this_package_that_is_imported_anew_takes_the_finders_place(write: Write, fired: list[str]) -> None:
    """Two finders would ask each other for ever, in every import of a watched module."""
    write("framework.py")
    import_hook.install({"framework": fired.append})
    length, spec = len(sys.meta_path), import_hook.__spec__
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    copy.install({"framework": lambda name: fired.append(f"{name} by the copy")})
    try:
        assert length == len(sys.meta_path)
        importlib.import_module("framework")
    finally:
        copy.uninstall()

    assert ["framework by the copy"] == fired


def test_uninstalling_watches_nothing_any_more(write: Write, fired: list[str]) -> None:
    write("framework.py")
    import_hook.install({"framework": fired.append})
    import_hook.uninstall()
    import_hook.uninstall()
    importlib.import_module("framework")

    assert [] == fired
