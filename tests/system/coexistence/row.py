"""A row of the table: another instrumentation beside a framework that it instruments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_otel.integrations.registry import INTEGRATIONS

if TYPE_CHECKING:
    from tests.contract.suite import Contract

#: The orders in which a program switches on the other instrumentation and this package, and imports the framework.
#: Where this package is first, the variable ``AGENT_OTEL`` switches it on.
ORDERS = {
    "peer, ours, framework": ("peer", "ours", "framework"),
    "ours, peer, framework": ("ours", "peer", "framework"),
    "ours, framework, peer": ("ours", "framework", "peer"),
    "framework, peer, ours": ("framework", "peer", "ours"),
}
#: Variable with the keys of rows, one a line, that run in all their orders.
EVERY = "AGENT_OTEL_TEST_COEXISTENCE"
#: The same program without this package.
ALONE = ("peer", "framework")


#: The rows that CI runs, in one order each: each other instrumentation, Traceloop's being OpenLLMetry's.
_IN_CI = {
    "langgraph beside OpenInference": "ours, framework, peer",
    "smolagents beside OpenInference": "framework, peer, ours",
    "langgraph beside OpenLLMetry": "framework, peer, ours",
    "openai_agents beside OpenTelemetry's own": "ours, peer, framework",
    "pydantic_ai beside Logfire": "peer, ours, framework",
    "langgraph beside MLflow": "peer, ours, framework",
    "langgraph beside ddtrace": "ours, peer, framework",
    "langgraph beside LangSmith": "ours, framework, peer",
}


class Row(NamedTuple):
    """A framework beside another instrumentation.

    ``traces`` is how the scopes of the other's spans begin, empty where they are not OpenTelemetry's. ``variables`` are
    set from the start. ``provides`` is true where the other sets the providers. ``span`` and ``scope`` are of the span
    that has the numbers of a call, where that is not the same as without the other. ``root`` is the span of a run where
    this package opens one, ``roots`` those of other cases. ``asks`` is false where another program sends the model's
    requests. ``error`` is what the other's span says of an exception, in words of its own; ``is_inner`` is true where
    that span ends before the framework makes a text of the exception. ``ends_cancelled`` is true where it ends as
    failed when the call is cancelled. ``timed`` is true where the other has the histogram of durations. ``lost`` names
    the cases whose span the other never ends: only the metrics have these calls. ``endings`` are what the names of the
    other's spans have behind ``span``. ``inner`` is the other's span inside of this package's, in which the tool's own
    spans are.
    """

    peer: str
    environment: str
    contract: type[Contract]
    switches: tuple[str, ...]
    distributions: tuple[str, ...]
    traces: str
    variables: dict[str, str] = {}  # noqa: RUF012 - never changed
    provides: bool = False
    span: str = ""
    scope: str = ""
    root: str | None = None
    roots: dict[str, str] = {}  # noqa: RUF012 - never changed
    asks: bool = True
    error: str = ""
    is_inner: bool = False
    ends_cancelled: bool = False
    timed: bool = False
    lost: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    inner: str = ""
    orders: tuple[str, ...] = tuple(ORDERS)

    @property
    def title(self) -> str:
        """Names of both."""
        return f"{self.contract.agent} beside {self.peer}"

    @property
    def key(self) -> str:
        """Name of the row, also where two rows share a pair."""
        return f"{self.title}, {self.distributions[0]}: {self.orders[0]}"

    @property
    def framework(self) -> str:
        """The framework's distribution."""
        name = list(self.contract.integrations)[-1]
        return next(each.distribution for each in INTEGRATIONS if each.name == name)

    @property
    def in_ci(self) -> tuple[str, ...]:
        """The order that CI runs, where it runs one."""
        return tuple(order for order in self.orders if _IN_CI.get(self.title) == order)
