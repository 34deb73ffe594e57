"""The example scenarios of drains, budgets, failed nodes and the cluster autoscaler, by the second."""

from collections import Counter

from podium.sim.results.result import Result
from tests.examples.stories import played, story

MOVES = ("Scheduled", "Killing", "Terminated", "NodeAdded", "NodeRemoved", "Nominated")


def test_a_drain_refuses_where_a_pod_may_not_go_and_else_evicts_within_the_budget() -> None:
    result = played("drain")

    assert story(result, MOVES, owners=("web", "agent"))[4:] == [
        "120 Killing lonely node-1",
        "120 Killing web-2 node-1",
        "120 Scheduled web-3 node-2",
        "125 Terminated lonely node-1",
        "130 Terminated web-2 node-1",
        "140 Killing web-1 node-1",
        "140 Scheduled web-4 node-2",
        "150 Terminated web-1 node-1",
    ]
    refused, drained = result.summary["drains"]
    assert (refused["state"], drained["state"]) == ("refused", "drained")
    assert [pod["pod"] for pod in refused["pods"] if pod["state"] == "refused"] == ["default/lonely"]
    assert [pod["state"] for pod in drained["pods"]] == ["left", "gone", "gone", "gone"]


def test_no_node_is_added_for_a_pod_whose_room_is_being_made() -> None:
    result = played("autoscaler-1")

    assert story(result, MOVES, owners=("batch",)) == [
        "0 Scheduled batch-1 node-1",
        "30 Nominated urgent node-1",
        "30 Killing batch-1 node-1",
        "40 NodeAdded pool-0",
        "90 Terminated batch-1 node-1",
        "90 Scheduled urgent node-1",
        "160 Scheduled batch-2 pool-0",
    ]
    [scaled_up] = [event for event in result.events if event.reason == "TriggeredScaleUp"]
    assert (scaled_up.pod or "").startswith("default/batch-")


def test_no_node_is_added_or_kept_for_pods_below_the_cut_off() -> None:
    result = played("autoscaler-2")

    assert story(result, MOVES, owners=("scavenger",)) == [
        "130 NodeAdded pool-0",
        "170 Scheduled normal pool-0",
        "170 Scheduled scavenger-1 pool-0",
        "1020 Killing scavenger-1 pool-0",
        "1020 Scheduled scavenger-2 node-1",
        "1025 Terminated scavenger-1 pool-0",
        "1025 NodeRemoved pool-0",
    ]
    assert [event.pod for event in result.events if event.reason == "TriggeredScaleUp"] == ["default/normal"]


def test_the_pods_of_a_node_that_fails_go_when_they_no_longer_tolerate_it_and_end_when_it_is_back() -> None:
    assert story(played("node-down"), MOVES, owners=("quick",)) == [
        "0 Scheduled db-0 node-1",
        "0 Scheduled quick-1 node-1",
        "120 Killing quick-1 node-1",
        "120 Scheduled quick-2 node-2",
        "410 Killing db-0 node-1",
        "600 Terminated db-0 node-1",
        "600 Terminated quick-1 node-1",
        "600 Scheduled db-0 node-1",
    ]


def test_default_budgets_and_a_cap_hold_back_the_drains() -> None:
    result = played("disruption-policy")

    killed = story(result, ("Killing",), owners=("shop", "crawler"))
    assert killed == [
        "60 Killing crawler-2 node-1",
        "60 Killing shop-2 node-1",
        "360 Killing crawler-1 node-2",
        "660 Killing shop-1 node-2",
    ]
    priorities = {pod["pod"].split("/")[1].split("-")[0]: pod["priority"] for pod in result.pods}
    assert priorities == {"shop": 750_000_000, "crawler": 250_000_000}
    assert [drain["state"] for drain in result.summary["drains"]] == ["drained", "drained"]


