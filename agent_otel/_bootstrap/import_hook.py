"""Import hook that runs a callback when a watched module has been imported. Standard library only.

A meta-path finder handles only the watched names: it gets the spec from the other finders and adds a loader that runs
the callback after the module's own code. The module keeps its real loader. The hook ignores sandboxes that import
modules again into their own module table, such as Temporal's sandbox for workflow code.
"""

import _thread
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


_modules = sys.modules


def _is_elsewhere() -> bool:
    """Return true when this thread imports into another module table than the interpreter's.

    Temporal replaces ``sys.modules`` by a table that differs in each thread. Each of these tables has its own
    ``__main__``; other modules may be shared.
    """
    return sys.modules is not _modules and sys.modules.get("__main__") is not _modules.get("__main__")


class _Loader:
    """A loader that runs the real loader and then the callback; it delegates everything else to the real loader."""

    def __init__(self, loader: "Any", finder: "Finder", name: str) -> None:
        self._loader = loader
        self._finder = finder
        self._name = name

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: "ModuleType") -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._finder.imported(self._name)  # not the module's __name__, which its code can change


class Finder:
    """The meta-path finder of this package; one per process."""

    def __init__(self) -> None:
        self.callbacks: dict[str, Callable[[str], None]] = {}
        #: The modules whose callbacks run again when the program reloads them.
        self.kept: set[str] = set()
        #: The look-ups that run, by thread and module.
        self._running: set[tuple[int, str]] = set()

    def imported(self, name: str) -> None:
        """Run the callback of a module, once or each time. It must not raise, or the user's import would fail."""
        callback = self.callbacks.get(name) if name in self.kept else self.callbacks.pop(name, None)
        if callback is not None:
            callback(name)

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Return the real spec of a watched module with `_Loader` as its loader, else None.

        A finder of another package may ask all others, as this one does: the second time it is asked, it has no spec.
        """
        look_up = _thread.get_ident(), fullname
        if fullname not in self.callbacks or look_up in self._running or _is_elsewhere():
            return None
        self._running.add(look_up)
        try:
            for finder in sys.meta_path:
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader, self, fullname)  # type: ignore[assignment]
                    return spec
        finally:
            self._running.discard(look_up)
        return None


_finder = Finder()


def install(callbacks: "Mapping[str, Callable[[str], None]]", *, each_time: bool = False) -> None:
    """Watch these modules; the callback of one that is already imported runs at once.

    Further calls add modules to the same finder. With ``each_time`` a callback runs again when the program reloads its
    module, or imports it anew.
    """
    if _finder not in sys.meta_path:
        # A program that has dropped this package from sys.modules and imports it anew has left another finder there.
        sys.meta_path[:] = [_finder, *(finder for finder in sys.meta_path if type(finder).__module__ != __name__)]
    _finder.callbacks.update(callbacks)
    (_finder.kept.update if each_time else _finder.kept.difference_update)(callbacks)
    for name in callbacks:
        if sys.modules.get(name) is not None:  # None blocks an import
            _finder.imported(name)


def uninstall() -> None:
    """Remove the finder and all callbacks."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder.callbacks.clear()
    _finder.kept.clear()
