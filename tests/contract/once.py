"""What the children of a class report, asked for once by all workers of a test run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests import interpreters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def reported(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    run: Callable[[Path], dict[str, Any]],
    part: str = "",
) -> dict[str, Any]:
    """Return what ``run`` reports, which is kept for the other workers; its failure fails each test of the class.

    ``part`` names what is reported where a class has more than one report.
    """
    return kept(request, tmp_path_factory, run, request.cls.__module__, request.cls.__name__, part)


def kept(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    run: Callable[[Path], dict[str, Any]],
    *names: str,
) -> dict[str, Any]:
    """Return what ``run`` reports, which is kept under these names for the other workers."""
    mine = tmp_path_factory.getbasetemp()
    root = mine.parent if hasattr(request.config, "workerinput") else mine
    folder = root.joinpath(*names)
    folder.mkdir(parents=True, exist_ok=True)
    with interpreters.lock(folder / "lock"):
        file = folder / "runs.json"
        if not file.exists():
            try:
                file.write_text(json.dumps(run(folder)))
            except AssertionError as error:
                file.write_text(json.dumps({"failure": str(error)}))
        report: dict[str, Any] = json.loads(file.read_text())
    if "failure" in report:
        pytest.fail(report["failure"], pytrace=False)
    return report
