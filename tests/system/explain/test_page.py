"""The page of ``agent-otel explain --html`` in a browser without a network: it draws the boxes."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.system.engines import chromium, starting
from tests.unit.cli.running import run
from tests.unit.cli.test_explain import chat, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.engines.chromium import Browser

SLOW = 600
"""Seconds that a browser may take on a busy machine."""


@pytest.fixture
def browser() -> Browser:
    return starting.obtained(chromium.find)


def opened(browser: Browser, page: Path) -> str:
    """Return the document as Chromium has it when the page's scripts have run."""
    flags = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", "--dump-dom"),
        *(f"--user-data-dir={page.parent / 'profile'}", "--disable-dev-shm-usage", "--window-size=1366,900"),
    )
    command = (str(browser.program), *flags, page.as_uri())
    env = {**os.environ, **browser.environ}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=SLOW).stdout


def test_the_turns_are_drawn_without_a_network(browser: Browser, tmp_path: Path) -> None:
    name = "</script><script>document.title='broken'</script>"
    path = written(tmp_path, {"messages": chat(6)})
    path.write_text(path.read_text().replace("write_file", name))
    assert 0 == run("explain", path, "--html", tmp_path / "page.html").code
    document = opened(browser, tmp_path / "page.html")
    drawn = set(re.findall(r"</i>([^:<]*): ", document))
    assert {"payload", "search_orders", "result", "messages[]", *(f"turn {turn}" for turn in range(1, 7))} <= drawn
    assert document.count("<polyline") == 1
    assert f"<title>{path}: {path.stat().st_size:,} bytes</title>" in document
