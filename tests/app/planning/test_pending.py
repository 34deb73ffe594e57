"""`podium plan pending`: each cause once, with the change that helps most pods."""

from __future__ import annotations

from pathlib import Path

import pytest

import podium
from podium.app.planning.deciding import causes as causes_module
from podium.app.planning.deciding.attempts import kind_of
from podium.app.planning.deciding.decisions import Decisions
from podium.store.admission.quotas import Amounts, usage_of
from podium.store.stored import Stored
from tests.app.planning.small import Raw, ask, budget, node, pod, priority_class, replica_set, reported, written

GPU = {"key": "gpu", "value": "true", "effect": "NoSchedule"}


def causes(answer: Raw) -> list[tuple[str, int, str | None, int]]:
    return [(cause["cause"], cause["pods"], cause["change"], cause["placed"]) for cause in answer["causes"]]


def change_of(sort: str, answer: Raw) -> Raw:
    found: Raw = next(change for change in answer["changes"] if change["type"] == sort)
    return found


def test_the_first_screen_shows_each_cause_once_and_the_best_change(tmp_path: Path) -> None:
    cluster = written(
        tmp_path,
        node("a"),
        node("b", taints=[GPU]),
        *[pod(f"web-{number}", "3", owner="web") for number in range(3)],
        *[pod(f"ssd-{number}", nodeSelector={"disk": "ssd"}, owner="ssd") for number in range(2)],
    )

    assert ask("pending", "-f", cluster).stdout == (
        "4 of 5 pending pods get no node; label disk=ssd on a places 1\n"
        "\n"
        "Why they wait  each cause once\n"
        "  pods  of                      why\n"
        "  2     ReplicaSet default/web  1 node: Insufficient cpu; 1 node: taint gpu=true:NoSchedule\n"
        "                                -> removal of taint gpu=true:NoSchedule from b places 1\n"
        "  2     ReplicaSet default/ssd  1 node: does not match disk=ssd\n"
        "                                -> label disk=ssd on a places 1\n"
        "\n"
        "Changes that would place them  each decided again\n"
        "  1 of 4  label disk=ssd on a\n"
        "  1 of 4  removal of taint gpu=true:NoSchedule from b\n"
        "  1 of 4  a toleration of gpu=true:NoSchedule for 2 pods\n"
        "  1 of 4  ReplicaSet default/web requests.cpu 3 -> 1\n"
        "  1 of 4  ReplicaSet default/ssd without its disk=ssd\n"
        "  1 of 4  one more node like a\n"
        "  2 of 4  2 more nodes like a\n"
        "\n"
        "Get a node  without a change, one after the other\n"
        "  1  ReplicaSet default/web  on a\n"
    )


def test_pods_that_would_get_a_node_are_no_cause(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), pod("web"))

    answer = reported("pending", "-f", cluster)

    assert answer["headline"] == "the one pending pod gets a node without a change"
    assert (answer["causes"], answer["changes"], answer["findings"]) == ([], [], [])
    assert answer["placed"] == [{"pod": "default/web", "node": "a", "victims": []}]
    assert reported("pending", "-f", written(tmp_path, node("a")))["headline"] == "no pod is pending"


