"""What somebody has asked for, as it shows in an object: the step of a scenario that asks for the same.

What a simulation fills in by itself is left out: bindings, volumes, taints of a node's state, status. So is an object's
identity, which is another one there.
"""

from __future__ import annotations

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.api.disruption_rate import DISRUPTION_RATE
from podium.api.kinds import WORKLOADS
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import NOMINATED_NODE_ANNOTATION, Pod
from podium.machines.nodes.node_taints import MANAGED
from podium.machines.scheduling.futile_notes import ANNOTATION as FUTILE_PREEMPTIONS

_KEPT_METADATA = ("name", "namespace", "labels", "annotations")
# What controllers write into specifications.
_WRITTEN: dict[str, tuple[str, ...]] = {
    "Namespace": ("finalizers",),
    "Node": ("podCIDR", "podCIDRs"),
    "PersistentVolume": ("claimRef",),
    "PersistentVolumeClaim": ("volumeName",),
    "Pod": ("nodeName",),
}
# What a node's kubelet says of it that others go by.
_REPORTED = ("allocatable", "capacity", "images")
_OF_ITS_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "job-name")
# The annotations in which controllers keep something in mind.
_KEPT_IN_MIND = (
    "deployment.kubernetes.io/",
    DISRUPTION_RATE,
    FUTILE_PREEMPTIONS,
    "pv.kubernetes.io/",
    PREFER_AVOID_PODS,
    NOMINATED_NODE_ANNOTATION,
    "volume.kubernetes.io/",
)


def creation(raw: Raw, object_: Kubernetes) -> Raw:
    """The object as whoever made it has asked for it."""
    made = _plain(raw)
    if isinstance(object_, Pod) and object_.spec.node_name and object_.status.condition("PodScheduled") is None:
        # It came with its node, and no scheduler has had a say.
        made["spec"] = {**made["spec"], "nodeName": object_.spec.node_name}
    if raw.get("kind") == "Job":
        made["spec"] = _job_spec(made.get("spec", {}))
    return made


def change(before: Raw, after: Raw) -> Raw | None:
    """The step that makes of an object what it has become, None where nobody has asked for anything."""
    kind = after["kind"]
    was, is_ = _plain(before), _plain(after)
    if was == is_:
        return None
    metadata = is_["metadata"]
    place = {name: metadata[name] for name in ("namespace", "name") if name in metadata}
    if kind == "Pod":
        # Of a pod that is there little else may change.
        spec = {"containers": is_.get("spec", {}).get("containers", [])}
        return {"apply": [{**is_, "spec": spec}]}
    only = _only_change(was, is_)
    if kind in WORKLOADS and only == "replicas":
        return {"scale": {"kind": kind, **place, "replicas": is_["spec"].get("replicas", 1)}}
    if kind == "Node" and only == "unschedulable":
        return {"cordon" if is_["spec"].get("unschedulable") else "uncordon": place}
    return {"apply": [is_]}


def _only_change(was: Raw, is_: Raw) -> str:
    """The one field of the specification that is another, "" where more is."""
    before, after = was.get("spec", {}), is_.get("spec", {})
    if {**was, "spec": None} != {**is_, "spec": None}:
        return ""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return names[0] if len(names) == 1 else ""


def _plain(raw: Raw) -> Raw:
    """The object without what a simulation fills in, and without its identity."""
    kind = raw["kind"]
    plain = {name: value for name, value in raw.items() if name not in ("metadata", "status")}
    metadata = {name: value for name, value in raw["metadata"].items() if name in _KEPT_METADATA}
    annotations = metadata.pop("annotations", None) or {}
    kept = {name: value for name, value in annotations.items() if not name.startswith(_KEPT_IN_MIND)}
    plain["metadata"] = {**metadata, "annotations": kept} if kept else metadata
    spec = raw.get("spec")
    if isinstance(spec, dict):
        spec = {name: value for name, value in spec.items() if name not in _WRITTEN.get(kind, ())}
        plain["spec"] = spec
    if kind == "Node":
        plain["spec"] = _node_spec(plain.get("spec") or {})
    status = raw.get("status")
    if kind == "Node" and isinstance(status, dict):
        plain["status"] = {name: status[name] for name in _REPORTED if name in status}
    return plain


def _node_spec(spec: Raw) -> Raw:
    """A node's specification without the taints of its state; of what says nothing, nothing is said."""
    taints = [taint for taint in spec.get("taints", ()) if (taint.get("key"), taint.get("effect")) not in MANAGED]
    return {name: value for name, value in {**spec, "taints": taints}.items() if value not in ([], False)}


def _job_spec(spec: Raw) -> Raw:
    """A Job's specification without what it was given because of its uid (pkg/registry/batch/job, generateSelector)."""
    if spec.get("manualSelector"):
        return spec
    plain = {name: value for name, value in spec.items() if name != "selector"}
    template = plain.get("template", {})
    metadata = template.get("metadata", {})
    labels = {name: value for name, value in metadata.get("labels", {}).items() if name not in _OF_ITS_JOB}
    plain["template"] = {**template, "metadata": {**metadata, "labels": labels}}
    return plain
