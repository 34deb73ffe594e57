"""The example scenarios of the rescheduler: the placement before, the evictions, and the placement after.

That budgets, rates and limits are kept to is looked at after every step, by `tests.examples.rescheduled`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.examples.rescheduled import Rescheduled, owner_of, rescheduled
from tests.examples.stories import EXAMPLES

MINUTE = 60


def avoided(played: Rescheduled) -> list[str]:
    """Return what was written to avoid lists and taken off them, as `time node what`."""
    return [
        f"{event.time:g} {event.node} {event.message}"
        for event in played.result.events
        if event.reason == "NodeChanged" and "avoid list" in event.message
    ]


def test_after_a_scale_up_pods_leave_the_full_nodes_until_the_others_are_no_longer_nearly_empty() -> None:
    played = rescheduled("scale-up")

    assert played.at(659) == {"old-1": {"web": 6}, "old-2": {"web": 6}}
    assert played.evictions() == [
        "660 web old-1 MoveToUnderusedNodes",
        "720 web old-2 MoveToUnderusedNodes",
        "780 web old-1 MoveToUnderusedNodes",
        "840 web old-2 MoveToUnderusedNodes",
    ]
    assert played.after == {"new-1": {"web": 2}, "new-2": {"web": 2}, "old-1": {"web": 4}, "old-2": {"web": 4}}


def test_pods_return_to_a_recovered_zone_at_the_rate_of_their_budget() -> None:
    played = rescheduled("zone-back")

    assert played.at(0) == {"east-1": {"queue": 1}, "west-1": {"queue": 1, "shop": 3}}
    assert played.at(1800) == {"east-1": {"queue": 2, "shop": 3}}
    assert played.evictions() == [
        "1850 queue east-1 SatisfyPreferences",
        "1910 shop east-1 SatisfyPreferences",
        "2210 shop east-1 SatisfyPreferences",
        "2510 shop east-1 SatisfyPreferences",
    ]
    assert played.after == played.at(0)


def test_pods_whose_requirements_hold_no_more_are_moved_and_of_each_owner_as_few_as_will_do() -> None:
    played = rescheduled("violations")

    assert played.at(299) == {
        "apart-1": {"rival": 2},
        "disk-1": {"db": 1},
        "gpu-1": {"web": 1},
        "zone-a": {"quorum": 2},
        "zone-b": {"quorum": 2},
    }
    assert played.evictions() == [
        "300 rival apart-1 RepairViolations",
        "660 db disk-1 RepairViolations",
        "720 web gpu-1 RepairViolations",
        "780 quorum zone-a RepairViolations",
    ]
    assert played.after == {
        "apart-1": {"rival": 1},
        "apart-2": {"rival": 1},
        "disk-2": {"db": 1},
        "general-1": {"web": 1},
        "zone-a": {"quorum": 1},
        "zone-b": {"quorum": 2},
        "zone-c": {"quorum": 1},
    }


def test_a_pod_gets_the_room_of_another_for_what_it_prefers_or_requires_and_both_go_at_once() -> None:
    played = rescheduled("pair")

    before = {"fast-1": {"report": 1}, "fast-2": {"batch": 1}, "slow-1": {"cache": 1}, "slow-2": {"ledger": 1}}
    assert played.at(299) == before
    assert played.evictions() == [
        "360 report fast-1 SatisfyPreferences",
        "360 cache slow-1 SatisfyPreferences",
        "660 batch fast-2 RepairViolations",
        "660 ledger slow-2 RepairViolations",
    ]
    assert [
        re.sub(r"-[a-z0-9]{5}\b", "", reason).rpartition(", and ")[2].split(";")[0] for reason in played.reasons()
    ] == [
        *["default/report makes room for it on fast-1"] * 2,
        *["default/batch makes room for it on fast-2"] * 2,
    ]
    assert played.after == {
        "fast-1": {"cache": 1},
        "fast-2": {"ledger": 1},
        "slow-1": {"report": 1},
        "slow-2": {"batch": 1},
    }


def test_a_pod_that_makes_room_is_kept_out_until_the_other_pod_is_placed() -> None:
    played = rescheduled("makes-way")

    assert played.at(359) == {"fast": {"archive": 1}, "slow": {"cache": 1}}
    assert played.evictions() == ["360 archive fast SatisfyPreferences", "360 cache slow SatisfyPreferences"]
    assert [event.partition(" ")[2] for event in played.events("Terminated")] == [
        "Terminated archive fast",
        "Terminated cache slow",
    ]
    assert played.events("Scheduled")[2:] == ["365 Scheduled cache fast", "385 Scheduled archive slow"]
    assert [re.sub(r"-[a-z0-9]{5}\b", "", line) for line in avoided(played)] == [
        "360 fast put on the avoid list: ReplicaSet archive until the replacement of pod default/cache is scheduled; "
        "left behind: the replacement of pod archive is awaited",
        "360 slow put on the avoid list: ReplicaSet cache until the replacement of pod default/archive is scheduled; "
        "left behind: the replacement of pod cache is awaited",
        "365 slow taken off the avoid list: what was left for the replacement of pod cache",
        "365 fast taken off the avoid list: ReplicaSet archive",
        "385 fast taken off the avoid list: what was left for the replacement of pod archive",
        "385 slow taken off the avoid list: ReplicaSet cache",
    ]
    assert any(
        "1 node(s) were kept for the replacement of pod default/cache-" in event.message
        for event in played.result.events
        if event.reason == "FailedScheduling"
    )
    assert played.after == {"fast": {"cache": 1}, "slow": {"archive": 1}}


def test_a_node_that_rejects_pods_of_an_owner_avoids_that_owner_once() -> None:
    played = rescheduled("turned-away")

    assert played.events("Failed", "Scheduled", "Deleted", "Descheduled") == [
        "60 Scheduled trainer large",
        "60 Scheduled web large",
        *(f"{time} {event} trainer large" for time in (75, 90, 105) for event in ("Failed", "Scheduled")),
        "120 Failed trainer large",
        "120 Deleted trainer large",
        "120 Descheduled trainer large",
        "120 Scheduled trainer small",
    ]
    assert avoided(played) == ["120 large put on the avoid list: ReplicaSet trainer for 24h"]
    assert played.reasons() == [
        "ReplicaSet trainer avoids large by LeavePoorService: the kubelet of large turned away 4 pods of ReplicaSet "
        "trainer, the last one of late"
    ]
    assert played.after == {"large": {"web": 1}, "small": {"trainer": 1}}


@pytest.mark.parametrize(
    "answer",
    [
        {"steering": "ScoresAlone"},
        {"paused": True},
        {"scope": {"namespaces": {"exclude": ["default"]}}},
        {"limits": {"hourly": {"total": 0}}},
        {"policies": [{"name": "LeavePoorService", "args": {"minRejections": 100}}]},
    ],
)
def test_pods_rejected_by_the_kubelet_stay_when_evictions_are_forbidden_or_useless(
    answer: dict[str, Any],
) -> None:
    played = rescheduled("turned-away", answer)

    assert played.evictions() == []
    assert "small" not in played.after


def test_a_node_is_emptied_pod_by_pod_where_the_limits_let_one_go_at_a_time() -> None:
    played = rescheduled("pod-by-pod")

    assert played.evictions() == [
        "300 mail half Consolidate",
        "360 db half Consolidate",
        "420 api half Consolidate",
    ]
    assert [event for event in played.events("Scheduled") if "full" in event] == [
        "60 Scheduled cache full",
        "300 Scheduled mail full",
        "360 Scheduled db full",
        "420 Scheduled api full",
    ]
    assert played.after == {"full": {"api": 1, "cache": 1, "db": 1, "mail": 1}}


@pytest.mark.parametrize(
    "answer",
    [
        {"limits": {"hourly": {"node": 2}}},
        {"limits": {"inFlight": {"node": 0}}},
        {"threshold": 1},
        {"policies": [{"name": "Consolidate", "args": {"nodeWorth": 1}}]},
    ],
)
def test_nothing_is_begun_that_would_not_be_ended_within_an_hour_or_not_be_worth_it(answer: dict[str, Any]) -> None:
    assert rescheduled("pod-by-pod", answer).evictions() == []


def test_pods_of_one_owner_leave_the_node_that_they_share_until_it_has_its_part() -> None:
    played = rescheduled("duplicates")

    assert played.at(659) == {"node-1": {"api": 1, "web": 4}}
    assert played.evictions() == ["660 web node-1 SpreadDuplicates", "720 web node-1 SpreadDuplicates"]
    assert played.after == {"node-1": {"api": 1, "web": 2}, "node-2": {"web": 1}, "node-3": {"web": 1}}


def test_a_large_pod_gets_the_room_that_another_left_and_may_not_come_back_to() -> None:
    played = rescheduled("large-pod")

    assert played.at(659) == {"node-1": {"web": 2}, "node-2": {"web": 2}, "node-3": {"web": 2}}
    assert played.evictions() == ["660 web node-1 Consolidate"]
    assert played.reasons()[0].endswith("would leave what it lacks: 2 cpu; there is room on node-3")
    assert played.events("Scheduled")[-2:] == ["660 Scheduled web node-3", "665 Scheduled big node-1"]
    assert avoided(played) == ["660 node-1 put on the avoid list: ReplicaSet web"]
    assert played.after == {"node-1": {"big": 1, "web": 1}, "node-2": {"web": 2}, "node-3": {"web": 3}}


def test_the_devices_of_a_node_are_given_to_one_pod() -> None:
    played = rescheduled("gpus")

    assert played.at(659) == {"gpu-1": {"small": 1}, "gpu-2": {"small": 1}}
    assert played.evictions() == ["660 small gpu-1 Consolidate"]
    assert played.after == {"gpu-1": {"training": 1}, "gpu-2": {"small": 2}}


def test_a_pod_that_fails_on_one_node_leaves_and_one_that_fails_everywhere_stays() -> None:
    played = rescheduled("poor-service")

    assert played.at(2039) == {
        "node-1": {"broken": 1, "web": 1},
        "node-2": {"broken": 2, "web": 1},
        "node-3": {"web": 1},
    }
    assert played.evictions() == ["2040 web node-1 LeavePoorService"]
    assert played.after == {"node-1": {"broken": 1}, "node-2": {"broken": 2, "web": 1}, "node-3": {"web": 2}}
    assert avoided(played)[0] == "2040 node-1 put on the avoid list: ReplicaSet web for 24h"


def test_the_aggressor_leaves_a_crowded_node_or_a_victim_if_it_may_not() -> None:
    played = rescheduled("noisy-neighbour")

    assert played.at(659) == {"node-1": {"hog": 1, "web": 1}, "node-2": {"api": 1, "render": 1}}
    assert played.evictions() == ["660 hog node-1 SeparateInterfering", "720 api node-2 SeparateInterfering"]
    assert played.after == {
        "node-1": {"web": 1},
        "node-2": {"render": 1},
        "spare-1": {"hog": 1},
        "spare-2": {"api": 1},
    }


def test_a_node_that_is_announced_to_go_down_is_emptied_ahead_of_time() -> None:
    played = rescheduled("maintenance")

    assert played.at(4199) == {"node-1": {"lonely": 1, "web": 4}}
    assert played.evictions() == [f"{time} web node-1 PrepareForMaintenance" for time in (4200, 4260, 4320, 4380)], (
        "an hour before, and then one in a minute"
    )
    assert played.at(2 * 3600 + 10 * MINUTE) == {"node-1": {"lonely": 1}, "node-2": {"web": 4}}
    assert played.after == {"node-2": {"web": 4}}


def test_old_pods_are_replaced_one_by_one_as_the_rate_of_their_budget_lets_them() -> None:
    played = rescheduled("old-pods")

    evictions = played.evictions()
    assert [line.split()[0] for line in evictions] == ["7260", "8460", "10860", "14520", "15720", "18120"]
    assert {line.split()[3] for line in evictions} == {"ReplaceOldPods"}
    ages = [event.message.partition(" is ")[2].split(" old")[0] for event in descheduled(played)]
    assert ages == ["121m", "141m", "3h1m", "121m", "121m", "121m"]


def test_blind_a_replacement_stays_pending_and_holds_one_unit_of_its_budget() -> None:
    played = rescheduled("blind")

    assert played.at(3659) == {"node-1": {"db": 3}}
    assert played.evictions() == ["3660 db node-1 ReplaceOldPods"]
    assert played.after == {"node-1": {"db": 2}}
    budget = played.simulation.store.get("PodDisruptionBudget", "default/db").raw["status"]
    assert (budget["currentHealthy"], budget["desiredHealthy"], budget["disruptionsAllowed"]) == (2, 2, 0)
    waiting = [pod for pod in played.result.pods if pod["phase"] == "Pending"]
    assert [owner_of(pod["pod"]) for pod in waiting] == ["db"]


def test_landing_checks_prevent_evictions_of_pods_without_another_node() -> None:
    played = rescheduled("blind", {"judgement": "Placement"})

    assert played.evictions() == []
    assert played.after == {"node-1": {"db": 3}}


# How eagerly, and how replacements find their places


@pytest.mark.parametrize(
    ("word", "times", "moved"),
    [
        pytest.param("Cautious", ["660", "720", "780", "840"], 4, id="one at a time, and half of the budget is left"),
        pytest.param("Moderate", ["630", "660", "690", "720"], 4, id="sooner"),
        pytest.param("Bold", ["610", "610", "630", "630"], 4, id="at once, all that the budget allows"),
    ],
)
def test_the_bolder_the_sooner_and_the_more_of_a_budget_is_taken(word: str, times: list[str], moved: int) -> None:
    played = rescheduled("scale-up", {"aggressiveness": word})

    assert [line.split()[0] for line in played.evictions()] == times
    assert sum(played.after[node]["web"] for node in ("new-1", "new-2")) == moved


def test_the_reserve_keeps_a_budget_of_one_untouched() -> None:
    played = rescheduled("zone-back", {"budgets": None})

    assert played.evictions() == ["1850 queue east-1 SatisfyPreferences"]


@pytest.mark.parametrize("guidance", ["Evict", "Hint", "Bind"])
def test_all_ways_to_guide_a_replacement_bring_it_to_where_it_is_better(guidance: str) -> None:
    played = rescheduled("zone-back", {"guidance": guidance})

    assert played.after == played.at(0)


def test_a_hint_names_the_place_on_the_avoid_list_and_a_binding_is_ours() -> None:
    hinted = rescheduled("large-pod", {"guidance": "Hint"})
    bound = rescheduled("large-pod", {"guidance": "Bind"})

    assert any("left behind: a try at node-2" in line for line in avoided(hinted)), avoided(hinted)
    by = {event.by for event in bound.result.events if event.reason == "Scheduled" and event.time == 660}
    assert by == {"rescheduler"}, by


def test_a_replacement_may_go_to_the_front_at_any_priority() -> None:
    played = rescheduled("zone-back", {"goesFirst": True})

    left = [line for line in avoided(played) if "left behind: the front of the queue" in line]
    assert len(left) == len(played.evictions())
    assert played.after == played.at(0)


def test_a_paused_rescheduler_evicts_no_pod() -> None:
    played = rescheduled("scale-up", {"paused": True})

    assert played.evictions() == []


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_gives_the_same_story(seed: int) -> None:
    answer = [rescheduled("scale-up", seed=seed).result.to_dict() for _ in range(2)]

    assert answer[0] == answer[1]


def test_every_shipped_scenario_is_played_here() -> None:
    shipped = {file.stem for file in (EXAMPLES / "rescheduler").glob("*.yaml") if "kind: Scenario" in file.read_text()}

    assert shipped == {*re.findall(r'rescheduled\("([\w-]+)"', Path(__file__).read_text())}


def descheduled(played: Rescheduled) -> list[Any]:
    return [event for event in played.result.events if event.reason == "Descheduled"]
