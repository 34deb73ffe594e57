"""What the API was told about pending pods, and what it shows of that."""

from __future__ import annotations

from podium.api.resource_version import is_comparable, is_older
from podium.cluster.pods import PodRecord
from podium.machines.actions import Action, Nominate, ReportUnschedulable
from podium.machines.answers import Answer
from podium.machines.observations import Answered, Problem
from podium.machines.parts.deadlines import Deadlines
from podium.machines.scheduling.queue.queued_pod import SECOND_NS

# How long after a write failed it is sent again.
RETRY_NS = SECOND_NS


class PodReports:
    """The nominations and messages of pending pods, as the API shows them or soon will.

    A write of ours is seen in the API only later, and readings from before it may still come. While one is on its way,
    what the readings say about the nomination is no news. Which of them are from before it, its answer tells by the
    version that was written; and until then nobody knows but of the one that says the same.
    """

    def __init__(self) -> None:
        # By uid: the nomination that was last read where there is one, the one that was written and not read since, the
        # message.
        self._shown: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        # Of those that were written, the version of the pod, once that is answered.
        self._versions: dict[str, str] = {}
        # Writes that failed, by uid, and when to send them again.
        self._failed: dict[str, ReportUnschedulable | Nominate] = {}
        self.unwritten = self._failed.keys()
        """The uids of pods of which a write has failed and is to be sent again, as things are."""
        self._retries: Deadlines[str] = Deadlines()

    def read(self, uid: str, nominated: str, version: str = "") -> bool:
        """Take in the nomination that a reading shows ("" for none); whether somebody else has changed it."""
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
        """The nomination that the API shows, or soon will; "" for none."""
        return self._written.get(uid, self._shown.get(uid, ""))

    def write(self, uid: str, nominated: str) -> None:
        """A nomination, or the end of it (""), is written by an action."""
        if nominated != self.nominated(uid):
            self._written[uid] = nominated
            self._versions.pop(uid, None)

    def answered(self, answered: Answered, now: int) -> None:
        """A write has ended."""
        action, problem = answered.action, answered.problem
        if not isinstance(action, (ReportUnschedulable, Nominate)):
            raise TypeError(f"{type(action).__name__} reports nothing about a pod")
        if problem is not None:
            self.failed(action, problem, now)
        elif action.uid in self._written and answered.written is not None:
            status, metadata = answered.written.get("status", {}), answered.written["metadata"]
            version = str(metadata.get("resourceVersion", ""))
            # An answer to an earlier write tells what that one made of the pod.
            is_this = status.get("nominatedNodeName", "") == self._written[action.uid]
            if is_this and is_comparable(version):
                self._versions[action.uid] = version

    def report(self, pod: PodRecord, reason: str, message: str) -> list[ReportUnschedulable]:
        """Report an attempt that came to nothing, if the message or the pod's nomination is new."""
        uid, nominated = pod.uid, pod.nominated_node_name
        is_new = nominated != self.nominated(uid)
        if not is_new and self._messages.get(uid) == message:
            return []
        self._messages[uid] = message
        self._forget_failure(uid)
        self.write(uid, nominated)
        return [ReportUnschedulable(pod.key, uid, reason, message, nominated if is_new else None)]

    def failed(self, action: ReportUnschedulable | Nominate, problem: Problem, now: int) -> None:
        """A write was refused, or left without an answer: what is read counts, and it is sent again later.

        But not a nomination that comes before a binding: the binding ends it. A conflict may mean that another pod has
        the name now; then the API will show that, and nothing is sent any more.
        """
        if Answered(action, problem).answer is not Answer.GONE:
            self._forget_written(action.uid)
            self._messages.pop(action.uid, None)
            if not isinstance(action, Nominate) or not action.node_name:
                self._failed[action.uid] = action
                self._retries.set(action.uid, now + RETRY_NS)

    def take_due(self, now: int) -> list[ReportUnschedulable | Nominate]:
        """The writes that failed and are to be sent again, as they were."""
        due = []
        while (uid := self._retries.take_due(now)) is not None:
            due.append(self._failed.pop(uid))
        return due

    def again(self, action: ReportUnschedulable | Nominate, pod: PodRecord) -> list[Action]:
        """A write that failed, brought up to date with the pod's nomination; nothing where it is no longer needed."""
        if isinstance(action, ReportUnschedulable):
            return [*self.report(pod, action.reason, action.message)]
        if pod.nominated_node_name or not self.nominated(pod.uid):
            return []
        self.write(pod.uid, "")
        return [action]

    def next_deadline(self) -> int | None:
        """When the first write is to be sent again; None if none is."""
        return self._retries.next_time()

    def forget(self, uid: str) -> None:
        """The pod is bound, gone, or not to be scheduled."""
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
