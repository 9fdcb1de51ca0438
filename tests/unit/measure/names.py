"""Names of test cases: the same in every process, which repr is not."""

from __future__ import annotations

import re


def readable(value: object) -> str:
    """Return what a value looks like, without addresses and not endless."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:60]
