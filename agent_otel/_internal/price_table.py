"""Windows and prices of models in the table of genai-prices, one model at a time.

The table takes seconds to read and up to 100 MB, most of it for a moment. So another interpreter runs this file as a
program; it imports nothing of this package. Prices of a model are seven rates for each of its tiers.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from typing import Any, Final

from agent_otel._internal.errors import ours

_COUNT: Final = 1_000_000
#: Beginnings of Bedrock's model ids: inference profiles by region, and vendors.
_BEDROCK: Final = ("us", "eu", "apac", "global", "anthropic", "amazon", "meta", "mistral", "cohere", "deepseek", "ai21")


def read(model: str) -> dict[str, Any] | None:
    """Return the window and the tiers of a model; None for a model that the table does not have.

    A tier holds the input tokens above which it applies, and US dollars for a token that is input, read from the
    cache, written to it, output, audio of the input, audio of the output, and audio read from the cache.
    """
    snapshot = importlib.import_module("genai_prices.data_snapshot").get_snapshot()  # optional, and slow
    base = model.rpartition("/")[2].split(":")
    if base[0] == "ft" and len(base) > 1:
        found = read(base[1])  # the window is that of the base model; the prices are not
        return None if found is None else {**found, "tiers": []}
    for name, provider in _candidates(model):
        try:
            owner, found = snapshot.find_provider_model(name, None, provider, None)
        except ours(LookupError):
            continue
        alone = dataclasses.replace(snapshot, providers=[dataclasses.replace(owner, models=[found])])
        return {"window": found.context_window, "tiers": _tiers(alone, name, provider)}
    return None


def _candidates(model: str) -> list[tuple[str, str | None]]:
    """Return the names under which the table may have a model: as it is, and without a router's prefix."""
    names: list[tuple[str, str | None]] = [(model, None)]
    last = model.rpartition("/")[2]
    if model.partition(".")[0] in _BEDROCK or last.partition(".")[0] in _BEDROCK:
        names.append((last, "aws"))
    if last != model:
        names.append((last, None))
    return names


def _tiers(snapshot: Any, model: str, provider: str | None) -> list[list[float]]:
    usage = importlib.import_module("genai_prices").Usage

    def price(**tokens: int) -> Any:
        return snapshot.calc(usage(**tokens), model, provider, None, None)

    try:
        prices = vars(price(input_tokens=1).model_price).values()
        starts = sorted({0} | {tier.start for each in prices for tier in getattr(each, "tiers", ())})
        tiers = []
        for start in starts:
            count = start + 1
            whole = price(input_tokens=count).input_price
            cached = price(input_tokens=count, cache_read_tokens=count).input_price
            written = price(input_tokens=count, cache_write_tokens=count).input_price
            output = price(input_tokens=count, output_tokens=_COUNT).output_price
            audio = price(input_tokens=count, input_audio_tokens=count).input_price
            spoken = price(input_tokens=count, output_tokens=_COUNT, output_audio_tokens=_COUNT).output_price
            kept = {"cache_read_tokens": count, "input_audio_tokens": count, "cache_audio_read_tokens": count}
            heard = price(input_tokens=count, **kept).input_price
            rates = (whole / count, cached / count, written / count, output / _COUNT, audio / count, spoken / _COUNT)
            tiers.append([start, *map(float, (*rates, heard / count))])
    except ours(Exception):  # a model with another kind of prices, such as for each request
        return []
    return tiers


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[-1])))  # noqa: T201 - the answer to the process that started this one
