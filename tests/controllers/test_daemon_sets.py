"""A DaemonSet keeps a pod on every eligible node."""

from collections import Counter
from typing import Any

import pytest

from podium.controllers.actions import CreateObject, DeleteObject
from podium.controllers.observations import Problem
from podium.controllers.workloads.daemon_sets import DaemonSets, target_node
from tests.controllers.workload_rig import LOST, UNSENT, Rig, failing, owned_by, template, workload
from tests.pod_statuses import set_pod_status
from tests.store.objects import Raw, node, quota

REVISION = "controller-revision-hash"
NODES = [node("n1"), node("n2"), node("n3")]


def log(note: str = "", unavailable: int | str = 1, **spec: Any) -> Raw:
    """Return a DaemonSet; ``note`` makes its template another."""
    look = template(**spec.pop("pod", {}))
    if note:
        look["metadata"]["annotations"] = {"note": note}
    update = {"rollingUpdate": {"maxUnavailable": unavailable}}
    return workload("DaemonSet", "log", {"template": look, "updateStrategy": update, **spec})


class DaemonRig(Rig):
    """A rig in which pods run where they were made for."""

    def __init__(self, *objects: Raw, **settings: Any) -> None:
        super().__init__(DaemonSets, **settings)
        self.apply(*objects)
        self.log.clear()

    def run_all(self) -> None:
        for name, pod in self.pods().items():
            if pod.is_terminating:
                self.store.delete("Pod", pod.key, now=self.now, grace_seconds=0)
            elif pod.status.phase == "Pending":
                self.start(name, target_node(pod))

    def on(self, node_name: str) -> str:
        """Return the name of the active pod for a node."""
        (name,) = (name for name in self.active() if target_node(self.pods()[name]) == node_name)
        return name

    def nodes(self) -> list[str]:
        """Return the nodes of the active pods."""
        return sorted(target_node(self.pods()[name]) for name in self.active())

    def notes(self) -> Counter[str]:
        return Counter(self.pods()[name].metadata.annotations.get("note", "") for name in self.active())

    def taint(self, node_name: str, *effects: str) -> None:
        taints = [{"key": "x", "effect": effect} for effect in effects]
        self.store.patch("Node", node_name, {"spec": {"taints": taints}}, "merge")
        self.settle()


# Which nodes


def test_each_node_gets_a_pod_that_only_it_will_do_for() -> None:
    rig = DaemonRig(*NODES, log(), runs=False)

    assert rig.nodes() == ["n1", "n2", "n3"]
    pod = rig.get("Pod", rig.on("n2"))
    assert "nodeName" not in pod["spec"]
    assert pod["metadata"]["labels"].keys() == {"app", REVISION}
    assert rig.names("ControllerRevision") == [f"log-{pod['metadata']['labels'][REVISION]}"]


def test_a_node_that_comes_gets_a_pod_and_one_that_goes_loses_the_pod_that_waits_for_it() -> None:
    rig = DaemonRig(*NODES, log(), runs=False)
    rig.store.create(node("n4"), now=rig.now)
    rig.settle()
    assert rig.nodes() == ["n1", "n2", "n3", "n4"]

    rig.store.delete("Node", "n4", now=rig.now)
    rig.settle()

    assert rig.nodes() == ["n1", "n2", "n3"]


def test_a_pod_on_a_node_that_is_gone_is_for_others_to_collect() -> None:
    rig = DaemonRig(*NODES, log())

    rig.store.delete("Node", "n3", now=rig.now)
    rig.settle()

    assert rig.log == []
    assert rig.get("DaemonSet", "log")["status"]["desiredNumberScheduled"] == 2


def test_only_nodes_that_match_get_pods() -> None:
    rig = DaemonRig(*NODES, node("big", size="big"), log(pod={"nodeSelector": {"size": "big"}}))
    assert rig.nodes() == ["big"]

    rig.store.patch("Node", "n2", {"metadata": {"labels": {"size": "big"}}}, "merge")
    rig.store.patch("Node", "big", {"metadata": {"labels": {"size": "small"}}}, "merge")
    rig.settle()

    assert rig.nodes() == ["n2"]


def test_a_taint_keeps_new_pods_off_and_another_drives_pods_out() -> None:
    rig = DaemonRig(*NODES, log())
    rig.pass_to(5)

    rig.taint("n1", "NoSchedule")
    rig.taint("n2", "NoExecute")
    assert rig.nodes() == ["n1", "n3"]
    rig.delete("Pod", rig.on("n1"))
    assert rig.nodes() == ["n3"]

    rig.taint("n1")
    rig.taint("n2")
    assert rig.nodes() == ["n1", "n2", "n3"]


