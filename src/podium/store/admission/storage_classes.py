"""The storage class of claims that name none (plugin/pkg/admission/storage/storageclass/setdefault)."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.meta import ObjectMeta, Raw
from podium.api.storage import PersistentVolumeClaim, StorageClass
from podium.api.times import parse_time
from podium.api.volume_annotations import STORAGE_CLASS

_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def with_default_class(raw: Raw, claim: PersistentVolumeClaim, classes: Iterable[StorageClass]) -> Raw:
    """The claim, of which both forms are given, with the default class where it names none; `raw` itself otherwise.

    Of several defaults the newest counts, and of equally old ones the first by name (pkg/volume/util/storageclass.go,
    GetDefaultClass). The empty name is a name.
    """
    if claim.spec.storage_class_name is not None or STORAGE_CLASS in claim.metadata.annotations:
        return raw
    defaults = (class_.metadata for class_ in classes if _is_default(class_))
    found = min(defaults, key=lambda meta: (-_created_ns(meta), meta.name), default=None)
    return raw if found is None else {**raw, "spec": {**raw.get("spec", {}), "storageClassName": found.name}}


def _created_ns(meta: ObjectMeta) -> int:
    return parse_time(meta.creation_timestamp) if meta.creation_timestamp else 0


def _is_default(storage_class: StorageClass) -> bool:
    return any(storage_class.metadata.annotations.get(name) == "true" for name in _IS_DEFAULT)
