"""Extensions that a test installs for its duration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Write = Callable[[str], str]
"""Writes a module, and gives its name."""


def install(folder: Path, package: str, group: str, name: str, place: str) -> None:
    """Provide the metadata of an installed package with one entry point."""
    metadata = folder / f"{package}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {place}\n")
