"""In which form a client wants its reply.

Source: apiserver (pkg/endpoints/handlers/negotiation).
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from podium.requests.wire.content_types import JSON, YAML
from podium.store.errors import StoreError

_META = "meta.k8s.io"
_TABLE = "Table"
_KINDS = {_TABLE: ("v1", "v1beta1"), "PartialObjectMetadata": ("v1",), "PartialObjectMetadataList": ("v1",)}
_GIVEN = {JSON: JSON, YAML: YAML, "*/*": JSON, "application/*": JSON}


class Form(msgspec.Struct, frozen=True):
    """The type of content, and what objects are turned into: "" for nothing, Table, or PartialObjectMetadata."""

    content_type: str = JSON
    kind: str = ""
    version: str = "v1"

    @property
    def is_table(self) -> bool:
        """Whether rows are asked for."""
        return self.kind == _TABLE

    @property
    def header(self) -> str:
        """The type of the reply as its header says it."""
        plain = self.content_type
        return f"{plain};as={self.kind};v={self.version};g={_META}" if self.is_table else plain


PLAIN = Form()


@lru_cache(maxsize=256)
def negotiated(accept: str) -> Form:
    """The first form of those that a header Accept names which can be given. Raises StoreError 406 for none."""
    if not accept:
        return PLAIN
    for clause in accept.split(","):
        form = _form(clause)
        if form is not None:
            return form
    problem = f"only the following media types are accepted: {JSON}, {YAML}"
    raise StoreError(406, "NotAcceptable", problem)


def _form(clause: str) -> Form | None:
    name, *rest = (part.strip() for part in clause.split(";"))
    content_type = _GIVEN.get(name.lower())
    if content_type is None:
        return None
    parameters = dict(part.partition("=")[::2] for part in rest)
    kind = parameters.get("as", "")
    if not kind:
        return Form(content_type)
    version = parameters.get("v", "")
    if parameters.get("g") != _META or version not in _KINDS.get(kind, ()):
        return None
    return Form(content_type, kind.removesuffix("List") if kind.startswith("Partial") else kind, version)
