"""A real Alertmanager, and amtool, from Debian's packages; nothing is installed.

Debian has both open their templates in a folder whose path is compiled in. They are run as copies in which that path,
length unchanged, leads to the folder where they are run.
"""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import debian
from tests.system.engines import asking, starting

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = "prometheus-alertmanager"
_INSTALLED = b"/usr/share/prometheus/alertmanager"
_HERE = b"/proc/self/cwd/alertmanager-assets"


@dataclass(frozen=True)
class Programs:
    """The programs of one suite, as they are in its package."""

    package: Path

    def check_config(self, *files: Path) -> str:
        """Check configurations; return what amtool says, AssertionError with it when one is bad."""
        return self._run("check-config", *(file.absolute() for file in files))

    def route(self, config: Path, **labels: str) -> list[str]:
        """Return the receivers that an alert with these labels goes to."""
        matchers = (f"{name}={value}" for name, value in labels.items())
        return self._run("config", "routes", "test", f"--config.file={config.absolute()}", *matchers).strip().split(",")

    def copied(self, name: str, folder: Path) -> Path:
        """Put a program into a folder, from which it runs."""
        program = (self.package / "usr" / "bin" / name).read_bytes()
        copy = folder / name
        copy.write_bytes(program.replace(_INSTALLED, _HERE))
        copy.chmod(0o755)
        (folder / Path(_HERE.decode()).name).symlink_to(f"{self.package}{_INSTALLED.decode()}")
        return copy

    def _run(self, *arguments: str | Path) -> str:
        with starting.folder() as folder:
            command = (self.copied("amtool", folder), *arguments)
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@dataclass(frozen=True)
class Alertmanager:
    """A server that answers."""

    #: Such as ``http://127.0.0.1:40001``.
    url: str

    @property
    def target(self) -> str:
        """What stands under ``alertmanagers: - static_configs: - targets:`` in a configuration of Prometheus."""
        return self.url.removeprefix("http://")

    def alerts(self) -> list[Any]:
        """Return the alerts that it has: labels, annotations, and whether they are inhibited or silenced."""
        return asking.get(f"{self.url}/api/v2/alerts")  # type: ignore[no-any-return]


def programs(suite: str) -> Programs:
    """Return the programs of a suite, downloaded if they are not there yet; UnavailableError when that fails."""
    return Programs(debian.unpacked(starting.cache("debian"), suite, _PACKAGE)[_PACKAGE])


@contextlib.contextmanager
def server(programs: Programs, config: str) -> Iterator[Alertmanager]:
    """Start one with this configuration (YAML), and no peers, until the block is left."""
    url = f"http://127.0.0.1:{starting.free_port()}"
    with starting.folder() as folder:
        (folder / "alertmanager.yml").write_text(config)
        with starting.process(
            programs.copied("prometheus-alertmanager", folder),
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address={url.removeprefix('http://')}",
            "--cluster.listen-address=",
            answers=lambda: asking.is_healthy(f"{url}/-/ready"),
            env={},
            cwd=folder,
        ):
            yield Alertmanager(url)
