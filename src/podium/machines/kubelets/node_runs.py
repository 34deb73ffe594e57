"""The pods of one node, and whether there is room for another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podium.api.node import Node
from podium.api.node_health import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, condition_status
from podium.api.pod import Pod
from podium.api.resource_requests import node_allocatable
from podium.api.resources import MEMORY
from podium.decide.critical_pods import Holder, is_critical, make_room
from podium.decide.kubelet_admission import Held, Refusal, pressure_refusal, refusals
from podium.decide.pressure import MemoryUse
from podium.machines.kubelets.node_trouble import TROUBLE, crash_after_ns, reject_after_ns
from podium.machines.kubelets.pod_run import PodRun

# A pod whose containers ran before is not turned away for these (feature gate NotEvictPodOnKubeletRestart).
_NOT_FOR_RUNNING = ("NodeAffinity", "TaintToleration")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a pod on its node: turned away for the ``refusal``, else admitted.

    With ``must_wait`` it starts when others that end have left, and ``victims`` are those that are to end for it.
    """

    refusal: Refusal | None = None
    must_wait: bool = False
    victims: tuple[PodRun, ...] = ()


_ADMITTED = Verdict()


@dataclass(slots=True, eq=False)
class NodeRuns:
    """``node`` is None while the API shows no such node; ``runs`` are by uid, in order of arrival.

    A pod whose containers are gone is among them until the API knows that it has ended: others get its room only then,
    so that a kubelet which starts anew meanwhile finds no more pods than there is room for. With ``honors_policy``,
    pods that are not preemptible end for no other. ``trouble`` are the node's annotations where they tell of some.
    ``may_wait``: a pod was made to wait since none did.
    """

    node: Node | None = None
    allocatable: Mapping[str, int] = field(default_factory=dict)
    runs: dict[str, PodRun] = field(default_factory=dict)
    honors_policy: bool = True
    trouble: Mapping[str, str] | None = None
    may_wait: bool = False
    # Which of the other pressures the node is under.
    _pressures: list[str] = field(default_factory=list, init=False)
    # What the holders hold together.
    _held: Held = field(default_factory=Held, init=False)
    # By uid, those of the pods that say how much memory they use.
    _users: dict[str, PodRun] = field(default_factory=dict, init=False)

    def read(self, node: Node) -> None:
        """Take in a newer reading of the node."""
        self.node = node
        self.allocatable = node_allocatable(node.status)
        annotations = node.metadata.annotations
        self.trouble = annotations if TROUBLE in annotations else None
        self._pressures = [type_ for type_ in (DISK_PRESSURE, PID_PRESSURE) if condition_status(node, type_) == "True"]

    def put(self, run: PodRun) -> None:
        """A pod has come."""
        self.runs[run.uid] = run
        if run.behaviour.memory_bytes:
            self._users[run.uid] = run
        if run.is_admitted:
            self._held.add(run.holding)

    def reread(self, run: PodRun) -> None:
        """How a pod will run may be told otherwise by now."""
        if run.uid in self.runs and run.behaviour.memory_bytes:
            self._users[run.uid] = run
        else:
            self._users.pop(run.uid, None)

    def admit(self, run: PodRun, *, must_wait: bool) -> None:
        """A pod that has come may stay; it holds its resources, though it may have to wait for others to leave."""
        run.is_admitted, run.is_waiting = True, must_wait
        self.may_wait = self.may_wait or must_wait
        self._held.add(run.holding)

    def drop(self, run: PodRun) -> None:
        """A pod is not there any more."""
        del self.runs[run.uid]
        if run.behaviour.memory_bytes:
            self._users.pop(run.uid, None)
        if run.is_admitted:
            self._held.remove(run.holding)

    def trouble_ns(self, pod: Pod) -> int | None:
        """How long after their start a pod's containers fail for the node's sake; None: they do not."""
        return None if self.trouble is None or self.node is None else crash_after_ns(self.trouble, pod)

    def reject_ns(self, pod: Pod) -> int | None:
        """How long after its coming a pod is turned away for the node's sake; None: it is not."""
        return None if self.trouble is None or self.node is None else reject_after_ns(self.trouble, pod)

    def judge(self, run: PodRun, *, is_short: bool, waits_for_victims: bool) -> Verdict:
        """Whether a pod may come; ``is_short``: the node is short of memory.

        One that fits beside those whose containers are not gone waits until the API knows of these. One that does not
        may wait for others that are being killed, if that is the way; a critical one has others killed for it.
        """
        # The conditions under which the node does not take every pod.
        pressures = [MEMORY_PRESSURE, *self._pressures] if is_short else self._pressures
        refused = pressure_refusal(run.pod, pressures) if pressures else None
        if refused is not None:
            return Verdict(refused)
        if not self._refusals(run, self._held):
            return _ADMITTED
        found = self.refusals(run, [holder for holder in self.holders() if not holder.is_ended])
        if not found:
            return Verdict(must_wait=True)
        if is_critical(run.pod):
            return self._make_room(run, found[0])
        waits = waits_for_victims and not self.refusals(run, self.staying())
        return Verdict(must_wait=True) if waits else Verdict(found[0])

    def judge_again(self, run: PodRun) -> Verdict:
        """Whether a pod that has run on this machine may go on after a restart of the machine."""
        others = [holder for holder in self.holders() if not holder.is_ended]
        found = [refusal for refusal in self.refusals(run, others) if refusal.reason not in _NOT_FOR_RUNNING]
        return Verdict(found[0]) if found else Verdict()

    def refusals(self, run: PodRun, others: Iterable[PodRun]) -> list[Refusal]:
        """Why a pod may not run here beside some others."""
        return self._refusals(run, Held(other.holding for other in others if other is not run))

    def _refusals(self, run: PodRun, beside: Held) -> list[Refusal]:
        if self.node is None:
            raise ValueError(f"pod {run.pod.key}: its node is not known")
        return refusals(run.pod, run.holding, self.node, self.allocatable, beside)

    def holders(self) -> list[PodRun]:
        """The pods that hold resources, those included that only wait for them."""
        return [run for run in self.runs.values() if run.is_admitted]

    def staying(self) -> list[PodRun]:
        """The holders that are not being killed, nor have ended."""
        return [run for run in self.holders() if not run.is_stopping and not run.is_ended]

    def has_waiting(self) -> bool:
        """Whether any pod waits for others to leave."""
        return self.may_wait and any(run.is_waiting for run in self.runs.values())

    def waiting(self) -> list[PodRun]:
        """The pods that wait for others to leave, by priority, then arrival."""
        return sorted([run for run in self.runs.values() if run.is_waiting], key=lambda run: -run.pod.priority)

    def available_bytes(self) -> int:
        """The memory that running pods leave, negative where they use more than there is."""
        available = self.allocatable.get(MEMORY, 0)
        if self._users:
            available -= sum(run.behaviour.memory_bytes for run in self._users.values() if run.is_running)
        return available

    def memory_uses(self) -> list[MemoryUse]:
        """What running pods use that are not being killed."""
        return [
            MemoryUse(run.pod, run.behaviour.memory_bytes, run.holding.amounts.get(MEMORY, 0))
            for run in self.staying()
            if run.is_running
        ]

    def _make_room(self, run: PodRun, refusal: Refusal) -> Verdict:
        """Whether a critical pod fits once less important ones have ended."""
        staying = self.staying()
        left = self.refusals(run, staying)
        lacking = [run.lacking for run in left if run.lacking is not None]
        if len(lacking) < len(left):
            return Verdict(refusal)
        holders = [Holder(pod_run.pod, pod_run.holding.amounts) for pod_run in staying if pod_run is not run]
        victims = make_room(run.pod, holders, dict(lacking), honors_policy=self.honors_policy)
        if victims is None:
            return Verdict(refusal)
        return Verdict(must_wait=True, victims=tuple(self.runs[victim.metadata.uid] for victim in victims))
