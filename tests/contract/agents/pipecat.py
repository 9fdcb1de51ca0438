"""A pipeline of Pipecat: a conversation, a model and handlers of tools, in text."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    EndFrame,
    FunctionCallResultProperties,
    LLMFullResponseEndFrame,
    LLMRunFrame,
    LLMTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.workers.runner import WorkerRunner

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

logger.remove()
TYPES = {"str": "string", "int": "integer"}


class Listener(FrameProcessor):
    """What hears the model's text."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.has_heard = asyncio.Event()

    async def process_frame(self, frame: Any, direction: Any) -> None:
        """Keep the text of a frame, and hand it on."""
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            self.text += frame.text
        if isinstance(frame, LLMFullResponseEndFrame) and self.text:
            self.has_heard.set()
        await self.push_frame(frame, direction)


def native(function: Callable[..., Any]) -> Any:
    """Return a handler that reports what the function returns."""

    async def handler(params: Any) -> None:
        if function is steps:
            await params.result_callback("half", properties=FunctionCallResultProperties(is_final=False))
        result = function(**params.arguments)
        await params.result_callback(await result if inspect.isawaitable(result) else result)

    return handler


def schema(function: Callable[..., Any]) -> FunctionSchema:
    """Return the definition of a tool."""
    parameters = inspect.signature(function).parameters
    properties = {name: {"type": TYPES[each.annotation]} for name, each in parameters.items()}
    return FunctionSchema(function.__name__, function.__doc__ or "", properties, list(properties))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run a pipeline until the model has said something."""
    del setting
    model = OpenAILLMService(
        api_key="scripted", base_url=base_url, settings=OpenAILLMService.Settings(model="scripted")
    )
    for tool in tools:
        model.register_function(tool.__name__, native(tool), cancel_on_interruption=tool is not steps)
    definitions = ToolsSchema(standard_tools=[schema(tool) for tool in tools])
    pair = LLMContextAggregatorPair(LLMContext([{"role": "user", "content": prompt}], tools=definitions))
    listener = Listener()
    worker = PipelineWorker(
        Pipeline([pair.user(), model, listener, pair.assistant()]), cancel_on_idle_timeout=False, enable_rtvi=False
    )
    started = asyncio.Event()

    @worker.event_handler("on_pipeline_started")
    async def _(*_: Any) -> None:
        started.set()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.ensure_future(runner.run())
    await started.wait()
    await worker.queue_frame(LLMRunFrame())
    try:
        await asyncio.wait_for(listener.has_heard.wait(), 30)
        return listener.text
    finally:
        await worker.queue_frame(EndFrame())
        await running


def steps(key: str) -> str:
    """Look a record up, and report that half is done before."""
    return toolbox.lookup(key)


TOOLS: dict[str, Any] = {"steps": steps}
