"""Workloads converge to their desired pods under any order of events, and never exceed their limits."""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from podium.api.pod import Pod
from podium.api.workloads import JOB_TRACKING
from podium.controllers.actions import Action, CreateObject
from podium.controllers.controller import Controller
from podium.controllers.observations import Problem
from podium.controllers.workloads.daemon_sets import DaemonSets, target_node
from podium.controllers.workloads.deployments import Deployments
from podium.controllers.workloads.jobs import Jobs
from podium.controllers.workloads.replica_sets import ReplicaSets
from podium.controllers.workloads.stateful_sets import StatefulSets
from tests.controllers.workload_rig import CRASH, LOST, UNSENT, Rig, template, workload
from tests.fuzzing import usual
from tests.store.objects import Raw, node

DOWN = Problem(503, "ServiceUnavailable", "")
REFUSED = Problem(403, "Forbidden", "")
picks = st.integers(0, 9)


class Storm(RuleBasedStateMachine):
    """Pods come and go, watches lag, answers are lost and controllers crash; in the end all is quiet.

    ``is_disturbed``: a creation was carried out that the controller took to have failed, or it saw an old state after a
    crash, so that there may be more pods for a while.
    """

    make: tuple[Callable[[], Controller], ...] = ()
    objects: tuple[Raw, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: deque[Problem | None] = deque()
        self.is_disturbed = False
        self.rig = Rig(*self.make, runs=False)
        self.rig.fault = self.outcome
        self.rig.after_each = self.check_always
        self.rig.apply(*self.objects)

    def outcome(self, action: Action) -> Problem | None:
        """Return how an action ends."""
        problem = self.outcomes.popleft() if self.outcomes else None
        self.is_disturbed |= problem is LOST and isinstance(action, CreateObject)
        return problem

    def check_always(self) -> None:
        """Check the rules that hold after every action."""

    def check_in_the_end(self) -> None:
        """Check the rules that hold at rest."""

    def active(self) -> list[Pod]:
        """Return the pods that have not ended and were not deleted."""
        return [self.rig.pods()[name] for name in self.rig.active()]

    def pick(self, number: int, fits: Callable[[Pod], bool]) -> Pod | None:
        """One of the pods that fit."""
        found = [pod for pod in self.rig.pods().values() if fits(pod)]
        return found[number % len(found)] if found else None

    @rule(number=picks)
    def run(self, number: int) -> None:
        pod = self.pick(number, lambda pod: pod.status.phase == "Pending" and not pod.is_terminating)
        if pod is not None:
            self.rig.run(pod.metadata.name, node=target_node(pod) or "n1")

    @rule(number=picks, phase=st.sampled_from(["Failed", "Succeeded"]))
    def end(self, number: int, phase: str) -> None:
        pod = self.pick(number, lambda pod: not pod.is_terminal and pod.metadata.deletion_grace_period_seconds != 0)
        if pod is not None:
            self.rig.end(pod.metadata.name, phase=phase)

    @rule(number=picks)
    def delete(self, number: int) -> None:
        pod = self.pick(number, lambda pod: not pod.is_terminating)
        if pod is not None:
            self.rig.delete("Pod", pod.metadata.name)

    @rule(number=picks)
    def finish(self, number: int) -> None:
        pod = self.pick(number, lambda pod: pod.is_terminating)
        if pod is not None:
            self.rig.finish(pod.metadata.name)

    @rule(lags=st.booleans(), repeats=st.booleans(), merges=st.booleans())
    def watch(self, lags: bool, repeats: bool, merges: bool) -> None:
        self.rig.lags, self.rig.repeats, self.rig.merges = lags, repeats, merges

    @precondition(lambda self: self.rig.lags)
    @rule(number=picks, count=st.integers(1, 4))
    def show(self, number: int, count: int) -> None:
        index = number % len(self.make)
        kinds = [None, *sorted(self.rig.unseen[index])]
        self.rig.show(kinds[number % len(kinds)], count, index)
        self.rig.settle()

    @rule(number=picks, behind=st.integers(0, 20))
    def crash(self, number: int, behind: int) -> None:
        self.is_disturbed |= behind > 0
        self.rig.restart(number % len(self.make), behind)

    @rule(outcomes=st.lists(st.sampled_from([None, LOST, UNSENT, DOWN, REFUSED, CRASH]), max_size=4))
    def fail(self, outcomes: list[Problem | None]) -> None:
        self.outcomes.extend(outcomes)

    @rule(seconds=st.sampled_from([0.1, 1, 10, 100]))
    def wait(self, seconds: float) -> None:
        self.rig.pass_to(self.rig.seconds + seconds)

    def calm(self) -> None:
        """Nothing goes wrong any more, and all pods run."""
        self.outcomes.clear()
        self.rig.lags = self.rig.repeats = self.rig.merges = False
        self.rig.runs = True
        self.rig.rest(10**7)

    def teardown(self) -> None:
        self.calm()
        self.check_in_the_end()


class ReplicaSetStorm(Storm):
    make = (ReplicaSets,)
    objects = (workload("ReplicaSet", "web", {"replicas": 3}),)
    most = 3

    @rule(replicas=st.integers(0, 4))
    def scale(self, replicas: int) -> None:
        self.most = max(self.most, replicas)
        self.rig.scale("ReplicaSet", "web", replicas)

    def check_always(self) -> None:
        assert self.is_disturbed or len(self.active()) <= self.most

    def check_in_the_end(self) -> None:
        wanted = self.rig.get("ReplicaSet", "web")["spec"]["replicas"]
        assert len(self.active()) == wanted
        status = self.rig.get("ReplicaSet", "web")["status"]
        assert status["replicas"] == status.get("availableReplicas", 0) == wanted


def noted(number: int) -> Raw:
    """Return a patch that gives a workload another template."""
    return {"spec": {"template": {"metadata": {"annotations": {"note": str(number)}}}}}


class DeploymentStorm(Storm):
    make = (Deployments, ReplicaSets)
    objects = (workload("Deployment", "web", {"replicas": 4}),)
    note: str | None = None

    @rule(number=st.integers(0, 2))
    def update(self, number: int) -> None:
        self.note = str(number)
        self.rig.patch("Deployment", "web", noted(number))

    def check_always(self) -> None:
        scales = [one.raw["spec"]["replicas"] for one in self.rig.store.objects("ReplicaSet")]
        assert self.is_disturbed or sum(scales) <= 5

    def check_in_the_end(self) -> None:
        assert [pod.metadata.annotations.get("note") for pod in self.active()] == [self.note] * 4
        status = self.rig.get("Deployment", "web")["status"]
        assert status["replicas"] == status["updatedReplicas"] == status["availableReplicas"] == 4


class RecreatingStorm(DeploymentStorm):
    objects = (workload("Deployment", "web", {"replicas": 4, "strategy": {"type": "Recreate"}}),)

    def check_always(self) -> None:
        notes = {pod.metadata.annotations.get("note") for pod in self.active()}
        assert self.is_disturbed or len(notes) <= 1


class StatefulSetStorm(Storm):
    make = (StatefulSets,)
    objects = (workload("StatefulSet", "db", {"replicas": 2, "volumeClaimTemplates": [{"metadata": {"name": "d"}}]}),)
    note: str | None = None

    @rule(replicas=st.integers(0, 4))
    def scale(self, replicas: int) -> None:
        self.rig.scale("StatefulSet", "db", replicas)

    @rule(number=st.integers(0, 2))
    def update(self, number: int) -> None:
        self.note = str(number)
        self.rig.patch("StatefulSet", "db", noted(number))

    def check_in_the_end(self) -> None:
        wanted = self.rig.get("StatefulSet", "db")["spec"]["replicas"]
        assert sorted(self.rig.pods()) == [f"db-{number}" for number in range(wanted)]
        assert {pod.metadata.annotations.get("note") for pod in self.active()} <= {self.note}
        status = self.rig.get("StatefulSet", "db")["status"]
        assert status["replicas"] == status["availableReplicas"] == wanted


class ParallelStorm(StatefulSetStorm):
    objects = (workload("StatefulSet", "db", {"replicas": 2, "podManagementPolicy": "Parallel"}),)


class DaemonSetStorm(Storm):
    make = (DaemonSets,)
    objects = (node("n1"), node("n2"), workload("DaemonSet", "log", {}))
    note: str | None = None

    @rule(number=st.integers(0, 2))
    def update(self, number: int) -> None:
        self.note = str(number)
        self.rig.patch("DaemonSet", "log", noted(number))

    @rule(name=st.sampled_from(["n1", "n2", "n3"]), effect=st.sampled_from(["", "NoSchedule", "NoExecute"]))
    def taint(self, name: str, effect: str) -> None:
        taints = [{"key": "x", "effect": effect}] if effect else []
        if self.rig.store.find("Node", name) is not None:
            self.rig.store.patch("Node", name, {"spec": {"taints": taints}}, "merge")
            self.rig.settle()

    @rule(name=st.sampled_from(["n2", "n3"]))
    def come_or_go(self, name: str) -> None:
        if self.rig.store.find("Node", name) is None:
            self.rig.store.create(node(name), now=self.rig.now)
        else:
            self.rig.store.delete("Node", name, now=self.rig.now)
            for pod in self.rig.pods().values():
                # Another controller deletes the pods of deleted nodes.
                if pod.spec.node_name == name:
                    self.rig.store.delete("Pod", pod.key, now=self.rig.now, grace_seconds=0)
        self.rig.settle()

    def check_always(self) -> None:
        nodes = Counter(target_node(pod) for pod in self.active())
        assert self.is_disturbed or all(count == 1 for count in nodes.values())

    def calm(self) -> None:
        self.rig.run_all = self.run_all  # type: ignore[method-assign]
        super().calm()

    def run_all(self) -> None:
        for name, pod in self.rig.pods().items():
            if pod.is_terminating or (pod.spec.node_name and not self.rig.store.find("Node", pod.spec.node_name)):
                self.rig.store.delete("Pod", pod.key, now=self.rig.now, grace_seconds=0)
            elif pod.status.phase == "Pending":
                self.rig.start(name, target_node(pod))

    def check_in_the_end(self) -> None:
        counts = Counter(target_node(pod) for pod in self.active())
        for stored in self.rig.store.objects("Node"):
            effects = [taint["effect"] for taint in stored.raw.get("spec", {}).get("taints", ())]
            assert counts.pop(stored.key, 0) in ({"": (1,), "NoExecute": (0,)}.get("".join(effects), (0, 1)))
        assert not counts


class JobStorm(Storm):
    """``ended``: the pods that have ended before the Job had, by uid, and whether they succeeded."""

    make = (Jobs,)
    spec: ClassVar[Raw] = {"completions": 4, "parallelism": 2, "backoffLimit": 4}

    def __init__(self) -> None:
        self.objects = (workload("Job", "sum", {**self.spec, "template": template(restartPolicy="Never")}),)
        self.ended: dict[str, bool | None] = {}
        self.version = 0
        self.is_over = False
        super().__init__()

    def look(self) -> None:
        """Take note of pods that have ended, before the Job, with the finalizer."""
        for event in self.rig.store.events_since(self.version):
            self.version = event.version
            pod = event.stored.object
            if event.stored.kind == "Job":
                conditions: Any = event.stored.raw.get("status", {}).get("conditions", ())
                self.is_over |= any(one["type"] in ("Complete", "Failed") for one in conditions)
            elif isinstance(pod, Pod) and (pod.is_terminal or pod.is_terminating):
                counts = JOB_TRACKING in pod.metadata.finalizers and not self.is_over
                self.ended.setdefault(event.stored.uid, pod.status.phase == "Succeeded" if counts else None)

    def check_always(self) -> None:
        self.look()
        assert self.is_disturbed or len(self.active()) <= self.spec["parallelism"]

    def check_in_the_end(self) -> None:
        for _ in range(40):
            if self.is_over:
                break
            for name in self.rig.active()[:1]:
                self.rig.end(name, phase="Succeeded")
            self.rig.rest(10**7)
            self.look()
        assert self.is_over
        assert not self.rig.active()
        assert not any(pod.metadata.finalizers for pod in self.rig.pods().values())
        self.check_counts(self.rig.get("Job", "sum")["status"])

    def check_counts(self, status: Raw) -> None:
        """Each pod is counted once; what was seen too late, after a crash, may be missing."""
        found = status.get("succeeded", 0) + status.get("failed", 0)
        ended = [one for one in self.ended.values() if one is not None]
        assert found <= len(ended)
        assert self.is_disturbed or found == len(ended)


class IndexedJobStorm(JobStorm):
    spec: ClassVar[Raw] = {**JobStorm.spec, "completionMode": "Indexed"}

    def check_counts(self, status: Raw) -> None:
        assert status.get("succeeded", 0) <= 4
        assert status.get("failed", 0) <= len(self.ended)


class PatientJobStorm(JobStorm):
    spec: ClassVar[Raw] = {**JobStorm.spec, "podReplacementPolicy": "Failed"}


CALM = settings(max_examples=usual(10), stateful_step_count=25)
TestReplicaSets = ReplicaSetStorm.TestCase
TestDeployments = DeploymentStorm.TestCase
TestRecreation = RecreatingStorm.TestCase
TestStatefulSets = StatefulSetStorm.TestCase
TestParallelStatefulSets = ParallelStorm.TestCase
TestDaemonSets = DaemonSetStorm.TestCase
TestJobs = JobStorm.TestCase
TestIndexedJobs = IndexedJobStorm.TestCase
TestPatientJobs = PatientJobStorm.TestCase
for _case in (
    TestReplicaSets,
    TestDeployments,
    TestRecreation,
    TestStatefulSets,
    TestParallelStatefulSets,
    TestDaemonSets,
    TestJobs,
    TestIndexedJobs,
    TestPatientJobs,
):
    _case.settings = CALM
del _case
