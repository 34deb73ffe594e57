"""A workload as its controller holds it, and what it writes in the workload's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from podium.api.meta import Kubernetes, Raw
from podium.api.workloads import Share

Kind_co = TypeVar("Kind_co", bound=Kubernetes, covariant=True)


@dataclass(frozen=True, slots=True)
class Workload(Generic[Kind_co]):
    """An object with its wire form."""

    object: Kind_co
    raw: Raw

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.object.metadata.uid

    @property
    def version(self) -> str:
        """The object's `resourceVersion`."""
        return self.object.metadata.resource_version

    @property
    def label(self) -> str:
        """What it says as the cause of its actions, such as `ReplicaSet default/web`."""
        return label_of(self.object)

    @property
    def is_deleted(self) -> bool:
        """Whether it was deleted and only waits for its finalizers."""
        return self.object.metadata.deletion_timestamp is not None

    @property
    def spec(self) -> Raw:
        """The wire form of its specification."""
        spec: Raw = self.raw.get("spec", {})
        return spec

    @property
    def template(self) -> Raw:
        """The wire form of its pod template."""
        template: Raw = self.spec.get("template", {})
        return template

    @property
    def status(self) -> Raw:
        """The wire form of its status."""
        status: Raw = self.raw.get("status", {})
        return status

    def reference(self) -> Raw:
        """The owner reference that makes it the controller of what carries it."""
        return {
            "apiVersion": self.raw["apiVersion"],
            "kind": self.raw["kind"],
            "name": self.object.metadata.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def new_pod(self, template: Raw, metadata: Raw, labels: Mapping[str, str], spec: Raw | None = None) -> Raw:
        """A pod of the template with an owner, further labels, and ``spec`` in the place of the template's.

        ``metadata`` has its name, or a `generateName`, and may replace annotations and finalizers of the template.
        """
        given = template.get("metadata", {})
        kept = {name: given[name] for name in ("annotations", "finalizers") if name in given}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **kept,
                **metadata,
                "namespace": self.object.metadata.namespace,
                "labels": {**given.get("labels", {}), **labels},
                "ownerReferences": [self.reference()],
            },
            "spec": template.get("spec", {}) if spec is None else spec,
        }


def label_of(object_: Kubernetes) -> str:
    """The object's kind and key, such as `ReplicaSet default/web`."""
    return f"{type(object_).__name__} {object_.key}"


def pods_of_share(share: Share, wanted: int, *, rounds_up: bool) -> int:
    """How many pods a share of those wanted is (apimachinery's intstr, GetScaledValueFromIntOrPercent)."""
    if isinstance(share, int):
        return share
    hundredths = int(share.removesuffix("%")) * wanted
    return -(-hundredths // 100) if rounds_up else hundredths // 100
