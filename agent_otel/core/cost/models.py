"""Windows and prices of models: the program's setting, else the table of genai-prices, read when a model is first used.

A program that has loaded genai-prices has the table. For others, a setting has another interpreter read it, because it
takes seconds and memory; a thread waits for it.
"""

from __future__ import annotations

import atexit
import functools
import json
import logging
import os
import sys
import threading
import time
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import settings
from agent_otel._internal import errors, fork
from agent_otel._internal.daemon_pool import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel._internal.daemon_pool import Job
    from agent_otel.core.cost.usage import Usage

_MOST_MODELS: Final = 256
_MOST_WAITING: Final = 256
_PATIENCE_SECONDS: Final = 120.0
#: Time for which the end of the process waits for prices of the last requests.
_EXIT_SECONDS: Final = 5.0
_TABLE: Final = "genai_prices.data"
_PROGRAM: Final = (
    "import runpy, sys; sys.path[:] = sys.argv[1].split('\\n'); runpy.run_path(sys.argv[2], {}, '__main__')"
)


class Rates(NamedTuple):
    """US dollars for a token that is input, read from the cache, written to it, and output.

    ``audio``, ``spoken`` and ``cached_audio`` are those for audio in a request, in its response and in the cache, None
    where they cost what text does.
    """

    input: float
    cached: float
    written: float
    output: float
    audio: float | None = None
    spoken: float | None = None
    cached_audio: float | None = None

    def cost(self, usage: Usage) -> tuple[float, float]:
        """Return the US dollars of a request's input and of its output."""
        rest = usage.input - usage.cached - usage.written
        read = rest * self.input + usage.cached * self.cached + usage.written * self.written
        wrote = usage.output * self.output
        if usage.audio and self.audio is not None:
            read += max(min(usage.audio - usage.cached_audio, rest), 0) * (self.audio - self.input)
        if usage.cached_audio and self.cached_audio is not None:
            read += min(usage.cached_audio, usage.cached) * (self.cached_audio - self.cached)
        if usage.spoken and self.spoken is not None:
            wrote += min(usage.spoken, usage.output) * (self.spoken - self.output)
        return max(read, 0.0), wrote


class ModelFacts(NamedTuple):
    """The window of a model in tokens, and its prices; None and empty where they are unknown.

    A tier holds the input tokens above which it applies to all tokens, and the fields of `Rates`.
    """

    window: int | None = None
    tiers: tuple[tuple[float, ...], ...] = ()

    def cost(self, usage: Usage) -> tuple[float, float] | None:
        """Return the US dollars of a request's input and output; None for a model without prices."""
        rates = self.rates(usage)
        return None if rates is None else rates.cost(usage)

    def rates(self, usage: Usage) -> Rates | None:
        """Return the prices of a request's tokens; None for a model without prices."""
        if not self.tiers:
            return None
        tier = self.tiers[0]
        for each in self.tiers[1:]:
            if usage.input > each[0]:
                tier = each
        return Rates(*tier[1:])


UNKNOWN: Final = ModelFacts()


