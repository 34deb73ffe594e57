"""Kubernetes objects in whatever form a test has them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from podium.api.input.codec import Document, Reader
from podium.api.meta import Raw

Objects = str | Path | Raw | Iterable[Raw]
"""Kubernetes objects: dictionaries, one or several; YAML or JSON as text; or the path of a file or a directory."""


def read_objects(objects: Objects) -> list[Document]:
    """The objects, checked as those of a file are. Raises InputError."""
    with Reader() as reader:
        if isinstance(objects, Path):
            reader.read_files(objects)
        elif isinstance(objects, str):
            if "\n" in objects or objects.lstrip().startswith("{"):
                reader.read_text(objects, "objects")
            else:
                reader.read_files(objects)
        else:
            listed = [objects] if isinstance(objects, dict) else list(objects)
            if listed:
                # Read as a file would be, so that the same mistakes are found.
                text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": listed})
                reader.read_text(text, "objects")
        return reader.input().documents