def test_changes_of_a_node_that_say_nothing_about_fitness_are_passed_over() -> None:
    rig = DaemonRig(*NODES, log())
    rig.actions.clear()

    rig.store.patch("Node", "n1", {"status": {"conditions": []}}, "merge", "status")
    rig.show()

    assert rig.machines[0].deadline().time_ns is None


def test_the_oldest_of_several_daemon_pods_on_a_node_stays() -> None:
    rig = DaemonRig(*NODES, log())
    kept = rig.on("n1")
    rig.pass_to(5)

    rig.apply(owned_by(log(), "extra", nodeName="n1"))

    assert rig.on("n1") == kept
    assert rig.log == ["5 delete extra"]


# Pods that end


def test_a_pod_that_is_deleted_is_replaced_once_it_is_gone() -> None:
    rig = DaemonRig(*NODES, log(), runs=False)
    for node_name in ("n1", "n2", "n3"):
        rig.run(rig.on(node_name), node=node_name)
    rig.pass_to(5)
    gone = rig.on("n2")

    rig.delete("Pod", gone)
    assert rig.log == []

    rig.finish(gone)
    assert rig.log == ["5 create log-"]


@pytest.mark.failure(62)
def test_a_deleted_pod_that_has_ended_but_is_kept_by_a_finalizer_is_replaced() -> None:
    rig = DaemonRig(*NODES, log())
    rig.pass_to(5)
    old = rig.on("n1")
    rig.store.patch("Pod", f"default/{old}", {"metadata": {"finalizers": ["example.com/keep"]}}, "merge")
    rig.runs = False

    rig.store.delete("Pod", f"default/{old}", now=rig.now, grace_seconds=0)
    rig.settle()
    assert rig.nodes() == ["n2", "n3"]

    rig.finish(old)
    assert rig.nodes() == ["n1", "n2", "n3"]


def test_a_pod_that_fails_is_replaced_after_a_wait_that_grows_for_its_node() -> None:
    rig = DaemonRig(*NODES, log(), runs=False)
    for _ in range(5):
        rig.end(rig.on("n1"))
        if "n1" not in rig.nodes():
            rig.skip()

    created = [line for line in rig.log if "create" in line]
    assert [line.split()[0] for line in created] == ["0", "1", "3", "7", "15"]


def test_pods_that_fail_for_ever_do_not_keep_it_from_being_settled() -> None:
    rig = DaemonRig(node("n1"), log(), runs=False)
    for _ in range(40):
        rig.end(*rig.active())
        if rig.active():
            continue
        if not rig.machines[0].deadline().keeps_alive:
            break
        rig.skip()

    assert not rig.machines[0].deadline().keeps_alive
    before = rig.seconds
    rig.skip()
    assert (rig.seconds - before, len(rig.active())) == (900, 1)


def test_other_nodes_do_not_wait() -> None:
    rig = DaemonRig(*NODES, log(), runs=False)
    rig.end(rig.on("n1"))
    rig.end(rig.on("n1"))
    rig.log.clear()

    rig.end(rig.on("n2"))

    assert [line.split()[1] for line in rig.log] == ["delete", "create"]


def test_a_pod_that_has_succeeded_is_replaced() -> None:
    rig = DaemonRig(*NODES, log())
    rig.pass_to(5)

    rig.end(rig.on("n1"), phase="Succeeded")

    assert [line.split()[1] for line in rig.log] == ["delete", "create"]


def test_pods_that_are_gone_as_soon_as_they_are_made_come_back_later_and_later() -> None:
    rig = DaemonRig(*NODES, log(), runs=False)
    for _ in range(3):
        rig.delete("Pod", rig.on("n1"))
        rig.skip()

    assert [line.split()[0] for line in rig.log] == ["1", "3", "7"]


# Templates


def test_a_new_template_exchanges_as_many_pods_as_may_be_missing() -> None:
    rig = DaemonRig(*NODES, log("old", unavailable=2), runs=False)
    for node_name in ("n1", "n2", "n3"):
        rig.run(rig.on(node_name), node=node_name)

    rig.apply(log("new", unavailable=2))
    assert rig.nodes() == ["n3"]

    going = [name for name, pod in rig.pods().items() if pod.is_terminating]
    rig.finish(*going)
    assert rig.notes() == {"new": 2, "old": 1}
    rig.run(rig.on("n1"), node="n1")
    assert rig.notes() == {"new": 2}


def test_pods_that_are_not_available_are_exchanged_in_any_case() -> None:
    rig = DaemonRig(*NODES, log("old"), runs=False)
    rig.run(rig.on("n1"), node="n1")

    rig.apply(log("new"))

    assert rig.notes() == {"old": 1, "new": 2}


