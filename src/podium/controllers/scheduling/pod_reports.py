"""The reports about pending pods: nominations, conditions and messages."""

from __future__ import annotations

from podium.api.resource_version import is_comparable, is_older
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Nominate, ReportUnschedulable
from podium.controllers.deadlines import Deadlines
from podium.controllers.observations import Answer, Answered, Problem
from podium.controllers.scheduling.queue.queued_pod import SECOND_NS
from podium.decide.placement import Placement

# The wait before a failed write is sent again.
RETRY_NS = SECOND_NS


class PodReports:
    """The nominations and messages of pending pods, as the API shows them or will show them.

    A write is observed later, and older states may still arrive before it. While a write is pending, observed
    nominations are ignored. The version in its answer tells which states are older; before that, only the same
    nomination confirms it.
    """

    def __init__(self) -> None:
        # By uid: the last observed nomination, the written one that was not observed yet, and the message.
        self._shown: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        # The pod's version after the write, once it is answered.
        self._versions: dict[str, str] = {}
        # Failed writes by uid, and when to send them again.
        self._failed: dict[str, ReportUnschedulable | Nominate] = {}
        self.unwritten = self._failed.keys()
        """The uids of pods with a failed write; a live view."""
        self._retries: Deadlines[str] = Deadlines()

    def read(self, uid: str, nominated: str, version: str = "") -> bool:
        """Take in an observed nomination ("" for none); return whether another client has changed it."""
        before = self._shown.pop(uid, "")
        if nominated:
            self._shown[uid] = nominated
        written = self._written.get(uid)
        if written is None:
            return nominated != before
        told = self._versions.get(uid)
        if written == nominated if told is None else not is_older(version, told):
            self._forget_written(uid)
            return written != nominated
        return False

    def nominated(self, uid: str) -> str:
        """Return the nomination that the API shows or will show; "" for none."""
        return self._written.get(uid, self._shown.get(uid, ""))

    def write(self, uid: str, nominated: str) -> None:
        """Note the write of a nomination, or of its end ("")."""
        if nominated != self.nominated(uid):
            self._written[uid] = nominated
            self._versions.pop(uid, None)

    def answered(self, answered: Answered, now: int) -> None:
        """Handle the answer to a write."""
        action, problem = answered.action, answered.problem
        if not isinstance(action, (ReportUnschedulable, Nominate)):
            raise TypeError(f"{type(action).__name__} reports nothing about a pod")
        if problem is not None:
            self.failed(action, problem, now)
        elif action.uid in self._written and answered.written is not None:
            status, metadata = answered.written.get("status", {}), answered.written["metadata"]
            version = str(metadata.get("resourceVersion", ""))
            # An answer to an earlier write has another nomination.
            is_this = status.get("nominatedNodeName", "") == self._written[action.uid]
            if is_this and is_comparable(version):
                self._versions[action.uid] = version

    def report(self, pod: PodRecord, reason: str, message: str) -> list[ReportUnschedulable]:
        """Report a failed attempt if its message or the pod's nomination is new."""
        uid, nominated = pod.uid, pod.nominated_node_name
        is_new = nominated != self.nominated(uid)
        if not is_new and self._messages.get(uid) == message:
            return []
        self._messages[uid] = message
        self._forget_failure(uid)
        self.write(uid, nominated)
        return [ReportUnschedulable(pod.key, uid, reason, message, nominated if is_new else None)]

    def failed(self, action: ReportUnschedulable | Nominate, problem: Problem, now: int) -> None:
        """Schedule a failed write again; the observed nomination counts until then.

        A nomination before a binding is not repeated: the binding clears it. If the pod is gone, nothing is sent.
        """
        if Answered(action, problem).answer is not Answer.GONE:
            self._forget_written(action.uid)
            self._messages.pop(action.uid, None)
            if not isinstance(action, Nominate) or not action.node_name:
                self._failed[action.uid] = action
                self._retries.set(action.uid, now + RETRY_NS)

    def take_due(self, now: int) -> list[ReportUnschedulable | Nominate]:
        """Return the failed writes that are due."""
        due = []
        while (uid := self._retries.take_due(now)) is not None:
            due.append(self._failed.pop(uid))
        return due

    def again(self, action: ReportUnschedulable | Nominate, pod: PodRecord) -> list[Action]:
        """Return a failed write with the pod's current nomination; nothing if it is no longer needed."""
        if isinstance(action, ReportUnschedulable):
            return [*self.report(pod, action.reason, action.message)]
        if pod.nominated_node_name or not self.nominated(pod.uid):
            return []
        self.write(pod.uid, "")
        return [action]

    def next_deadline(self) -> int | None:
        """Return when the first write is due again; None if none is."""
        return self._retries.next_time()

    def forget(self, uid: str) -> None:
        """Forget a pod that is bound, gone, or not to be scheduled."""
        self._shown.pop(uid, None)
        self._forget_written(uid)
        self._messages.pop(uid, None)
        if self._failed:
            self._forget_failure(uid)

    def _forget_written(self, uid: str) -> None:
        if self._written.pop(uid, None) is not None:
            self._versions.pop(uid, None)

    def _forget_failure(self, uid: str) -> None:
        if self._failed.pop(uid, None) is not None:
            self._retries.set(uid, None)


def fit_error(placement: Placement, node_count: int, post_filter_message: str) -> str:
    """Return kube-scheduler's message for a pod that fits nowhere.

    Source: pkg/scheduler/framework/types.go (FitError.Error).
    """
    if not node_count:
        return "no nodes available to schedule pods"
    status = placement.pre_filter.status
    reasons = ", ".join(reasons_of(placement, node_count)) if status.is_success else status.message
    message = f"0/{node_count} nodes are available:" + (f" {reasons}." if reasons else "")
    return f"{message} {post_filter_message}" if post_filter_message else message


def reasons_of(placement: Placement, node_count: int) -> list[str]:
    """Return each reason with the number of nodes that gave it, as in `3 Insufficient cpu`."""
    counts: dict[str, int] = {}
    for refusal, number in placement.outcome.refusals():
        for reason in refusal.reasons:
            counts[reason] = counts.get(reason, 0) + number
    missing = node_count - placement.outcome.looked_at
    for reason in placement.pre_filter.left_out.reasons if missing > 0 else ():
        counts[reason] = counts.get(reason, 0) + missing
    return sorted(f"{number} {reason}" for reason, number in counts.items())
