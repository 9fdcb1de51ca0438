"""Modules and data that a bundle needs beyond the imports that PyInstaller finds.

Adapters, exporters and the libraries of stores are named in strings, and versions of frameworks are read from their
metadata.
"""

from __future__ import annotations

from importlib.util import find_spec

from PyInstaller.utils.hooks import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    collect_data_files,
    collect_entry_point,
    collect_submodules,
    copy_metadata,
)

from agent_otel.integrations import versions
from agent_otel.integrations.registry import INTEGRATIONS

#: Not a part of an agent: the command line, the test kit, and this hook.
_APART = tuple(f"agent_otel.{name}" for name in ("cli", "explain", "doctor", "alerts", "testing", "_pyinstaller"))
_ADAPTERS = tuple(f"agent_otel.integrations.{name}." for name in ("frameworks", "model_sdks", "runtimes"))
#: Groups of entry points by which OpenTelemetry finds its parts.
_GROUPS = (
    *("opentelemetry_context", "opentelemetry_environment_variables", "opentelemetry_id_generator"),
    *("opentelemetry_meter_provider", "opentelemetry_metrics_exporter", "opentelemetry_propagator"),
    *("opentelemetry_resource_detector", "opentelemetry_tracer_provider", "opentelemetry_traces_exporter"),
)


#: Modules of extras, which the remedies import by name when a setting asks for them.
_LIBRARIES = (
    *("cryptography.hazmat.primitives.ciphers.aead", "cryptography.hazmat.primitives.hashes"),
    *("cryptography.hazmat.primitives.kdf.hkdf", "dapr.clients", "obstore", "obstore.store"),
    *("genai_prices", "genai_prices.data", "genai_prices.data_snapshot"),
    *("redis", "redis.backoff", "redis.retry", "tomli"),
)


def _is_needed(module: str) -> bool:
    """Return true for a module of an agent; an adapter only beside its framework, which its functions may import."""
    if module.startswith(_APART) or module == "agent_otel._bootstrap.otel_instrumentor":
        return False
    return not module.startswith(_ADAPTERS) or module in _adapters


_installed = [entry for entry in INTEGRATIONS if versions.installed(entry.distribution) is not None]
_names = {name for entry in _installed for name in (entry.adapter, *(site.adapter for site in entry.sites))}
_adapters = {f"agent_otel.integrations.{name}" for name in _names}
hiddenimports = collect_submodules("agent_otel", filter=_is_needed)
hiddenimports += [module for module in _LIBRARIES if find_spec(module.partition(".")[0]) is not None]
datas = collect_data_files("agent_otel", includes=["**/*.json"]) + copy_metadata("agent-otel")
for _entry in _installed:
    datas += copy_metadata(_entry.distribution)
for _group in _GROUPS:
    _files, _modules = collect_entry_point(_group)
    datas += _files
    hiddenimports += _modules
