"""Binding cycles do what the table in docs says: every stage, every event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import product

import pytest

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Bind, ReserveClaim
from podium.controllers.observations import ActionFinished, Problem
from podium.controllers.scheduling.binding_cycles import BindingCycles
from podium.controllers.scheduling.binding_stages import BindingStage, StepResult
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.framework.handle import CycleState, WaitingPods
from podium.framework.plugin import DeviceReservation, PermitResult
from podium.framework.runner import Runner
from podium.framework.settings.registry import Profile
from podium.framework.verdicts import SUCCESS, Code, Status
from tests.builders import cluster_of, node, pod
from tests.controllers.automata import transitions_of_binding_cycles
from tests.controllers.driving import CONFLICT, NO_ANSWER, NOT_FOUND, REFUSED, SECOND, events


class Step(Enum):
    """The contents of the table's cells."""

    STAY = ""  # without a row
    GO_ON = "goes on"
    WAIT = "looks again later"
    AGAIN = "asks again after 1 s"
    DOUBT = "in-doubt, asks again after 1 s"
    BIND = "is bound"
    END = "is bound, and over"
    YIELD = "gives back what was reserved, but for the room"
    UNDO = "gives back what was reserved"
    FAIL = "fails"


LISTED = {
    (BindingStage(stage), event): Step(outcome) for (stage, event), outcome in transitions_of_binding_cycles().items()
}
EVENTS = tuple(dict.fromkeys(event for _, event in LISTED))
STAGES = tuple(stage for stage in BindingStage if stage is not BindingStage.RESERVE)
TRANSITIONS: dict[tuple[BindingStage, str], Step] = {key: LISTED.get(key, Step.STAY) for key in product(STAGES, EVENTS)}
BROKEN = Problem(500, "InternalError", "etcdserver: request timed out")
FOREVER = 10**6 * SECOND
DEVICES = DeviceReservation("default/devices", "claim-uid", timeout_ns=FOREVER)


