"""The table of settings: name, variable, type, default, meaning. ``docs/settings.md`` is generated from it.

For an invalid value, one warning is logged and the default applies; no exception is raised.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.settings import checks as setting_checks
from agent_otel.settings.kinds import (
    CEILING,
    COUNT,
    ENCRYPTION_KEYS,
    KEYS,
    LIMIT,
    PATTERN,
    SECONDS,
    STORE,
    SWITCH,
    TEXT,
    setting,
)
from agent_otel.settings.telemetry import TelemetrySettings

if TYPE_CHECKING:
    from collections.abc import Mapping


#: The variable of the switch, which `agent_otel._bootstrap.startup` reads at interpreter start.
_SWITCH = "AGENT_OTEL"
_CLAIMS = ("AGENT_OTEL_CLAIM_CHECK",)
_SUMMARIES = ("AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS",)


@dataclass(frozen=True, init=False, repr=False, eq=False, slots=True)
class Settings(TelemetrySettings):
    """All settings, read from the environment at first use. Sizes are bytes."""

    result_ceiling_bytes: int | None = setting(
        "AGENT_OTEL_RESULT_CEILING_BYTES",
        CEILING,
        None,
        "A result above this size is withheld: the model gets the error `result_too_large` with a hint in its place. "
        "`auto` is the limit of the weakest layer on the result's way: the room that is left in the durable runtime's "
        "payload, the framework's own limit, or half of what is left of the model's context window; nothing is "
        "withheld where no limit is known.",
    )
    mcp_result_characters: int | None = setting(
        "AGENT_OTEL_MCP_RESULT_CHARACTERS",
        LIMIT,
        None,
        "MCP servers in this process announce this length, of at most 500,000 characters, with each tool "
        "(`anthropic/maxResultSizeChars`): Claude Code passes results up to it on to its model whole.",
    )
    claim_check: str = setting(
        "AGENT_OTEL_CLAIM_CHECK",
        STORE,
        "",
        "The store that large results go to; the model gets the beginning and a reference.",
    )
    claim_check_bytes: int = setting(
        "AGENT_OTEL_CLAIM_CHECK_BYTES",
        LIMIT,
        32 * 1024,
        "A result above this size is stored, and the model gets so much: its beginning, and a line about the rest.",
        needs=_CLAIMS,
    )
    claim_check_max_bytes: int = setting(
        "AGENT_OTEL_CLAIM_CHECK_MAX_BYTES",
        LIMIT,
        32 * 1024 * 1024,
        "A result above this size is not stored: it is neither hashed nor serialised.",
        needs=_CLAIMS,
    )
    claim_check_ttl_seconds: float = setting(
        "AGENT_OTEL_CLAIM_CHECK_TTL",
        SECONDS,
        86_400.0,
        "Seconds that a result is kept after a write.",
        needs=(*_CLAIMS, *_SUMMARIES),
    )
    claim_check_budget_seconds: float = setting(
        "AGENT_OTEL_CLAIM_CHECK_BUDGET",
        SECONDS,
        0.25,
        "Seconds that a tool call waits for the store.",
        needs=(*_CLAIMS, *_SUMMARIES),
    )
    claim_check_floor_bytes: int = setting(
        "AGENT_OTEL_CLAIM_CHECK_FLOOR_BYTES",
        LIMIT,
        8 * 1024,
        "While a durable runtime's payload has room for 10 more turns, the model gets no less than this of a result.",
        needs=_CLAIMS,
    )
    claim_check_tool: bool = setting(
        "AGENT_OTEL_CLAIM_CHECK_TOOL",
        SWITCH,
        True,
        "Offer the tool `get_tool_result` in each model request that holds a reference, and answer its calls. `off` "
        "where the model is to read on in another way, or not at all; the text that it gets then names no tool.",
        needs=(*_CLAIMS, *_SUMMARIES),
    )
    claim_check_key: str = setting(
        "AGENT_OTEL_CLAIM_CHECK_KEY",
        KEYS,
        "",
        "The secret that references are bound to. To change it, set `new,old`: the first is used, the others are still "
        "accepted. Without one, a reference can be resolved only by the process that made it.",
    )
    claim_check_tenant: str = setting(
        "AGENT_OTEL_CLAIM_CHECK_TENANT",
        TEXT,
        "",
        "The tenant that results belong to, where several share a store and a key: it stands in every key and enters "
        "every seal, so that none reads or replaces another's.",
    )
    claim_check_encryption_key: str = setting(
        "AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY",
        ENCRYPTION_KEYS,
        "",
        "What is stored is encrypted with AES-GCM, and nothing else is read. To change it, set `new,old`; `new,plain` "
        "also reads what was stored before there was a key. Needs `agent-otel[encryption]`.",
    )

    max_tool_calls: int | None = setting(
        "AGENT_OTEL_MAX_TOOL_CALLS",
        COUNT,
        None,
        "Tool calls of one execution. A call above it is not run; the next request asks the model for its answer, and "
        "lets it call no tool.",
    )
    max_conversation_tool_calls: int | None = setting(
        "AGENT_OTEL_MAX_TOOL_CALLS_PER_CONVERSATION",
        COUNT,
        None,
        "The same for all executions of a conversation, the framework's thread or session, in one process.",
    )
    max_parallel_tool_calls: int | None = setting(
        "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS",
        COUNT,
        None,
        "Tool calls of one execution that run at the same time; further ones wait for their turn.",
    )
    max_result_bytes: int | None = setting(
        "AGENT_OTEL_MAX_RESULT_BYTES",
        LIMIT,
        None,
        "What the results of one execution may come to; once that is reached no further call is run.",
    )
    max_result_tokens: int | None = setting(
        "AGENT_OTEL_MAX_RESULT_TOKENS",
        COUNT,
        None,
        "The same in tokens: characters ÷ 4, or what `agent_otel.remedies.token_counter` was given.",
    )

    max_execution_tokens: int | None = setting(
        "AGENT_OTEL_EXECUTION_TOKENS",
        COUNT,
        None,
        "Tokens of one execution's model requests and their responses, as providers report them; once they are used, "
        "no further tool call is run, and the next request asks the model for its answer.",
    )
    tokens_per_minute: int | None = setting(
        "AGENT_OTEL_TOKENS_PER_MINUTE",
        COUNT,
        None,
        "Tokens of all model requests of this process and their responses in a minute. Tool calls and model requests "
        "wait until there are enough, and as long as a provider's `retry-after` demands.",
    )

    answer_retries: bool = setting(
        "AGENT_OTEL_ANSWER_RETRIES",
        SWITCH,
        False,
        "Results of calls within a durable runtime's step are stored; when the runtime retries the step, a call with "
        "the same arguments gets its result from the store and is not made again.",
        needs=_CLAIMS,
    )
    tool_policy: str = setting(
        "AGENT_OTEL_TOOL_POLICY",
        TEXT,
        "",
        "The TOML file with the dispatch policy: the tools that each workflow and agent may call, with which "
        "arguments; every other call is denied before its handler runs. `code`: the program gives the policy to "
        "`agent_otel.remedies.use_policy`. See [dispatch policy](dispatch-policy.md).",
    )
    tool_policy_strict: bool = setting(
        "AGENT_OTEL_TOOL_POLICY_STRICT",
        SWITCH,
        False,
        "Refuse what the policy does not act on: calls of `agent_otel.tool` while the package is off, and the import "
        "of a framework that is disabled or in an unknown version.",
        needs=("AGENT_OTEL_TOOL_POLICY",),
    )

    trim_results: bool = setting(
        "AGENT_OTEL_TRIM_RESULTS",
        SWITCH,
        False,
        "In requests to models, results of old turns become one line each; the stored history is not touched.",
    )
    compact_arguments: bool = setting(
        "AGENT_OTEL_COMPACT_ARGUMENTS",
        SWITCH,
        False,
        "In requests to models, long arguments of calls that have their result become a marker, from the first request "
        "that carries the result on.",
    )
    deduplicate_history: bool = setting(
        "AGENT_OTEL_DEDUPLICATE_HISTORY",
        SWITCH,
        False,
        "In requests to models, messages that stand there twice, by their ids, are sent once.",
    )
    keep_turns: int = setting(
        "AGENT_OTEL_KEEP_TURNS",
        COUNT,
        2,
        "The last turns, whose results are always sent whole.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_step_turns: int = setting(
        "AGENT_OTEL_TRIM_STEP_TURNS",
        COUNT,
        5,
        "Turns whose results become lines together, where the provider caches the messages: a cache ends at the first "
        "changed byte. Where it does not, each turn's results become lines by themselves.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_characters: int = setting(
        "AGENT_OTEL_TRIM_CHARACTERS",
        COUNT,
        150,
        "How much of a result's beginning its line keeps.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_reference_characters: int = setting(
        "AGENT_OTEL_TRIM_REFERENCE_CHARACTERS",
        COUNT,
        600,
        "How much of the references to other data the line of a result keeps beside its beginning; references of the "
        "claim check do not count.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_references: str = setting(
        "AGENT_OTEL_TRIM_REFERENCES",
        PATTERN,
        "",
        "What else counts as a reference that a line keeps, such as `TICKET-\\d+`, besides ids, URLs, paths and claim "
        "checks.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )

    summarize_above_tokens: int | None = setting(
        "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS",
        COUNT,
        None,
        "A model request with more input tokens goes out with a summary of its old messages, which the agent's own "
        "model makes, or `agent_otel.remedies.use_summarizer`. The stored history is not touched.",
    )
    summarize_target_tokens: int | None = setting(
        "AGENT_OTEL_SUMMARIZE_TARGET_TOKENS",
        COUNT,
        None,
        "The tokens of a request with a new summary; by default half of AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS.",
        needs=_SUMMARIES,
    )
    summarize_chunk_tokens: int = setting(
        "AGENT_OTEL_SUMMARIZE_CHUNK_TOKENS",
        COUNT,
        8_000,
        "How much of a transcript the model gets at once; the summaries of several pieces are merged.",
        needs=_SUMMARIES,
    )
    summarize_model: str = setting(
        "AGENT_OTEL_SUMMARIZE_MODEL",
        TEXT,
        "",
        "The model that summarises, of the same provider; by default the agent's own.",
        needs=_SUMMARIES,
    )
    summarize_timeout_seconds: float = setting(
        "AGENT_OTEL_SUMMARIZE_TIMEOUT",
        SECONDS,
        60.0,
        "Seconds that a request waits for its summary; after that it goes out as it is.",
        needs=_SUMMARIES,
    )

    @property
    def rewrites(self) -> bool:
        """Return true when a remedy that rewrites model requests is on."""
        return self.views or bool(self.limits)

    @property
    def views(self) -> bool:
        """Return true when a view of the history is on."""
        return self.trim_results or self.compact_arguments or self.deduplicate_history

    @property
    def limits(self) -> dict[str, int]:
        """Return the maxima of an execution by the limits' names in ``semconv``; none by default."""
        maxima = {
            semconv.LIMIT_TOOL_CALLS: self.max_tool_calls,
            semconv.LIMIT_CONVERSATION: self.max_conversation_tool_calls,
            semconv.LIMIT_BYTES: self.max_result_bytes,
            semconv.LIMIT_TOKENS: self.max_result_tokens,
            semconv.LIMIT_EXECUTION: self.max_execution_tokens,
        }
        return {limit: maximum for limit, maximum in maxima.items() if maximum is not None}

    @property
    def dispatch_waits(self) -> bool:
        """Return true when tool calls may wait before their dispatch."""
        return self.max_parallel_tool_calls is not None or self.tokens_per_minute is not None

    @property
    def remedies(self) -> tuple[str, ...]:
        """Return the remedies that may replace a result, as truncation reasons of ``semconv``; none by default."""
        ceiling = (semconv.CEILING,) if self.result_ceiling_bytes is not None else ()
        return (*ceiling, semconv.CLAIM_CHECK) if self.claim_check else ceiling


