"""An agent of Browser Use, in a real Chromium without a screen."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

from browser_use import ActionResult, Agent, BrowserProfile, BrowserSession, Tools
from browser_use.llm import ChatOpenAI

from tests.contract import toolbox
from tests.system.engines import chromium

if TYPE_CHECKING:
    from collections.abc import Sequence

_sessions: list[Any] = []
# The agent collects garbage at the end of each run; it need not look through what all these imports have made.
gc.freeze()


async def _browser() -> Any:
    """Return the browser of all runs."""
    if not _sessions:
        browser = chromium.find()
        os.environ.update(browser.environ)
        profile = BrowserProfile(
            executable_path=browser.program,
            headless=True,
            keep_alive=True,
            chromium_sandbox=False,
            enable_default_extensions=False,
            highlight_elements=False,
            minimum_wait_page_load_time=0,
            wait_for_network_idle_page_load_time=0,
            wait_between_actions=0,
        )
        _sessions.append(BrowserSession(browser_profile=profile))
        await _sessions[0].start()
    return _sessions[0]


async def arun(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run the agent once."""
    own = Tools()
    for tool in tools:
        own.action(tool.__doc__)(tool)
    model = ChatOpenAI("scripted", base_url=base_url, api_key="scripted", max_retries=0)
    options = {"use_vision": False, "use_judge": False, "enable_planning": False, "max_failures": 1}
    agent = Agent(prompt, llm=model, tools=own, browser_session=await _browser(), **options)
    return str((await agent.run(max_steps=4)).final_result())


def big(n: int) -> str:
    """Return so many letters, with a blank behind each 500."""
    # The agent looks for addresses in what it sends: in a text without a blank that takes the square of its length.
    return (f"{'x' * 500} " * (n // 501 + 1))[:n]


def remembered(key: str) -> Any:
    """Look a record up, of which the model remembers the beginning."""
    return ActionResult(extracted_content=toolbox.lookup(key), long_term_memory=toolbox.lookup(key)[:200])


TOOLS: dict[str, Any] = {"big": big, "remembered": remembered}
