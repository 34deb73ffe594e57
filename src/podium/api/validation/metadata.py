"""What every object carries (apimachinery, pkg/api/validation/objectmeta.go)."""

from __future__ import annotations

from collections.abc import Callable

from podium.api.names import label_key_problem, label_name_problem, subdomain_problem
from podium.api.pod import MIRROR_ANNOTATION
from podium.api.validation import finding
from podium.api.validation.place import Place
from podium.api.validation.selectors import check_labels

_MAX_ANNOTATIONS_BYTES = 262_144
_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_UNOWNING = ("v1", "Event")
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
JUDGED_ANNOTATIONS = frozenset((MIRROR_ANNOTATION, _DELETION_COST))
"""Annotations of pods that may be wrong by what they say."""

_MAX_INT32 = 2**31 - 1


def check_metadata(metadata: Place, namespaced: bool, rule: Callable[[str], str | None] = subdomain_problem) -> None:
    """The name by its rule, the namespace, labels, annotations, owners and finalizers."""
    name = metadata.text("name")
    if name:
        metadata.check("name", rule(name))
    elif not metadata.text("generateName"):
        metadata.required("name", "name or generateName is required")
    namespace = metadata.text("namespace")
    if namespaced and namespace:
        metadata.check("namespace", label_name_problem(namespace))
    elif namespace:
        metadata.forbidden("namespace", "not allowed on this type")
    metadata.check_not_negative("generation", "deletionGracePeriodSeconds")
    check_labels(metadata, "labels")
    check_annotations(metadata)
    _check_owners(metadata)
    _check_finalizers(metadata)


def check_annotations(metadata: Place) -> None:
    """The keys of the annotations, whose prefix may have capitals, and how much they take together."""
    size = 0
    for key, value in metadata.text_mapping("annotations").items():
        problem = label_key_problem(key.lower())
        if problem is not None:
            metadata.child_or_empty("annotations").check(key, problem)
        size += len(key.encode()) + len(value.encode())
    if size > _MAX_ANNOTATIONS_BYTES:
        metadata.report(finding.too_long(metadata.path("annotations"), _MAX_ANNOTATIONS_BYTES))


def check_pod_annotations(metadata: Place, spec: Place) -> None:
    """The annotations that mean something on a pod (ValidatePodSpecificAnnotations)."""
    annotations = metadata.value.get("annotations")
    if not isinstance(annotations, dict):
        return
    place = metadata.child_or_empty("annotations")
    mirror = annotations.get(MIRROR_ANNOTATION)
    if mirror is not None and not spec.text("nodeName"):
        place.invalid(MIRROR_ANNOTATION, mirror, "must set spec.nodeName if mirror pod annotation is set")
    cost = annotations.get(_DELETION_COST)
    if isinstance(cost, str) and not _is_int32(cost):
        place.invalid(_DELETION_COST, cost, "must be a 32bit integer")


def _is_int32(text: str) -> bool:
    """Whether the text is a number as GetDeletionCostFromPodAnnotations takes it: no plus, spaces or leading zeros."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(_MAX_INT32)):
        return False
    return (digits == "0" or digits[0] != "0") and -_MAX_INT32 - 1 <= int(text) <= _MAX_INT32


def _check_owners(metadata: Place) -> None:
    controllers: list[str] = []
    for owner in metadata.objects("ownerReferences"):
        version, kind = owner.text("apiVersion"), owner.text("kind")
        if not version:
            owner.invalid("apiVersion", version, "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.text(name):
                owner.invalid(name, "", "must not be empty")
        if (version, kind) == _UNOWNING:
            owner.invalid("", f"{version} {kind}", "is disallowed from being an owner")
        if owner.flag("controller"):
            controllers.append(f"{kind}/{owner.text('name')}")
    if len(controllers) > 1:
        detail = "Only one reference can have Controller set to true"
        metadata.invalid("ownerReferences", ", ".join(controllers[:2]), detail)


def _check_finalizers(metadata: Place) -> None:
    for text in metadata.texts("finalizers"):
        text.check("", label_key_problem(text.value))
        if "/" not in text.value and text.value not in _FINALIZERS:
            text.invalid("", text.value, "name is neither a standard finalizer name nor is it fully qualified")


def check_own_name(item: Place, names: set[str]) -> str:
    """The name of an item in a list, which none of the `names` before it may be; returns it, and adds it to them."""
    name = item.text("name")
    if not name:
        item.required("name")
    elif name in names:
        item.duplicate("name", name)
    else:
        item.check("name", label_name_problem(name))
    names.add(name)
    return name
