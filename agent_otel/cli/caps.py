"""``agent-otel caps``: the payload caps in the package's table."""

from __future__ import annotations

import click

from agent_otel.caps import payload_caps
from agent_otel.cli import console
from agent_otel.cli.console import Failure


@click.command("caps")
@click.argument("runtimes", nargs=-1, metavar="[RUNTIME]...")
@console.json_option
def command(runtimes: tuple[str, ...], *, is_json: bool) -> None:
    """Show the payload caps of durable runtimes, of all or of these. Sizes are bytes."""
    every = payload_caps()
    known = dict.fromkeys(cap.runtime for cap in every)
    unknown = [runtime for runtime in runtimes if runtime not in known]
    if unknown:
        hint = console.near(unknown[0], known)
        raise Failure(f"no caps are known of {', '.join(unknown)}; there are those of {', '.join(known)}.{hint}")
    chosen = [cap for cap in every if not runtimes or cap.runtime in runtimes]
    if is_json:
        console.as_json([cap._asdict() for cap in chosen])
        return
    rows = [
        (
            cap.runtime,
            cap.boundary,
            cap.variant,
            cap.versions,
            "none" if cap.bytes is None else f"{cap.bytes:,}",
            cap.confidence,
            cap.setting,
        )
        for cap in chosen
    ]
    console.table(("runtime", "boundary", "variant", "versions", "cap", "confidence", "changed by"), rows)
