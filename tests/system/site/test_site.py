"""The site of the documentation builds without a warning, has all pages, and shows the tables whole."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.system.engines import chromium, starting
from tests.system.explain.test_page import opened

ROOT = Path(__file__).resolve().parents[3]
#: Pages whose tables have the longest names.
WIDE = ("backends", "integrations")
#: A script that gives the page a title with the tables, and with those that have to be scrolled to be seen whole.
MEASURE = """<script>
const tables = [...document.querySelectorAll(".table-wrapper")];
document.title = `${tables.length} tables, ${tables.filter((one) => one.scrollWidth > one.clientWidth).length} cut`;
</script>"""


def test_the_site_builds_without_a_warning_and_no_table_is_cut(tmp_path: Path) -> None:
    """A link to nowhere, a page outside of the navigation or a block that is no block would be a warning."""
    browser = starting.obtained(chromium.find)
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
    for name in WIDE:
        page = tmp_path / "docs" / f"{name}.html"
        page.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
        title = re.search("<title>(.*?)</title>", opened(browser, page))
        assert title
        assert re.fullmatch(r"[1-9]\d* tables, 0 cut", title[1]), (name, title[1])