def test_an_evicted_pod_avoids_its_old_node_for_its_own_sake_or_until_the_room_is_taken() -> None:
    result = played("avoid-list")

    assert story(result, MOVES, owners=("small",)) == [
        "0 Scheduled web-0 node-1",
        "60 Killing web-0 node-1",
        "65 Terminated web-0 node-1",
        "65 Scheduled web-0 node-2",
        "120 Killing small-1 node-3",
        "120 Scheduled small-2 node-4",
        "130 Terminated small-1 node-3",
        "130 Scheduled big node-3",
    ]
    assert [(event.time, event.message) for event in result.events if event.reason == "NodeChanged"] == [
        (60, "put on the avoid list: StatefulSet web for 24h"),
        (120, "put on the avoid list: ReplicaSet small until pod default/big is scheduled"),
        (130, "taken off the avoid list: ReplicaSet small"),
    ]
    assert result.to_dict()["disruptions"]["avoidLists"] == [
        {
            "node": "node-1",
            "entries": [
                {
                    "controller": "StatefulSet web",
                    "since": "2026-01-01T00:01:00Z",
                    "until": "2026-01-02T00:01:00Z",
                    "reason": "rescheduler",
                }
            ],
        }
    ]


def test_a_replacement_has_the_place_in_the_queue_and_the_node_that_its_eviction_left_it() -> None:
    result = played("replacement")

    assert story(result, ("Scheduled", "Killing"), owners=("web", "batch")) == [
        "0 Scheduled web-1 node-1",
        "60 Killing web-1 node-1",
        "180 Scheduled web-2 node-2",
        "180 Scheduled batch-2 node-2",
        "300 Scheduled batch-1 node-3",
        "300 Scheduled web-3 node-3",
        "360 Killing web-2 node-2",
        "360 Scheduled web-4 node-4",
    ]
    left = ("put on the avoid list", "taken off the avoid list")
    assert [(event.time, event.message) for event in result.events if (event.message or "").startswith(left)] == [
        (60, f"put on the avoid list: ReplicaSet web; left behind: the front of the queue for {replaced(result, 60)}"),
        (180, f"taken off the avoid list: what was left for {replaced(result, 60)}"),
        (360, f"put on the avoid list: ReplicaSet web; left behind: a try at node-4 for {replaced(result, 360)}"),
        (360, f"taken off the avoid list: what was left for {replaced(result, 360)}"),
    ]


def replaced(result: Result, time: int) -> str:
    """Return the replacement of the pod that was evicted then, in words."""
    (pod,) = (event.pod for event in result.events if (event.time, event.reason) == (time, "Killing"))
    return f"the replacement of pod {(pod or '').removeprefix('default/')}"


def test_quotas_by_priority_promise_what_the_nodes_offer_and_a_budget_that_is_too_strict_is_refused() -> None:
    result = played("quota-by-priority")

    waiting = Counter(pod["pod"].split("/")[0] for pod in result.pods if pod["phase"] == "Pending")
    running = Counter(pod["pod"].split("/")[0] for pod in result.pods if pod["phase"] == "Running")
    assert running == {"shop": 4, "search": 4}
    assert waiting == {"crawler": 8}
    answer = result.to_dict()["disruptions"]
    assert [(one["quota"], one["used"].get("requests.cpu")) for one in answer["quotas"]] == [
        ("crawler/nothing-else", None),
        ("crawler/preemptible", "8"),
        ("search/critical", "4"),
        ("shop/critical", "4"),
    ]
    assert "warnings" not in answer
    (skipped,) = [event.message for event in result.events if event.reason == "StepSkipped"]
    assert "stricter than the DisruptionPolicy allows for pods of priority 333333334" in skipped


def test_rules_give_pods_their_priority_and_a_team_may_not_choose_another() -> None:
    result = played("priority-rules")

    classes = {(pod["pod"].partition("-")[0], pod["priority"]) for pod in result.pods}
    assert classes == {("crawl/crawler", 250_000_000), ("shop/web", 750_000_000)}
    assert [record.owner for record in result.ledger] == ["ReplicaSet crawl/crawler"]
    refused = {event.message for event in result.events if event.reason == "FailedCreate"}
    assert len(refused) > 0
    assert all("priority rule batch-teams requires preemptible" in message for message in refused)


def test_a_quota_requires_pods_to_name_a_priority_and_what_lacks_it_is_named() -> None:
    result = played("required-priority")

    assert sorted(pod["pod"].rpartition("-")[0] for pod in result.pods) == ["batch/report", "shop/web", "shop/web"]
    assert [warning.partition(" no quota")[0] for warning in result.disruptions.warnings] == ["namespace batch has"] * 2
