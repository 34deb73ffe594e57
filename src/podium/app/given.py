"""Objects in whatever form a program has them at hand, read as files would be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from podium.api.errors import InputError, shown
from podium.api.input.codec import Document, Input, Reader
from podium.api.input.files import FileName
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes
from podium.api.warnings import Validation
from podium.app.plain import in_one_line

Given = Kubernetes | dict[str, Any] | Document | FileName
"""An object: typed, as a dictionary (a List too), or as a document; or the name of a file or directory of objects."""

_NEEDED = "a dictionary, a typed object, or the name of a file or directory is needed"

Objects = Given | Iterable[Given]
"""One such object, or several."""


def read_objects(
    objects: Objects,
    validation: Validation | None = None,
    progress: Callable[[float], None] | None = None,
) -> Input:
    """The objects as an input, in order. Raises InputError for what is wrong in one, and for one given twice."""
    given = _each(objects)
    names = [item for item in given if isinstance(item, str | Path)]
    with Reader(validation) as reader:
        if len(names) == len(given):
            reader.read_all(names, progress)
            return reader.input()
        for index, item in enumerate(given):
            if isinstance(item, Document):
                reader.add(item)
            elif isinstance(item, Kubernetes | dict):
                # Read as a file would be, so that the same mistakes are found.
                raw = _raw(item) if isinstance(item, Kubernetes) else item
                source = f"objects[{index}]"
                reader.read_text(in_one_line(raw, source).encode(), source)
            else:
                reader.read_files(item)
        return reader.input()


def _each(objects: Objects) -> list[Given]:
    """The objects one by one. Raises InputError for what can be none."""
    of_one = (str, Path, dict, Kubernetes, Document)
    if isinstance(objects, of_one):
        return [objects]
    if not isinstance(objects, Iterable):
        raise InputError(f"objects: {shown(objects)} is none; {_NEEDED}")
    given = list(objects)
    for index, item in enumerate(given):
        if not isinstance(item, of_one):
            raise InputError(f"{shown(item)} is no object; {_NEEDED}", source=f"objects[{index}]")
    return given


def several(names: str | Iterable[str]) -> list[str]:
    """Names that a program gives, of which one may stand by itself."""
    return [names] if isinstance(names, str) else list(names)


def _raw(typed: Kubernetes) -> dict[str, Any]:
    """The object as a dictionary, with the kind that its type stands for."""
    kind = KIND_OF[type(typed)]
    return {"apiVersion": kind.api_version, "kind": kind.name, **msgspec.to_builtins(typed)}
