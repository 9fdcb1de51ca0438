"""Agents on Temporal whose tools are activities: dynamic ones with results in prompts, and those of the plug-in.

``temporal_tools.py ADDRESS BASE_URL KIND``; prints the tools' series and spans as JSON.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,unused-ignore"
# The SDKs are not installed where types are checked.

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence  # noqa: TC003 - Temporal reads the annotations
from datetime import timedelta
from typing import Any

import openai
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RawValue  # noqa: TC002 - as above
from temporalio.worker import Worker

TIMEOUT = timedelta(seconds=30)


def found(name: str, to: str) -> dict[str, Any]:
    """Return what a tool finds."""
    return {"tool": name, "rows": [f"{name} number {n} in {to} costs {n * 17} dollars" for n in range(40)]}


@activity.defn(dynamic=True)
async def tool(args: Sequence[RawValue]) -> dict[str, Any]:
    """Run the tool that the activity is named after."""
    given = activity.payload_converter().from_payload(args[0].payload, dict)
    return found(activity.info().activity_type, given["to"])


@activity.defn
async def search_flights(to: str) -> str:
    """Search flights."""
    return "\n".join(found("flight", to)["rows"])


@activity.defn
async def plan(prompt: str) -> str:
    """Ask the model."""
    client = openai.AsyncOpenAI(base_url=sys.argv[2], api_key="scripted", max_retries=0)
    answer = await client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": prompt}])
    return answer.choices[0].message.content or ""


@activity.defn
async def audit(_: str) -> str:
    """Return what no request holds."""
    return "nobody reads these words of the audit trail"


@workflow.defn(sandboxed=False)
class Travel:
    """A loop whose prompts hold the results as JSON."""

    @workflow.run
    async def run(self, to: str) -> str:
        """Call two tools in turn."""
        history = [f"user: I want to go to {to}"]
        for name in ("flights", "hotels", "flights"):
            await workflow.execute_activity(plan, "\n".join(history), start_to_close_timeout=TIMEOUT)
            await workflow.execute_activity(audit, to, start_to_close_timeout=TIMEOUT)
            made = await workflow.execute_activity(name, {"to": f"{to} {len(history)}"}, start_to_close_timeout=TIMEOUT)
            history.append("tool: " + json.dumps(made))
        return str(await workflow.execute_activity(plan, "\n".join(history), start_to_close_timeout=TIMEOUT))


async def run_dynamic() -> None:
    """Run the loop."""
    client = await Client.connect(sys.argv[1])
    async with Worker(client, task_queue="t", workflows=[Travel], activities=[tool, plan, audit]):
        await client.execute_workflow(Travel.run, "Rome", id="travel", task_queue="t")


@workflow.defn(sandboxed=False)
class Support:
    """An agent of OpenAI's SDK."""

    @workflow.run
    async def run(self, to: str) -> str:
        """Run the agent."""
        import agents
        from temporalio.contrib import openai_agents

        made = openai_agents.workflow.activity_as_tool(search_flights, start_to_close_timeout=TIMEOUT)
        agent = agents.Agent(name="support", model="scripted", tools=[made])
        return str((await agents.Runner.run(agent, to)).final_output)


async def run_plugin() -> None:
    """Run an agent of OpenAI's SDK through Temporal's plug-in."""
    import agents
    from temporalio.contrib import openai_agents

    class Provider(agents.ModelProvider):  # type: ignore[misc]
        def get_model(self, _: str | None) -> Any:
            client = openai.AsyncOpenAI(base_url=sys.argv[2], api_key="scripted", max_retries=0)
            return agents.OpenAIChatCompletionsModel("scripted", client)

    timeouts = openai_agents.ModelActivityParameters(start_to_close_timeout=TIMEOUT)
    plugin = openai_agents.OpenAIAgentsPlugin(model_params=timeouts, model_provider=Provider())
    client = await Client.connect(sys.argv[1], plugins=[plugin])
    async with Worker(client, task_queue="t", workflows=[Support], activities=[search_flights]):
        await client.execute_workflow(Support.run, "Rome", id="support", task_queue="t")


def main() -> None:
    """Run an agent, and print what was counted of its tools."""
    from tests.contract.child import Telemetry

    telemetry = Telemetry()
    asyncio.run({"dynamic": run_dynamic, "plugin": run_plugin}[sys.argv[3]]())
    from agent_otel._internal import errors

    print(json.dumps([telemetry.metrics(), telemetry.spans(), dict(errors.errors)]))
    sys.stdout.flush()
    os._exit(0)  # the SDK's threads often abort a Python that ends right after its last worker


if __name__ == "__main__":
    main()
