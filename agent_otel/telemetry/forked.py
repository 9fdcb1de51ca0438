"""An owned MeterProvider in a forked child, which the SDK leaves as the parent had it.

There is no public way to reset one.
"""
# ruff: noqa: SLF001

from __future__ import annotations

import threading
from typing import Any


def forget_counts(provider: Any) -> None:
    """Begin anew in a forked child: what the parent counted the parent sends.

    Renew the locks, too: the thread of the parent that collects and exports may have held them.
    """
    consumer = provider._measurement_consumer
    consumer._lock = threading.Lock()
    for reader, storage in consumer._reader_storages.items():
        reader._export_lock = threading.Lock()
        storage._lock = threading.RLock()
        storage._instrument_view_instrument_matches = {}