def load(environ: Mapping[str, str]) -> Settings:
    """Read the settings from a mapping; log one warning for each bad value, unknown name and conflict."""
    values: dict[str, Any] = {}
    refused: dict[str, bool] = {}
    rows = {item.metadata["variable"]: item for item in fields(Settings)}
    for variable, item in rows.items():
        given = environ.get(variable, "")
        # A blank policy is a path that cannot be read: it denies all calls, and does not switch the policy off.
        text = given if variable == "AGENT_OTEL_TOOL_POLICY" and not given.strip() else given.strip()
        if not text:
            continue
        try:
            values[variable] = item.metadata["kind"].parse(text)
        except errors.ours(ValueError) as error:
            default = "it stays unset" if item.default in (None, "", frozenset()) else f"using {item.default!r}"
            if item.metadata["narrows"]:
                refused[item.metadata["narrows"]] = False
                default = "no content is captured"
            shown = variable if item.metadata["kind"].is_secret else f"{variable}={text!r}"
            errors.warn_once(f"setting {variable}", f"{shown} is not {error}; {default}")
    setting_checks.names(environ, {_SWITCH, *rows})
    setting_checks.needs(values, {variable: item.metadata["needs"] for variable, item in rows.items()})
    by_field = {rows[variable].name: value for variable, value in values.items()}
    chosen = Settings(**by_field | refused)
    return replace(
        chosen,
        **setting_checks.corrections({item.name: getattr(chosen, item.name) for item in fields(chosen)}, by_field),
    )


@functools.lru_cache(maxsize=1)
def current() -> Settings:
    """Return the settings of this process, read from ``os.environ`` once, at first use."""
    return load(os.environ)
