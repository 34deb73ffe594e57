"""Invariants of gang plans in random fleets: plans work when carried out, without unnecessary victims."""

from random import Random

import pytest

from podium.decide.preempting.gang import gang_search
from tests.builders import configuration
from tests.sim.fleet_run import FleetRun
from tests.sim.fleet_stories import Feature
from tests.sim.judged_gang_plans import GangPlans
from tests.sim.objects import scenario
from tests.sim.omitted import NOTHING, Omitted
from tests.sim.played import instantly
from tests.sim.shortest_story import RecordProperty, play_all
from tests.store.objects import Raw, node, pod

SEEDS = range(700, 704)
FEATURES = frozenset((Feature.GANGS,))


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> GangPlans:
    """Judges all plans that are made for gangs."""
    judged = GangPlans()
    monkeypatch.setattr(gang_search, "plan_gang", judged)
    return judged


def fleet(seed: int, is_faulty: bool = True, omitted: Omitted = NOTHING) -> FleetRun:
    return FleetRun(seed, is_faulty, omitted, features=FEATURES)


def test_gang_plans_hold_under_any_failure(plans: GangPlans) -> None:
    for seed in SEEDS:
        fleet(seed, is_faulty=seed % 4 != 0).play()

    assert plans.with_victims
    assert plans.in_vain


def test_a_group_is_preempted_as_a_whole_by_every_preemptor(plans: GangPlans) -> None:
    settings = configuration(
        {"DefaultPreemption": {"wholeGroups": True}}, plugins={"multiPoint": {"enabled": ["GangScheduling"]}}
    )
    singles = 0
    for seed in range(6):
        result = instantly(crowded(seed), configuration=settings, seed=seed)
        gone: dict[tuple[float, str], set[str]] = {}
        for event in result.events:
            victim = event.pod or ""
            if event.reason == "Preempted" and victim.startswith("default/whole-"):
                gone.setdefault((event.time, event.by or ""), set()).add(victim)
        singles += sum(by.startswith("default/single") for _, by in gone)

        for (_, by), victims in gone.items():
            groups = {victim.rpartition("-")[0] for victim in victims}
            assert victims == {f"{name}-{number}" for name in groups for number in range(3)}, (seed, by)

    assert singles
    assert plans.whole_groups


def crowded(seed: int) -> list[Raw]:
    """Nodes full of groups that are one victim and of single pods, and gangs and single pods that want their room."""
    random = Random(f"crowded:{seed}")
    objects: list[Raw] = [node(f"n{number}", cpu=4) for number in range(6)]
    places = [f"n{number}" for number in range(6) for _ in range(2)]
    random.shuffle(places)
    for number in range(3):
        objects.append(group(f"whole-{number}", 3, disruptionMode="PodGroup"))
        named = {"schedulingGroup": {"podGroupName": f"whole-{number}"}}
        priority = random.choice((1, 2, 3))
        objects += [
            pod(f"whole-{number}-{place}", cpu=2, node=places.pop(), priority=priority, spec=named)
            for place in range(3)
        ]
    objects += [
        pod(f"alone-{place}", cpu=2, node=on, priority=random.choice((1, 2, 9))) for place, on in enumerate(places)
    ]
    steps = []
    for number in range(3):
        size, at = random.randint(2, 4), f"{40 * number + 5}s"
        named = {"schedulingGroup": {"podGroupName": f"gang-{number}"}}
        members = [
            pod(f"gang-{number}-{place}", cpu=random.choice((2, 2, 4)), priority=5, spec=named) for place in range(size)
        ]
        steps.append({"at": at, "apply": [group(f"gang-{number}", size), *members]})
        single = pod(f"single-{number}", cpu=2, priority=random.choice((2, 4, 6)))
        steps.append({"at": f"{40 * number + 25}s", "apply": [single]})
    return [*objects, scenario(*steps, until="5m")]


def group(name: str, least: int, **spec: str) -> Raw:
    kind = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}, **spec}
    return {**kind, "metadata": {"name": name, "namespace": "default"}, "spec": policy}


@pytest.mark.fuzz
def test_plans_for_gangs_hold_in_many_more_fleets(plans: GangPlans, record_property: RecordProperty) -> None:
    play_all(fleet, lambda seed: seed % 4 != 0, record_property)
