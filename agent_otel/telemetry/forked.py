"""Reset of owned providers in a forked child, to which the SDK leaves its parent's counts and connections.

The SDK has no public function for it.
"""
# ruff: noqa: SLF001

from __future__ import annotations

import copy
import functools
import threading
from typing import Any, Final

from agent_otel._internal import errors, fork

#: The attributes that lead from an exporter to its session of ``requests``, in SDKs of one age each.
_SESSIONS: Final = (("_session",), ("_client", "_transport", "_session"))


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


def part_connections(exporter: Any) -> None:
    """Let forked children send through connections of their own.

    An exporter over HTTP keeps its connection open. Parent and children would write their requests into the same one,
    and read each other's answers: batches are lost, or sent twice.
    """
    for path in _SESSIONS:
        session = functools.reduce(lambda owner, name: getattr(owner, name, None), path, exporter)
        if session is not None:
            fork.after_fork(errors.guarded("emit.fork")(functools.partial(_renew_connections, session)))


def _renew_connections(session: Any) -> None:
    """Replace the adapters, which keep the connections; a copy of one has its settings and no connection."""
    for prefix, adapter in list(session.adapters.items()):
        session.mount(prefix, copy.copy(adapter))
