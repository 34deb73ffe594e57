"""Pods and classes from manifests that no API server has seen, as it would have stored them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.pod import Pod
from podium.api.policy import PriorityClass
from podium.store.admission import admit_pod
from podium.store.priority_levels import missing_classes


def admitted(pod: Pod, classes: Mapping[str, PriorityClass]) -> Pod:
    """The pod with its priority, policy and selectors filled in, where that is still to be done.

    A pod with a uid has been admitted, but for its priority where it has none. Raises StoreError for one that would be
    refused, such as for a class that does not exist.
    """
    if not _is_raw(pod, classes):
        return pod
    return msgspec.convert(admit_pod(msgspec.to_builtins(pod), pod.key, classes), Pod)


def with_levels(policy: DisruptionPolicy, classes: Mapping[str, PriorityClass]) -> dict[str, PriorityClass]:
    """The classes by name, with those that a DisruptionPolicy adds. Raises StoreError for levels in another order."""
    added = (msgspec.convert(raw, PriorityClass) for raw in missing_classes(policy, classes))
    return {**classes, **{one.metadata.name: one for one in added}}


def _is_raw(pod: Pod, classes: Mapping[str, PriorityClass]) -> bool:
    """Whether admission would change how the pod is scheduled."""
    has_class = bool(pod.spec.priority_class_name) or any(one.global_default for one in classes.values())
    return (pod.spec.priority is None and has_class) or not (pod.metadata.uid or pod.spec.node_name)
