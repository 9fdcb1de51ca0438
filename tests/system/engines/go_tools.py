"""Programs written in Go that check what is shipped: pint the rules, dashboard-linter the dashboards.

They are built with Go from its module proxy into the user's cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.interpreters import UnavailableError, lock
from tests.system.engines import starting

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class GoTool:
    """A program of one version. ``replace`` is what its own ``go.mod`` replaces, which ours has to repeat."""

    name: str
    version: str
    module: str
    package: str
    replace: str = ""

    def build(self) -> Path:
        """Return the program, built, in some minutes, if it is not there yet.

        UnavailableError when there is no Go, or its module proxy does not have what this version needs.
        """
        program = starting.cache("go") / f"{self.name}-{self.version}" / self.name
        with lock(program.parent.with_name(f"{program.parent.name}.lock")):
            if not program.exists():
                with starting.folder() as scratch:
                    self._build(scratch)
                    program.parent.mkdir(exist_ok=True)
                    shutil.move(scratch / self.name, program)
        return program

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run it, however it ends; UnavailableError when it cannot be built."""
        return subprocess.run((self.build(), *arguments), capture_output=True, text=True, check=False)

    def _build(self, scratch: Path) -> None:
        """Build from a module of our own that requires it: `go install` refuses a go.mod that replaces modules."""
        lines = ["module scratch", "go 1.26", f"require {self.module} v{self.version}", self.replace]
        (scratch / "go.mod").write_text("\n".join(lines))
        options = ("-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", self.name)
        go(scratch, f"{self.name} {self.version}", "build", *options, self.package)


PINT = GoTool("pint", "0.87.0", "github.com/cloudflare/pint", "github.com/cloudflare/pint/cmd/pint")
DASHBOARD_LINTER = GoTool(
    "dashboard-linter",
    "0.1.1",
    "github.com/grafana/dashboard-linter",
    "github.com/grafana/dashboard-linter",
    "replace github.com/hashicorp/memberlist => github.com/grafana/memberlist v0.3.1-0.20251126142931-6f9f62ab6f86",
)


def go(cwd: Path, what: str, *arguments: str) -> None:
    """Run Go's command to build something, with patience for others; UnavailableError when that cannot be done."""
    program = shutil.which("go", path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/go/bin")))
    if program is None:
        raise UnavailableError(f"Go is not installed, and {what} is on none of PyPI and Debian", obtainable=False)
    done = subprocess.run(("nice", program, *arguments), cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("go: downloading"))
        raise UnavailableError(f"{what} cannot be built: {said.strip()[-2000:]}", obtainable=False)
