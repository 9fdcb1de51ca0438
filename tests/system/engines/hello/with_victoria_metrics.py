"""One tool call, whose metrics the product pushes as the environment says."""

import agent_otel


@agent_otel.tool
def hello(name: str) -> str:
    """Answer politely."""
    return f"Hello, {name}!"


hello("World")
