"""The loop of Mistral's client over a conversation."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mistralai.extra.run.context import RunContext

try:
    from mistralai.client import Mistral
except ImportError:
    from mistralai import Mistral

if TYPE_CHECKING:
    from collections.abc import Sequence


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    async with (
        Mistral(api_key="scripted", server_url=base_url) as client,
        RunContext(model="scripted", continue_on_fn_error=setting != "ends") as context,
    ):
        for tool in tools:
            context.register_func(tool)
        return str((await client.beta.conversations.run_async(run_ctx=context, inputs=prompt)).output_as_text)
