"""Remedies, which make the bytes fewer: each is off until a setting or a call of the program asks for it."""

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from agent_otel.remedies.forgetting import aforget, forget

__all__ = ["aforget", "forget"]


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agent_otel.remedies import forgetting  # noqa: PLC0415 - nothing is imported before first use

    value = globals()[name] = getattr(forgetting, name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
