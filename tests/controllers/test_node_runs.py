"""The total usage of a node's pods, updated as they come, change and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.controllers.controller import NO_CHANGE
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.kubelets.pod_run import PodRun
from podium.controllers.kubelets.pod_workers import NodePods
from podium.controllers.observations import ActionFinished, Changed, Tick
from tests import builders
from tests.controllers.kubelet_rig import SECOND, pod

GIB = 2**30
USED = st.sampled_from(["", "1Gi", "3Gi", "nonsense"])
CHANGES = st.lists(st.tuples(st.sampled_from(["come", "change", "start", "end", "go"]), st.sampled_from("abc"), USED))


def run_of(name: str, used: str) -> PodRun:
    return PodRun.of(pod(name, annotations={"memory-usage": used} if used else {}), {})


@given(CHANGES)
def test_the_memory_that_is_left_is_what_those_leave_that_run(changes: list[tuple[str, str, str]]) -> None:
    there, known = NodePods(), dict[str, PodRun]()
    there.read(builders.node("n1", memory="8Gi"))

    for change, name, used in changes:
        run = known.get(name)
        if run is None:
            if change == "come":
                known[name] = run_of(name, used)
                there.put(known[name])
        elif change == "change":
            run.read(run_of(name, used).pod, {})
            there.reread(run)
        elif change == "start":
            run.begin(0)
        elif change == "end":
            run.is_ended = True
        elif change == "go":
            there.drop(known.pop(name))
        left = 8 * GIB - sum(run.behaviour.memory_bytes for run in known.values() if run.is_running)
        assert there.available_bytes() == left


def test_the_end_of_a_pod_without_waiting_successor_changes_nothing() -> None:
    kubelet = Kubelet()
    kubelet.handle(Changed(builders.node("n1")), 0)
    kubelet.handle(Tick(), 0)
    kubelet.handle(Changed(pod("a", annotations={"duration": "5s"})), 0)
    [started] = kubelet.handle(Tick(), 0)
    kubelet.handle(ActionFinished(started), 0)
    [ended] = kubelet.handle(Tick(), 5 * SECOND)
    deadline = kubelet.deadline()

    assert kubelet.handle(ActionFinished(ended), 5 * SECOND) is NO_CHANGE
    assert kubelet.deadline() == deadline
