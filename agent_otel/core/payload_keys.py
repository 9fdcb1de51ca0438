"""The keys of payloads and results that telemetry may show; a key may be data, such as the name of a customer.

Three kinds of keys are shown in paths, and ``*`` replaces all others:

- fields, which consist of listed words, from the formats of providers and runtimes;
- identifiers that a schema names: the parameters of a tool, the properties in its definition, and the fields of a
  dataclass or a pydantic model that this process has measured;
- the names that ``AGENT_OTEL_SHOW_KEYS`` has, or all keys if it is on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_otel import settings
from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import declared
from agent_otel.measure.key_structure import ANY, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator

# Lower-case words with underscores between them, or camelCase. A key with digits is usually data.
# Texts: most processes look at no key.
_IDENTIFIER: Final = r"_{0,2}[a-z]{2,16}(_[a-z]{2,16}){0,4}_{0,2}|[a-z]{2,16}([A-Z][a-z]{1,15}){1,4}"
_OF_A_SERVICE: Final = r"(?i:sk|pk|rk|gh[a-z]|github|glpat|hf|npm|pypi|xox[a-z]|shpat|key|token)_"
_UNSPEAKABLE: Final = r"(?i:[bcdfghjklmnpqrstvwxz]{6})"


def path(text: str) -> str:
    """Return a path with ``*`` for each key that is not shown."""
    named = settings.current().show_keys
    if named is True or text == OTHER:
        return text
    own = named or ()
    shown = (key if key == "[]" else f".{key if key in own or _is_shown(key) else ANY}" for key in _keys(text))
    return "".join(shown).removeprefix(".")


def _is_shown(key: str) -> bool:
    if key in {ANY, "$"} or is_field(key):
        return True
    is_identifier = key in declared and re.fullmatch(_IDENTIFIER, key) is not None
    return is_identifier and not (re.match(_OF_A_SERVICE, key) or re.search(_UNSPEAKABLE, key))


def _keys(text: str) -> Iterator[str]:
    """Yield the keys of a path; the breakdown has replaced keys with dots or brackets by ``*``."""
    for part in text.split("."):
        key, *elements = part.split("[]")
        if key:
            yield key
        yield from ["[]"] * len(elements)


# Words of the field names in tool results, messages and states. A key that consists of these words only is a field and
# never data: the list has no names of people, places, products or conditions. Plurals count as their singular.
_WORDS: Final = frozenset(
    """
    abstract account accumulated action activity actor add added additional address after agent aggregated alias all
    amount analysis annotation answer any app append approval archive arg argument array article artifact assignee
    assistant at attachment attempt attribute audio author balance base batch before begin begun binary blob block
    body bool boolean branch bucket buffer build bundle by byte cache cached call callback calling cap caption
    category channel chapter char character chart chat check checkpoint child children choice chunk citation city
    class cleared client code collected collection column combined command comment commit company completed
    completion component config configurable configuration contact content context contract control conversation
    copy cost count counter country create created currency current cursor custom customer cut data database dataset
    date day debug default definition delete deleted delta department dependency depth description detail developer
    diff digest dimension dir direction directory disabled discount document domain done draft duration edge edit
    element email embedding employee empty enabled encoded encoding end engine entity entry env environment error
    event evidence example exception excerpt execute execution executor exit expected expires expression extra fact
    failed failure feature feedback fetch fetched field file filename filter final finish finished first flag folder
    follow footer format found frame from full fulltext function generated generation get global graph group handler
    has hash head header heading height hidden hint history hit host hour html http id image in index info initial
    inner input inserted instruction int integer internal invocation invoice ip is issue issued item iteration job
    join json key kind kwarg label language last latest latitude layer left length level limit line link list local
    location lock log longitude loop main map mapped markdown marker mask match max member memory merge merged
    message meta metadata method metric milestone mime min missing mobile mode model modified module month more name
    namespace need new next no node note notice null number object of offset ok old on op open operation option or
    organisation organization origin original other out outcome outer output owner page pagination paragraph
    parallel param parameter parent parsed part partial patch path payload payment pending percent period person
    phase phone photo picture plan plugin point policy pool position post prefix pregel preview previous price
    priority process processed product progress project prompt property provider pull quantity query question queue
    range rank rate rating ratio raw read ready reason reasoning recipient record ref reference region relation
    remaining removed replay reply repo report repository request requested required resource response result
    retrieved retry return returned revision right role root round route row rule run runtime safety sale sample
    saved schema scope score script search section seen segment selected send sender sent sentence sequence server
    service session set setting severity shape shown signal signature since size skipped slot snapshot snippet
    source span spec stack stage start started stat state statistic status stderr stdin stdout step stop storage
    store stored stream street string structured sub subject subtitle successful suffix suggestion sum summary
    supplier symbol system tab table tag target task tax team temp template term test text thinking thought thread
    threshold ticket tier time timeout timestamp title to token tool top topic total trace transaction transcript
    transcription transform translation tree trigger truncated turn type until update updated uri url usage use used
    utc utf value variable variant vector vendor version video view visible voice wait waiting warning web website
    week weight width window with word worker workflow workspace write written xml yaml year zip zone
    """.split()  # noqa: SIM905 - to be read as a list of words
)
_KEY: Final = pattern(r"[A-Za-z$:_-]{1,64}")
_PLURALS: Final = (("s", ""), ("es", ""), ("ies", "y"))
_WORD: Final = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_field(key: str) -> bool:
    """Return true for a key that consists of listed words, in any style of writing, and for a single letter."""
    if _KEY.fullmatch(key) is None:
        return False
    words = _WORD.findall(key)
    return len(key) == 1 or (bool(words) and all(map(_is_listed, map(str.lower, words))))


def _is_listed(word: str) -> bool:
    if word in _WORDS:
        return True
    return any(word.endswith(plural) and word[: -len(plural)] + ending in _WORDS for plural, ending in _PLURALS)
