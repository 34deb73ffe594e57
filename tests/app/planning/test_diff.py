"""`podium plan diff`: two settings over one cluster, and the workloads that gain, lose or move."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import podium
from tests.app.planning.small import Raw, ask, budget, node, pod, priority_class, replica_set, reported, written

FULL = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
                }
            ]
        }
    ],
}


def scenario(**spec: Any) -> Raw:
    return {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "asked"}, "spec": spec}


def found(answer: Raw) -> dict[str, str]:
    return {difference["workload"]: difference["what"] for difference in answer["differences"]}


def test_another_scheduler_moves_pods(tmp_path: Path) -> None:
    cluster = written(
        tmp_path,
        node("a"),
        node("b"),
        pod("old", on="a"),
        pod("web"),
    )
    after = written(tmp_path, FULL, name="after.json")

    assert ask("diff", "-f", cluster, "--after", after).stdout.startswith(
        "Plan: 0 placed, 0 evicted, 0 preempted, 0 missing at the end\n"
        "after.json in place of the cluster as it is: 1 workload moves (1 pod)\n"
        "\n"
        "Differences  the cluster as it is -> after.json\n"
        "  workload                ready at the end  short for  disrupted  on other nodes\n"
        "  Pod default/web  moves                                          1 pod\n"
        "\n"
        "Impact  none: every workload is as with the cluster as it is\n"
    )


def test_a_budget_and_a_drain_of_a_setting_are_played_and_compared_with_the_other_side(tmp_path: Path) -> None:
    drain = scenario(steps=[{"at": "1s", "drain": {"name": "a", "timeout": "5m"}}])
    cluster = written(
        tmp_path,
        node("a"),
        node("b"),
        replica_set("web", 2),
        *[pod(f"web-{number}", on="a", owner="web") for number in range(2)],
        budget("web", minAvailable=2),
    )
    before = written(tmp_path, drain, name="before.json")
    after = written(tmp_path, drain, budget("web", minAvailable=1), name="after.json")

    answer = reported("diff", "-f", cluster, "--before", before, "--after", after, "--start-delay", "5s")

    assert answer["headline"] == "after.json in place of before.json: 1 workload loses (2 more disrupted)"
    assert answer["differences"] == [
        {
            "workload": "ReplicaSet default/web",
            "what": "loses",
            "ready": {"before": 2, "after": 2},
            "shortSeconds": {"before": 0.0, "after": 10.0},
            "disrupted": {"before": 0, "after": 2},
            "moved": 2,
        }
    ]
    assert answer["result"]["summary"]["drains"][0]["state"] == "drained"
    assert answer["result"]["summary"]["end"] == 301.0, "as long as the drain that times out"


def test_an_autoscaler_gives_pods_a_place(tmp_path: Path) -> None:
    cluster = written(
        tmp_path, node("a", "1"), replica_set("web", 2), *[pod(f"web-{n}", owner="web") for n in range(2)]
    )
    group = {"name": "pool", "max": 2, "template": {"status": {"allocatable": {"cpu": "4", "pods": "110"}}}}
    after = written(tmp_path, scenario(autoscaler={"nodeGroups": [group]}, until="5m"), name="after.json")

    answer = reported("diff", "-f", cluster, "--after", after)

    assert answer["headline"] == "after.json in place of the cluster as it is: 1 workload gains (1 ready pod)"
    assert [(node["change"], node["podsAfter"]) for node in answer["nodes"]] == [("added", 1)]


def test_a_rescheduler_is_a_setting(tmp_path: Path) -> None:
    rescheduler = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "ReschedulerConfiguration",
        "aggressiveness": "Bold",
        "policies": [{"name": "Consolidate"}],
    }
    cluster = written(
        tmp_path,
        node("a"),
        node("b"),
        replica_set("web", 2),
        *[pod(f"web-{place}", on=place, owner="web") for place in ("a", "b")],
        scenario(until="30m"),
    )
    after = written(tmp_path, rescheduler, name="after.json")

    answer = reported("diff", "-f", cluster, "--after", after)

    assert found(answer) == {"ReplicaSet default/web": "loses"}
    assert answer["differences"][0]["moved"] == 1


def test_pods_keep_the_priority_of_a_class_that_changes_unless_it_is_renewed(tmp_path: Path) -> None:
    low = priority_class("low", 10)
    running = pod("old-0", "3", on="a", owner="old", priority=10, priorityClassName="low")
    waiting = pod("web", "3", priority=50)
    # It comes when the class is what it is to be.
    comes = scenario(steps=[{"at": "10s", "apply": [waiting]}])
    cluster = written(tmp_path, low, node("a"), replica_set("old", 1, "3", priorityClassName="low"), running, comes)
    after = written(tmp_path, priority_class("low", 100), name="after.json")

    kept = reported("diff", "-f", cluster, "--after", after)
    renewed = reported("diff", "-f", cluster, "--after", after, "--renew-priorities")

    assert "priorities-kept" in [caveat["about"] for caveat in kept["caveats"]]
    assert found(kept) == {"Pod default/web": "loses", "ReplicaSet default/old": "gains"}, (
        "the next pod is of the class"
    )
    assert kept["result"]["summary"]["preempted"] == 1
    assert found(renewed) == {"Pod default/web": "loses", "ReplicaSet default/old": "gains"}
    assert renewed["result"]["summary"]["preempted"] == 0
    assert "priorities-kept" not in [caveat["about"] for caveat in renewed["caveats"]]


@pytest.mark.parametrize(("before", "after", "gains"), [(10, 1_000, "web"), (1_000, 10, "old")])
def test_a_pod_that_is_yet_to_be_made_is_of_the_class_as_the_setting_has_it(
    tmp_path: Path, before: int, after: int, gains: str
) -> None:
    old = pod("old-0", "3", on="a", owner="old", priority=500)
    made_at_once = replica_set("web", 1, "3", priorityClassName="service")
    cluster = written(
        tmp_path, priority_class("service", before), node("a"), replica_set("old", 1, "3"), old, made_at_once
    )
    setting = written(tmp_path, priority_class("service", after), name="after.json")

    answer = reported("diff", "-f", cluster, "--after", setting)

    assert found(answer)[f"ReplicaSet default/{gains}"] == "gains"
    assert len(found(answer)) == 2


def test_a_class_that_no_cluster_defines_is_created_for_its_pods(tmp_path: Path) -> None:
    stated = pod("web", "3", priority=10, priorityClassName="service")
    del stated["metadata"]["uid"]
    cluster = written(tmp_path, priority_class("service", 10), node("a"), stated)
    setting = written(tmp_path, priority_class("service", 100), name="after.json")

    answer = reported("diff", "-f", cluster, "--after", setting)

    assert "priorities-kept" in [caveat["about"] for caveat in answer["caveats"]]
    assert found(answer) == {}


def test_a_policy_that_changes_alone_is_renewed_as_well(tmp_path: Path) -> None:
    high = pod("web", "3", priority=1000, priorityClassName="high", preemptionPolicy="PreemptLowerPriority")
    low = pod("old-0", "3", on="a", owner="old")
    cluster = written(tmp_path, priority_class("high", 1000), node("a"), replica_set("old", 1, "3"), low, high)
    after = written(tmp_path, priority_class("high", 1000, preemptionPolicy="Never"), name="after.json")

    kept = reported("diff", "-f", cluster, "--after", after)
    renewed = reported("diff", "-f", cluster, "--after", after, "--renew-priorities")

    assert found(kept) == {}
    assert found(renewed) == {"Pod default/web": "loses", "ReplicaSet default/old": "gains"}


def test_the_priority_of_a_pod_group_is_renewed_as_well(tmp_path: Path) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "uid": "a-b-c"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": "low", "priority": 10},
    }
    cluster = written(tmp_path, priority_class("low", 10), group, node("a"), pod("web"))
    after = written(tmp_path, priority_class("low", 100), name="after.json")
    kept, renewed = tmp_path / "kept.yaml", tmp_path / "renewed.yaml"

    reported("diff", "-f", cluster, "--after", after, "--save", str(kept))
    reported("diff", "-f", cluster, "--after", after, "--renew-priorities", "--save", str(renewed))

    assert [_priority_of_group(path) for path in (kept, renewed)] == [10, 100]


def _priority_of_group(path: Path) -> int:
    documents = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    (group,) = (found for found in documents if found["kind"] == "PodGroup")
    assert "preemptionPolicy" not in group["spec"]
    return int(group["spec"]["priority"])


def test_equal_settings_make_no_difference(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), pod("web"))
    after = written(tmp_path, budget("web", minAvailable=1), name="after.json")

    answer = reported("diff", "-f", cluster, "--after", after, "--before", after)

    assert answer["headline"] == "after.json in place of after.json: no workload differs"
    assert answer["findings"] == []
    shown = ask("diff", "-f", cluster, "--after", after, "--before", after).stdout
    assert "every workload is as with after.json\n" in shown


def test_the_saved_file_is_the_second_side(tmp_path: Path) -> None:
    cluster = written(
        tmp_path, node("a", "1"), replica_set("web", 2), *[pod(f"web-{n}", owner="web") for n in range(2)]
    )
    after = written(tmp_path, scenario(steps=[{"at": "5s", "apply": [node("b")]}]), name="after.json")
    saved = tmp_path / "saved.yaml"

    answer = reported("diff", "-f", cluster, "--after", after, "--save", str(saved))

    assert podium.simulate(saved).to_dict()["pods"] == answer["result"]["pods"]


def test_unknown_settings_are_named(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"))
    policy = written(
        tmp_path,
        {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "metadata": {"name": "x"}},
        name="d",
    )
    both = tmp_path / "both.yaml"
    both.write_text(f"{json.dumps(FULL)}\n---\n{json.dumps(FULL)}\n")

    assert "a DeschedulerPolicy cannot be a setting" in ask("diff", "-f", cluster, "--after", policy, code=1).output
    old = written(tmp_path, {"apiVersion": "podium.dev/v1", "kind": "Scenario", "spec": {}}, name="old")
    says = ask("diff", "-f", cluster, "--after", old, code=1).output
    assert "a Scenario cannot be a setting unless its apiVersion is podium.dev/v1alpha1" in says
    assert "twice in one setting" in ask("diff", "-f", cluster, "--after", str(both), code=1).output
    assert "Missing option '--after'" in ask("diff", "-f", cluster, code=1).output
