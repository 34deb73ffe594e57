"""The pods of Jobs, as far as they are yet to be counted.

Source: pkg/controller/job/tracking_utils.go. A finalizer keeps a pod that has ended until it is counted, once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeVar

from podium.api.meta import Raw
from podium.api.workloads import Job, JobSpec
from podium.machines.actions import PatchObject
from podium.machines.workloads.jobs.completion_indexes import INDEX
from podium.machines.workloads.owned_pods import OwnedPod, Sighting
from podium.machines.workloads.workload import Workload

TRACKING = "batch.kubernetes.io/job-tracking"
"""Finalizer of a Job's pod that has not been counted."""

Outcome = Literal["succeeded", "failed"]
_Value = TypeVar("_Value")


@dataclass(slots=True)
class JobPods:
    """What one Job's controller remembers of its pods, by uid.

    ``ended`` have ended or were deleted, and have the finalizer. ``untracked`` are active and have it not.
    ``terminating`` were deleted and have not ended. ``gone`` were among ``ended`` and exist no more. ``missed`` says
    since when pods that the status names have not been seen.
    ``asked`` says on which version of a pod its finalizers were to be changed. ``checked`` were seen to be as they are
    known. ``noted`` are those whose end the back-off knows of.
    """

    ended: dict[str, OwnedPod] = field(default_factory=dict)
    untracked: dict[str, OwnedPod] = field(default_factory=dict)
    terminating: dict[str, OwnedPod] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    checked: dict[str, None] = field(default_factory=dict)
    noted: dict[str, None] = field(default_factory=dict)

    def see(self, sighting: Sighting) -> None:
        """Take in what has happened to a pod."""
        pod = sighting.after or sighting.before
        if pod is None:
            return
        uid, is_there, has_finalizer = pod.uid, sighting.after is not None, is_tracked(pod)
        if uid in self.ended and not is_there:
            self.gone[uid] = None
        _put(self.terminating, uid, pod, is_there and pod.pod.is_terminating and not pod.pod.is_terminal)
        _put(self.untracked, uid, pod, is_there and pod.is_active and not has_finalizer)
        _put(self.ended, uid, pod, is_there and has_finalizer and not pod.is_active)
        if not is_there or self.asked.get(uid) != pod.pod.metadata.resource_version:
            self.asked.pop(uid, None)
        if uid not in self.ended:
            self.checked.pop(uid, None)
            self.noted.pop(uid, None)

    def ask(self, pod: OwnedPod) -> bool:
        """Whether to ask for a change of the pod's finalizers, which is asked for once on each version."""
        version = pod.pod.metadata.resource_version
        is_new = self.asked.get(pod.uid) != version
        self.asked[pod.uid] = version
        return is_new

    def check(self, uid: str) -> None:
        """A pod that has ended was seen to be as it is known."""
        self.asked.pop(uid, None)
        if uid in self.ended:
            self.checked[uid] = None


def is_tracked(pod: OwnedPod) -> bool:
    """Whether a pod has yet to be counted."""
    return TRACKING in pod.pod.metadata.finalizers


def waits_for_failure(spec: JobSpec) -> bool:
    """Whether a pod that was deleted is replaced only once it has ended (onlyReplaceFailedPods)."""
    return spec.pod_failure_policy is not None or spec.pod_replacement_policy == "Failed"


def outcome_of(pod: OwnedPod, *, waits: bool) -> Outcome | None:
    """How a pod has ended; None where it has not.

    One that was deleted has failed; where its Job ``waits`` for that, once its containers are gone.
    """
    if pod.pod.is_terminal:
        return "succeeded" if pod.pod.status.phase == "Succeeded" else "failed"
    meta = pod.pod.metadata
    if meta.deletion_timestamp is None or (waits and meta.deletion_grace_period_seconds):
        return None
    return "failed"


def finalizers_patch(pod: OwnedPod, cause: str, *, tracked: bool) -> PatchObject:
    """What gives a pod the finalizer or takes it away, if the pod is as it is known."""
    kept = [finalizer for finalizer in pod.pod.metadata.finalizers if finalizer != TRACKING]
    finalizers = [*kept, TRACKING] if tracked else kept
    metadata = {"resourceVersion": pod.pod.metadata.resource_version, "finalizers": finalizers or None}
    return PatchObject("Pod", pod.pod.key, pod.uid, {"metadata": metadata}, cause)


def check_patch(pod: OwnedPod, cause: str) -> PatchObject:
    """What changes nothing, and is refused unless the pod is as it is known."""
    patch = {"metadata": {"resourceVersion": pod.pod.metadata.resource_version}}
    return PatchObject("Pod", pod.pod.key, pod.uid, patch, cause)


def is_check(action: PatchObject) -> bool:
    """Whether the action is one of `check_patch`."""
    return "finalizers" not in action.patch["metadata"]


def new_job_pod(workload: Workload[Job], index: int | None) -> Raw:
    """A pod of a Job, with an index where the Job gives them."""
    meta, template = workload.object.metadata, workload.template
    given, spec = template.get("metadata", {}), template.get("spec", {})
    names = {"job-name": meta.name, "controller-uid": meta.uid}
    labels = {**names, **{f"batch.kubernetes.io/{name}": value for name, value in names.items()}}
    metadata: Raw = {
        "generateName": f"{meta.name}-",
        "finalizers": [*(finalizer for finalizer in given.get("finalizers", ()) if finalizer != TRACKING), TRACKING],
    }
    if index is not None:
        metadata["generateName"] = f"{meta.name}-{index}-"
        metadata["annotations"] = {**given.get("annotations", {}), INDEX: str(index)}
        labels[INDEX] = str(index)
        spec = {**spec, "hostname": f"{meta.name}-{index}"}
    return workload.new_pod(template, metadata, labels, spec)


def _put(group: dict[str, _Value], uid: str, value: _Value, belongs: bool) -> None:
    if belongs:
        group[uid] = value
    else:
        group.pop(uid, None)
