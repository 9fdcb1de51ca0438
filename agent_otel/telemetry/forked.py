"""Reset of an owned MeterProvider in a forked child, to which the SDK leaves the parent's state.

The SDK has no public function for it.
"""
# ruff: noqa: SLF001

from __future__ import annotations

import threading
from typing import Any


def forget_counts(provider: Any) -> None:
    """Drop the counts that a forked child inherited, because the parent exports them.

    Renew the locks as well, because the parent's exporting thread may have held them at the fork.
    """
    consumer = provider._measurement_consumer
    consumer._lock = threading.Lock()
    for reader, storage in consumer._reader_storages.items():
        reader._export_lock = threading.Lock()
        storage._lock = threading.RLock()
        storage._instrument_view_instrument_matches = {}
