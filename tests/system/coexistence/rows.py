"""The table of other instrumentations and the frameworks that they instrument, one row for each pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.contract.frameworks import test_langchain

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
#: Variable that has all rows run, in all orders.
EVERY = "AGENT_OTEL_TEST_COEXISTENCE"
#: The same program without this package.
ALONE = ("peer", "framework")


class Row(NamedTuple):
    """A framework beside another instrumentation.

    ``traces`` is how the scopes of the other's spans begin. ``scope`` and ``span`` are of the span that has the numbers
    of a call: this package's own, or the other's. ``root`` is the span of a run where this package opens one.
    """

    peer: str
    environment: str
    contract: type[Contract]
    switches: tuple[str, ...]
    distributions: tuple[str, ...]
    traces: str
    scope: str = "agent_otel"
    span: str = "execute_tool {tool}"
    root: str | None = None
    in_ci: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Names of both."""
        return f"{self.contract.agent} beside {self.peer}"


_OI = "openinference.instrumentation"

ROWS = (
    Row(
        "OpenInference",
        "peers-openinference",
        test_langchain.TestLangGraph,
        (f"{_OI}.langchain:LangChainInstrumentor", f"{_OI}.openai:OpenAIInstrumentor"),
        ("openinference-instrumentation-langchain", "langgraph"),
        f"{_OI}.langchain",
        in_ci=("ours, framework, peer",),
    ),
)
