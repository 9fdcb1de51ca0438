"""The types of the rows in the table of integrations. Read at interpreter start, so this module imports nothing."""

from __future__ import annotations


class Wrap:
    """A function to wrap: ``Class.method`` or ``function`` in the candidate's module, and the adapter's reader."""

    __slots__ = ("reader", "target")

    def __init__(self, target: str, reader: str) -> None:
        self.target = target
        self.reader = reader


class Candidate:
    """A historical form of a framework: a module and the functions that it must have, all or none."""

    __slots__ = ("module", "wraps")

    def __init__(self, module: str, *wraps: Wrap) -> None:
        self.module = module
        self.wraps = wraps


class Integration:
    """An integration: its distribution, the oldest supported version, the adapter and the forms, newest first.

    ``beside`` names modules of other instrumentations; without one of them nothing of this row is wrapped. ``tested``
    names the versions, and the engine, on which the tests run it.
    """

    __slots__ = ("adapter", "beside", "candidates", "distribution", "minimum", "name", "tested")

    def __init__(  # noqa: PLR0913 - one row of the table
        self,
        name: str,
        distribution: str,
        minimum: str,
        adapter: str,
        *candidates: Candidate,
        beside: tuple[str, ...] = (),
        tested: str = "",
    ) -> None:
        self.beside = beside
        self.tested = tested
        self.name = name
        self.distribution = distribution
        self.minimum = minimum
        self.adapter = adapter
        self.candidates = candidates
