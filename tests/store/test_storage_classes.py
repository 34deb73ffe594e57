"""The storage class of claims that name none (plugin/pkg/admission/storage/storageclass/setdefault)."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.storage import PersistentVolumeClaim
from podium.store.store import Store
from tests.store.objects import Raw

DEFAULT = "storageclass.kubernetes.io/is-default-class"


def storage_class(name: str, created: str = "", **annotations: str) -> Raw:
    metadata: Raw = {"name": name, "annotations": annotations}
    if created:
        metadata |= {"creationTimestamp": created, "uid": name}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": "disks"}


def default(name: str, created: str = "") -> Raw:
    return storage_class(name, created, **{DEFAULT: "true"})


def claim(uid: str = "", annotations: Raw | None = None, **spec: Any) -> Raw:
    metadata = {"name": "c", "namespace": "default", "annotations": annotations or {}}
    if uid:
        metadata["uid"] = uid
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**asked, **spec}}


def class_of(raw: Raw, *classes: Raw) -> Any:
    store = Store()
    for one in classes:
        store.create(one, now=0)
    stored = store.create(raw, now=0)
    named = stored.raw["spec"].get("storageClassName")
    assert isinstance(stored.object, PersistentVolumeClaim)
    assert stored.object.spec.storage_class_name == named
    return named


def test_a_claim_that_names_no_class_gets_the_default_one() -> None:
    assert class_of(claim(), storage_class("slow"), default("fast")) == "fast"
    assert class_of(claim(), storage_class("slow", **{DEFAULT: "false"})) is None


@pytest.mark.parametrize("named", ["slow", ""])
def test_a_claim_that_names_a_class_keeps_it_the_empty_one_too(named: str) -> None:
    assert class_of(claim(storageClassName=named), default("fast")) == named


def test_the_annotation_names_a_class_as_well() -> None:
    assert class_of(claim(annotations={"volume.beta.kubernetes.io/storage-class": "slow"}), default("fast")) is None


def test_the_newest_default_storage_class_wins_then_the_first_by_name() -> None:
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    assert class_of(claim(), default("a", old), default("z", new), default("y", new)) == "y"


def test_a_claim_from_a_cluster_keeps_its_storage_class() -> None:
    assert class_of(claim(uid="1"), default("fast")) is None
