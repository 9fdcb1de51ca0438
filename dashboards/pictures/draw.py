"""Draws pictures of the committed dashboards: real queries of a real Prometheus, drawn by Grafana's UI components.

``scripts/pictures`` runs it. The data is the half hour that tests of the dashboards use, made by the package itself.
Grafana's panels are not published, but what they draw with is; panels.tsx puts the two together as Grafana does.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import subprocess
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import environments
from tests.system.engines import prometheus, starting
from tests.system.monitoring import backfill, boards
from tests.system.monitoring.simulated import END, START, STEP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.engines.prometheus import Prometheus

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PICTURES = ROOT / "docs" / "pictures"
#: The page is this wide unless the command line says otherwise, in pixels of CSS; the picture has ``SCALE`` as many.
WIDTH = 1366
SCALE = 1.2
COLOURS = 96
#: A row of Grafana's grid, and what page.tsx puts above the first one.
CELL = 38
HEAD = 88
#: So much is in the picture for the README.
SMALL = HEAD + 20 * CELL
#: What is chosen in the variables: everything, over half an hour of data that is scraped each 15 seconds.
CHOSEN = {"__range": f"{END - START}s", "__rate_interval": "1m", "window": "2m"}
WINDOW_SECONDS = 120
#: Data: of the package's tests, with 200 tools, of tools alone, or nothing.
FULL, CROWDED, TOOLS_ALONE, EMPTY = "full", "crowded", "tools", "empty"
_TOOLS = 200
_COPIED = 'gen_ai_tool_name="search_tickets"'
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--lang=en-US",
    "--enable-logging=stderr",
    "--virtual-time-budget=20000",
)


def main() -> None:
    """Draw the dashboards that the command line names, or all."""
    parser = argparse.ArgumentParser(prog="scripts/pictures", description="Draws the dashboards into docs/pictures.")
    parser.add_argument("board", nargs="*", help="such as `payload`; all of them by default")
    parser.add_argument("--same-data", action="store_true", help="use the half hour that an earlier run has made")
    parser.add_argument("--to", type=Path, default=PICTURES, help="folder for the pictures; docs/pictures by default")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the screen, in pixels")
    parser.add_argument("--theme", choices=("dark", "light"), default="dark")
    parser.add_argument("--data", choices=(FULL, CROWDED, TOOLS_ALONE, EMPTY), default=FULL)
    parser.add_argument("--as-it-opens", action="store_true", help="leave the rows collapsed that are so at first")
    parser.add_argument("--modules", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--chromium", required=True, help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = {uid.removeprefix("agent-otel-"): uid for uid in boards.UIDS}
    if unknown := set(given.board) - set(names):
        parser.error(f"no such dashboard: {', '.join(sorted(unknown))}")
    given.to.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(starting.folder())
        bundle(given.modules, folder)
        store = stack.enter_context(_store(given.data, same=given.same_data))
        url = stack.enter_context(_served(folder))
        for name in given.board or names:
            data = board(store, names[name], opened=not given.as_it_opens) | {"theme": given.theme}
            (folder / "index.html").write_text(page(data))
            pictures = {name: _height(data)} | ({f"{name}-small": SMALL} if name == "payload" else {})
            for picture, height in pictures.items():
                shoot(given.chromium, url, folder / "page.png", (given.width, height))
                shrink(given.modules, folder / "page.png", given.to / f"{picture}.png")


@contextlib.contextmanager
def _store(kind: str, *, same: bool) -> Iterator[Prometheus]:
    """A Prometheus with the half hour in it, which is made first unless an earlier run has."""
    programs = prometheus.programs(prometheus.NEWEST)
    blocks = starting.cache("pictures") / f"blocks-{kind}"
    if not (same and blocks.exists()):
        shutil.rmtree(blocks, ignore_errors=True)
        with starting.folder() as folder:
            if kind == EMPTY:
                blocks.mkdir(parents=True)
            else:
                samples = backfill.generate(environments.environment("bare"), folder / "traffic")
                samples.write_text("".join(_changed(samples.read_text().splitlines(keepends=True), kind)))
                programs.backfill(samples, blocks)
    with starting.folder() as folder:
        shutil.copytree(blocks, folder / "data")  # the server writes beside them
        with prometheus.server(programs, data=folder / "data") as server:
            yield server


def _changed(lines: list[str], kind: str) -> Iterator[str]:
    """Leave out all workflows, or give a tool's series to many more, each larger than the one before."""
    for line in lines:
        if kind == TOOLS_ALONE and ("workflow" in line or "turns" in line):
            continue
        yield line
        if kind == CROWDED and _COPIED in line:
            series, value, moment = line.rsplit(" ", 2)
            for number in range(_TOOLS):
                named = series.replace(_COPIED, f'gen_ai_tool_name="crm_search_customers_by_region_{number}"')
                yield f"{named} {float(value) * (1 + number % 9)} {moment}"


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The address of a server of this folder's files; Grafana's components fetch their icons."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of what is fetched."""


