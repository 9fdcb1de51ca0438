"""Half an hour of metrics as the real package makes them, in one OpenMetrics file whose samples have timestamps."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.patience import communicate
from tests.system.monitoring.simulated import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.environments import Environment

_TRAFFIC = Path(__file__).parent / "traffic.py"


def generate(environment: Environment, folder: Path) -> Path:
    """Run the simulated processes side by side; return the file with the samples of all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    parts = [folder / f"process-{number}" / "samples" for number in range(len(PROCESSES))]
    with contextlib.ExitStack() as stack:
        children = []
        for number, (process, part) in enumerate(zip(PROCESSES, parts, strict=True)):
            part.parent.mkdir(parents=True)
            command = (str(environment.python), str(_TRAFFIC), str(number), str(part))
            children.append(stack.enter_context(environment.start(*command, env=process.settings)))
        for child in children:
            said = communicate(child, 110)
            assert child.returncode == 0, said
    merged = folder / "samples"
    merged.write_text(_merged(part.read_text() for part in parts))
    return merged


def _merged(texts: Iterable[str]) -> str:
    """Put the samples of each family together: OpenMetrics wants them side by side."""
    families: dict[str, list[str]] = {}
    for text in texts:
        for line in text.splitlines():
            if line.startswith("#"):
                samples = families.setdefault(line, [])
            else:
                samples.append(line)
    return "\n".join(line for family, samples in families.items() for line in (family, *samples)) + "\n# EOF\n"
