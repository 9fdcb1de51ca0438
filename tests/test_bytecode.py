"""An environment takes the bytecode of another for its own, where it has the same sources."""

import os
import py_compile
import subprocess
import sys
from pathlib import Path

from tests import bytecode

_MODULES = ("whole", "package/__init__", "package/part")


def _environment(folder: Path, sources: Path | None = None) -> Path:
    packages = folder / "lib" / "python3" / "site-packages"
    (packages / "package").mkdir(parents=True)
    (packages / "it-1.0.dist-info").mkdir()
    (packages / "it-1.0.dist-info" / "RECORD").write_text("".join(f"{name}.py,sha256=x,1\n" for name in _MODULES))
    for name in _MODULES:
        if sources:
            os.link(sources / f"{name}.py", packages / f"{name}.py")
        else:
            (packages / f"{name}.py").write_text("def where(): pass\n")
    return packages


def test_bytecode_of_the_same_sources_is_linked(tmp_path: Path) -> None:
    first = _environment(tmp_path / "first")
    compiled = [Path(str(py_compile.compile(str(first / f"{name}.py")))) for name in _MODULES[:2]]
    second = _environment(tmp_path / "second", first)

    bytecode.share(second, tmp_path)

    shared = [second / path.relative_to(first) for path in compiled]
    assert [path.samefile(other) for path, other in zip(compiled, shared, strict=True)] == [True, True]
    assert sorted(second.rglob("*.pyc")) == sorted(shared)
    said = subprocess.check_output(
        (sys.executable, "-v", "-c", "import whole; print(whole.where.__code__.co_filename)"),
        env={"PYTHONPATH": str(second), "PYTHONDONTWRITEBYTECODE": "1"},
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert f"{shared[0]} matches {second}/whole.py" in said
    assert str(second / "whole.py") in said.splitlines()


def test_of_another_version_none_is_linked(tmp_path: Path) -> None:
    first = _environment(tmp_path / "first")
    py_compile.compile(str(first / "whole.py"))
    second = _environment(tmp_path / "second", first)
    (second / "it-1.0.dist-info").rename(second / "it-1.1.dist-info")

    bytecode.share(second, tmp_path)

    assert list(second.rglob("*.pyc")) == []
