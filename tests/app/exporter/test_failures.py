"""Failures of nodes, zones and pools: what becomes of their pods, and that `podium plan fail` says the same."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from heapq import heappop
from typing import Any

import pytest

import podium
from podium.api.node import NOT_READY, UNREACHABLE
from podium.api.pod import MIRROR_ANNOTATION
from podium.api.times import SECOND
from podium.app.exporter import failures
from podium.app.exporter.evaluation import EvaluationSettings, evaluate
from podium.app.exporter.failure_queue import FailureQueue
from podium.app.exporter.failures import FailureOutcome
from podium.app.planning.deciding.attempts import FailedAttempts
from podium.app.planning.deciding.decisions import Decisions
from podium.cluster.pods import PodRecord
from podium.controllers.workloads.workload_controller import CreationWaits
from podium.plugins.default_preemption import DefaultPreemption
from tests.app.exporter.clusters import (
    GANGS,
    HOST,
    POOL,
    ZONE,
    Raw,
    Workload,
    budget,
    cluster_of,
    node,
    random_cluster,
    settled,
    varied_cluster,
)
from tests.app.exporter.planned import PlannedFailures, preempts, unplaced
from tests.fuzzing import usual

SEED = int(os.environ.get("PODIUM_FUZZ_SEED", "1"))
RUNS = int(os.environ.get("PODIUM_FUZZ_RUNS", "1000"))
TIES = 60


def _tolerating(seconds: int) -> Raw:
    toleration = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
    return {"tolerations": [toleration]}


SHORTER = _tolerating(60)
NO_PREEMPTION: Raw = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"schedulerName": "default-scheduler", "plugins": {"postFilter": {"disabled": [{"name": "*"}]}}},
    ],
}


GANGS_ALONE = deepcopy(GANGS)
GANGS_ALONE["profiles"][0]["plugins"] |= NO_PREEMPTION["profiles"][0]["plugins"]
GANGS_ALONE["profiles"][0]["pluginConfig"][0]["args"]["preemption"] = False


def outcomes(objects: Raw, configuration: Raw | None = None) -> dict[tuple[str, str], FailureOutcome]:
    cluster = podium.load(objects, configuration=configuration)
    found = evaluate(Decisions(cluster), EvaluationSettings()).failures
    return {(each.scope, each.name): each for each in found}


def test_a_failure_fits_if_the_other_nodes_take_its_pods() -> None:
    found = outcomes(cluster_of([node("n1"), node("n2")], Workload("web", ["n1", "n2", "n2"])))
    assert [found["node", name].outcome for name in ("n1", "n2")] == ["fits", "fits"]
    assert found["node", "n2"].replaced == 2


def test_a_failure_that_lacks_room_names_the_workload_that_breaks_first() -> None:
    web = Workload("web", ["n1"] * 3, priority="high", spec={"preemptionPolicy": "Never"})
    other = Workload("batch", ["n1", "n2", "n2", "n2"])
    found = outcomes(cluster_of([node("n1"), node("n2")], web, other))["node", "n1"]
    assert (found.outcome, found.unplaced, found.first) == ("unplaced", 3, "ReplicaSet default/web")
    assert found.unplaced_by == {"ReplicaSet default/batch": 1, "ReplicaSet default/web": 2}


def test_a_failure_that_needs_preemption_counts_the_victims() -> None:
    web, batch = Workload("web", ["n1"] * 2, priority="high"), Workload("batch", ["n2"] * 3, owner="")
    found = outcomes(cluster_of([node("n1"), node("n2")], web, batch))["node", "n1"]
    assert (found.outcome, found.unplaced_alone, found.preempted) == ("preempts", 1, 1)


def test_pods_of_stateful_sets_are_held_and_pods_without_a_controller_are_unmanaged() -> None:
    workloads = [Workload("db", ["n1", "n1"], "StatefulSet"), Workload("bare", ["n1"], "")]
    found = outcomes(cluster_of([node("n1"), node("n2")], *workloads))["node", "n1"]
    assert (found.outcome, found.replaced, found.held, found.unmanaged) == ("fits", 0, 2, 1)


@pytest.mark.parametrize(
    ("fields", "replaced"),
    [
        ({}, 1),
        ({"podReplacementPolicy": "Failed"}, 0),
        ({"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}}, 0),
    ],
)
def test_pods_of_jobs_that_replace_only_failed_pods_are_held(fields: Raw, replaced: int) -> None:
    job = Workload("job", ["n1"], "Job", spec={"restartPolicy": "Never"})
    objects = cluster_of([node("n1"), node("n2", cpu=0)], job)
    for each in objects["items"]:
        if each["kind"] == "Job":
            each["spec"] = {"template": each["spec"]["template"], **fields}

    found = outcomes(objects)["node", "n1"]
    (planned,) = PlannedFailures(podium.load(objects)).impact(["n1"])

    assert (found.replaced, found.held) == (replaced, 1 - replaced)
    assert (found.unplaced, planned.missing, planned.pending) == (replaced, 1, replaced)


def test_pods_of_daemon_sets_need_no_place() -> None:
    found = outcomes(cluster_of([node("n1"), node("n2", cpu=1)], Workload("agent", ["n1", "n2"], "DaemonSet", 900)))
    assert {each.outcome for each in found.values() if each.scope == "node"} == {"fits"}


def test_a_pod_that_tolerates_the_failure_for_good_is_held() -> None:
    web = Workload("web", ["n1"], spec={"tolerations": [{"operator": "Exists"}]})
    found = outcomes(cluster_of([node("n1"), node("n2")], web))["node", "n1"]
    assert (found.replaced, found.held) == (0, 1)


def test_anti_affinity_leaves_a_pod_without_a_place_although_there_is_room() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    found = outcomes(cluster_of([node("n1"), node("n2")], Workload("web", ["n1", "n2"], spec=apart)))
    assert found["node", "n1"].unplaced == 1


def test_zones_and_pools_fail_with_all_their_nodes() -> None:
    nodes = [node("n1", "a"), node("n2", "a"), node("n3", "b", "small")]
    found = outcomes(cluster_of(nodes, Workload("web", ["n1", "n1", "n1", "n2", "n2", "n3"])))
    assert found["zone", "a"].unplaced == found["pool", "big"].unplaced == 2
    assert found["zone", "b"].outcome == found["node", "n1"].outcome == "fits"


def test_pods_of_nodes_that_are_never_evicted_find_no_place() -> None:
    nodes = [node("n1", "a"), node("n2", "a"), node("n3", "a", "small"), node("n4", "a", "small", unschedulable=True)]
    found = outcomes(cluster_of(nodes, Workload("web", ["n1", "n2", "n3"])))
    assert found["zone", "a"].unplaced_by == {"ReplicaSet default/web": 3}
    assert found["pool", "big"].outcome == "fits"


def test_pods_that_were_not_ready_before_the_failure_lack_no_place_because_of_it() -> None:
    objects = cluster_of([node("n1"), node("n2")], Workload("web", ["n1", "n2", "n2"]))
    not_ready = {"type": "Ready", "status": "False"}
    for each in objects["items"]:
        if each["metadata"]["name"] == "n2":
            each["spec"]["taints"] = [{"key": NOT_READY, "effect": "NoSchedule"}]
        if "n2" in (each["metadata"]["name"], each["spec"].get("nodeName") if "spec" in each else ""):
            each["status"]["conditions"] = [not_ready]
    # No node is healthy, so that no pod is evicted.
    found = outcomes(objects)["zone", "a"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1", "n2"]) == {"ReplicaSet default/web": 1}


def test_the_nodes_of_a_zone_are_evicted_one_after_another() -> None:
    spread = {
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = [node(f"n{index}", "a") for index in range(2)] + [node("n2", "b"), node("n3", "c")]
    web = Workload("web", ["n0", "n1", "n2", "n3"], spec={"topologySpreadConstraints": [{"maxSkew": 1, **spread}]})
    assert outcomes(cluster_of(nodes, web))["zone", "a"].unplaced == 1


def test_a_pending_pod_that_fits_takes_its_place_before_the_failure() -> None:
    found = outcomes(cluster_of([node("n1"), node("n2")], Workload("web", ["n1", "n2", "n2", "n2", ""])))
    assert found["node", "n1"].replaced + found["node", "n2"].replaced == 5


def test_a_failure_that_is_certain_has_the_outcome_of_placing_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = [random_cluster(seed, nodes=20) for seed in range(SEED, SEED + usual(15))]
    certain, found = Counter[bool](), []
    decide = failures.FailureTrials._certain

    def counted(*arguments: object) -> object:
        unplaced = decide(*arguments)  # type: ignore[arg-type]
        certain[unplaced is not None] += 1
        return unplaced

    monkeypatch.setattr(failures.FailureTrials, "_certain", counted)
    found = [outcomes(cluster) for cluster in clusters]
    monkeypatch.setattr(failures.FailureTrials, "_certain", lambda *_: None)
    assert [outcomes(cluster) for cluster in clusters] == found
    assert certain[True] > certain.total() // 4


def test_pods_that_tolerate_the_failure_for_a_shorter_time_are_evicted_first() -> None:
    workloads = [Workload("a", ["n1", "n2", "n2", "n2"]), Workload("b", ["n1"], spec=SHORTER)]
    objects = cluster_of([node("n1"), node("n2")], *workloads)
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/a": 1}


def test_pods_that_tolerate_the_failure_for_less_than_no_time_are_evicted_at_once() -> None:
    first, second = Workload("a", ["n1", "n2", "n2", "n2"], spec=_tolerating(0)), Workload("b", ["n1"])
    second.spec = _tolerating(-5)
    objects = cluster_of([node("n1"), node("n2")], first, second)
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/b": 1}


def test_a_pod_that_waits_is_tried_again_after_a_later_one_has_preempted() -> None:
    early, late = Workload("early", ["n1"], spec=SHORTER), Workload("late", ["n1"], priority="high")
    workloads = [early, late, Workload("victim", ["n2"], milli=3000), Workload("kept", ["n2"], priority="high")]
    objects = cluster_of([node("n1"), node("n2"), node("n3", unschedulable=True)], *workloads)
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/victim": 1}


def test_a_pod_that_waits_takes_room_that_a_preemption_leaves() -> None:
    web, held = Workload("web", ["n1"], priority="high"), Workload("held", ["n1"], "StatefulSet")
    kept, victim = Workload("kept", ["n2"], priority="high"), Workload("victim", ["n2"], milli=3000)
    nodes = [node("n1"), node("n2"), node("n3", unschedulable=True)]
    late, waits = Workload("late", ["n1"], milli=2000), Workload("a", [""], milli=2000)
    objects = cluster_of(nodes, web, held, kept, victim, late, waits)
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert (
        found
        == _unplaced(podium.load(objects), ["n1"])
        == dict.fromkeys(("ReplicaSet default/late", "ReplicaSet default/victim"), 1)
    )

    late.nodes = ["n1", ""]
    objects = cluster_of(nodes, web, held, kept, victim, late)
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/victim": 1}


def test_a_more_important_pod_that_waits_takes_the_room_of_a_preemptor() -> None:
    late = Workload("late", ["n1"], priority="middle", spec=_tolerating(120))
    waits = Workload("waits", [""], priority="patient")
    full, victim = Workload("full", ["n2"], priority="high", milli=3000), Workload("victim", ["n2"])
    objects = cluster_of([node("n1", cpu=1), node("n2")], late, waits, full, victim)
    found = outcomes(objects)["node", "n1"]
    # The waiting pod never preempts, but is woken at once, while the preemptor backs off.
    assert found.unplaced_by == _unplaced(podium.load(objects), ["n1"])
    assert found.unplaced_by == {"ReplicaSet default/late": 1, "ReplicaSet default/victim": 1}


def test_a_pod_takes_the_room_of_a_preemptor_whose_nomination_ends() -> None:
    late = Workload("late", ["n1"], priority="middle", milli=2500, spec=_tolerating(120))
    small = Workload("small", ["n1"], spec=_tolerating(120))
    waits = Workload("waits", [""], priority="patient", milli=2000)
    full, victim = Workload("full", ["n2"], priority="high"), Workload("victim", ["n2"], milli=3000)
    objects = cluster_of([node("n1"), node("n2")], late, small, waits, full, victim)
    found = outcomes(objects)["node", "n1"].unplaced_by
    # The more important pod leaves too little for the preemptor, but enough for the small pod, which was tried before.
    assert found == _unplaced(podium.load(objects), ["n1"])
    assert found == {"ReplicaSet default/late": 1, "ReplicaSet default/victim": 1}


def test_a_later_pod_takes_room_that_a_preemption_has_left_although_its_like_had_failed() -> None:
    important = Workload("important", ["n1"], priority="high", spec=SHORTER)
    small, full = Workload("small", ["n1", "n1", ""], milli=500), Workload("full", ["n2"], priority="high")
    objects = cluster_of(
        [node("n1", cpu=2), node("n2")], important, small, full, Workload("victim", ["n2"], milli=3000)
    )
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/victim": 1}


def test_of_equally_important_pods_the_one_that_came_last_after_a_failure_is_the_victim() -> None:
    first, second = Workload("a", ["n1"], spec=SHORTER), Workload("b", ["n1"], spec=_tolerating(120))
    late = Workload("late", ["n1"], priority="high")
    objects = cluster_of([node("n1"), node("n2", cpu=2)], first, second, late)
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/b": 1}


def test_pods_of_failed_nodes_count_against_budgets_when_victims_are_chosen() -> None:
    late, web = Workload("late", ["n1"], priority="high"), Workload("web", ["n1", "n2", "n4"])
    kept = Workload("kept", ["n2", "n3", "n4"], priority="high", milli=3000)
    batch = Workload("batch", ["n3"] * 2, milli=500)
    objects = cluster_of([node(f"n{index}") for index in range(1, 5)], late, web, kept, batch)
    objects["items"].append(budget("web", 1))
    found = outcomes(objects)["node", "n1"].unplaced_by
    expected = {"ReplicaSet default/batch": 2, "ReplicaSet default/web": 1}
    assert found == _unplaced(podium.load(objects), ["n1"]) == expected


def test_a_failure_without_preemption_is_that_of_a_scheduler_that_does_not_preempt() -> None:
    late, early = Workload("late", ["n1"] * 2, priority="high"), Workload("early", ["n1", "n2"], spec=SHORTER)
    objects = cluster_of([node("n1"), node("n2"), node("n3", cpu=1)], late, early, Workload("victim", ["n2"] * 3))
    found = outcomes(objects)["node", "n1"]
    alone = _unplaced(podium.load(objects, configuration=NO_PREEMPTION), ["n1"])
    assert (found.preempted, found.unplaced, found.unplaced_alone) == (2, 2, sum(alone.values()))
    assert alone == {"ReplicaSet default/late": 2}


def test_attempts_that_are_left_out_would_have_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures.FailureTrials, "_certain", lambda *_: None)
    clusters = [random_cluster(seed, nodes=12) for seed in range(SEED, SEED + usual(12))]
    left_out, decide = Counter[tuple[bool, bool]](), FailedAttempts.fails_again

    def counted(attempts: FailedAttempts, pod: PodRecord) -> bool:
        fails = decide(attempts, pod)
        left_out[fails, bool(attempts._cluster.nominations.uids)] += 1
        return fails

    monkeypatch.setattr(FailedAttempts, "fails_again", counted)
    found = [outcomes(cluster) for cluster in clusters]
    monkeypatch.setattr(FailedAttempts, "fails_again", lambda *_: False)
    assert [outcomes(cluster) for cluster in clusters] == found
    assert left_out[True, False] > 20
    assert left_out[True, True] > 0


def test_pods_that_spread_keeps_off_all_nodes_look_for_no_victims(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spec = {"topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}]}
    web, other = Workload("web", ["n1", "n2"], priority="high", spec=spec), Workload("other", ["n1"], priority="high")
    objects = cluster_of([node("n1", "a"), node("n2", "b")], web, other, Workload("victim", ["n2"] * 3))
    looking, plan = set(), DefaultPreemption.plan

    def noted(*arguments: Any, **options: Any) -> Any:
        looking.add(arguments[2].name)
        return plan(*arguments, **options)

    monkeypatch.setattr(DefaultPreemption, "plan", noted)
    found = outcomes(objects)["zone", "a"].unplaced_by
    assert looking == {"other-0", "victim-2"}
    monkeypatch.undo()
    expected = {"ReplicaSet default/victim": 1, "ReplicaSet default/web": 1}
    assert found == _unplaced(podium.load(objects), ["n1"]) == expected


def _unplaced(cluster: podium.Cluster, nodes: list[str]) -> dict[str, int]:
    return unplaced(PlannedFailures(cluster).impact(nodes))


def _agrees(planned: PlannedFailures, nodes: list[str], expected: dict[str, int] | int) -> Counter[str]:
    """Return whether `plan fail` finds these pods without a place, by workload or in sum, maybe with other ties."""
    results = (unplaced(planned.impact(nodes, seed)) for seed in range(TIES))
    seed = next((seed for seed, found in enumerate(results) if expected in (found, sum(found.values()))), None)
    return Counter(["differing"] if seed is None else ["ties"] if seed else [])


def _compare(clusters: Iterable[tuple[str, Raw]], gangs: Raw | None = None) -> Counter[str]:
    """Compare all failures with what `plan fail` says about them; count those of each kind, ties and differences.

    Of the results that `plan fail` has with different ties, one should be that of the exporter. A failure that lets no
    pod preempt, in either, has the same result without preemption.
    """
    counts: Counter[str] = Counter()
    for what, cluster in clusters:
        objects = settled(cluster, gangs)
        found = outcomes(objects, gangs)
        labels = {
            each["metadata"]["name"]: each["metadata"]["labels"] for each in objects["items"] if each["kind"] == "Node"
        }
        planned = PlannedFailures(podium.load(objects, configuration=gangs))
        without = PlannedFailures(podium.load(objects, configuration=GANGS_ALONE if gangs else NO_PREEMPTION))
        for (scope, name), outcome in found.items():
            key = {"node": HOST, "zone": ZONE, "pool": POOL}.get(scope)
            nodes = [each for each, of in labels.items() if key is not None and of[key] == name]
            if not nodes:
                continue
            counts[scope] += 1
            where, preempting = f"{what}, {scope} {name}", preempts(planned.impact(nodes))
            counts["preempting"] += preempting
            for agrees in (
                _agrees(planned, nodes, outcome.unplaced_by),
                _agrees(without if preempting or outcome.preempted else planned, nodes, outcome.unplaced_alone),
            ):
                counts += agrees
                assert not agrees["differing"], where
    return counts


def test_a_pod_that_is_preempted_at_once_comes_back_later_than_its_preemptor() -> None:
    # The victim, placed again, keeps its preemptor off by anti-affinity. It is preempted again, and comes back later.
    apart = {"labelSelector": {"matchLabels": {"app": "victim"}}, "topologyKey": ZONE}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    important = Workload("important", ["n3"], priority="high", spec=spec)
    nodes = [node("n1", "a"), node("n2", "a"), node("n3", "b", "small"), node("n4", "c", unschedulable=True)]
    objects = cluster_of(nodes, important, Workload("victim", ["n1"]))
    found = outcomes(objects)["node", "n3"]
    assert (found.preempted, found.unplaced_by) == (2, {"ReplicaSet default/victim": 1})
    assert found.unplaced_by == _unplaced(podium.load(objects), ["n3"])


def _preempted_twice() -> Raw:
    """Return a cluster where the failure of n3 lets a pod preempt another one twice, which finds a place afterwards.

    The victim prefers the zone of its preemptor, and keeps it off there by anti-affinity once it is placed again.
    """
    apart = {"labelSelector": {"matchLabels": {"app": "victim"}}, "topologyKey": ZONE}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
    near = {
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
        }
    }
    important = Workload("important", ["n3"], priority="high", milli=2000, spec=spec)
    nodes = [node("n1", "a"), node("n2", "a"), node("n3", "b", "small"), node("n4", "c", cpu=1)]
    return cluster_of(nodes, important, Workload("victim", ["n1"], spec=near))


def test_a_pod_that_is_preempted_at_once_finds_a_place_when_it_comes_back() -> None:
    objects = _preempted_twice()
    found = outcomes(objects)["node", "n3"]
    assert (found.preempted, found.unplaced_by) == (2, {})
    assert _unplaced(podium.load(objects), ["n3"]) == {}


def test_an_evaluation_does_not_wait_for_pods_that_are_expected_to_be_preempted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CreationWaits, "is_mere_retry", lambda *_: True)
    found = outcomes(_preempted_twice())["node", "n3"]
    assert (found.preempted, found.unplaced_by) == (2, {"ReplicaSet default/victim": 1})


def test_more_than_five_attempts_do_not_lengthen_a_backoff() -> None:
    workloads = [Workload("low", [""]), Workload("high", [""], priority="high")]
    decisions = Decisions(podium.load(cluster_of([node("n1", cpu=0)], *workloads)))
    queue = FailureQueue(decisions, FailedAttempts(decisions.cluster, {}, preempts=True), decisions.pending, [0])
    for low, high, first in ((1, 2, "low"), (4, 5, "low"), (5, 6, "high"), (5, 60, "high")):
        queue._known["low-0"].attempts, queue._known["high-0"].attempts = low, high
        for queued in queue._known.values():
            queue._back_off(queued)
        assert heappop(queue._heap)[-1].record.name == f"{first}-0"
        queue._heap.clear()


def test_attempts_before_an_eviction_lengthen_the_backoffs_of_pods_that_wait() -> None:
    # One waiting pod takes the room of the first victim. The other one has failed before and at the taint, so that the
    # preemptor comes first to the room of the second victim, though it is less important.
    nodes = [node("n1", cpu=1), node("n2")]
    web, victim = Workload("web", ["n1"], priority="middle", spec=SHORTER), Workload("victim", ["n2"] * 4)
    objects = cluster_of(nodes, web, victim, Workload("patient", ["", ""], priority="patient"))
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/victim": 2}


@pytest.mark.parametrize(("seconds", "attempts"), [(0, 2), (10, 3), (300, 4), (310, 4), (311, 5)])
def test_pods_that_wait_are_tried_at_each_taint_and_after_five_minutes(seconds: int, attempts: int) -> None:
    decisions = Decisions(podium.load(cluster_of([node("n1", cpu=0)], Workload("web", [""]))))
    failed = FailedAttempts(decisions.cluster, {}, preempts=True)
    queue = FailureQueue(decisions, failed, decisions.pending, [0, 10 * SECOND])
    queue._now_ns = seconds * SECOND
    queue._count_attempts(queue._known["web-0"])
    assert queue._known["web-0"].attempts == attempts


def test_a_pod_that_waits_takes_room_when_a_taint_ends_a_domain_before_pods_are_evicted() -> None:
    # The spread of the pod that waits no longer counts the zone of the failed node.
    apart = {"labelSelector": {"matchLabels": {"app": "spread"}}, "topologyKey": ZONE, "nodeTaintsPolicy": "Honor"}
    spec = {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **apart}]}
    spread, web = Workload("spread", ["n2", ""], spec=spec), Workload("web", ["n1"], priority="patient")
    objects = cluster_of([node("n1", cpu=1), node("n2", "b", cpu=2)], spread, web)
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/web": 1}


def test_a_pod_that_requires_another_one_is_tried_again_five_minutes_after_it_failed() -> None:
    # The other pod comes after it, and no plugin that has rejected it hears of that.
    near = {"labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": ZONE}
    spec = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}
    early = Workload("early", ["n1"], milli=2000, priority="middle", spec={**spec, **SHORTER})
    victim = Workload("victim", ["n2"], milli=3000)
    objects = cluster_of([node("n1"), node("n2", "b"), node("n3", "c", unschedulable=True)], early, victim)
    objects["items"] += Workload("other", ["n1"], priority="high").objects
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"ReplicaSet default/victim": 1}


def test_a_pod_that_a_placement_helps_is_not_tried_again_if_another_plugin_had_rejected_it() -> None:
    # The node lacked room for the early pod. Since no other plugin rejected it, the pod that it requires does not wake
    # it, and the late one preempts first.
    near = {"labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": ZONE}
    spec = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}
    early = Workload("early", ["n1"], milli=2000, priority="high", spec={**spec, **_tolerating(0)})
    other, late = Workload("other", ["n1"], priority="high", spec=SHORTER), Workload("late", ["n1"], priority="high")
    late.milli, late.spec = 2000, _tolerating(120)
    objects = cluster_of([node("n1", cpu=8), node("n2", "b")], early, other, late, Workload("victim", ["n2"] * 4))
    found = outcomes(objects)["node", "n1"].unplaced_by
    expected = {"ReplicaSet default/early": 1, "ReplicaSet default/victim": 3}
    assert found == _unplaced(podium.load(objects), ["n1"]) == expected


def test_a_preempted_pod_of_a_daemon_set_waits_for_its_node() -> None:
    logs, web = Workload("logs", ["n1", "n2"], "DaemonSet", 1000), Workload("web", ["n1"], priority="high", milli=3500)
    objects = cluster_of([node("n1"), node("n2"), node("n3", unschedulable=True)], logs, web)
    found = outcomes(objects)["node", "n1"].unplaced_by
    assert found == _unplaced(podium.load(objects), ["n1"]) == {"DaemonSet default/logs": 1}


def test_a_preempted_static_pod_is_not_created_again() -> None:
    web, static = Workload("web", ["n1"], priority="high"), Workload("static", ["n2"], milli=4000)
    objects = cluster_of([node("n1"), node("n2")], web, static)
    for raw in objects["items"]:
        if raw["kind"] == "Pod" and raw["metadata"]["labels"] == {"app": "static"}:
            raw["metadata"]["annotations"] = {MIRROR_ANNOTATION: "hash"}
    found = outcomes(objects)["node", "n1"]
    assert (found.preempted, found.unplaced_by) == (1, {})


def test_evicted_pods_of_a_gang_no_longer_count_as_members_with_a_node() -> None:
    gang = Workload("gang", ["n1", "n1", "n2"], spec={"schedulingGroup": {"podGroupName": "gang"}}, milli=2000)
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    objects = cluster_of([node("n1"), node("n2")], gang)
    objects["items"].append(group)
    found = outcomes(objects, GANGS)["node", "n1"].unplaced_by
    expected = _unplaced(podium.load(objects, configuration=GANGS), ["n1"])
    # There is room for one of the two pods that the gang lacks.
    assert found == expected == {"ReplicaSet default/gang": 2}


def test_a_pod_waits_if_only_others_of_its_gang_fit() -> None:
    grouped = {"schedulingGroup": {"podGroupName": "gang"}}
    large = Workload("large", ["n1"], spec=grouped, milli=4000, priority="high")
    objects = cluster_of([node("n1", cpu=8), node("n2", cpu=2)], large, Workload("small", ["n1"], spec=grouped))
    policy = {"gang": {"minCount": 1}}
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "spec": {"schedulingPolicy": policy}}
    objects["items"].append({**group, "metadata": {"name": "gang", "namespace": "default"}})
    found = outcomes(objects, GANGS)["node", "n1"].unplaced_by
    expected = _unplaced(podium.load(objects, configuration=GANGS), ["n1"])
    assert found == expected == {"ReplicaSet default/large": 1}


def test_failures_have_the_outcome_of_plan_fail() -> None:
    # In these clusters pods preempt in turns, wait nominated, lose their nomination or room, and require each other.
    seeds = (1, 24, 45, 94, 135, 294, 647, 701, 906, 61069, 820040)
    counts = _compare((f"seed {seed}", random_cluster(seed)) for seed in seeds)
    assert counts["node"] > 20
    assert counts["zone"] > 10
    assert counts["preempting"] > 20


def test_failures_of_varied_clusters_have_the_outcome_of_plan_fail() -> None:
    # Here pods of DaemonSets are preempted, pods of gangs fail, and pods mount volumes of a zone.
    seeds = (*range(1, 9), 731076, 850020)
    counts = _compare(((f"varied seed {seed}", varied_cluster(seed)) for seed in seeds), GANGS)
    assert counts["node"] > 20
    assert counts["preempting"] > 3


@pytest.mark.fuzz
@pytest.mark.parametrize("gangs", [None, GANGS])
def test_random_failures_have_the_outcome_of_plan_fail(gangs: Raw | None) -> None:
    make = varied_cluster if gangs else random_cluster
    counts = _compare(((f"seed {seed}", make(seed)) for seed in range(SEED, SEED + RUNS)), gangs)
    failed = counts["node"] + counts["zone"] + counts["pool"]
    assert counts["ties"] * 20 < failed, counts
