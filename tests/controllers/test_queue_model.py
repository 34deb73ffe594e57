"""The scheduling queue against a plain model, over random histories."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.hints import pod_changes
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueuePlace, QueueSettings
from podium.framework.events import EVERY_EVENT, ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.verdicts import SUCCESS, Status, unresolvable
from tests.controllers.pending import pending
from tests.controllers.queue_checks import begun, check_queue, pods_in
from tests.fuzzing import usual

SECOND = 1_000_000_000
FLUSH = 300 * SECOND


def of_high_priority(pod: PodRecord, _event: ClusterEvent) -> bool:
    return pod.priority > 1


PLUGINS: dict[str, tuple[EventToRegister, ...]] = {
    "Node": (EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),),
    "Pods": (EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, of_high_priority),),
    "Labels": (EventToRegister(EventResource.POD, ActionType.UPDATE_POD_LABEL),),
    "Foreign": EVERY_EVENT,
    "Mute": (),
    "Gates": (EventToRegister(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES),),
    "Preempting": (EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, of_high_priority),),
}
EVENTS = (
    ClusterEvent(EventResource.NODE, ActionType.ADD),
    ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
    ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE),
    ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE_OTHER),
    ClusterEvent(EventResource.WILDCARD, ActionType.ALL),
)
PLUGIN_SETS = st.frozensets(st.sampled_from(("Node", "Pods", "Labels", "Foreign", "Mute")), min_size=1, max_size=2)
SOMETIMES_PLUGINS = st.just(frozenset[str]()) | PLUGIN_SETS
RARELY = st.sampled_from((False, False, False, True))


@dataclass
class Known:
    """A pod as the model knows it. ``free`` lets it be attempted before its backoff has ended."""

    record: PodRecord
    queued_ns: int
    place: QueuePlace = QueuePlace.ACTIVE
    rejections: int = 0
    errors: int = 0
    plugins: frozenset[str] = frozenset()
    gate: str = ""
    deadline: int = 0
    free: bool = True
    attempt: QueuedPod | None = None
    seen: list[ClusterEvent] = field(default_factory=list)
    latest: PodRecord | None = None


def wakes(plugins: frozenset[str], pod: PodRecord, event: ClusterEvent) -> bool:
    return any(registered.wakes(pod, event) for plugin in plugins for registered in PLUGINS[plugin])


class QueueMachine(RuleBasedStateMachine):
    """Every rule does one thing to the queue and to the model; `agrees` compares them after each."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.born = 0
        self.known: dict[str, Known] = {}
        self.preempting: set[str] = set()
        self.first: set[str] = set()

    @initialize(pop_from_backoff=st.booleans(), priorities=st.lists(st.integers(0, 3), min_size=2, max_size=4))
    def start(self, pop_from_backoff: bool, priorities: list[int]) -> None:
        self.early = pop_from_backoff
        self.queue = SchedulingQueue(
            {"default-scheduler": lambda pod, queued_ns: (-pod.priority, queued_ns)},
            self.pre_enqueue,
            {"default-scheduler": PLUGINS},
            # test_queue.py covers attempts at one instant.
            QueueSettings(pop_from_backoff=pop_from_backoff, most_pops_at_once=1_000),
            self.first,
        )
        for priority in priorities:
            self.add(priority, gated=False)

    # What happens.

    @rule(priority=st.integers(0, 3), gated=RARELY)
    def add(self, priority: int, gated: bool) -> None:
        self.born += 1
        record = pending(f"p{self.born}", priority, gates=["g"] if gated else [])
        self.queue.add(record, self.now)
        pod = self.known[record.uid] = Known(record, self.now)
        self.settle(pod, "at once")

    @precondition(lambda self: self.known)
    @rule(data=st.data(), priority=st.integers(0, 3), gated=st.booleans(), label=st.sampled_from("ab"))
    def update(self, data: st.DataObject, priority: int, gated: bool, label: str) -> None:
        pod = self.choose(data, lambda _: True)
        old = pod.latest or pod.record
        gates = ["g"] if gated and old.gates else []
        new = pending(old.name, priority, gates=gates, labels={"l": label})
        self.queue.update(new, self.now)
        event = ClusterEvent(EventResource.POD, pod_changes(old, new), old, new)
        if pod.place is QueuePlace.IN_FLIGHT:
            pod.latest = new
            pod.seen.append(event)
            return
        pod.record = new
        if pod.place in (QueuePlace.UNSCHEDULABLE, QueuePlace.GATED):
            strategy = self.strategy(pod, event, gate="")
            if strategy or pod.gate:
                self.settle(pod, strategy)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        pod = self.choose(data, lambda _: True)
        del self.known[pod.record.uid]
        self.queue.delete(pod.record.uid)
        if pod.attempt is not None:
            self.queue.add_unschedulable(pod.attempt, ["Node"], self.now)

    @rule()
    def pop(self) -> None:
        self.end_backoffs()
        candidates = self.at(QueuePlace.ACTIVE)
        idle = not candidates
        if idle and self.early:
            candidates = [pod for pod in self.at(QueuePlace.BACKOFF) if not pod.errors]
            first = min(candidates, key=lambda pod: (self.backoff_end(pod), self.order(pod)), default=None)
        else:
            first = min(candidates, key=self.order, default=None)

        queued = begun(self.queue, self.now)

        if first is None:
            assert queued is None
            return
        assert queued is not None
        assert queued.record is first.record
        assert idle or first.free or self.now >= first.queued_ns + self.backoff(first)
        first.place, first.attempt = QueuePlace.IN_FLIGHT, queued
        first.plugins = frozenset()
        first.seen, first.latest = [], first.record

    @precondition(lambda self: self.at(QueuePlace.IN_FLIGHT))
    @rule(data=st.data(), plugins=SOMETIMES_PLUGINS, is_error=RARELY)
    def fail(self, data: st.DataObject, plugins: frozenset[str], is_error: bool) -> None:
        pod = self.choose(data, lambda pod: pod.place is QueuePlace.IN_FLIGHT)
        assert pod.attempt is not None
        assert pod.latest is not None
        self.queue.add_unschedulable(pod.attempt, plugins, self.now, is_error=is_error)
        pod.record, pod.attempt, pod.latest, pod.queued_ns = pod.latest, None, None, self.now
        pod.plugins = frozenset() if is_error else plugins
        pod.free = False
        if pod.plugins:
            pod.rejections, pod.errors = pod.rejections + 1, 0
            self.settle(pod, max((self.strategy(pod, event, gate="") for event in pod.seen), default=""))
        else:
            pod.errors += 1
            self.settle(pod, "after backoff")

    @rule(data=st.data(), plugins=PLUGIN_SETS, is_error=RARELY)
    def attempt(self, data: st.DataObject, plugins: frozenset[str], is_error: bool) -> None:
        self.pop()
        if self.at(QueuePlace.IN_FLIGHT):
            self.fail(data, plugins, is_error)

    @precondition(lambda self: self.at(QueuePlace.IN_FLIGHT))
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        pod = self.choose(data, lambda pod: pod.place is QueuePlace.IN_FLIGHT)
        del self.known[pod.record.uid]
        self.queue.done(pod.record.uid)

    @rule(event=st.sampled_from(EVENTS))
    def move(self, event: ClusterEvent) -> None:
        self.queue.move(event, self.now)
        for pod in self.known.values():
            if pod.place is QueuePlace.IN_FLIGHT:
                pod.seen.append(event)
            elif pod.place in (QueuePlace.UNSCHEDULABLE, QueuePlace.GATED) and (
                strategy := self.strategy(pod, event, pod.gate)
            ):
                self.settle(pod, strategy)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        pod = self.choose(data, lambda _: True)
        self.queue.activate([pod.record.uid], self.now)
        if pod.place is QueuePlace.IN_FLIGHT:
            pod.seen.append(ClusterEvent(EventResource.WILDCARD, ActionType.ALL))
        elif pod.place is QueuePlace.BACKOFF:
            pod.place, pod.free = QueuePlace.ACTIVE, True
        elif pod.place is not QueuePlace.ACTIVE:
            self.settle(pod, "at once")

    @precondition(lambda self: self.known)
    @rule(data=st.data(), begins=st.booleans())
    def preempt(self, data: st.DataObject, begins: bool) -> None:
        uid = self.choose(data, lambda _: True).record.uid
        self.preempting = self.preempting | {uid} if begins else self.preempting - {uid}

    @precondition(lambda self: self.known)
    @rule(data=st.data(), begins=st.booleans())
    def go_first(self, data: st.DataObject, begins: bool) -> None:
        uid = self.choose(data, lambda _: True).record.uid
        (self.first.add if begins else self.first.discard)(uid)
        self.queue.reorder(uid, self.now)

    @rule(nanoseconds=st.sampled_from((1, SECOND // 3, SECOND, 5 * SECOND, FLUSH // 2)))
    def wait(self, nanoseconds: int) -> None:
        self.now += nanoseconds

    @rule()
    def flush(self) -> None:
        deadline = self.queue.next_deadline()
        if deadline is not None:
            self.now = max(self.now, deadline)
        self.queue.flush(self.now)
        self.end_backoffs()
        for pod in self.at(QueuePlace.UNSCHEDULABLE) + self.at(QueuePlace.GATED):
            if pod.deadline <= self.now:
                self.settle(pod, "after backoff")

    # What must hold.

    @invariant()
    def agrees(self) -> None:
        check_queue(self.queue)
        assert {queued.record.uid: queued.place for queued in self.queue} == {
            uid: pod.place for uid, pod in self.known.items()
        }
        assert all(self.queue.where(uid) is pod.place for uid, pod in self.known.items())
        active = [queued.record.uid for queued in pods_in(self.queue, QueuePlace.ACTIVE)]
        assert active == [pod.record.uid for pod in sorted(self.at(QueuePlace.ACTIVE), key=self.order)]
        deadlines = [self.backoff_end(pod) for pod in self.at(QueuePlace.BACKOFF)]
        deadlines += [pod.deadline for pod in self.at(QueuePlace.UNSCHEDULABLE) + self.at(QueuePlace.GATED)]
        assert self.queue.next_deadline() == min(deadlines, default=None)

    @invariant()
    def nobody_waits_longer_than_the_flush_interval(self) -> None:
        assert all(
            pod.deadline - self.now <= FLUSH for pod in self.at(QueuePlace.UNSCHEDULABLE) + self.at(QueuePlace.GATED)
        )

    # The model's rules.

    def pre_enqueue(self, pod: PodRecord) -> Status:
        gate = self.gate(pod)
        return unresolvable("no").by(gate) if gate else SUCCESS

    def gate(self, pod: PodRecord) -> str:
        return "Gates" if pod.gates else "Preempting" if pod.uid in self.preempting else ""

    def strategy(self, pod: Known, event: ClusterEvent, gate: str) -> str:
        gating = frozenset({gate} - {""})
        if event.resource is EventResource.WILDCARD or not pod.plugins | gating:
            return "after backoff"
        registered = [ClusterEvent(each.resource, each.action) for each in PLUGINS.get(gate, ())]
        if gate and not any(event.concerns(each) for each in registered):
            return ""
        return "after backoff" if wakes(pod.plugins | gating, pod.record, event) else ""

    def settle(self, pod: Known, strategy: str) -> None:
        if strategy or pod.gate:
            pod.gate = self.gate(pod.record)
        if pod.gate or not strategy:
            pod.place = QueuePlace.GATED if pod.gate else QueuePlace.UNSCHEDULABLE
            pod.deadline = pod.queued_ns + FLUSH if pod.queued_ns + FLUSH > self.now else self.now + FLUSH
        elif strategy == "after backoff" and self.backoff_end(pod) > self.now:
            pod.place = QueuePlace.BACKOFF
        else:
            pod.place = QueuePlace.ACTIVE
            pod.free = pod.free or strategy == "at once"

    def end_backoffs(self) -> None:
        for pod in self.at(QueuePlace.BACKOFF):
            if self.backoff_end(pod) <= self.now:
                pod.place = QueuePlace.ACTIVE

    def backoff(self, pod: Known) -> int:
        count = pod.errors or pod.rejections
        return (0, 1, 2, 4, 8, 10)[min(count, 5)] * SECOND

    def backoff_end(self, pod: Known) -> int:
        end = pod.queued_ns + self.backoff(pod)
        return end - end % SECOND + SECOND if self.early and self.backoff(pod) else end

    def order(self, pod: Known) -> tuple[bool, int, int, str]:
        return (pod.record.uid not in self.first, -pod.record.priority, pod.queued_ns, pod.record.name)

    def at(self, place: QueuePlace) -> list[Known]:
        return [pod for pod in self.known.values() if pod.place is place]

    def choose(self, data: st.DataObject, fits: Callable[[Known], bool]) -> Known:
        return self.known[data.draw(st.sampled_from([uid for uid, pod in self.known.items() if fits(pod)]))]


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=usual(200), stateful_step_count=50)
