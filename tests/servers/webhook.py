"""A webhook on this machine that keeps what Alertmanager notifies it of."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.scripted import Answer, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Callable


class Webhook(LoopbackServer):
    """Receives notifications at ``{url}/alerts`` for as long as the ``with`` block lasts."""

    def __init__(self) -> None:
        #: Every notification as it came, parsed: ``status``, ``groupLabels``, ``alerts`` and more.
        self.notifications: list[dict[str, Any]] = []
        self._arrived = threading.Condition()
        super().__init__({"/alerts": self._take})

    @property
    def receiver(self) -> str:
        """Value of ``url`` under ``webhook_configs`` in a configuration of Alertmanager."""
        return f"{self.url}/alerts"

    def alerts(self, status: str = "firing") -> list[dict[str, Any]]:
        """Return the alerts that came with this status, in their order: ``labels``, ``annotations`` and more."""
        return [alert for each in self.notifications for alert in each["alerts"] if alert["status"] == status]

    def wait_for(
        self, is_there: Callable[[list[dict[str, Any]]], bool], status: str = "firing", timeout: float = 300
    ) -> list[dict[str, Any]]:
        """Return `alerts` once they are what is waited for; AssertionError with them when that takes too long."""
        with self._arrived:
            there = self._arrived.wait_for(lambda: is_there(self.alerts(status)), timeout)
        assert there, f"not what was waited for: {self.alerts(status)}"
        return self.alerts(status)

    def _take(self, body: bytes) -> Answer:
        with self._arrived:
            self.notifications.append(json.loads(body))
            self._arrived.notify_all()
        return Answer(b"{}")
