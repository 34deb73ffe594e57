"""Whose doing an object is: that of those whom a simulation plays itself, or that of all others.

What a workload makes of itself is not told again when it is played: its controller makes it there, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from podium.api.kinds import KINDS, WORKLOADS
from podium.api.meta import Kubernetes, OwnerReference
from podium.api.pod import MIRROR_ANNOTATION, Pod
from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.api.volume_annotations import PROVISIONED_BY
from podium.api.workloads import StatefulSet
from podium.machines.disruption.protection import DEFAULT_BUDGET

Known = Mapping[tuple[str, str], Kubernetes]
"""All objects there are, by kind and key."""

# Claims are made for pods; all else for workloads.
_OWNERS = frozenset((*WORKLOADS, "Pod"))
_NUMBERED = re.compile(r"(?P<name>.+)-[0-9]+")
_NAMESPACED = {kind.name: kind.namespaced for kind in KINDS.values()}


def is_made_by_controller(object_: Kubernetes, known: Known) -> bool:
    """Whether one of those whom a simulation plays has made the object."""
    if _owner(object_, known) is not None or object_.metadata.labels.get(DEFAULT_BUDGET) == "true":
        return True
    if isinstance(object_, PersistentVolume):
        return PROVISIONED_BY in object_.metadata.annotations
    if isinstance(object_, Pod):
        # A kubelet makes it, of a file of its own, for as long as its node is there.
        return MIRROR_ANNOTATION in object_.metadata.annotations
    return isinstance(object_, PersistentVolumeClaim) and _is_of_stateful_set(object_, known)


def workload_of(object_: Kubernetes, known: Known) -> Kubernetes | None:
    """The workload that stands behind an object, behind which there is no other; None where there is none."""
    found = None
    owner = _owner(object_, known)
    while owner is not None and owner is not found:
        found, owner = owner, _owner(owner, known)
    return found


def _owner(object_: Kubernetes, known: Known) -> Kubernetes | None:
    """Who controls the object, if a simulation plays that one."""
    references = object_.metadata.owner_references
    controller = object_.metadata.controller or _of_pod(references)
    if controller is None or controller.kind not in _OWNERS:
        return None
    namespace = object_.metadata.namespace if _NAMESPACED.get(controller.kind) else ""
    owner = known.get((controller.kind, f"{namespace}/{controller.name}" if namespace else controller.name))
    return owner if owner is not None and owner.metadata.uid == controller.uid else None


def _of_pod(references: tuple[OwnerReference, ...]) -> OwnerReference | None:
    return next((reference for reference in references if reference.kind == "Pod"), None)


def _is_of_stateful_set(claim: PersistentVolumeClaim, known: Known) -> bool:
    """Whether the claim has a name as those of a StatefulSet's template have: TEMPLATE-SET-NUMBER."""
    numbered = _NUMBERED.fullmatch(claim.metadata.name)
    if numbered is None:
        return False
    name = numbered["name"]
    places = (place for place, letter in enumerate(name) if letter == "-")
    for place in places:
        owner = known.get(("StatefulSet", f"{claim.metadata.namespace}/{name[place + 1 :]}"))
        if isinstance(owner, StatefulSet):
            templates = owner.spec.volume_claim_templates
            if any(template.metadata.name == name[:place] for template in templates):
                return True
    return False
