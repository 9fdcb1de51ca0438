"""The hostile results of ``program``, returned by LangChain tools; prints what an agent would see of them."""

# In its environment the framework is there, and where types are checked it is not.
# mypy: disable-error-code="import-not-found,untyped-decorator,unused-ignore"

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

from langchain_core.tools import tool

program = runpy.run_path(str(Path(__file__).parent / "program.py"))


@tool
def give(what: str) -> Any:
    """Return something nasty."""
    return program["RESULTS"][what]()


def seen(name: str, call: Any) -> str:
    """What comes of a call: a message's text, a value's kind, or the exception."""
    try:
        result = give.invoke(call)
    except Exception as error:
        return f"{type(error).__name__}: {type(error.__cause__).__name__}"
    content = getattr(result, "content", None) if type(result).__name__ == "ToolMessage" else None
    if name in ("generator", "hostile", "hostile_inside"):  # their text has addresses in it
        return type(result).__name__
    return f"{len(content)} characters" if isinstance(content, str) else str(program["describe"](result))


# Text of a billion leaves, or of a hundred thousand levels, is more than LangChain itself can make.
NAMES = [name for name in program["RESULTS"] if name not in ("shared_dag", "deep")]
calls = {name: {"name": "give", "args": {"what": name}, "id": f"call_{name}", "type": "tool_call"} for name in NAMES}
print(json.dumps({name: [seen(name, {"what": name}), seen(name, calls[name])] for name in NAMES}, indent=0))
