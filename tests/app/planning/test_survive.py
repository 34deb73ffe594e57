"""`podium plan survive`: the pods that could preempt a pod, and the smallest changes that protect it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import podium
from podium.api.input.codec import decode
from podium.api.meta import plain
from podium.api.pod import Pod, PodSpec
from podium.api.policy import PodDisruptionBudget, preemption_policy
from podium.app.planning.deciding.protection import _tightened, _with_class, _with_policy
from podium.store.admission.pod_admission import admit_pod
from tests.app.planning.small import Raw, ask, budget, node, pod, priority_class, replica_set, reported, written


def threatened(folder: Path, *more: Raw) -> str:
    """Two nodes with a pod each, one of which has to go for a pod that waits."""
    return written(
        folder,
        priority_class("high", 1000),
        priority_class("mid", 100),
        priority_class("low", 10),
        priority_class("patient", 2000, preemptionPolicy="Never"),
        node("a"),
        node("b"),
        replica_set("old", 2, "3"),
        pod("old-0", "3", on="a", owner="old", priority=10),
        pod("old-1", "3", on="b", owner="old", priority=10),
        pod("mid", on="a", priority=100),
        pod("web", "3", priority=1000),
        *more,
    )


def changes(answer: Raw) -> dict[str, str]:
    return {change["change"]: change["type"] for change in answer["changes"]}


def test_the_first_screen_has_the_preemptors_and_what_would_protect_it(tmp_path: Path) -> None:
    assert ask("survive", "rs/old", "-f", threatened(tmp_path)).stdout == (
        "1 of 2 pods of ReplicaSet default/old does not survive: Pod default/web preempts it; ReplicaSet\n"
        "  default/old requests.cpu 3 -> 1 would protect them\n"
        "\n"
        "Preempted  if all pending pods are decided about, in queue order\n"
        "  default/old-1  priority 10  for default/web  priority 1000  on b\n"
        "\n"
        "Possible preemptors  pending pods, each by itself\n"
        "  1  Pod default/web  priority 1000  would, on the node that is best for it\n"
        "\n"
        "Changes that would protect it  the smallest change of each type, decided again\n"
        "  request   ReplicaSet default/old requests.cpu 3 -> 1\n"
        "            -> no other pod is preempted or waits\n"
        "  request   Pod default/web requests.cpu 3 -> 1\n"
        "            -> no other pod is preempted or waits\n"
        "  policy    a PriorityClass of the same value with preemptionPolicy NonPreemptible for ReplicaSet\n"
        "            default/old\n"
        "            -> 1 of Pod default/web waits\n"
        "  policy    a PriorityClass of the same value with preemptionPolicy Never for Pod default/web\n"
        "            -> 1 of Pod default/web waits\n"
        "  priority  priority 1000 for ReplicaSet default/old (PriorityClass high has 1000)\n"
        "            -> 1 of Pod default/web waits\n"
        "  node      one more node like a\n"
        "            -> no other pod is preempted or waits\n"
        "\n"
        "Priority classes  the effect of a new pod of each priority class\n"
        "  class    value  a pod like it      any pod of it\n"
        "  patient  2000   finds no node      cannot\n"
        "  high     1000   preempts it, on a  can, if it is large enough\n"
        "  mid      100    preempts it, on a  can, if it is large enough\n"
        "  low      10     finds no node      cannot\n"
    )


def test_a_pod_beside_the_one_that_is_taken_survives(tmp_path: Path) -> None:
    answer = reported("survive", "old-0", "-f", threatened(tmp_path))

    assert answer["headline"] == "Pod default/old-0 survives: 1 pending pod could preempt it, and preempts others"
    assert (answer["survives"], answer["preempted"], answer["changes"], answer["findings"]) == (True, [], [], [])
    assert answer["preemptors"] == [
        {
            "pods": ["default/web"],
            "workload": "Pod default/web",
            "priority": 1000,
            "effect": "may-preempt",
            "victims": ["default/old-1"],
        }
    ]


def test_a_preemptor_may_request_as_much_as_is_free_before_less_important_pods_come(tmp_path: Path) -> None:
    """Two CPUs are free; a pod of lower priority than the preemptor would take one of them."""
    pods = [pod("old", "2", on="a"), pod("web", "4", priority=1000), pod("small", "1", priority=-1)]

    answer = reported("survive", "old", "-f", written(tmp_path, node("a"), *pods))

    assert "Pod default/web requests.cpu 4 -> 2" in changes(answer)


def test_each_change_is_reported_with_its_effect(tmp_path: Path) -> None:
    answer = reported("survive", "rs/old", "-f", threatened(tmp_path))

    assert changes(answer) == {
        "ReplicaSet default/old requests.cpu 3 -> 1": "request",
        "Pod default/web requests.cpu 3 -> 1": "request",
        "a PriorityClass of the same value with preemptionPolicy NonPreemptible for ReplicaSet default/old": "policy",
        "a PriorityClass of the same value with preemptionPolicy Never for Pod default/web": "policy",
        "priority 1000 for ReplicaSet default/old (PriorityClass high has 1000)": "priority",
        "one more node like a": "node",
    }
    assert {change["preempted"] for change in answer["changes"]} == {0}


@pytest.mark.parametrize(
    ("budgets", "wanted"),
    [
        ([], "a budget for ReplicaSet default/old with maxUnavailable 0"),
        ([budget("old", maxUnavailable=1)], "budget default/old maxUnavailable 1 -> 0"),
        ([budget("old", minAvailable=1)], "budget default/old minAvailable 1 -> 2"),
        ([budget("old", maxUnavailable="50%")], "budget default/old allowing 0 disruptions, not 1"),
    ],
)
def test_a_budget_spares_pods_where_others_can_go(tmp_path: Path, budgets: list[Raw], wanted: str) -> None:
    """The other pod is the more important one, and is taken only where budgets would have to be violated."""
    cluster = threatened(tmp_path, node("c"), pod("else", "3", on="c", priority=11), *budgets)

    (found,) = [
        change for change in reported("survive", "rs/old", "-f", cluster)["changes"] if change["type"] == "budget"
    ]

    assert (found["change"], found["preempted"]) == (wanted, 1)


def test_a_budget_whose_maximum_says_less_than_its_status_is_not_written() -> None:
    known = decode(budget("old", maxUnavailable=1))
    assert isinstance(known, PodDisruptionBudget)
    status = msgspec.structs.replace(known.status, disruptions_allowed=3)

    tightened = _tightened(msgspec.structs.replace(known, status=status), 2)

    assert tightened == ("budget default/old allowing 1 disruptions, not 3", [])


def test_a_budget_does_not_protect_pods_that_a_returning_pod_preempts(tmp_path: Path) -> None:
    other = pod("else-0", "3", on="c", owner="else", priority=11)
    cluster = threatened(tmp_path, node("c"), replica_set("else", 1, "3"), other)

    assert "budget" not in changes(reported("survive", "rs/old", "-f", cluster)).values()


def test_no_pod_preempts_pods_whose_policy_forbids_it(tmp_path: Path) -> None:
    cluster = written(
        tmp_path,
        priority_class("high", 1000),
        node("a"),
        pod("old", "3", on="a", preemptionPolicy="NonPreemptible"),
        pod("web", "3", priority=1000),
    )

    answer = reported("survive", "old", "-f", cluster)

    assert answer["headline"] == "Pod default/old survives: none of 1 pending pod preempts it"
    assert [(threat["priorityClass"], threat["canPreempt"], threat["like"]) for threat in answer["classes"][-1:]] == [
        ("high", False, "unschedulable")
    ]


def test_survive_reports_that_the_replacement_of_another_victim_may_take_the_room(tmp_path: Path) -> None:
    cluster = written(
        tmp_path,
        node("a"),
        node("b", "2"),
        replica_set("mid", 1, "2"),
        pod("mid-0", "2", on="a", owner="mid", priority=50),
        pod("more", "2", on="a", priority=60),
        pod("low", "2", on="b", priority=1),
        pod("web", "2", priority=100, nodeSelector={"kubernetes.io/hostname": "a"}),
    )

    answer = reported("survive", "low", "-f", cluster)

    assert answer["headline"].startswith("Pod default/low does not survive: ReplicaSet default/mid preempts it; ")
    assert answer["preemptors"] == [], "no pending pod preempts it by itself"
    ask("survive", "low", "-f", cluster, "--fail-on", "preempt", code=2)


def test_the_table_has_a_row_for_each_pod(tmp_path: Path) -> None:
    assert ask("survive", "rs/old", "-f", threatened(tmp_path), "-o", "csv").stdout == (
        "pod,node,priority,survives,preemptor\ndefault/old-0,a,10,yes,\ndefault/old-1,b,10,no,default/web\n"
    )


@pytest.mark.parametrize(
    ("target", "told_of"),
    [
        ("old-3", "pod default/old-3 is not in the input; did you mean default/old-1 or default/old-0"),
        ("web", "pod default/web is pending, and cannot be preempted; see podium explain"),
        ("done", "pod default/done has ended (Succeeded), and is not scheduled again"),
        ("rs/odl", "ReplicaSet default/odl is not in the input; there is: default/old"),
        ("rs/new", "ReplicaSet default/new has no pod with a node, and so none that could be preempted"),
    ],
)
def test_survive_reports_targets_that_match_nothing(tmp_path: Path, target: str, told_of: str) -> None:
    cluster = threatened(tmp_path, replica_set("new", 1), {**pod("done", on="a"), "status": {"phase": "Succeeded"}})

    assert told_of in ask("survive", target, "-f", cluster, code=1).output


def test_pods_may_be_taken_by_their_equals_where_the_scheduler_allows_that(tmp_path: Path) -> None:
    running = [pod(f"old-{number}", on="a", owner="old", priority=5) for number in range(4)]
    waiting = [pod(f"new-{number}", owner="new", priority=5) for number in range(4)]
    sets = (replica_set("old", 4), replica_set("new", 4))
    cluster = written(tmp_path, node("a"), *sets, *running, *waiting)
    arguments = [{"name": "DefaultPreemption", "args": {"equalPriorityPreemption": True}}]
    config = written(
        tmp_path,
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": arguments}],
        },
        name="config",
    )

    assert reported("survive", "rs/old", "-f", cluster)["survives"] is True
    answer = reported("survive", "rs/old", "-f", cluster, "--config", config)

    assert [taken["preemptorWorkload"] for taken in answer["preempted"]] == ["ReplicaSet default/new"] * 2
    assert [(taker["effect"], len(taker["pods"])) for taker in answer["preemptors"]] == [("preempts", 4)]
    assert "priority 6 for ReplicaSet default/old" in changes(answer)
    assert len(podium.load(cluster, config).explain("old-3").to_dict()["placed"]["preemptors"]) == 4


def test_admission_accepts_pods_of_a_class_as_a_policy_change_writes_them() -> None:
    low = podium.load([priority_class("low", 10)]).read.documents[0].object
    raw = pod("old", priorityClassName="low")
    written_pod = _with_policy(msgspec.convert(raw, Pod), "NonPreemptible")

    admitted = admit_pod({**raw, **plain(written_pod)}, "default/old", {"low": low})  # type: ignore[dict-item]

    assert preemption_policy(msgspec.convert(admitted, Pod)) == "NonPreemptible"


def test_the_manifest_of_a_raised_priority_lowers_none() -> None:
    high, low = Pod(spec=PodSpec(priority=500)), Pod(spec=PodSpec(priority=10, priority_class_name="low"))

    raised = _with_class(low, 100, "mid")

    assert (raised.spec.priority, raised.spec.priority_class_name) == (100, "mid")
    assert _with_class(high, 100, "mid") is high