@pytest.mark.parametrize(
    ("sort", "change", "spec"),
    [
        ("gate", "removal of scheduling gate example.com/wait", {"schedulingGates": [{"name": "example.com/wait"}]}),
        ("gate", "removal of scheduling gates a, b", {"schedulingGates": [{"name": "a"}, {"name": "b"}]}),
        ("scheduler", "schedulerName default-scheduler in place of mine", {"schedulerName": "mine"}),
        ("label", "label disk=ssd on a", {"nodeSelector": {"disk": "ssd"}}),
        (
            "claim",
            "PersistentVolumeClaim default/data created and bound to a volume",
            {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
        ),
    ],
)
def test_pending_reports_each_blocker_with_the_change_that_removes_it(
    tmp_path: Path, sort: str, change: str, spec: Raw
) -> None:
    cluster = written(tmp_path, node("a"), *[pod(f"web-{number}", owner="web", **spec) for number in range(4)])

    answer = reported("pending", "-f", cluster)

    assert [(cause["pods"], cause["change"], cause["placed"]) for cause in answer["causes"]] == [(4, change, 4)]
    assert (change_of(sort, answer)["change"], change_of(sort, answer)["placed"]) == (change, 4)
    assert answer["headline"] == f"4 of 4 pending pods get no node; {change} places 4"


def test_a_cordoned_node_is_uncordoned(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a", unschedulable=True), node("b", unschedulable=True), pod("web", "3"))

    answer = reported("pending", "-f", cluster)

    assert causes(answer) == [("2 nodes: cordoned", 1, "uncordoning of a", 1)]


def test_a_request_is_lowered_to_what_fits_for_all_or_for_one(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), node("b"), *[pod(f"web-{number}", "5", owner="web") for number in range(4)])

    answer = reported("pending", "-f", cluster)

    requests = [(change["change"], change["placed"]) for change in answer["changes"] if change["type"] == "request"]
    assert requests == [
        ("ReplicaSet default/web requests.cpu 5 -> 2", 4),
        ("ReplicaSet default/web requests.cpu 5 -> 4", 2),
    ]
    assert answer["causes"][0]["cause"] == "2 nodes: asks for more cpu than the node has"


def test_changes_that_preempt_are_marked_and_listed_last(tmp_path: Path) -> None:
    high, low = priority_class("high", 1000), priority_class("low", 10)
    running = pod("old", "3", on="a", owner="old", priority=10, priorityClassName="low")
    cluster = written(tmp_path, high, low, node("a"), running, pod("web", "3"))

    answer = reported("pending", "-f", cluster)

    wanted = {"type": "priority", "change": "priorityClassName high (1000) for Pod default/web"}
    assert answer["changes"][-1] == {**wanted, "placed": 1, "preempted": 1, "objects": 1}
    assert answer["causes"][0]["change"] == "Pod default/web requests.cpu 3 -> 1"


def test_a_higher_class_is_that_of_the_whole_workload_whose_pods_do_not_preempt_each_other(tmp_path: Path) -> None:
    classes = [priority_class("high", 1000), priority_class("low", 10)]
    running = [pod("web-0", "3", on="a", owner="web"), pod("old", "3", on="b", owner="old", priority=10)]
    waiting = pod("web-1", "3", owner="web")
    cluster = written(tmp_path, *classes, node("a"), node("b"), replica_set("web", 2, "3"), *running, waiting)

    changes = [change for change in reported("pending", "-f", cluster)["changes"] if change["type"] == "priority"]

    assert [change["change"] for change in changes] == ["priorityClassName high (1000) for ReplicaSet default/web"]


def test_pods_that_preempt_get_a_node_and_that_is_found(tmp_path: Path) -> None:
    running = pod("old", "3", on="a", owner="old")
    cluster = written(tmp_path, node("a"), running, pod("web", "3", priority=5))

    answer = reported("pending", "-f", cluster)

    assert answer["headline"] == "the one pending pod gets a node without a change, and 1 pod is preempted for that"
    assert answer["placed"] == [{"pod": "default/web", "node": "a", "victims": ["default/old"]}]
    assert [finding["code"] for finding in answer["findings"]] == ["preempt"]
    ask("pending", "-f", cluster, "--fail-on", "preempt", code=2)
    ask("pending", "-f", cluster, "--fail-on", "unschedulable")


def test_a_cap_that_puts_preemption_off_is_a_cause(tmp_path: Path) -> None:
    policy = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": "default"},
        "spec": {"caps": [{"component": "scheduler", "max": "1/1h"}]},
        "status": {"caps": [{"component": "scheduler", "fullTime": "2026-01-01T00:30:00Z"}]},
    }
    running = pod("old-0", "3", on="a", owner="old")
    cluster = written(
        tmp_path, policy, node("a"), running, budget("old", maxUnavailable=1), pod("web", "3", priority=5)
    )

    answer = reported("pending", "-f", cluster)

    assert answer["causes"][0]["cause"].startswith("preemption is put off: the cap of 1/1h on component scheduler")
    change = change_of("cap", answer)
    assert (change["change"], change["placed"], change["preempted"]) == (
        "DisruptionPolicy default without a cap on schedulers",
        1,
        1,
    )


