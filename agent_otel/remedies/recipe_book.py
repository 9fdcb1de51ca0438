"""Recipes: for each kind of failure, the variables that mend it, their effect, and their traps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Recipe(NamedTuple):
    """A failure and its remedy.

    ``variables`` maps the variables to set to example values; the first is enough. ``page`` is the page in
    docs/remedies.
    """

    failure: str
    variables: Mapping[str, str]
    effect: str
    traps: tuple[str, ...]
    page: str


_RECIPES: Final = (
    Recipe(
        "A durable agent's state grows with every result until the runtime refuses it.",
        {
            "AGENT_OTEL_CLAIM_CHECK": "redis://…",
            "AGENT_OTEL_CLAIM_CHECK_KEY": "$(openssl rand -base64 32)",
            "AGENT_OTEL_CLAIM_CHECK_BYTES": "32KiB",
            "AGENT_OTEL_CLAIM_CHECK_TOOL": "on",
        },
        "A large result goes to the store. The model gets its beginning, a reference, and a tool to read on with. "
        "Calls of that tool are answered below the program.",
        (
            "Without AGENT_OTEL_CLAIM_CHECK_KEY only the process that stored a result can read it.",
            "A result needs an owner: `agent_otel.execution`, a durable run, or the framework's thread or session.",
            "A state that keeps its own copy of each result holds two views; keep `LeanRecord` in its place.",
            "Pages that a model reads are in that request only: a later turn reads them again.",
        ),
        "claim-check",
    ),
    Recipe(
        "A layer cuts a result, and the model answers from half of a document.",
        {"AGENT_OTEL_RESULT_CEILING_BYTES": "auto"},
        "A result above the limit of the weakest layer is withheld. The model gets an error with a hint in its place.",
        (
            "`auto` withholds nothing where no limit is in the package's tables; set a size there.",
            "A hint of your own (`agent_otel.remedies.result_hint`) is better than the one made from the parameters.",
        ),
        "ceiling",
    ),
    Recipe(
        "An agent calls tools for ever.",
        {"AGENT_OTEL_MAX_TOOL_CALLS": "40", "AGENT_OTEL_MAX_RESULT_TOKENS": "100000"},
        "Calls above a limit are not run, and the model is asked to answer with what it has.",
        ("A limit counts for one execution; `agent_otel.execution` names it where no framework does.",),
        "limits",
    ),
    Recipe(
        "A transcript outgrows the model's context window, or its price.",
        {"AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": "100000", "AGENT_OTEL_SUMMARIZE_TARGET_TOKENS": "40000"},
        "A longer request goes out with a summary of its old messages by the agent's own model. The originals are read "
        "with a tool.",
        (
            "Without AGENT_OTEL_CLAIM_CHECK the originals are lost at the end of the process.",
            "A request waits for its summary; AGENT_OTEL_SUMMARIZE_TIMEOUT limits the wait.",
            "A conversation that the provider keeps (`previous_response_id`) has nothing to summarise.",
        ),
        "summarised-history",
    ),
    Recipe(
        "Every request sends the results of old turns again.",
        {"AGENT_OTEL_TRIM_RESULTS": "1", "AGENT_OTEL_KEEP_TURNS": "2", "AGENT_OTEL_DEDUPLICATE_HISTORY": "1"},
        "In requests, results of old turns become one line each, with their status and their references.",
        (
            "A prompt cache ends at the first changed byte: AGENT_OTEL_TRIM_STEP_TURNS moves the cut in steps.",
            "A conversation that the provider keeps (`previous_response_id`) has nothing to trim.",
        ),
        "views",
    ),
    Recipe(
        "The arguments of completed calls, such as whole files, are sent again with every request.",
        {"AGENT_OTEL_COMPACT_ARGUMENTS": "1"},
        "In requests, long arguments of completed calls become a marker, from the first request with their result on.",
        ("A model that is to see its own arguments again has to read the file.",),
        "views",
    ),
)


def recipes() -> tuple[Recipe, ...]:
    """Return the recipes, in the order of the systems in docs/evidence/systems.md."""
    return _RECIPES
