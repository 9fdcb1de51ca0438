"""The site of the documentation builds without a warning, and has all pages."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """A link to nowhere, a page outside of the navigation or a block that is no block would be one."""
    done = subprocess.run((ROOT / "scripts" / "site", tmp_path), cwd=ROOT, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "alerts").rglob("*.md"),
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
    ]
    assert [] == [page for page in pages if not (tmp_path / page.relative_to(ROOT).with_suffix(".html")).exists()]
    assert "AI agents die of bytes" in (tmp_path / "docs" / "index.html").read_text(encoding="utf-8")
