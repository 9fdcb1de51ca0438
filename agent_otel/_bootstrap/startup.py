"""Activation at interpreter start: if ``AGENT_OTEL`` is on, install the import hook.

Standard library only. ``agent_otel_startup.pth`` (Python up to 3.14), or ``agent_otel_startup.start`` and ``.py`` (from
3.15) call `start`. Virtual environments run ``.pth`` lines twice, so a second call does nothing.
"""

import os
import sys

from agent_otel._internal import env


def start() -> None:
    """Activate if ``AGENT_OTEL`` is on; raise nothing, because an error here would stop the interpreter."""
    if os.environ.get("AGENT_OTEL"):
        activate()


def activate() -> None:
    """Install the import hook, once per process; ``AGENT_OTEL=0`` prevents it. Raises nothing."""
    switch = os.environ.get("AGENT_OTEL", "1").strip().lower() or "1"
    if env.active:
        return
    if switch not in env.ON:
        if switch not in env.OFF:
            env.complain(
                f"AGENT_OTEL={switch!r} is neither of {', '.join(env.ON)} nor of {', '.join(env.OFF[1:])}; staying off"
            )
        env.without_policy(env.OFF_HERE)
        return
    env.active = True
    try:
        # Nothing is imported while the switch is off.
        from agent_otel._bootstrap import import_hook  # noqa: PLC0415
        from agent_otel._internal import fork, trigger_modules  # noqa: F401, PLC0415 - fork registers its hooks

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
        from agent_otel._internal import errors  # noqa: PLC0415 - only when something is wrong

        env.active = False
        env.complain(f"not active, {errors.described(error)}")
        env.without_policy(env.OFF_HERE)


def _imported(module: str) -> None:
    """Load the registry and apply the integrations of a watched module that was imported."""
    try:
        from agent_otel._internal import fork  # noqa: PLC0415 - imported already

        with fork.loading:
            from agent_otel.integrations import lookup  # noqa: PLC0415

            lookup.imported(module)
    except Exception as error:
        from agent_otel._internal import errors  # noqa: PLC0415 - only when something is wrong

        env.complain(f"{module} is not measured, {errors.described(error)}")
        env.without_policy(module)
    if env.refusals:
        raise ImportError(env.refusals[0])


def deactivate() -> None:
    """Remove the import hook and restore all wrapped functions."""
    env.active = False
    env.without_policy(env.OFF_HERE)
    from agent_otel._bootstrap import import_hook  # noqa: PLC0415

    import_hook.uninstall()
    patching = sys.modules.get("agent_otel.integrations.patching")
    if patching is not None:
        patching.restore()
