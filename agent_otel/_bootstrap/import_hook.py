"""Module name -> callback when that module has been imported. Standard library only.

A meta-path finder that answers only for the watched names: it asks the other finders for the spec and puts a loader
in front that runs the callbacks after the module's own code. The module keeps its real loader. A sandbox that imports
modules anew into a table of its own, such as Temporal's around workflow code, is left alone.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


_modules = sys.modules


def _is_elsewhere() -> bool:
    """Whether imports of this thread go into another table of modules than the interpreter's.

    Temporal puts a table in the place of ``sys.modules`` that is another one in each thread. Every such table has a
    ``__main__`` of its own; what else it has it may share.
    """
    return sys.modules is not _modules and sys.modules.get("__main__") is not _modules.get("__main__")


class _Loader:
    """Runs the real loader, then the callback; everything else is the real loader's."""

    def __init__(self, loader: Any, finder: Finder, name: str) -> None:
        self._loader = loader
        self._finder = finder
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._finder.imported(self._name)  # not the module's __name__, which its code can change


class Finder:
    """The meta-path finder of this package; one per process."""

    def __init__(self) -> None:
        self._callbacks: dict[str, Callable[[str], None]] = {}

    def watch(self, callbacks: Mapping[str, Callable[[str], None]]) -> None:
        """Add callbacks; for a module that is already imported the callback runs at once."""
        self._callbacks.update(callbacks)
        for name in callbacks:
            if sys.modules.get(name) is not None:  # None blocks an import
                self.imported(name)

    def forget(self) -> None:
        """Watch nothing any more."""
        self._callbacks.clear()

    def imported(self, name: str) -> None:
        """Run the callback of a module, once; it must not raise, or the user's import would fail."""
        callback = self._callbacks.pop(name, None)
        if callback is not None:
            callback(name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer the import system: the real spec with our loader in front, for watched names only."""
        if fullname not in self._callbacks or _is_elsewhere():
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self, fullname)  # type: ignore[assignment]
                return spec
        return None


_finder = Finder()


def install(callbacks: Mapping[str, Callable[[str], None]]) -> None:
    """Watch these modules; calling again adds to the list and never installs a second finder."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.watch(callbacks)


def uninstall() -> None:
    """Take the finder out again; modules imported from now on are left alone."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder.forget()
