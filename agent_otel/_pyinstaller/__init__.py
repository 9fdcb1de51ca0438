"""The hook for PyInstaller, which finds it by the entry point ``pyinstaller40``."""

from __future__ import annotations

from pathlib import Path


def hook_folders() -> list[str]:
    """Return the folders with hooks."""
    return [str(Path(__file__).parent)]
