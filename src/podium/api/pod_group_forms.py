"""PodGroups as kubernetes-sigs/scheduler-plugins has them (scheduling.x-k8s.io/v1alpha1), and as Kubernetes does.

The older form has `minMember` and `scheduleTimeoutSeconds`. What one of the two cannot say stands in annotations, so
that it is not lost by whoever reads and writes that form.

Source: scheduler-plugins, apis/scheduling/v1alpha1/types.go (PodGroupSpec).
"""

from __future__ import annotations

import re
from typing import Any

from podium.api.meta import Raw
from podium.api.pod_group import DISRUPTION_ANNOTATION, TIMEOUT_ANNOTATION, TOPOLOGY_ANNOTATION

OLDER_VERSION = "scheduling.x-k8s.io/v1alpha1"

_ANNOTATION = "metadata.annotations[{}]"
_OLDER_PLACES = {
    "schedulingPolicy": "spec.minMember",
    "schedulingConstraints": _ANNOTATION.format(TOPOLOGY_ANNOTATION),
    "disruptionMode": _ANNOTATION.format(DISRUPTION_ANNOTATION),
}
_PLACE = re.compile(rf"\bspec\.({'|'.join(_OLDER_PLACES)})\b(?:\.\w+|\[\d+\])*")


def to_older_form(raw: Raw) -> Raw:
    """A PodGroup of Kubernetes as one of scheduler-plugins."""
    spec = _object(raw.get("spec"))
    annotations = dict(_object(_object(raw.get("metadata")).get("annotations")))
    older: Raw = {}
    gang = _object(_object(spec.get("schedulingPolicy")).get("gang"))
    if "minCount" in gang:
        older["minMember"] = gang["minCount"]
    timeout = annotations.pop(TIMEOUT_ANNOTATION, "")
    if isinstance(timeout, str) and timeout.isascii() and timeout.isdigit():
        older["scheduleTimeoutSeconds"] = int(timeout)
    topology = _object(spec.get("schedulingConstraints")).get("topology")
    if isinstance(topology, list) and topology:
        annotations[TOPOLOGY_ANNOTATION] = _object(topology[0]).get("key", "")
    if spec.get("disruptionMode"):
        annotations[DISRUPTION_ANNOTATION] = spec["disruptionMode"]
    return _with(raw, OLDER_VERSION, older, annotations)


def from_older_form(raw: Raw, api_version: str) -> Raw:
    """A PodGroup of scheduler-plugins as one of Kubernetes, in that version."""
    spec = _object(raw.get("spec"))
    annotations = dict(_object(_object(raw.get("metadata")).get("annotations")))
    newer: Raw = {"schedulingPolicy": {"gang": {"minCount": spec.get("minMember", 1)}}}
    timeout = spec.get("scheduleTimeoutSeconds")
    if timeout is not None:
        annotations[TIMEOUT_ANNOTATION] = str(timeout)
    key = annotations.pop(TOPOLOGY_ANNOTATION, "")
    if key:
        newer["schedulingConstraints"] = {"topology": [{"key": key}]}
    mode = annotations.pop(DISRUPTION_ANNOTATION, "")
    if mode:
        newer["disruptionMode"] = mode
    return _with(raw, api_version, newer, annotations)


def in_older_words(text: str) -> str:
    """A path, or what is said of fields, with those of Kubernetes' form named as the older form has them."""
    return _PLACE.sub(lambda found: _OLDER_PLACES[found[1]], text)


def _with(raw: Raw, api_version: str, spec: Raw, annotations: Raw) -> Raw:
    metadata = _object(raw.get("metadata"))
    if annotations:
        metadata = {**metadata, "annotations": annotations}
    else:
        metadata = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**raw, "apiVersion": api_version, "metadata": metadata, "spec": spec}


def _object(value: Any) -> Raw:
    """The value if it is an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}
