"""To which workload a pod belongs, as people mean it, and how many pods that one wants.

A pod of a ReplicaSet of a Deployment is the Deployment's; one that nobody controls, or only its node, stands by itself.
An owner that is not among the objects is the last that is known.
"""

from __future__ import annotations

from podium.api.meta import Kubernetes, OwnerReference
from podium.api.pod import Pod
from podium.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from podium.machines.workloads.workload import label_of
from podium.sim.limits import pods_wanted
from podium.store.log.watch_event import WatchEvent

_ASKING = (DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet)
# A kubelet's own pods have their node for a controller.
_NODE = "Node"


class TopWorkloads:
    """Takes in workloads as they are written; owners are there before what they own."""

    def __init__(self) -> None:
        self.tops: dict[str, str] = {}
        """By label, such as `ReplicaSet default/web-1`, the label of the topmost owner that is known."""
        # By top, what each workload below it asks for; where the top asks itself, only that.
        self._asked: dict[str, dict[str, int]] = {}

    def observe(self, event: WatchEvent) -> str | None:
        """Take in a write; the label of the workload whose wish may have changed by it, None for no workload."""
        object_ = event.stored.object
        label = label_of(object_)
        controller = object_.metadata.controller if object_.metadata.owner_references else None
        is_asking = isinstance(object_, _ASKING)
        if not is_asking and controller is None:
            return None
        top = label if controller is None else self._top(object_.metadata.namespace, controller)
        if not is_asking:
            return None
        if event.type == "DELETED":
            self.tops.pop(label, None)
        elif top != label:
            self.tops[label] = top
        if top != label and top in self._asked.get(top, ()):
            # What a Deployment's ReplicaSets ask for is its own affair.
            return None
        asked = self._asked.setdefault(top, {})
        if event.type == "DELETED":
            # That it asked for pods and does no more is remembered as asking for none.
            asked.pop(label, None)
        else:
            asked[label] = _wanted(object_, event)
        return top

    def of(self, pod: Pod) -> str:
        """The label of the workload that the pod belongs to."""
        controller = pod.metadata.controller if pod.metadata.owner_references else None
        if controller is None or controller.kind == _NODE:
            return f"Pod {pod.key}"
        return self._top(pod.metadata.namespace, controller)

    def asks(self, top: str) -> bool:
        """Whether more is known of a workload than its pods: how many it wants."""
        return top in self._asked

    def wanted(self, top: str) -> int | None:
        """How many pods a workload wants, None for one of which nothing but its pods is known."""
        asked = self._asked.get(top)
        return None if asked is None else sum(asked.values())

    def _top(self, namespace: str, controller: OwnerReference) -> str:
        label = f"{controller.kind} {namespace}/{controller.name}"
        return self.tops.get(label, label)


def _wanted(object_: Kubernetes, event: WatchEvent) -> int:
    status = event.stored.raw.get("status", {})
    if isinstance(object_, DaemonSet):
        return int(status.get("desiredNumberScheduled", 0))
    if isinstance(object_, Job):
        ended = any(
            condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
            for condition in status.get("conditions", ())
        )
        if ended or object_.spec.suspend:
            return 0
        completions, parallelism = object_.spec.completions, object_.spec.parallelism
        left = parallelism if completions is None else max(completions - status.get("succeeded", 0), 0)
        return min(parallelism, left)
    return pods_wanted(object_)
