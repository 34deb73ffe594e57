"""Random runs of an autoscaler beside a scheduler, with lost answers, errors and crashes; then the faults stop."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from podium.api.meta import Raw
from podium.controllers.actions import Action, DeleteObject, Evict
from podium.controllers.autoscaling.autoscaler import Autoscaler, AutoscalerSettings
from podium.controllers.observations import Problem
from podium.controllers.scheduling.scheduler import Scheduler
from podium.decide.autoscaling import GROUP_LABEL, NodeGroup, ScaleDownSettings
from tests.controllers.node_rig import BROKEN, LOST, MINUTE, SECOND, UNSENT, Rig, budget, in_group, pod
from tests.fuzzing import Effort, efforts
from tests.store.objects import node

MAXIMUM, MINIMUM = 3, 1
SIZES = {"small": 4, "large": 8}


class Run:
    """A rig to which random things happen; what must hold at any time is checked at each action."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.faults = True
        self.number = 0
        groups = [
            NodeGroup(name, MINIMUM, MAXIMUM, 30 * SECOND, {"status": {"allocatable": {"cpu": cpu, "pods": 20}}})
            for name, cpu in SIZES.items()
        ]
        settings = AutoscalerSettings(scale_down=ScaleDownSettings(unneeded_time_ns=MINUTE, delay_after_add_ns=MINUTE))
        self.rig = Rig(lambda: Autoscaler(groups, settings), Scheduler)
        self.rig.fault = self.judge
        given_nodes = (in_group("small-7", "small", cpu=4), in_group("large-0", "large", cpu=8))
        self.rig.apply(node("n1", cpu=4), budget("db", 1, app="db"), *given_nodes)

    def judge(self, action: Action) -> Problem | None:
        """Check an action of the autoscaler before it is carried out; then perhaps let it fail."""
        if isinstance(action, DeleteObject) and action.kind == "Node":
            left = [one for one in self.rig.pods().values() if one.spec.node_name == action.key]
            assert not left, f"{action.key} is deleted under {left}"
            assert self.size(action.key.partition("-")[0]) > MINIMUM
        if isinstance(action, Evict):
            assert self.rig.taints(self.rig.pods()[action.pod.partition("/")[2]].spec.node_name)
        if self.faults and action.__class__.__name__ in ("CreateObject", "PatchObject", "DeleteObject", "Evict"):
            return self.chance.choice((None, None, None, LOST, UNSENT, BROKEN))
        return None

    def size(self, group: str) -> int:
        return sum(one.metadata.labels.get(GROUP_LABEL) == group for one in self.rig.nodes().values())

    def step(self) -> None:
        rig, chance = self.rig, self.chance
        what = chance.choice(("add", "add", "add", "remove", "remove", "wait", "wait", "crash", "allow"))
        if what == "add":
            rig.apply(*(self.pod() for _ in range(chance.randrange(1, 5))))
        elif what == "remove":
            for name in chance.sample(sorted(rig.pods()), len(rig.pods()) // 2):
                rig.delete("Pod", f"default/{name}")
        elif what == "wait":
            rig.pass_to(rig.seconds + chance.choice((1, 10, 70, 200)))
        elif what == "crash":
            rig.restart(0)
        else:
            rig.allow("db", chance.choice((0, 1, 5)))
        assert all(self.size(group) <= MAXIMUM for group in SIZES)

    def pod(self) -> Raw:
        self.number += 1
        cpu, priority = self.chance.choice((1, 2, 3, 6)), self.chance.choice((-1, 0, 0, 5))
        owner = self.chance.choice(("", "ReplicaSet/web", "ReplicaSet/web"))
        labels = {"app": self.chance.choice(("web", "db"))}
        return pod(f"p{self.number}", owner=owner, cpu=cpu, priority=priority, labels=labels)

    def heal(self) -> None:
        self.faults = False
        self.rig.pass_to(self.rig.seconds + 1)
        self.rig.restart(0)
        self.rig.rest()


@efforts(12)
def test_groups_keep_their_limits_and_the_cluster_settles(effort: Effort) -> None:
    @effort
    @given(st.integers(0, 10**9))
    def check(seed: int) -> None:
        run = Run(seed)
        for _ in range(15):
            run.step()
        run.heal()

        rig = run.rig
        assert all(MINIMUM <= run.size(group) <= MAXIMUM for group in SIZES)
        assert not any(rig.taints(name) for name in rig.nodes())
        waiting = [one for one in rig.pods().values() if not one.spec.node_name and one.priority >= 0]
        assert not waiting or run.size("large") == MAXIMUM

    check()
