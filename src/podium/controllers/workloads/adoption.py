"""Adoption and release: objects that a workload's selector matches, and objects that it no longer matches.

Source: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from podium.api.meta import Kubernetes, Raw, plain
from podium.api.selectors import Selector, compile_label_selector, selector_from_labels
from podium.controllers.actions import PatchObject, owner_reference, versioned_patch
from podium.controllers.indexes import LabelIndex, SelectorIndex


class WorkloadSelectors:
    """The selectors of workloads, by uid."""

    def __init__(self) -> None:
        # By uid, the workload's selector as written and compiled.
        self._known: dict[str, tuple[object, Selector]] = {}
        self._index: SelectorIndex[str] = SelectorIndex()

    def put(self, workload: Kubernetes) -> bool:
        """Add or replace a workload; return whether its selector is new."""
        meta, written = workload.metadata, getattr(getattr(workload, "spec", None), "selector", None)
        known = self._known.get(meta.uid)
        if known is not None and known[0] == written:
            return False
        selector = selector_from_labels(written) if isinstance(written, dict) else compile_label_selector(written)
        self._known[meta.uid] = written, selector
        self._index.put(meta.uid, selector, meta.namespace)
        return True

    def remove(self, workload: Kubernetes) -> None:
        self._known.pop(workload.metadata.uid, None)
        self._index.remove(workload.metadata.uid)

    def of(self, uid: str) -> Selector:
        return self._known[uid][1]

    def matching(self, object_: Kubernetes) -> list[str]:
        """Return the workloads in an object's namespace that select it."""
        return self._index.matching(object_.metadata.labels, object_.metadata.namespace)


class Orphans:
    """Objects of one type with labels and without a controller, which are not being deleted."""

    def __init__(self) -> None:
        self._objects: dict[str, Kubernetes] = {}
        self._index: LabelIndex[str] = LabelIndex()

    def put(self, object_: Kubernetes) -> bool:
        """Take in an object; return whether it is an orphan, or was one."""
        meta = object_.metadata
        if not meta.labels or meta.controller is not None or meta.deletion_timestamp is not None:
            return self.remove(object_)
        self._objects[object_.key] = object_
        self._index.put(object_.key, meta.labels, meta.namespace)
        return True

    def remove(self, object_: Kubernetes) -> bool:
        """Remove the object with that key; return whether there was one."""
        if self._objects.pop(object_.key, None) is None:
            return False
        self._index.remove(object_.key)
        return True

    def matching(self, namespace: str, selector: Selector) -> list[Kubernetes]:
        """Return the objects that a selector matches, by key."""
        return [self._objects[key] for key in sorted(self._index.matching(selector, namespace))]


def claim_of(object_: Kubernetes, uid: str, cause: str, finalizer: str, by: Kubernetes | None = None) -> PatchObject:
    """Return the patch that removes the reference to the workload with that uid, and a finalizer.

    With ``by``, that workload becomes the object's controller, and a finalizer other than "" is added instead.
    """
    references = [plain(each) for each in object_.metadata.owner_references if each.uid != uid]
    finalizers = [each for each in object_.metadata.finalizers if each != finalizer]
    if by is not None:
        references.append(owner_reference(by))
        finalizers += [finalizer] if finalizer else []
    metadata: Raw = {"ownerReferences": references or None}
    if finalizers != list(object_.metadata.finalizers):
        metadata["finalizers"] = finalizers or None
    return versioned_patch(object_, {"metadata": metadata}, cause)