def test_a_daemon_set_without_slack_replaces_pods_one_by_one() -> None:
    rig = DaemonRig(*NODES, log("old", unavailable=0), runs=False)
    rig.run_all()
    rig.settle()

    rig.apply(log("new", unavailable=0))
    assert len(rig.active()) == 2
    for _ in range(6):
        rig.run_all()
        rig.settle()
        assert len(rig.active()) >= 2

    assert rig.notes() == {"new": 3}


def test_daemon_pods_sent_to_another_node_are_replaced_with_growing_delays() -> None:
    class Wrong(DaemonRig):
        def run_all(self) -> None:
            for name, pod in self.pods().items():
                if pod.status.phase == "Pending" and not pod.is_terminating:
                    self.start(name, "n1")
                    set_pod_status(self.store, pod.key, {"phase": "Failed"}, [], now=self.now)

    rig = Wrong(node("n1"), node("n2"), log())
    rig.pass_to(60)

    made = [line for line in rig.log if "create log-" in line]
    assert 4 <= len(made) <= 20


def test_a_share_of_the_nodes_is_rounded_up() -> None:
    rig = DaemonRig(*NODES, log("old", unavailable="34%"), runs=False)
    for node_name in ("n1", "n2", "n3"):
        rig.run(rig.on(node_name), node=node_name)

    rig.apply(log("new", unavailable="34%"))

    assert len(rig.active()) == 1


def test_on_delete_pods_get_the_new_template_when_they_are_replaced() -> None:
    rig = DaemonRig(*NODES, log("old", updateStrategy={"type": "OnDelete"}))
    rig.pass_to(5)

    rig.apply(log("new", updateStrategy={"type": "OnDelete"}))
    assert rig.notes() == {"old": 3}

    rig.delete("Pod", rig.on("n1"))
    assert rig.notes() == {"old": 2, "new": 1}


def test_pods_that_another_controller_has_made_of_the_present_template_stay() -> None:
    pods = [owned_by(log(), f"log-{number}", nodeName=f"n{number}") for number in (1, 2, 3)]
    labels = {"app": "web", REVISION: "5d4f8c7b9"}
    pods = [{**pod, "metadata": {**pod["metadata"], "labels": labels}} for pod in pods]

    rig = DaemonRig(*NODES, *pods, {**log(), "status": {"observedGeneration": 1}})

    assert rig.log == []
    assert rig.names("ControllerRevision") == ["log-5d4f8c7b9"]
    rig.apply(log("new"))
    assert rig.notes() == {"new": 3}


def test_the_oldest_revisions_are_forgotten() -> None:
    rig = DaemonRig(*NODES, log("0", revisionHistoryLimit=1))

    for number in range(1, 5):
        rig.apply(log(str(number), revisionHistoryLimit=1))

    assert len(rig.names("ControllerRevision")) == 2


# Status, and what goes wrong


def test_the_status_counts_nodes() -> None:
    rig = DaemonRig(*NODES, log(minReadySeconds=10), runs=False)
    rig.run(rig.on("n1"), node="n1")
    rig.run(rig.on("n2"), node="n2")
    rig.taint("n2", "NoSchedule")

    expected = {
        "observedGeneration": 1,
        "desiredNumberScheduled": 2,
        "currentNumberScheduled": 2,
        "numberMisscheduled": 1,
        "numberReady": 1,
        "updatedNumberScheduled": 2,
        "numberUnavailable": 2,
    }
    assert rig.get("DaemonSet", "log")["status"] == expected
    rig.rest()
    assert rig.seconds == 10
    expected |= {"numberAvailable": 1, "numberUnavailable": 1}
    assert rig.get("DaemonSet", "log")["status"] == expected


def test_a_refused_creation_is_tried_again_with_one_pod() -> None:
    rig = DaemonRig(*NODES, quota("few", {"pods": "1"}), log())
    rig.pass_to(4)
    assert [line.split()[0] for line in rig.log] == ["1", "3"]

    rig.patch("ResourceQuota", "few", {"spec": {"hard": {"pods": "9"}}})

    assert rig.nodes() == ["n1", "n2", "n3"]


@pytest.mark.parametrize("problem", [LOST, UNSENT])
def test_answers_that_are_lost_leave_one_pod_to_each_node(problem: Problem) -> None:
    rig = DaemonRig(*NODES)
    rig.fault = failing(CreateObject, problem, times=3)

    rig.apply(log())
    rig.rest()

    assert rig.nodes() == ["n1", "n2", "n3"]


