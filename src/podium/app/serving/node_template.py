"""The template after which nodes are made."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.app.serving.one_object import read_one
from podium.plane.nodes import check_template


def read_template(path: str) -> Raw:
    """The Node in a file, which needs no name. Raises InputError."""
    return check_template(read_one(path, "Node"), path)