class Models:
    """Windows and prices of the models in use."""

    def __init__(self) -> None:
        self._workers = Workers("models", 1)
        self.reset()

    def reset(self) -> None:
        """Forget all models and what waits for them, for a forked child, in which the thread does not run."""
        self._lock = threading.Lock()
        self._known: dict[str, ModelFacts] = {}
        self._waiting: dict[str, list[Callable[[ModelFacts], None]]] = {}
        self._jobs: list[Job[None]] = []
        self._drains_at_exit = False

    def when_known(self, model: str | None, use: Callable[[ModelFacts], None]) -> None:
        """Call ``use`` with the model's facts: at once if they are known, else in a thread."""
        facts = UNKNOWN if model is None else self._known.get(model)
        if facts is None and model is not None:
            facts = self._ask(model, use)
        if facts is not None:
            use(facts)

    def when_answered(self, model: str | None, answered_by: str | None, use: Callable[[ModelFacts], None]) -> None:
        """Do the same; a model without a price, such as a deployment, has that of the model that its response names.

        A fine-tuned model has none, because its tokens cost more than those of the model below it.
        """

        def combined(facts: ModelFacts) -> None:
            window = facts.window
            if facts.tiers:
                use(facts)
            else:
                self.when_known(answered_by, lambda named: use(ModelFacts(window or named.window, named.tiers)))

        is_priced_alone = answered_by in {None, model} or (model or "").rpartition("/")[2].startswith("ft:")
        self.when_known(model, use if is_priced_alone else combined)

    def _ask(self, model: str, use: Callable[[ModelFacts], None]) -> ModelFacts | None:
        """Return the facts, or None when ``use`` will be called with them."""
        with self._lock:
            if model in self._known or len(self._known) >= _MOST_MODELS:
                return self._known.get(model, UNKNOWN)
            waiting = self._waiting.get(model)
            if waiting is not None:
                if len(waiting) >= _MOST_WAITING:
                    return UNKNOWN
                waiting.append(use)
                return None
            if not (_TABLE in sys.modules or (settings.current().model_prices and _is_installed())):
                return ModelFacts(configured().get(model))
            self._waiting[model] = [use]
            if not self._drains_at_exit:
                # Registered after the providers' own, this runs before them.
                atexit.register(self._at_exit)
                self._drains_at_exit = True
        job = self._workers.submit(functools.partial(self._read, model))
        self._jobs = [*(other for other in self._jobs if not other.done()), job]
        return None

    def drain(self, seconds: float) -> None:
        """Wait for facts that are being read; what waits for them has been called then."""
        until, waited = time.monotonic() + seconds, None
        while self._jobs is not waited:  # one that is done may have asked for another model
            waited = self._jobs
            futures.wait(waited, max(until - time.monotonic(), 0.0))

    @errors.guarded("models.exit")
    def _at_exit(self) -> None:
        self.drain(_EXIT_SECONDS)

    def _read(self, model: str) -> None:
        try:
            facts = read_facts(model)
        except errors.ours(Exception):
            errors.report_error("models.read")
            facts = ModelFacts(configured().get(model))
        with self._lock:
            self._known[model] = facts
            waiting = self._waiting.pop(model, [])
        for use in waiting:
            with errors.reported("models.use"):
                use(facts)


@functools.lru_cache(maxsize=1)
def configured() -> dict[str, int]:
    """Return the windows that the setting gives, by model."""
    return dict(settings.current().context_windows)


@functools.lru_cache(maxsize=1)
def _is_installed() -> bool:
    """Return true when genai-prices is installed; this loads nothing of it."""
    from importlib.util import find_spec  # noqa: PLC0415 - for the first request of the first model

    found = find_spec("genai_prices") is not None
    if not found:
        from agent_otel._internal.installing import installed_with  # noqa: PLC0415 - only for this message

        errors.warn_once("models table", f"AGENT_OTEL_MODEL_PRICES needs a package: {installed_with('prices')}")
    return found


def read_facts(model: str) -> ModelFacts:
    """Read the facts of a model from the table; a window of the setting goes before that of the table."""
    executable = Path(sys.executable or "").name
    if _TABLE in sys.modules or getattr(sys, "frozen", False) or not executable.startswith("python"):
        from agent_otel._internal import price_table  # noqa: PLC0415 - where the table is read

        found = price_table.read(model)
    else:
        found = _ask_other(model)
    window = configured().get(model)
    if found is None:
        return ModelFacts(window)
    return ModelFacts(found["window"] if window is None else window, tuple(tuple(tier) for tier in found["tiers"]))


def _ask_other(model: str) -> dict[str, Any] | None:
    import subprocess  # noqa: PLC0415 - for the first request of a model
    from importlib.metadata import version  # noqa: PLC0415

    errors.warn_once(
        "models table",
        f"Context windows and prices of models are those of genai-prices {version('genai-prices')}.",
        level=logging.INFO,
    )
    table = Path(__file__).parents[2] / "_internal" / "price_table.py"
    # Without site, which would switch instrumentation on in that interpreter.
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM, "\n".join(map(os.path.abspath, sys.path)), str(table), model]
    done = subprocess.run(  # noqa: S603 - this interpreter
        command, capture_output=True, check=True, timeout=_PATIENCE_SECONDS, stdin=subprocess.DEVNULL
    )
    found: dict[str, Any] | None = json.loads(done.stdout)
    return found


#: The models of this process.
models = Models()
fork.after_fork(models.reset)
