"""Packs the dashboards and alerts into one archive of the wheel: 2.2 MB as files, and no agent reads them."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Files that ``agent-otel dashboards`` and ``agent-otel alerts`` export.
PATTERNS = ("alerts/**/*", "dashboards/*.json", "dashboards/kubernetes/*", "dashboards/provisioning/*")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the archive to a wheel, not to an editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the archive. Equal files give equal archives."""
        if version == "editable":
            return
        root = Path(self.root)
        self._folder = tempfile.TemporaryDirectory()  # removed with this hook, after the build
        archive = Path(self._folder.name) / "files.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted({path for pattern in PATTERNS for path in root.glob(pattern) if path.is_file()}):
                packed.writestr(
                    zipfile.ZipInfo(path.relative_to(root).as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED
                )
        build_data["force_include"][str(archive)] = "agent_otel/cli/files.zip"