def test_a_pod_whose_victims_have_yet_to_end_waits_for_them(tmp_path: Path) -> None:
    ending = pod("old", "3", on="a")
    ending["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
    preempted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ending["status"]["conditions"].append({**preempted, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    waiting = pod("web", "3", priority=5)
    waiting["status"]["nominatedNodeName"] = "a"

    answer = reported("pending", "-f", written(tmp_path, node("a"), ending, waiting))

    assert answer["causes"][0]["cause"] == "the pods that it preempted on a still terminate"


def test_without_nodes_a_node_is_what_is_missing(tmp_path: Path) -> None:
    answer = reported("pending", "-f", written(tmp_path, pod("web")))

    assert answer["headline"] == "the one pending pod gets no node, and no single change that was tried helps"
    assert causes(answer) == [("there are no nodes", 1, None, 0)]


def test_pods_that_differ_in_nothing_that_counts_have_one_cause(tmp_path: Path) -> None:
    cluster = written(
        tmp_path,
        node("a", "2"),
        *[pod(f"web-{number}", "3", owner="web") for number in range(2)],
        *[pod(f"api-{number}", "4", owner="api") for number in range(3)],
    )

    answer = reported("pending", "-f", cluster)

    assert [(cause["cause"], cause["pods"], cause["workloads"]) for cause in answer["causes"]] == [
        (
            "1 node: asks for more cpu than the node has",
            5,
            {"ReplicaSet default/api": 3, "ReplicaSet default/web": 2},
        )
    ]


def test_a_namespace_narrows_the_answer_and_csv_has_a_row_for_each_workload(tmp_path: Path) -> None:
    other = pod("other", "9")
    other["metadata"]["namespace"] = "team"
    cluster = written(tmp_path, node("a"), pod("web", "9"), other)

    assert reported("pending", "-n", "team", "-f", cluster)["causes"][0]["examples"] == ["team/other"]
    assert ask("pending", "-n", "team", "-f", cluster, "-o", "csv").stdout == (
        "workload,pods,cause,change,placed\n"
        "Pod team/other,1,1 node: asks for more cpu than the node has,Pod team/other requests.cpu 9 -> 4,1\n"
    )


def test_nothing_stays_of_what_was_tried(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a", taints=[GPU]), node("b", unschedulable=True), pod("web", "3", priority=7))

    assert reported("pending", "-f", cluster) == reported("pending", "-f", cluster)
    assert reported("pending", "-f", cluster)["causes"][0]["pods"] == 1


def quota(**hard: str) -> Raw:
    meta = {"name": "compute", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def test_pods_rejected_by_a_quota_are_reported_with_the_needed_limits(tmp_path: Path) -> None:
    limited = quota(**{"requests.cpu": "3", "pods": "10"})
    running = [pod(f"web-{number}", owner="web", on="a") for number in range(3)]
    cluster = written(tmp_path, limited, node("a"), replica_set("web", 6), *running)

    answer = reported("pending", "-f", cluster)

    assert answer["headline"] == (
        "no pod is pending, and 3 pods are not created because of a quota; "
        "ResourceQuota default/compute requests.cpu 3 -> 6 places 1"
    )
    why = "ResourceQuota default/compute: requests.cpu 3 of 3 used, 1 asked"
    assert answer["notCreated"] == [{"workload": "ReplicaSet default/web", "pods": 3, "why": why}]
    assert [finding["code"] for finding in answer["findings"]] == ["refused"]


def test_a_quota_refuses_pods_that_state_no_amount_and_a_limit_range_states_it(tmp_path: Path) -> None:
    limited, web = quota(**{"requests.cpu": "3"}), replica_set("web", 2)
    del web["spec"]["template"]["spec"]["containers"][0]["resources"]
    each = {"type": "Container", "defaultRequest": {"cpu": "2"}}
    defaults = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults", "namespace": "default"}}
    defaults |= {"spec": {"limits": [each]}}

    unstated = reported("pending", "-f", written(tmp_path, limited, node("a"), web))
    assert [each["why"] for each in unstated["notCreated"]] == [
        "ResourceQuota default/compute: must specify requests.cpu for: main"
    ]
    assert unstated["changes"] == []

    assert reported("pending", "-f", written(tmp_path, limited, node("a"), web, defaults))["notCreated"] == []
    limited["spec"]["hard"]["requests.cpu"] = "1"
    stated = reported("pending", "-f", written(tmp_path, limited, node("a"), web, defaults))
    assert [each["why"] for each in stated["notCreated"]] == [
        "ResourceQuota default/compute: requests.cpu 0 of 1 used, 2 asked"
    ]


def test_quota_usage_is_counted_once_for_all_rejected_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [replica_set(f"web-{number}", 2) for number in range(9)]
    running = [pod(f"web-{number}-0", on="a", owner=f"web-{number}") for number in range(9)]
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "9"}},
    }
    decisions = Decisions(podium.load([node("a"), quota, *sets, *running]))
    asked: list[object] = []

    def counted(stored: Stored) -> Amounts:
        asked.append(stored)
        return usage_of(stored)

    monkeypatch.setattr(causes_module, "usage_of", counted)

    assert len(causes_module.refused_pods(decisions)) == len(sets)
    assert len(asked) == len(running) + len(sets)


def test_a_quota_counts_what_its_status_says_and_pods_of_its_scope(tmp_path: Path) -> None:
    used = {**quota(pods="5"), "status": {"hard": {"pods": "5"}, "used": {"pods": "5"}}}
    other = quota(pods="0")
    other["metadata"]["name"] = "other"
    other["spec"]["scopes"] = ["BestEffort"]
    roomy = quota(pods="9")
    roomy["metadata"]["name"] = "roomy"

    answer = reported("pending", "-f", written(tmp_path, used, other, roomy, node("a"), replica_set("web", 2)))

    assert [each["why"] for each in answer["notCreated"]] == [
        "ResourceQuota default/compute: pods 5 of 5 used, 1 asked"
    ]
    elsewhere = written(tmp_path, used, node("a"), replica_set("web", 2))
    assert reported("pending", "-n", "else", "-f", elsewhere)["notCreated"] == []


def test_a_quota_admits_what_reaches_its_limit(tmp_path: Path) -> None:
    used = {**quota(pods="5"), "status": {"hard": {"pods": "5"}, "used": {"pods": "4"}}}

    assert reported("pending", "-f", written(tmp_path, used, node("a"), replica_set("web", 1)))["notCreated"] == []


def test_a_pod_that_has_ended_is_one_that_its_workload_still_wants(tmp_path: Path) -> None:
    ended = pod("web-0", owner="web", on="a")
    ended["status"] = {"phase": "Failed"}

    answer = reported("pending", "-f", written(tmp_path, quota(pods="0"), node("a"), replica_set("web", 1), ended))

    assert [each["pods"] for each in answer["notCreated"]] == [1]


def test_pods_that_differ_by_an_unused_label_are_of_one_kind(tmp_path: Path) -> None:
    def indexed(index: int) -> Raw:
        found = pod(f"work-{index}", "3", owner="work")
        found["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(index)
        return found

    decisions = Decisions(podium.load([node("a"), *map(indexed, range(5))]))
    apart = {"labelSelector": {"matchLabels": {"app": "work"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    avoided = Decisions(podium.load([node("a"), pod("alone", on="a", affinity=affinity), *map(indexed, range(5))]))

    assert len(set(map(kind_of, decisions.pending))) == 1
    assert len(set(map(kind_of, avoided.pending))) == 5


def test_nodes_with_the_same_obstacle_are_counted_together_whatever_else_they_tolerate(tmp_path: Path) -> None:
    """The taint of b is tolerated, and that of c is not."""
    spot, other = ({"key": key, "value": "true", "effect": "NoSchedule"} for key in ("spot", "other"))
    waiting = pod("web", "5", tolerations=[{"key": "spot", "operator": "Exists"}])
    cluster = written(tmp_path, node("a"), node("b", taints=[spot]), node("c", "8", taints=[other]), waiting)

    (cause,) = reported("pending", "-f", cluster)["causes"]

    assert cause["cause"] == "2 nodes: asks for more cpu than the node has; 1 node: taint other=true:NoSchedule"


def test_a_cause_names_the_change_that_the_headline_names(tmp_path: Path) -> None:
    # Either class spares three nodes: `mid` places six pods and preempts three, `high` seven and four.
    full = [node(name, "2") for name in "abc"] + [pod(f"low-{name}", "2", on=name, priority=10) for name in "abc"]
    cluster = written(
        tmp_path,
        *full,
        node("d", "1"),
        pod("dear", "1", on="d", priority=100),
        priority_class("mid", 50),
        priority_class("high", 1000),
        *[pod(f"web-{number}", owner="web") for number in range(7)],
    )

    answer = reported("pending", "-f", cluster)

    text = "priorityClassName mid (50) for ReplicaSet default/web"
    assert answer["headline"].endswith(f"{text} places 6, and preempts 3")
    assert [(cause["change"], cause["placed"]) for cause in answer["causes"]] == [(text, 6)]


def test_pods_in_the_room_of_the_victims_of_others_are_counted_as_if_these_had_ended(tmp_path: Path) -> None:
    waiting = [pod(f"web-{number}", "2", priority=50) for number in range(2)]
    cluster = written(tmp_path, node("a"), pod("low", "4", on="a"), *waiting)

    caveats = {each["about"]: each["names"] for each in reported("pending", "-f", cluster)["caveats"]}
    survives = {each["about"]: each["names"] for each in reported("survive", "low", "-f", cluster)["caveats"]}
    alone = reported("pending", "-f", written(tmp_path, node("a"), pod("low", "4", on="a"), waiting[0]))

    assert caveats["room-of-victims"] == survives["room-of-victims"] == ["default/web-1"]
    assert "room-of-victims" not in {each["about"] for each in alone["caveats"]}