class Way:
    """A plugin at every point of the way; what it has the pod wait for is the test's to say."""

    name = "Way"

    def __init__(self) -> None:
        self.makes_wait = self.has_claims = False
        self.is_ready = True
        self.reserved = 0

    def reserve(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> Status:
        self.reserved += 1
        return SUCCESS

    def unreserve(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> None:
        self.reserved -= 1

    def permit(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> PermitResult:
        return PermitResult(Status(Code.WAIT), FOREVER) if self.makes_wait else PermitResult(SUCCESS)

    def pre_bind(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> Sequence[DeviceReservation]:
        return [DEVICES] if self.has_claims else []

    def prepared(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> PermitResult:
        return PermitResult(SUCCESS if self.is_ready else Status(Code.WAIT), 60 * SECOND)

    def give_up(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> Status:
        return Status(Code.ERROR, ("too late",))

    def bind(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> Status:
        return SUCCESS


class Scene:
    """A pod `p` at a stage of its binding to node `n`, and the events there."""

    def __init__(self, stage: BindingStage) -> None:
        self.now = 0
        self.way = Way()
        self.cluster: Cluster = cluster_of(node("n", cpu=4))
        profile = Profile("s", reserve=[self.way], permit=[self.way], pre_bind=[self.way], bind=[self.way])
        self.waiting_pods = WaitingPods()
        self.bindings = BindingCycles(self.cluster, self.waiting_pods)
        self.way.makes_wait = stage is BindingStage.PERMIT
        self.way.has_claims = stage is BindingStage.PRE_BIND
        self.way.is_ready = stage is not BindingStage.PREPARE
        started = self.bindings.start(
            QueuedPod(self.cluster.read(pod("p", uid="p", cpu=1)), 0),
            Runner(profile, self.cluster),
            CycleState(),
            "n",
            self.now,
            is_together=stage is BindingStage.TOGETHER,
        )
        self.asked: list[Action] = started[0]
        self.way.is_ready = True
        if stage is BindingStage.IN_DOUBT:
            self.bindings.bind_answered(self.binding, ActionFinished(self.binding, NO_ANSWER), self.now)
        elif stage is BindingStage.BOUND:
            self.bindings.bind_answered(self.binding, ActionFinished(self.binding), self.now)
        assert self.bindings.stage("p") is stage

    @property
    def binding(self) -> Bind:
        """Return the requested binding, or one that was never requested."""
        return next((action for action in self.asked if isinstance(action, Bind)), Bind("default/p", "p", "n"))

    @property
    def reservation(self) -> ReserveClaim:
        asked = (action for action in self.asked if isinstance(action, ReserveClaim))
        return next(asked, ReserveClaim("default/devices", "claim-uid", "default/p", "p"))

    def settle(self, *, allowed: bool) -> StepResult:
        waiting = self.waiting_pods.get("p")
        if waiting is None:
            return [], None
        if allowed:
            waiting.allow("Way")
        else:
            waiting.reject("Way", "no")
        return self.bindings.resume("p", self.now)

    def claim(self, problem: Problem | None) -> StepResult:
        return self.bindings.claim_answered(self.reservation, ActionFinished(self.reservation, problem), None, self.now)

    def bound(self, problem: Problem | None) -> StepResult:
        return self.bindings.bind_answered(self.binding, ActionFinished(self.binding, problem), self.now)

    def claims_late(self) -> StepResult:
        self.now = FOREVER
        return [], next(iter(self.bindings.give_up_claims(self.now)), None)

    def look(self, *, ready: bool, seconds: int = 5) -> StepResult:
        self.way.is_ready = ready
        self.now = seconds * SECOND
        return next(iter(self.bindings.look_again(self.now)), ([], None))

    def cancel(self) -> StepResult:
        if "p" not in self.bindings:
            return [], None
        return [], self.bindings.cancel("p", Status(Code.ERROR, ("preempted",)))

    def enough_ready(self) -> StepResult:
        return self.bindings.bind_gang_member("p", self.now) if "p" in self.bindings.gathered else ([], None)

    def too_few_left(self) -> StepResult:
        return self.cancel() if "p" in self.bindings.gathered else ([], None)

    def deliver(self, happening: str) -> StepResult:
        """Let it happen; what is to be done, and the failure if it comes to that."""
        tell: dict[str, Callable[[], StepResult]] = {
            "all plugins let it go": lambda: self.settle(allowed=True),
            "a plugin turns it down, or its wait is over": lambda: self.settle(allowed=False),
            "the last claim is written": lambda: self.claim(None),
            "a claim is refused": lambda: self.claim(REFUSED),
            "a claim has no answer": lambda: self.claim(NO_ANSWER),
            "the time for claims is over": self.claims_late,
            "its volumes and devices are ready": lambda: self.look(ready=True),
            "its volumes or devices are not ready": lambda: self.look(ready=False),
            "the time for that is over": lambda: self.look(ready=False, seconds=60),
            "enough of its gang are ready": self.enough_ready,
            "too few of its gang are left, or the time for them is over": self.too_few_left,
            "the binding is carried out": lambda: self.bound(None),
            "the binding is refused": lambda: self.bound(REFUSED),
            "the binding conflicts": lambda: self.bound(CONFLICT),
            "the binding finds no pod": lambda: self.bound(NOT_FOUND),
            "the server fails to bind (5xx)": lambda: self.bound(Problem(503, "ServiceUnavailable", "no server")),
            "an internal error (500) for the third time in a row": lambda: [self.bound(BROKEN) for _ in range(3)][-1],
            "the binding has no answer": lambda: self.bound(NO_ANSWER),
            "the API shows it on the node": lambda: (self.bindings.on_bound("p", "n"), None),
            "the API shows it on another node": lambda: (self.bindings.on_bound("p", "m"), None),
            "it is deleted, or gone": lambda: (self.bindings.withdraw("p"), None),
            "a preemption calls it back": self.cancel,
        }
        return tell[happening]()

    def state(self) -> tuple[BindingStage | None, bool, bool]:
        """Return where the pod stands, whether it takes its room, and whether plugins hold something for it."""
        return self.bindings.stage("p"), "p" in self.cluster.placed, self.way.reserved > 0


def test_the_table_lists_what_happens_in_every_stage_that_waits() -> None:
    assert {stage for stage, _ in LISTED} == set(STAGES)


@pytest.mark.parametrize(("stage", "happening"), TRANSITIONS)
def test_binding_cycles_do_what_their_table_says(stage: BindingStage, happening: str) -> None:
    scene = Scene(stage)
    step = TRANSITIONS[stage, happening]

    actions, failure = scene.deliver(happening)

    after: dict[Step, tuple[BindingStage | None, bool, bool]] = {
        Step.STAY: (stage, True, True),
        Step.WAIT: (stage, True, True),
        Step.AGAIN: (stage, True, True),
        Step.GO_ON: (BindingStage.BIND, True, True),
        Step.DOUBT: (BindingStage.IN_DOUBT, True, True),
        Step.BIND: (BindingStage.BOUND, True, True),
        Step.END: (None, True, True),
        Step.YIELD: (None, True, False),
        Step.UNDO: (None, False, False),
        Step.FAIL: (None, False, False),
    }
    assert scene.state() == after[step]
    assert (failure is not None) is (step is Step.FAIL)
    assert [action for action in actions if isinstance(action, Bind)] == (
        [Bind("default/p", "p", "n")] if step is Step.GO_ON else []
    )
    is_told = step is Step.BIND or (step is Step.END and stage is not BindingStage.BOUND)
    assert ("Scheduled" in [reason for reason, _ in events(actions)]) is is_told
    is_asked_again = step in (Step.AGAIN, Step.DOUBT) or (step is Step.STAY and stage is BindingStage.IN_DOUBT)
    assert bool(scene.bindings.retries(scene.now + SECOND)) is is_asked_again


@pytest.mark.parametrize("stage", [stage for stage in BindingStage if stage is not BindingStage.RESERVE])
def test_nothing_is_left_of_a_cycle_that_has_ended(stage: BindingStage) -> None:
    scene = Scene(stage)

    scene.bindings.on_bound("p", "n")

    assert (len(scene.bindings), scene.bindings.next_deadline(), scene.waiting_pods.get("p")) == (0, None, None)


def test_a_plugin_that_fails_to_give_up_fails_the_binding_of_its_pod_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(BindingStage.PREPARE)

    def broken(*_: object) -> Status:
        raise ValueError("out of ink")

    monkeypatch.setattr(scene.way, "give_up", broken)
    actions, failure = scene.look(ready=False, seconds=61)

    assert actions == []
    assert failure is not None
    assert "plugin Way failed at PreBind for pod default/p: ValueError: out of ink" in failure.status.message
    assert "p" not in scene.bindings
