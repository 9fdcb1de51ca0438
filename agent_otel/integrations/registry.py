"""Entries of integrations: their types, and all entries, which a program reads before it loads an adapter.

An entry is at the top of its adapter. ``scripts/generate`` writes them into ``registry.json``, each site with its
modules alone.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from types import SimpleNamespace

from agent_otel._internal import env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence


class Candidate:
    """A historical form of a wrap site: a module and the functions that it must have, all or none.

    ``functions`` has, for each reader of the adapter, the names of the functions that it reads, in one text; each is
    ``Class.method`` or ``function`` in the module.
    """

    def __init__(self, module: str, /, **functions: str) -> None:
        self.module = module
        self.wraps = [
            SimpleNamespace(target=target, reader=reader)
            for reader, targets in functions.items()
            for target in targets.split()
        ]


class Site:
    """A wrap site: a place of a framework with its candidates, newest first; the first that matches is wrapped.

    ``adapter`` names the module with the readers, such as ``frameworks.langchain``; the default is the module that has
    the entry. ``minimum`` is the version that has the site first, where that is not the integration's. ``beside`` names
    modules, of other instrumentations or of another package that calls this one; without one of them nothing is
    wrapped here. In the table, a candidate is the name of its module; see `Integration.whole`.
    """

    def __init__(
        self, *candidates: Candidate | str, adapter: str = "", minimum: str = "", beside: Sequence[str] = ()
    ) -> None:
        self.candidates = [Candidate(each) if isinstance(each, str) else each for each in candidates]
        self.number = 0
        self.adapter = adapter
        self.minimum = minimum
        self.beside = beside


class Integration:
    """An integration: its name, the oldest supported version, and its independent wrap sites.

    ``distribution`` is its name unless it has another. A candidate among the sites is a site of one candidate.
    ``tested`` names the versions, and the engine, that the tests run it on. ``packages`` are the modules of the
    distribution that a program imports first: their import checks the version, because the modules of the sites may not
    exist in another version. The default is the package of the first candidate; a namespace package runs no code, so
    that the modules below it replace it. ``product`` names the integration that this one is a part of, and is
    disabled with. ``setting`` is the variable that switches this one on, where it is off by default.
    """

    def __init__(  # noqa: PLR0913 - an entry
        self,
        name: str,
        *,
        minimum: str,
        sites: Sequence[Site | Candidate],
        distribution: str = "",
        tested: str = "",
        uncovered: str = "",
        packages: Sequence[str] = (),
        product: str = "",
        setting: str = "",
        adapter: str = "",
    ) -> None:
        self.name = name
        self.distribution = distribution or name
        self.minimum = minimum
        self.sites = [site if isinstance(site, Site) else Site(site) for site in sites]
        self.tested = tested
        self.uncovered = uncovered
        self.packages = tuple(packages) or (self.sites[0].candidates[0].module.partition(".")[0],)
        self.product = product
        self.setting = setting
        self.fill(adapter)

    def fill(self, adapter: str) -> None:
        """Name the module that has the readers of the entry's sites, where a site does not, and number the sites."""
        self.adapter = adapter
        for number, site in enumerate(self.sites):
            site.adapter = site.adapter or adapter
            site.number = number

    def whole(self) -> Integration:
        """Return an entry of the table as its adapter has it, with functions and readers; the adapter is imported."""
        adapter = vars(importlib.import_module(f"agent_otel.integrations.{self.adapter}"))
        own = next(entry for entry in adapter.values() if isinstance(entry, Integration) and entry.name == self.name)
        own.fill(self.adapter)
        return own

    def is_disabled(self, names: Container[str]) -> bool:
        """Return true when this integration, or the one that it is a part of, is among the names."""
        return self.name in names or self.product in names

    def is_chosen(self, variables: Mapping[str, str]) -> bool:
        """Return true for an integration that is on by default, or by its setting."""
        return not self.setting or env.is_on(variables, self.setting)


_ROWS = json.loads(pkgutil.get_data("agent_otel.integrations", "registry.json") or b"[]")
INTEGRATIONS = tuple(
    Integration(**{**row, "sites": [Site(*modules, **options) for modules, options in row["sites"]]}) for row in _ROWS
)
