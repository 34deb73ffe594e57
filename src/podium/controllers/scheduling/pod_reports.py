"""The reports about pending pods: nominations, conditions and messages."""

from __future__ import annotations

from typing import Generic, TypeVar

from podium.api.meta import Raw, is_comparable, is_older
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Nominate, ReportUnschedulable
from podium.controllers.deadlines import Deadlines
from podium.controllers.observations import ActionFinished, Answer
from podium.controllers.scheduling.queue.queued_pod import SECOND_NS
from podium.decide.placement import Placement
from podium.framework.verdicts import in_words

# The wait before a failed write is sent again.
RETRY_NS = SECOND_NS


Value = TypeVar("Value")
Failed = TypeVar("Failed")


class PendingWrites(Generic[Value, Failed]):
    """The last written value of each object (by key) until the API shows it; and the writes that failed.

    A write is observed later, and older states may still arrive before it. The version in its answer tells which states
    are older; before that, only the same value confirms it.
    """

    def __init__(self) -> None:
        self.written: dict[str, Value] = {}
        # The object's version after the write, once it is answered.
        self._versions: dict[str, str] = {}
        self._failed: dict[str, Failed] = {}
        self.failed = self._failed.keys()
        """The keys of failed writes; a live view."""
        self._retries: Deadlines[str] = Deadlines()
        self.next_deadline = self._retries.next_time

    def put(self, key: str, value: Value) -> None:
        self.written[key] = value
        self._versions.pop(key, None)

    def on_written(self, key: str, raw: Raw) -> None:
        """Note the version in the answer to the last write."""
        version = str(raw["metadata"].get("resourceVersion", ""))
        if is_comparable(version):
            self._versions[key] = version

    def see(self, key: str, value: object, version: str) -> bool:
        """Return whether an observed state is at least as new as the last write; then forget that write."""
        written_version = self._versions.get(key)
        is_newer = self.written[key] == value if written_version is None else not is_older(version, written_version)
        if is_newer:
            self.forget(key)
        return is_newer

    def forget(self, key: str) -> None:
        if self.written.pop(key, None) is not None:
            self._versions.pop(key, None)

    def fail(self, key: str, write: Failed, now: int) -> None:
        """Forget the written value, and send a write again after a while."""
        self.forget(key)
        self._failed[key] = write
        self._retries.set(key, now + RETRY_NS)

    def forget_failure(self, key: str) -> None:
        if self._failed.pop(key, None) is not None:
            self._retries.set(key, None)

    def take_due(self, now: int) -> list[tuple[str, Failed]]:
        due = []
        while (key := self._retries.take_due(now)) is not None:
            due.append((key, self._failed.pop(key)))
        return due


class PodReports:
    """The nominations and messages of pending pods, as the API shows them or will show them.

    While a write is pending, observed nominations are ignored.
    """

    def __init__(self) -> None:
        # By uid: the last observed nomination, the written one that was not observed yet, and the last report's reason
        # and message.
        self._shown: dict[str, str] = {}
        self._writes: PendingWrites[str, ReportUnschedulable | Nominate] = PendingWrites()
        self._reported: dict[str, tuple[str, str]] = {}
        self.unwritten = self._writes.failed
        self.next_deadline = self._writes.next_deadline

    def read(self, uid: str, nominated: str, version: str = "") -> bool:
        """Take in an observed nomination ("" for none); return whether another client has changed it."""
        before = self._shown.pop(uid, "")
        if nominated:
            self._shown[uid] = nominated
        written = self._writes.written.get(uid)
        if written is None:
            return nominated != before
        return self._writes.see(uid, nominated, version) and written != nominated

    def nominated(self, uid: str) -> str:
        """Return the nomination that the API shows or will show; "" for none."""
        return self._writes.written.get(uid, self._shown.get(uid, ""))

    def write(self, uid: str, nominated: str) -> None:
        """Note the write of a nomination, or of its end ("")."""
        if nominated != self.nominated(uid):
            self._writes.put(uid, nominated)

    def on_finished(self, action: ReportUnschedulable | Nominate, finished: ActionFinished, now: int) -> None:
        """Handle the answer to a write.

        A failed one is sent again; the observed nomination counts until then. A nomination before a binding is not
        repeated: the binding clears it. If the pod is gone, nothing is sent.
        """
        uid, written = action.uid, self._writes.written.get(action.uid)
        if finished.problem is None:
            # An answer to an earlier write has another nomination.
            raw = finished.written
            if raw is not None and raw.get("status", {}).get("nominatedNodeName", "") == written:
                self._writes.on_written(uid, raw)
        elif finished.answer is not Answer.GONE:
            self._reported.pop(uid, None)
            if isinstance(action, Nominate) and action.node_name:
                self._writes.forget(uid)
            else:
                self._writes.fail(uid, action, now)

    def report(self, pod: PodRecord, reason: str, message: str, may_reword: bool = False) -> list[ReportUnschedulable]:
        """Report a failed attempt if its message or the pod's nomination is new.

        Whether only the message is new, the report says if it ``may_reword``.
        """
        uid, nominated, before = pod.uid, pod.nominated_node_name, self._reported.get(pod.uid)
        is_new = nominated != self.nominated(uid)
        if not is_new and before == (reason, message):
            return []
        rewords = may_reword and not is_new and before is not None and before[0] == reason
        self._reported[uid] = reason, message
        self._writes.forget_failure(uid)
        if is_new:
            self._writes.put(uid, nominated)
        return [ReportUnschedulable(pod.key, uid, reason, message, nominated if is_new else None, rewords)]

    def take_due(self, now: int) -> list[ReportUnschedulable | Nominate]:
        """Return the failed writes that are due."""
        return [write for _, write in self._writes.take_due(now)]

    def again(self, action: ReportUnschedulable | Nominate, pod: PodRecord) -> list[Action]:
        """Return a failed write with the pod's current nomination; nothing if it is no longer needed."""
        if isinstance(action, ReportUnschedulable):
            return [*self.report(pod, action.reason, action.message)]
        if pod.nominated_node_name or not self.nominated(pod.uid):
            return []
        self.write(pod.uid, "")
        return [action]

    def forget(self, uid: str) -> None:
        """Forget a pod that is bound, gone, or not to be scheduled."""
        self._shown.pop(uid, None)
        self._reported.pop(uid, None)
        self._writes.forget(uid)
        if self.unwritten:
            self._writes.forget_failure(uid)


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
    """Return each reason with the number of nodes that gave it."""
    _, numbers, words = placement.outcome.summary()
    left_out = placement.pre_filter.left_out.reasons
    missing = node_count - placement.outcome.examined_nodes if left_out else 0
    if missing <= 0:
        return words
    return in_words(numbers | {reason: numbers.get(reason, 0) + missing for reason in left_out})