def board(store: Prometheus, uid: str, *, opened: bool) -> dict[str, Any]:
    """A dashboard, with all rows open if wanted, and each query of it with what Prometheus answers."""
    whole = boards.load(uid)
    panels = list(_opened(whole)) if opened else whole["panels"]
    for panel in panels:
        panel["title"] = boards.substituted(panel["title"], CHOSEN)
        for target in panel.get("targets", ()):
            expression = boards.substituted(target["expr"], CHOSEN)
            target["result"] = (
                store.query(expression, END)
                if target["instant"]
                else store.query_range(expression, START, END, WINDOW_SECONDS if "interval" in target else STEP_SECONDS)
            )
    variables = [one for one in whole["templating"]["list"] if one["type"] != "datasource"]
    chosen = [(one["label"], one["current"]["text"]) for one in variables]
    return {
        "title": whole["title"],
        "panels": panels,
        "chosen": chosen,
        "from": START,
        "to": END,
        "step": STEP_SECONDS,
    } | {"window": WINDOW_SECONDS}


def _opened(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows and panels one below the other. What asks for traces stays closed: there are none."""
    lower = 0
    for panel in whole["panels"]:
        panel["gridPos"]["y"] += lower
        yield panel
        hidden = panel.get("panels", [])
        if any(target["datasource"]["type"] != "prometheus" for one in hidden for target in one["targets"]):
            continue
        panel["collapsed"] = False
        for one in hidden:
            one["gridPos"]["y"] += lower
        yield from hidden
        if hidden:
            lower += max(_below(one) for one in hidden) - _below(panel)


def _below(panel: dict[str, Any]) -> int:
    place = panel["gridPos"]
    return int(place["y"] + place["h"])


def _height(data: dict[str, Any]) -> int:
    return HEAD + CELL * max(_below(panel) for panel in data["panels"]) + 8


def bundle(modules: Path, folder: Path) -> None:
    """Make one script of the harness and what it needs, and put the icons beside it."""
    (folder / "public").mkdir()
    (folder / "public/build").symlink_to(modules / "@grafana/ui/dist/public")
    command = (
        modules / ".bin/esbuild",
        HERE / "page.tsx",
        "--bundle",
        "--minify",
        "--format=esm",
        "--jsx=automatic",
        "--log-level=error",
        "--loader:.svg=dataurl",
        "--loader:.woff=empty",
        "--loader:.ttf=empty",
        "--loader:.woff2=dataurl",
        '--define:process.env.NODE_ENV="production"',
        "--define:global=window",
        f"--alias:react-custom-scrollbars-2={HERE / 'plain.tsx'}",
        f"--outfile={folder / 'page.js'}",
    )
    subprocess.run(command, env={**os.environ, "NODE_PATH": str(modules)}, check=True)  # noqa: S603


def page(data: dict[str, Any]) -> str:
    """Return the page that draws one dashboard."""
    text = json.dumps(data).replace("<", "\\u003c")
    return (
        '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css"><div id="root"></div>'
        f'<script>window.__grafana_public_path__ = "/public/"; window.board = {text};</script>'
        '<script type="module" src="page.js"></script>'
    )


def shoot(chromium: str, url: str, picture: Path, size: tuple[int, int]) -> None:
    """Have the page drawn by a browser that has never seen anything else."""
    picture.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        command = (
            chromium,
            *_FLAGS,
            f"--user-data-dir={profile}",
            f"--force-device-scale-factor={SCALE}",
            f"--window-size={size[0]},{size[1]}",
            f"--screenshot={picture}",
            url,
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    # Chromium says much, of a machine without a desktop; the page says nothing.
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    if said or not picture.exists():
        raise SystemExit("\n".join(said) or done.stderr)


def shrink(modules: Path, drawn: Path, picture: Path) -> None:
    """Write the picture with few colours."""
    command = ("node", HERE / "shrink.mjs", drawn, picture, str(COLOURS))
    subprocess.run(command, env={**os.environ, "NODE_PATH": str(modules)}, check=True)  # noqa: S603
    print(f"{picture}: {picture.stat().st_size // 1024} KiB")  # noqa: T201


if __name__ == "__main__":
    main()
