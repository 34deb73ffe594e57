"""A trace whose pods belong to workloads, so that one that is evicted comes again.

The trace tells of pods alone. What is assumed: a pod that is more than best effort and stays an hour or longer is a
service, a ReplicaSet of one, which its owner takes away when its time is over, however often it was moved meanwhile.
Everything else is work, a Job, which takes as long as it took, and begins anew where it is interrupted.
"""

from __future__ import annotations

from dataclasses import replace

from podium.api.meta import Raw
from podium.api.times import parse_duration
from podium.machines.kubelets.pod_annotations import DURATION
from podium.sim.traces.trace import Trace

SERVICE_SECONDS = 3_600
"""How long a pod stays at least that is taken to be a service."""

_OWNER = "podium.dev/owner"
_BEST_EFFORT = "best-effort"


def with_owners(trace: Trace) -> Trace:
    """The same trace with a workload for each pod, of the pod's name."""
    stays: dict[str, int] = {}
    arrivals = []
    for time, pod in trace.arrivals:
        seconds = parse_duration(pod["metadata"]["annotations"][DURATION]) // 10**9
        if seconds >= SERVICE_SECONDS and pod["spec"]["priorityClassName"] != _BEST_EFFORT:
            arrivals.append((time, _service(pod)))
            stays[pod["metadata"]["name"]] = seconds
        else:
            arrivals.append((time, _job(pod)))
    return replace(trace, arrivals=arrivals, stays=stays)


def _service(pod: Raw) -> Raw:
    name = pod["metadata"]["name"]
    labels = {_OWNER: name, **pod["metadata"]["labels"]}
    annotations = {key: value for key, value in pod["metadata"]["annotations"].items() if key != DURATION}
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {**pod["spec"], "restartPolicy": "Always"},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": {_OWNER: name}}, "template": template},
    }


def _job(pod: Raw) -> Raw:
    """A Job that no disruption ends: those of its pods do not count as failures."""
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    metadata = {key: pod["metadata"][key] for key in ("labels", "annotations")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": pod["metadata"]["name"], "namespace": "default", "labels": metadata["labels"]},
        "spec": {
            "podFailurePolicy": {"rules": [disrupted]},
            "template": {"metadata": metadata, "spec": pod["spec"]},
        },
    }