def test_a_deletion_that_fails_is_tried_again() -> None:
    rig = DaemonRig(*NODES, log())
    rig.fault = failing(DeleteObject, Problem(500, "InternalError", ""))

    rig.taint("n1", "NoExecute")
    rig.rest()

    assert rig.nodes() == ["n2", "n3"]


def test_a_lagging_watch_makes_no_surplus_pods() -> None:
    rig = DaemonRig(*NODES, log())
    rig.pass_to(5)
    rig.lags = True
    rig.store.create(node("n4"), now=rig.now)
    rig.show("Node")
    rig.settle()
    rig.store.create(node("n5"), now=rig.now)
    rig.show("Node")
    rig.settle()
    assert rig.log == ["5 create log-"]

    rig.lags = False
    rig.settle()

    assert rig.nodes() == ["n1", "n2", "n3", "n4", "n5"]


def test_a_deleted_daemon_set_creates_no_pods() -> None:
    rig = DaemonRig(*NODES, log())
    rig.patch("DaemonSet", "log", {"metadata": {"finalizers": ["example.com/kept"]}})
    rig.delete("DaemonSet", "log")

    rig.store.create(node("n4"), now=rig.now)
    rig.settle()

    assert rig.log == []


def test_nothing_is_written_when_nothing_has_changed() -> None:
    rig = DaemonRig(*NODES, log("a"))
    rig.apply(log("b"))
    rig.actions.clear()

    rig.restart()
    rig.rest()

    assert rig.actions == []
    assert not rig.machines[0].deadline().keeps_alive


# Surge


def surging(note: str, surge: int | str = 1, **spec: Any) -> Raw:
    raw = log(note, **spec)
    update = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": surge}}
    return {**raw, "spec": {**raw["spec"], "updateStrategy": update}}


def notes_on(rig: Rig, node_name: str) -> list[str]:
    """Return the templates of a node's active pods."""
    pods = (rig.pods()[name] for name in rig.active())
    return sorted(pod.metadata.annotations["note"] for pod in pods if target_node(pod) == node_name)


def test_with_surge_an_old_pod_stays_until_the_new_one_is_available() -> None:
    rig = DaemonRig(*NODES, surging("a"))
    rig.runs = False
    rig.apply(surging("b"))
    assert [notes_on(rig, name) for name in ("n1", "n2", "n3")] == [["a", "b"], ["a"], ["a"]]

    (new,) = (name for name, pod in rig.pods().items() if pod.status.phase == "Pending")
    rig.run(new, node="n1")
    rig.finish(*(name for name, pod in rig.pods().items() if pod.is_terminating))
    assert [notes_on(rig, name) for name in ("n1", "n2", "n3")] == [["b"], ["a", "b"], ["a"]]

    rig.runs = True
    rig.settle()
    assert [notes_on(rig, name) for name in ("n1", "n2", "n3")] == [["b"]] * 3


def test_a_share_of_surge_is_rounded_up_and_waits_for_min_ready_seconds() -> None:
    rig = DaemonRig(*NODES, surging("a", "50%", minReadySeconds=10))
    rig.pass_to(20)
    rig.apply(surging("b", "50%", minReadySeconds=10))
    assert sum(len(notes_on(rig, name)) for name in ("n1", "n2", "n3")) == 5

    rig.pass_to(29)
    assert sum(len(notes_on(rig, name)) for name in ("n1", "n2", "n3")) == 5
    rig.pass_to(60)
    assert [notes_on(rig, name) for name in ("n1", "n2", "n3")] == [["b"]] * 3


def test_an_old_pod_that_is_not_ready_goes_at_once_when_there_is_a_new_one() -> None:
    rig = DaemonRig(*NODES, surging("a"))
    rig.runs = False
    rig.unready(rig.on("n2"))

    rig.apply(surging("b"))

    assert notes_on(rig, "n2") == ["b"]
    assert notes_on(rig, "n1") == ["a", "b"]


def test_with_surge_a_deleted_pod_is_replaced_before_it_is_gone() -> None:
    rig = DaemonRig(*NODES, surging("a"))
    rig.pass_to(5)
    rig.runs = False

    rig.store.delete("Pod", f"default/{rig.on('n1')}", now=rig.now, grace_seconds=60)
    rig.settle()

    assert notes_on(rig, "n1") == ["a"]
    assert sum(target_node(pod) == "n1" for pod in rig.pods().values()) == 2


def test_with_a_share_of_surge_a_restart_deletes_neither_pod_of_a_node() -> None:
    rig = DaemonRig(*NODES, surging("a", "30%"))
    rig.runs = False
    rig.apply(surging("b", "30%"))
    assert notes_on(rig, "n1") == ["a", "b"]
    rig.actions.clear()

    rig.restart()

    assert not any(isinstance(action, DeleteObject) for action in rig.actions)
