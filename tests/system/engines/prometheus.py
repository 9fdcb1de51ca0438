"""A real Prometheus, and promtool, from Debian's packages: an old one and a new one, nothing installed.

``BOOKWORM`` has Prometheus 2.42, ``NEWEST`` 3.x. The first use downloads them into the user's cache.
"""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests import debian
from tests.debian import NEWEST
from tests.system.engines import asking, starting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["BOOKWORM", "NEWEST", "SUITES", "Programs", "Prometheus", "programs", "server"]

#: Prometheus 2.42, the oldest that the rules are written for.
BOOKWORM = "bookworm"
SUITES = (BOOKWORM, NEWEST)

_PACKAGES = {BOOKWORM: ("prometheus",), NEWEST: ("prometheus", "promtool")}
_FLAGS = {
    "storage.tsdb.retention.time": "100y",  # what is backfilled can be of any age
    # It takes 5 s to know its Alertmanagers, and alerts of that time are lost: they are to be sent again soon.
    "rules.alert.resend-delay": "1s",
}


@dataclass(frozen=True)
class Programs:
    """The programs of one suite."""

    prometheus: Path
    promtool: Path

    def check_rules(self, *files: Path) -> str:
        """Check rule files, every lint being an error; return what promtool says, AssertionError when it finds any."""
        return _checked(self.run("check", "rules", "--lint=all", "--lint-fatal", *files))

    def check_config(self, file: Path) -> str:
        """Check a configuration, with the rule files that it names; return what promtool says."""
        return _checked(self.run("check", "config", "--lint=all", "--lint-fatal", file))

    def test_rules(self, *files: Path) -> str:
        """Run unit tests of rules; return what promtool says, AssertionError with it when one fails."""
        return _checked(self.run("test", "rules", *files))

    def backfill(self, openmetrics: Path, data: Path) -> None:
        """Make blocks from OpenMetrics text whose samples have timestamps; ``data`` is what `server` then takes."""
        _checked(self.run("tsdb", "create-blocks-from", "openmetrics", openmetrics, data))

    def record(self, rules: Path, engine: Prometheus, start: float, end: float, data: Path) -> None:
        """Make blocks of what the rules record in this time, minute by minute; a server takes them when it starts."""
        times = (f"--start={start:.0f}", f"--end={end:.0f}", "--eval-interval=60s")
        flags = (*times, f"--url={engine.url}", f"--output-dir={data}")
        _checked(self.run("tsdb", "create-blocks-from", "rules", *flags, rules))

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run promtool, however it ends."""
        return subprocess.run((self.promtool, *arguments), capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Prometheus:
    """A server that answers."""

    #: Such as ``http://127.0.0.1:40001``.
    url: str

    def query(self, expression: str, time: float | None = None) -> list[Any]:
        """Return the result of an instant query at this time (epoch seconds), now by default.

        A vector is ``[{"metric": {...}, "value": [seconds, "1"]}]``. A query that the server refuses is an
        AssertionError with its message.
        """
        parameters = {"query": expression} if time is None else {"query": expression, "time": str(time)}
        return self._data("query", parameters)["result"]  # type: ignore[no-any-return]

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Any]:
        """Return the matrix of a range query: ``[{"metric": {...}, "values": [[seconds, "1"], ...]}]``."""
        parameters = {"query": expression, "start": str(start), "end": str(end), "step": str(step)}
        return self._data("query_range", parameters)["result"]  # type: ignore[no-any-return]

    def series(self, selector: str, start: float, end: float) -> list[dict[str, str]]:
        """Return the labels of the series that have samples between two times."""
        parameters = {"match[]": selector, "start": str(start), "end": str(end)}
        return self._data("series", parameters)  # type: ignore[no-any-return]

    def rules(self) -> list[Any]:
        """Return the rules of all groups with their health and last error, as Prometheus says them."""
        return [rule for group in self._data("rules", {})["groups"] for rule in group["rules"]]

    def alerts(self) -> list[Any]:
        """Return the alerts that are pending or firing."""
        return self._data("alerts", {})["alerts"]  # type: ignore[no-any-return]

    def _data(self, what: str, parameters: dict[str, str]) -> Any:
        return asking.get(f"{self.url}/api/v1/{what}", parameters)["data"]


def programs(suite: str) -> Programs:
    """Return the programs of a suite, downloaded if they are not there yet; UnavailableError when that fails."""
    folders = debian.unpacked(starting.cache("debian"), suite, *_PACKAGES[suite])
    promtool = folders.get("promtool", folders["prometheus"])
    return Programs(folders["prometheus"] / "usr/bin/prometheus", promtool / "usr/bin/promtool")


@contextlib.contextmanager
def server(programs: Programs, config: str = "", data: Path | None = None, **flags: str) -> Iterator[Prometheus]:
    """Start one with this configuration (YAML), until the block is left.

    ``data`` is a folder of blocks, which the server writes into, too; one server at a time. Flags without their dashes:
    ``**{"storage.tsdb.retention.time": "1h"}``; an empty value stands for a flag without one.
    """
    url = f"http://127.0.0.1:{starting.free_port()}"
    with starting.folder() as folder:
        (folder / "prometheus.yml").write_text(config)
        chosen = {
            "config.file": str(folder / "prometheus.yml"),
            "storage.tsdb.path": str(data or folder / "data"),
            "web.listen-address": url.removeprefix("http://"),
            **_FLAGS,
            **flags,
        }
        options = (f"--{name}={value}" if value else f"--{name}" for name, value in chosen.items())
        with starting.process(
            programs.prometheus,
            *options,
            answers=lambda: asking.is_healthy(f"{url}/-/ready"),
            env={},
            cwd=folder,
        ):
            yield Prometheus(url)


def _checked(done: subprocess.CompletedProcess[str]) -> str:
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said
