"""The tool runner of OpenAI's SDK."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import failed, looked_up
from tests.contract.delivery import WHOLE, Delivery


class TestOpenAIRunner(Delivery):
    """openai 3.52, whose runner ends at the first exception of a function."""

    agent = "openai_runner"
    environment = "openai-agents"
    integrations: ClassVar = {
        "openai": [
            "openai._base_client:SyncAPIClient.request",
            "openai.lib.responses_tool_runner:ResponsesToolRunner._execute_function",
        ],
    }
    has_runs = True
    run_span = "invoke_agent"
    outer = False
    own: ClassVar = {
        "two megabytes": WHOLE,
        "contents": looked_up("contents", "call_23"),
        # The runner raises an exception of its own, which names no cause.
        "raises in async": failed("broken_later", "call_5", said=None, unsent=("call_5",)),
        "raises in sync": failed("broken", "call_6", "sync", said=None, unsent=("call_6",)),
    }


del Delivery
