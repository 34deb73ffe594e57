"""An object at one version: its wire form beside its typed reading."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.store.resource import Resource

Reading = TypeVar("Reading", bound=Kubernetes)

_SECTIONS = frozenset(("metadata", "spec", "status"))


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as the store holds it from `version` on; both forms say the same and neither is ever changed."""

    raw: Raw
    object: Kubernetes
    version: int
    resource: Resource

    @property
    def kind(self) -> str:
        """What the store calls the kind, such as Pod."""
        return self.resource.name

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone for kinds without namespaces."""
        return self.object.key

    @property
    def uid(self) -> str:
        """The object's identity; a namesake that comes later has another."""
        return self.object.metadata.uid


def reread(object_: Reading, old: Raw, new: Raw) -> Reading:
    """The reading of `new`, where `object_` is that of `old` and they differ in metadata, spec and status at most.

    Only what is not the same dictionary in both is read again. Raises msgspec.ValidationError.
    """
    changed = {
        name: msgspec.convert(new.get(name, {}), type_)
        for name, type_ in _sections(type(object_))
        if new.get(name) is not old.get(name)
    }
    return msgspec.structs.replace(object_, **changed) if changed else object_


@cache
def _sections(type_: type[Kubernetes]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.type) for field in msgspec.structs.fields(type_) if field.name in _SECTIONS)
