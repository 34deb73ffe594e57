"""One pod from its creation to its end."""

from __future__ import annotations

import msgspec

from podium.api.disruption_policy import SCHEDULER
from podium.api.left_behind import EVICTED
from podium.api.pod import Pod
from podium.cluster.pods import PREEMPTED

_BY_KUBELET = "TerminationByKubelet"


class PodStory(msgspec.Struct):
    """One pod from its creation to its end; times in nanoseconds, None for what has not happened.

    `phase` is the pod's, or Terminated for one that was deleted before it ended by itself. `disruption` is the reason
    of its condition DisruptionTarget, such as PreemptionByScheduler, if it ended for that; "" otherwise. `evicted_by`
    is who evicted it, "" for nobody. `made_by` is its controller, as in `ReplicaSet default/web`, "" for none.
    """

    pod: str
    uid: str
    priority: int
    phase: str
    node: str
    nominated_node: str
    created_ns: int
    scheduled_ns: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    bound_in_run: bool = False
    disruption: str = ""
    evicted_by: str = ""
    made_by: str = ""

    @property
    def was_preempted(self) -> bool:
        """Whether it was deleted to make room for another."""
        return self.disruption == PREEMPTED


def note_disruption(story: PodStory, pod: Pod, by: str, *, is_gone: bool = False) -> None:
    """Note why a pod that ends was disrupted, and who began that. A preemption stays what it is, whatever follows."""
    target = pod.status.condition("DisruptionTarget")
    if target is None or target.status != "True" or story.was_preempted:
        return
    # The kubelet ends a pod without deleting it; all others mark those that they delete.
    ends_by_kubelet = pod.status.phase == "Failed" and target.reason == _BY_KUBELET
    if pod.is_terminating or is_gone or ends_by_kubelet:
        if not story.disruption and target.reason == EVICTED:
            # A preemptor, which is a pod, has its scheduler do it.
            story.evicted_by = SCHEDULER if "/" in by else by
        story.disruption = target.reason
