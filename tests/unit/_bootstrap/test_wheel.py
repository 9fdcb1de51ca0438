"""What is installed: exactly three files at the root of site-packages, owned by the wheel, and the same each time."""

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests import environments
from tests.environments import ROOT, Environment
from tests.unit._bootstrap.conftest import Maker, site_packages

_PTH = "agent_otel_startup.pth"
_START = "agent_otel_startup.start"
_IMPORT_LINE = (
    'import os; os.environ.get("AGENT_OTEL") and '
    '__import__("agent_otel._bootstrap.startup", fromlist=("start",)).start()\n'
)
_MODULE = "agent_otel_startup.py"
_ENTRY_POINT = "agent_otel_startup:start"


def test_the_wheel_holds_the_package_and_exactly_three_files_beside_it(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    beside = [name for name in names if "/" not in name]
    folders = {name.split("/")[0] for name in names if "/" in name and not name.split("/")[0].endswith(".dist-info")}

    assert [_PTH, _MODULE, _START] == sorted(beside)
    assert {"agent_otel"} == folders


def test_the_wheel_holds_the_whole_package(wheel: Path, checkout: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("agent_otel/")}
    sources = {path.relative_to(checkout).as_posix() for path in (checkout / "agent_otel").rglob("*") if path.is_file()}

    assert packed == sources | {"agent_otel/cli/files.zip"}  # tests/unit/cli says what is in it
    assert "agent_otel/py.typed" in packed


def test_the_files_say_one_readable_thing(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        pth, start = archive.read(_PTH).decode(), archive.read(_START).decode()

    assert pth == _IMPORT_LINE
    assert [_ENTRY_POINT] == [line for line in start.splitlines() if not line.startswith("#")]
    assert "AGENT_OTEL" in start


def test_the_files_are_owned_by_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        recorded = {row[0]: row[1] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
        digests = {name: hashlib.sha256(archive.read(name)).digest() for name in (_PTH, _MODULE, _START)}

    for name, digest in digests.items():
        assert recorded[name] == "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def test_two_builds_are_the_same_bytes(wheel: Path, checkout: Path, tmp_path: Path) -> None:
    environments.uv("build", "--wheel", "--out-dir", str(tmp_path), str(checkout))
    (again,) = tmp_path.glob("*.whl")

    assert wheel.read_bytes() == again.read_bytes()


def test_a_wheel_built_from_the_source_distribution_is_the_same(wheel: Path, checkout: Path, tmp_path: Path) -> None:
    environments.uv("build", "--out-dir", str(tmp_path), str(checkout))
    (from_source,) = tmp_path.glob("*.whl")

    assert _contents(wheel) == _contents(from_source)


def test_uninstalling_removes_the_files(make: Maker, wheel: Path, version: str) -> None:
    made = make(version, "--no-deps", str(wheel), purpose="uninstall")
    installed = sorted(path.name for path in site_packages(made).glob("agent_otel*"))
    environments.uv("pip", "uninstall", "--python", str(made.python), "agent-otel")

    assert ["agent_otel", "agent_otel-0.1.0.dist-info", _PTH, _MODULE, _START] == installed
    assert [] == list(site_packages(made).glob("agent_otel*"))


def test_an_editable_install_starts_and_is_live(environment: Callable[[str], Environment]) -> None:
    bare = environment("bare")
    child = bare.run(
        "import agent_otel._bootstrap.startup as s; print(s.env.active, s.__file__)",
        env={"AGENT_OTEL": "1"},
        cwd=bare.folder,
    )

    assert ("", f"True {ROOT / 'agent_otel' / '_bootstrap' / 'startup.py'}\n") == (child.stderr, child.stdout)
    assert {_PTH, _MODULE, _START} <= {path.name for path in site_packages(bare).iterdir()}


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
