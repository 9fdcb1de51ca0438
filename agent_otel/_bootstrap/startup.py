"""Activation at interpreter start: if ``AGENT_OTEL`` is on, install the import hook.

Standard library only. ``agent_otel_startup.pth`` (Python up to 3.14), or ``agent_otel_startup.start`` and ``.py`` (from
3.15) call `start`. Virtual environments run ``.pth`` lines twice, so a second call does nothing.
"""

import os
import sys

from agent_otel._internal import env

_complaints: set[str] = set()


def start() -> None:
    """Activate if ``AGENT_OTEL`` is on; raise nothing, because an error here would stop the interpreter."""
    switch = os.environ.get("AGENT_OTEL")
    if switch and switch.strip().lower() not in env.OFF:
        activate()


def activate() -> None:
    """Install the import hook, once per process; ``AGENT_OTEL=0`` prevents it. Raises nothing."""
    switch = os.environ.get("AGENT_OTEL", "1").strip().lower() or "1"
    if env.active or switch in env.OFF:
        return
    if switch not in env.ON:
        _complain(
            f"AGENT_OTEL={switch!r} is neither of {', '.join(env.ON)} nor of {', '.join(env.OFF[1:])}; staying off"
        )
        return
    env.active = True
    try:
        # Nothing is imported while the switch is off.
        from agent_otel._bootstrap import import_hook, trigger_modules  # noqa: PLC0415
        from agent_otel._internal import fork  # noqa: F401, PLC0415 - registers the fork hooks

        if "agent_otel.core.switches" in sys.modules:  # deactivated before
            from agent_otel.core import switches  # noqa: PLC0415

            switches.enabled = True
        if "agent_otel.api" in sys.modules:  # imported before
            sys.modules["agent_otel.api"].load()
        import_hook.install(dict.fromkeys(trigger_modules.watched(os.environ), _imported), each_time=True)
        if env.is_on(os.environ, "AGENT_OTEL_FLUSH_ON_SIGTERM"):
            from agent_otel._bootstrap import sigterm  # noqa: PLC0415

            sigterm.install()
    except (Exception, SystemExit) as error:
        env.active = False
        _complain(f"not active, {_described(error)}")


def _imported(module: str) -> None:
    """Load the registry and apply the integrations of a watched module that was imported."""
    try:
        from agent_otel._internal import fork  # noqa: PLC0415 - imported already

        with fork.loading:
            from agent_otel.integrations.registry import lookup  # noqa: PLC0415

            lookup.imported(module)
    except Exception as error:
        _complain(f"{module} is not measured, {_described(error)}")


def deactivate() -> None:
    """Remove the import hook and restore all wrapped functions."""
    env.active = False
    from agent_otel._bootstrap import import_hook  # noqa: PLC0415

    import_hook.uninstall()
    patching = sys.modules.get("agent_otel.integrations.patching")
    if patching is not None:
        patching.restore()


def _described(error: BaseException) -> str:
    """Return the class of an exception and where it was raised, never its text, in which values may stand."""
    found = error.__traceback__
    while found is not None and found.tb_next is not None:
        found = found.tb_next
    place = f" at {os.path.basename(found.tb_frame.f_code.co_filename)}:{found.tb_lineno}" if found is not None else ""  # noqa: PTH119 - pathlib is not loaded yet
    return f"{type(error).__name__}{place}"


def _complain(message: str) -> None:
    if message not in _complaints:
        _complaints.add(message)
        try:  # noqa: SIM105 - contextlib is not loaded yet
            sys.stderr.write(f"agent_otel: {message}\n")
        except Exception:  # noqa: S110 - standard error is closed or full
            pass
