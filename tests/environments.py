"""The virtual environments of ``environments.toml``, made with uv when first used and kept in ``.environments/``."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Any

from tests import bytecode, interpreters
from tests.interpreters import UnavailableError
from tests.patience import communicate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".environments"
#: Variable with other contents of rows, as JSON: ``scripts/matrix`` runs the contract in other versions.
OTHER = "AGENT_OTEL_TEST_ROWS"
#: The only authority that children trust: none, its key was thrown away. They talk to servers on this machine, without
#: TLS, and every HTTP client of theirs would read the certificates of the whole web first, dozens of times a child.
NOBODY = ROOT / "tests" / "nobody.pem"
#: Environments without a framework: programs in them run as they do for a user.
AS_INSTALLED = ("bare", "bare-3.13", "bare-newest", "bundle", "free-threaded", "httpx", "oldest", "servers")
#: A line that the interpreter runs at each start in the others. A child imports a framework for seconds, a tenth of
#: which the collector would look through objects that stay. The file's name comes before that of the product's, whose
#: import hook would be asked for this import.
COLLECTS_LESS = "import gc; gc.set_threshold(50_000, 20, 100)\n"
COLLECTS_LESS_FILE = "0_collects_less.pth"
#: Bytes that have to be free before an environment is made: the largest one, with what is downloaded for it.
FREE = 1 << 30


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the product in it."""

    name: str
    folder: Path

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    def program(self, name: str) -> Path:
        """Return a command that is installed in the environment, such as ``gunicorn``."""
        return self.folder / "bin" / name

    def environ(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return all variables of a child process: a path, a home, a language, whom to trust, and what the case adds.

        Large results are many in tests: the log has no record of them, unless the case sets its variable.
        """
        path = os.pathsep.join((str(self.folder / "bin"), os.environ.get("PATH", os.defpath)))
        own = {"PATH": path, "HOME": str(Path.home()), "LANG": "C.UTF-8", "SSL_CERT_FILE": str(NOBODY)}
        return {**own, "AGENT_OTEL_LOG_LARGE_RESULTS": "off", **(env or {})}

    def run(  # noqa: PLR0913 - what subprocess.run offers, named
        self,
        code_or_script: str | Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        options: Sequence[str] = (),
        cwd: Path | None = None,
        check: bool = False,
    ) -> CompletedProcess[str]:
        """Run code or a file with the environment's interpreter, nothing of our variables leaking in.

        ``options`` are the interpreter's. ``check`` makes a non-zero exit an AssertionError with the child's output;
        so does a child that is not done after ``timeout`` seconds, which is ended with all its children. Unless the
        case says otherwise the child works in the environment's folder, where nothing shadows what is installed.
        """
        program = (
            (str(code_or_script),) if isinstance(code_or_script, Path) else ("-c", textwrap.dedent(code_or_script))
        )
        command = (str(self.python), *options, *program, *arguments)
        with self.start(*command, env=env, cwd=cwd) as child:
            try:
                stdout, stderr = communicate(child, timeout)
            except subprocess.TimeoutExpired:
                _end(child)
                stdout, stderr = child.communicate()
                raise AssertionError(f"not done after {timeout} s\n{stdout}\n{stderr}") from None
        if check:
            assert child.returncode == 0, f"exit {child.returncode}\n{stdout}\n{stderr}"
        return CompletedProcess(command, child.returncode, stdout, stderr)

    @contextlib.contextmanager
    def start(
        self, *command: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, is_asked: bool = False
    ) -> Iterator[Popen[str]]:
        """Start any command in the environment, a server say; end it and its children when the block is left.

        With ``is_asked`` the caller writes to its standard input.
        """
        with Popen(
            command,
            env=self.environ(env),
            cwd=cwd or self.folder,
            stdin=subprocess.PIPE if is_asked else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as child:
            try:
                yield child
            finally:
                _end(child)


def names() -> list[str]:
    """Return the names of the rows of ``environments.toml``."""
    return list(rows())


def weekly() -> set[str]:
    """Return the names of the rows whose tests CI leaves to the weekly run."""
    return {name for name, row in rows().items() if row.get("weekly")}


def made_from(name: str) -> Path:
    """Return the file that says what the environment of this row is made from."""
    other = json.loads(os.environ.get(OTHER, "{}"))
    return FOLDER / (f"{name}.matrix" if name in other else name) / "made-from"


def _row(name: str) -> dict[str, Any]:
    """Return what an environment is made from: the row, or what `scripts/matrix` puts in its place."""
    found: dict[str, Any] = json.loads(os.environ.get(OTHER, "{}")).get(name) or rows()[name]
    return found


def python_of(name: str) -> tuple[int, ...]:
    """Return the version of Python that a row asks for, or that `scripts/matrix` does; else the one that runs this."""
    asked = _row(name).get("python")
    return tuple(map(int, asked.split("."))) if asked else sys.version_info[:2]


def environment(name: str) -> Environment:
    """Return the environment of this row, made if need be; raise UnavailableError when it cannot be."""
    row = _row(name)
    folder = made_from(name).parent
    requirements = ("--editable", str(ROOT), *row["requirements"])
    interpreter = interpreters.find(row["python"]) if "python" in row else _base()
    line = "" if name in AS_INSTALLED else COLLECTS_LESS
    digest = _digest(requirements, str(interpreter), sys.version, COLLECTS_LESS_FILE if line else "", line)
    with interpreters.lock(FOLDER / f"{folder.name}.lock"):
        stamp = folder / "made-from"
        if not (stamp.exists() and stamp.read_text() == digest):
            _check_space(folder)
            shutil.rmtree(folder, ignore_errors=True)  # uv clears nothing but an environment
            with _whole(folder):
                make(folder, interpreter, *requirements)
                [packages] = folder.glob("lib/python*/site-packages")
                if line:
                    packages.joinpath(COLLECTS_LESS_FILE).write_text(line)
                bytecode.share(packages, FOLDER)
                stamp.write_text(digest)
    return Environment(name, folder)


def _check_space(folder: Path) -> None:
    """Raise UnavailableError if the disk is too full for an environment."""
    free = shutil.disk_usage(FOLDER).free
    if free < FREE:
        said = f"{folder} was not made: {free >> 20} MB of the disk are free, and {FREE >> 20} MB are needed"
        raise UnavailableError(said, obtainable=True)


@contextlib.contextmanager
def _whole(folder: Path) -> Iterator[None]:
    """Remove an environment that could not be made to its end."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def make(folder: Path, interpreter: Path, *requirements: str) -> Environment:
    """Make an environment in this folder, with what these arguments of ``uv pip install`` name."""
    made = Environment(folder.name, folder)
    uv("venv", "--clear", "--python", str(interpreter), str(folder))
    if requirements:
        uv("pip", "install", "--python", str(made.python), *requirements)
    return made


def uv(*command: str) -> None:
    """Run uv quietly in the checkout. If that fails, run it on its cache; raise UnavailableError if that fails, too."""
    beside = Path(sys.executable).parent / "uv"
    program = str(beside) if beside.exists() else "uv"
    quiet = (program, *command, "--quiet")
    done = _run(quiet)
    if done.returncode and _run((*quiet, "--offline")).returncode:
        raise UnavailableError(f"uv {command[0]} failed: {done.stderr.strip()[-2000:]}", obtainable=True)


def _run(command: Sequence[str]) -> CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def rows() -> dict[str, Any]:
    """Return the rows of ``environments.toml``; the requirements of a row ``with`` another one follow the other's."""
    every = tomllib.loads((ROOT / "tests" / "environments.toml").read_text())
    for row in every.values():
        if "with" in row:
            row["requirements"] = [*every[row["with"]]["requirements"], *row["requirements"]]
    return every


def _base() -> Path:
    """The interpreter that this environment was made with, so that whoever asks makes the same environments."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def _digest(*parts: object) -> str:
    """Digest what an environment is made from: its row, and what of the checkout an editable install copies."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    copied = {path.name: path.read_text() for path in (ROOT / "startup").iterdir()}
    product = (pyproject["build-system"], pyproject["project"], pyproject["tool"]["hatch"], pyproject["tool"]["uv"])
    return hashlib.sha256(json.dumps((parts, product, copied), sort_keys=True).encode()).hexdigest()


def _end(child: Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
