"""Preemption by a gang, one rule at a time; test_gang_plan_by_twin tries every set."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.pod import MIRROR_ANNOTATION, Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.gang_placement import domains_of
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING
from podium.decide.preempting.gang.gang import gang_priority
from podium.decide.preempting.preemption_plan import GangPlan
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext, ReservePlugin
from podium.framework.pre_filters import EVERYWHERE, GroupDemand
from podium.framework.runner import Runner
from podium.framework.verdicts import SUCCESS, Code, PluginError, Status
from podium.plugins.default_preemption import DefaultPreemption
from tests.builders import (
    HOSTNAME,
    ZONE,
    budget,
    cluster_of,
    configuration,
    node,
    plain_runner,
    pod,
    runner_on,
    scheduler_cap,
    term,
)
from tests.pod_groups import gang, of_gang

LOW = 10
HIGH = 100


def workers(number: int, **kinds: Any) -> list[Pod]:
    """So many pending members of the gang `work`, each of which fills a node."""
    return [of_gang(pod(f"worker-{place}", **{"priority": HIGH, "cpu": 4, **kinds}), "work") for place in range(number)]


def full(*names: str, priority: int = LOW, **kinds: Any) -> list[Kubernetes]:
    """Nodes, each filled by one pod that is named after it."""
    nodes: list[Kubernetes] = [node(name, cpu=4, zone=name[0]) for name in names]
    return [*nodes, *(pod(f"on-{name}", on=name, cpu=4, priority=priority, **kinds) for name in names)]


class World:
    """A cluster, and a gang that waits for room in it."""

    def __init__(self, objects: Sequence[Kubernetes], members: Sequence[Pod], **args: Any) -> None:
        self.cluster = cluster_of(*objects)
        self.runner = runner_on(self.cluster, configuration({"DefaultPreemption": args}))
        self.members = tuple(map(self._read, members))

    def _read(self, member: Pod) -> PodRecord:
        record = self.cluster.read(member)
        if record.nominated_node_name:
            self.cluster.nominations.put(record, record.nominated_node_name)
        return record

    @property
    def plugin(self) -> DefaultPreemption:
        return next(plugin for plugin in self.runner.profile.post_filter if isinstance(plugin, DefaultPreemption))

    def demand(self, needed: int | None = None, key: str = "") -> GroupDemand:
        domains = domains_of(self.cluster, key)[0] if key else EVERYWHERE
        return GroupDemand("default/work", self.members, needed or len(self.members), domains)

    def plan(self, needed: int | None = None, key: str = "") -> GangPlan:
        return self.plugin.plan_group(self.demand(needed, key), self.runner)


def reserving(cluster: Cluster, plugin: ReservePlugin) -> Runner:
    """Return the plugins, and one that has something to reserve for every pod."""
    return Runner(dataclasses.replace(plain_runner(cluster).profile, reserve=(plugin,)), cluster)


def planned(objects: Sequence[Kubernetes], members: Sequence[Pod], needed: int | None = None, **args: Any) -> GangPlan:
    return World(objects, members, **args).plan(needed)


def victims(plan: GangPlan) -> list[str]:
    assert plan.chosen is not None, plan.message or plan.reason
    return [victim.name for victim in plan.chosen.victims]


def places(plan: GangPlan) -> dict[str, str]:
    assert plan.chosen is not None, plan.message or plan.reason
    return {member.name: node_name for member, node_name in plan.chosen.placements}


def state_of(cluster: Cluster) -> dict[str, Any]:
    """All that a decision must leave as it was."""
    nodes = cluster.nodes
    return {
        "placed": {uid: (record, record.slot, record.row) for uid, record in cluster.placed.items()},
        "requested": nodes.requested[:, : nodes.count].tolist(),
        "nominations": [(record.key, name) for record, name in cluster.nominations.all()],
        "victims": cluster.nominations.victims(),
    }


# What goes


def test_victims_go_on_as_many_nodes_as_the_gang_needs() -> None:
    plan = planned(full("a", "b", "c"), workers(2))

    assert len(places(plan)) == len(set(places(plan).values())) == 2
    assert sorted(victims(plan)) == sorted(f"on-{name}" for name in places(plan).values())


def test_the_gang_plan_evicts_no_pod_for_a_gang_that_cannot_complete() -> None:
    plan = planned([*full("a", "b"), *full("c", priority=HIGH)], workers(3))

    assert plan.eligible
    assert plan.chosen is None
    assert plan.message == (
        "preemption: 3 members of default/work would not fit with all less important pods gone that may go"
    )


def test_free_room_is_used_before_any_preemption() -> None:
    plan = planned([*full("a", "b"), node("free", cpu=4)], workers(2))

    assert "free" in places(plan).values()
    assert len(victims(plan)) == 1


def test_only_for_as_many_as_are_needed_victims_go_and_others_take_room_that_is_left() -> None:
    objects = [node("a", cpu=8), pod("on-a", on="a", cpu=8, priority=LOW), *full("b")]

    plan = planned(objects, workers(3), needed=1)

    assert places(plan) == {"worker-0": "b"} or (victims(plan) == ["on-a"] and len(places(plan)) == 2)
    assert len(victims(plan)) == 1


def test_the_least_important_go_of_all_that_would_do() -> None:
    objects = [*full("a", priority=30), *full("b", priority=20), *full("c", priority=10)]

    assert sorted(victims(planned(objects, workers(2)))) == ["on-b", "on-c"]


def test_one_victim_that_frees_room_for_several_members_is_preferred() -> None:
    large = [node("large", cpu=8), pod("on-large", on="large", cpu=8, priority=LOW)]

    assert victims(planned([*full("a", "b"), *large], workers(2))) == ["on-large"]


def test_a_victim_made_unnecessary_by_a_later_member_stays() -> None:
    objects = [
        node("a", cpu=8),
        pod("small", on="a", cpu=4, priority=5),
        pod("large", on="a", cpu=4, priority=LOW),
        node("b", cpu=1),
    ]

    assert victims(planned(objects, workers(1))) == ["small"]
    assert sorted(victims(planned(objects, workers(2)))) == ["large", "small"]


def test_members_of_different_shapes_have_one_plan() -> None:
    members = [
        *workers(1, cpu=8),
        *(replace(one, metadata=replace(one.metadata, name="s", uid="s")) for one in workers(1)),
    ]
    objects = [*full("a"), node("wide", cpu=8), *(pod(f"w-{i}", on="wide", cpu=4, priority=LOW) for i in range(2))]

    assert places(planned(objects, members)) == {"worker-0": "wide", "s": "a"}


def test_no_pod_is_evicted_on_many_nodes_when_another_member_order_fits() -> None:
    """The two small ones come first, and each alone would have a node that the large one needs."""
    names = [f"n{number}" for number in range(200)]
    objects = [*full(*names), node("wide-0", cpu=8), node("wide-1", cpu=8)]
    large = of_gang(pod("worker-2", priority=HIGH, cpu=8), "work")

    plan = planned(objects, [*workers(2), large])

    assert victims(plan) == []
    assert places(plan)["worker-0"] == places(plan)["worker-1"] != places(plan)["worker-2"]
    assert plan.search is not None
    assert plan.search.is_complete


# Who may go


@pytest.mark.parametrize("priority", [HIGH, HIGH + 1])
def test_pods_as_important_as_the_group_stay(priority: int) -> None:
    assert planned(full("a", "b", priority=priority), workers(2)).chosen is None


def test_the_priority_that_the_group_states_counts_and_otherwise_its_most_important_member() -> None:
    members = [*workers(1, priority=50), *workers(2, priority=5)[1:]]

    assert len(victims(planned(full("a", "b", priority=40), members))) == 2
    assert planned([gang("work", 2, priority=30), *full("a", "b", priority=40)], members).chosen is None
    assert gang_priority([], None) == 0


def test_members_are_not_victims_of_their_own_gang() -> None:
    members = [*workers(1, priority=5), *workers(2)[1:]]
    running = of_gang(pod("first", on="a", cpu=4, priority=1), "work")

    assert planned([node("a", cpu=4), running, *full("b")], members).chosen is None


def test_pods_that_may_not_be_preempted_stay() -> None:
    assert planned(full("a", "b", policy="NonPreemptible"), workers(2)).chosen is None


def test_mirror_pods_stay_where_they_are_spared() -> None:
    running = pod("mirror", on="a", cpu=4, priority=LOW)
    mirror = replace(running, metadata=replace(running.metadata, annotations={MIRROR_ANNOTATION: "x"}))

    assert victims(planned([node("a", cpu=4), mirror], workers(1))) == ["mirror"]
    assert planned([node("a", cpu=4), mirror], workers(1), spareMirrorPods=True).chosen is None


def test_a_gang_with_a_member_that_never_preempts_does_not() -> None:
    plan = planned(full("a", "b"), [*workers(1), *workers(2, policy="Never")[1:]])

    assert not plan.eligible
    assert plan.reason == "not eligible due to preemptionPolicy=Never."


def test_a_gang_waits_for_victims_that_terminate_on_a_nominated_node() -> None:
    objects = [node("a", cpu=4), pod("gone", on="a", cpu=4, priority=LOW, terminating=True, preempted=True), *full("b")]

    plan = planned(objects, [*workers(1, nominated="a"), *workers(2)[1:]])

    assert plan.reason == NOT_ELIGIBLE_TERMINATING


def test_a_gang_with_extenders_preempts_no_pod() -> None:
    class Asked:
        def concern(self, member: PodRecord) -> bool:
            return member.name == "worker-1"

    world = World(full("a", "b"), workers(2))
    world.runner.extenders = Asked()  # type: ignore[assignment]

    assert world.plan().reason == "not eligible since extenders are asked about its pods."


def test_room_of_nominated_pods_that_are_as_important_is_kept() -> None:
    waiting = pod("waiting", nominated="a", cpu=4, priority=HIGH)

    assert planned([*full("a", "b"), waiting], workers(2)).chosen is None
    assert sorted(victims(planned([*full("a", "b", "c"), waiting], workers(2)))) == ["on-b", "on-c"]


def test_previous_nominations_of_members_do_not_block_them() -> None:
    members = [*workers(1, nominated="b"), *workers(2, nominated="a")[1:]]

    assert len(victims(planned(full("a", "b"), members))) == 2


# Budgets, caps, costs


def test_budgets_count_over_all_victims_and_are_spared_first() -> None:
    objects = [*full("a", "b", labels={"app": "web"}), *full("c", priority=50), budget("web", "app=web", 1)]

    plan = planned(objects, workers(2))

    assert sorted(victims(plan))[0] in {"on-a", "on-b"}
    assert "on-c" in victims(plan)
    assert plan.chosen is not None
    assert plan.chosen.budget_violations == 0


def test_required_budgets_limit_the_victims_of_a_gang() -> None:
    web = full("a", "b", labels={"app": "web"}, ready=True)
    objects = [*web, budget("web", "app=web", 1)]

    assert planned(objects, workers(2)).chosen is not None
    assert planned(objects, workers(2), budgets="Require").chosen is None
    spare = planned([*objects, *full("c", priority=50)], workers(2), budgets="Require")
    assert "on-c" in victims(spare)


def test_a_cap_that_leaves_too_little_puts_the_whole_plan_off() -> None:
    web = full("a", "b", labels={"app": "web"}, ready=True)
    objects = [*web, budget("web", "app=web", 5), scheduler_cap("2/1h", used=1)]

    plan = planned(objects, workers(2))
    assert plan.chosen is None
    assert plan.put_off is not None
    assert plan.put_off.victims == 2

    assert sorted(victims(planned([*objects, *full("c", "d", priority=50)], workers(2)))) == ["on-c", "on-d"]


def test_a_stated_cost_decides_the_victims() -> None:
    objects = [
        *full("a", priority=10, started=0),
        *full("b", priority=20, started=90),
        *full("c", priority=30, started=95),
    ]
    world = World(objects, workers(2), victimCost=["WorkLost"])
    world.cluster.pass_time(max(record.start_ns for record in world.cluster.placed.values()))
    plan = world.plan()

    assert sorted(victims(plan)) == ["on-b", "on-c"]
    assert [criterion.name for criterion in plan.criteria] == ["WorkLost"]


def test_a_nominated_pod_that_rejects_a_later_member_is_respected() -> None:
    """The small one comes first, and for it the nominated pod does not count; there is room for two of the three."""
    waiting = pod("waiting", nominated="a", cpu=1, priority=LOW)
    objects = [node("a", cpu=4), pod("on-a", on="a", cpu=4, priority=0), waiting]
    small, large = (of_gang(pod(f"worker-{cpu}", cpu=cpu, priority=on), "work") for cpu, on in ((1, HIGH), (3, 0)))

    assert planned(objects, [small, large]).chosen is None
    assert places(planned(objects, [large, small])) == {"worker-3": "a", "worker-1": "a"}


def test_pods_that_have_not_run_for_long_enough_stay() -> None:
    world = World(full("a", "b", started=0), workers(2), minimumRunningTime="10m")
    world.cluster.pass_time(min(record.start_ns for record in world.cluster.placed.values()) + 60 * 10**9)

    result = world.plugin.group_post_filter(world.demand(), world.runner, world.cluster)

    assert result.status.code is Code.UNSCHEDULABLE
    assert result.retry_ns is not None


# Together


def test_a_group_that_is_one_victim_goes_as_a_whole_or_stays() -> None:
    objects = [
        gang("job", whole=True),
        *(of_gang(one, "job") if isinstance(one, Pod) else one for one in full("a", "b")),
    ]

    assert sorted(victims(planned(objects, workers(1)))) == ["on-a", "on-b"]
    assert victims(planned([*objects, *full("c", priority=50)], workers(1))) != []


def test_a_group_with_a_protected_pod_is_not_preempted() -> None:
    pods = [of_gang(one, "job") if isinstance(one, Pod) else one for one in full("a")]
    important = of_gang(pod("lead", on="b", cpu=4, priority=HIGH), "job")
    objects = [gang("job", whole=True), *pods, node("b", cpu=4), important]

    assert planned(objects, workers(1)).chosen is None
    assert victims(planned([*objects, *full("c")], workers(1))) == ["on-c"]


def test_a_whole_group_that_states_a_priority_as_high_stays() -> None:
    pods = [of_gang(one, "job") if isinstance(one, Pod) else one for one in full("a")]

    assert planned([gang("job", whole=True, priority=HIGH), *pods], workers(1)).chosen is None


def test_a_group_without_the_setting_loses_only_the_needed_pods() -> None:
    objects = [gang("job"), *(of_gang(one, "job") if isinstance(one, Pod) else one for one in full("a", "b"))]

    assert len(victims(planned(objects, workers(1)))) == 1


# Domains, and filters that look beyond a node


def test_all_members_go_to_one_domain_the_one_that_costs_least() -> None:
    objects = [
        *full("a1", "a2", priority=20),
        *full("b1", priority=5),
        *full("b2", priority=50),
        *full("c1", priority=1),
    ]
    plan = World(objects, workers(2)).plan(key=ZONE)

    assert plan.chosen is not None
    assert plan.chosen.domain == "a"
    assert sorted(victims(plan)) == ["on-a1", "on-a2"]
    assert [way.domain for way in plan.alternatives] == ["b"]
    assert plan.criterion == "lowest priority of the most important victim"


def test_members_that_keep_apart_go_to_nodes_of_their_own() -> None:
    large: list[Kubernetes] = [node(name, cpu=8, labels={HOSTNAME: name}) for name in "ab"]
    objects = [*large, *(pod(f"on-{name}", on=name, cpu=8, priority=LOW) for name in "ab")]
    apart = workers(2, labels={"app": "w"}, apart=[term("app=w")])

    assert sorted(places(planned(objects, apart)).values()) == ["a", "b"]
    assert planned(objects, workers(3, labels={"app": "w"}, apart=[term("app=w")])).chosen is None


def test_victims_may_be_on_nodes_where_no_member_goes() -> None:
    racks: list[Kubernetes] = [node(name, cpu=4, labels={"rack": name[0]}) for name in ("a1", "a2")]
    objects = [*racks, pod("rival", on="a2", cpu=4, labels={"app": "rival"}, priority=LOW)]
    shy = workers(1, apart=[term("app=rival", "rack")])

    plan = planned(objects, shy)

    assert victims(plan) == ["rival"]


def test_members_that_want_to_be_near_one_another_find_a_domain_with_room_for_all() -> None:
    objects = [*full("a1", priority=1), *full("b1", "b2", priority=20)]
    near = workers(2, labels={"app": "w"}, near=[term("app=w", ZONE)])

    assert sorted(victims(planned(objects, near))) == ["on-b1", "on-b2"]


# What is left behind, and bounds


def test_the_cluster_is_as_it_was_after_a_plan() -> None:
    members = [*workers(1, nominated="a"), *workers(3)[1:]]
    world = World([*full("a", "b", "c"), pod("other", nominated="b", cpu=1, priority=1)], members)
    before = state_of(world.cluster)

    assert world.plan().chosen is not None

    assert state_of(world.cluster) == before


def test_a_plugin_that_fails_leaves_the_cluster_as_it_was() -> None:
    class Failing:
        name = "Failing"
        calls = 0

        def reserve(self, state: CycleState, member: PodRecord, node_name: str) -> Status:
            self.calls += 1
            if self.calls == 2:
                raise RuntimeError("no")
            return SUCCESS

        def unreserve(self, state: CycleState, member: PodRecord, node_name: str) -> None: ...

    cluster = cluster_of(*full("a", "b"))
    runner = reserving(cluster, Failing())
    members = tuple(map(cluster.read, workers(2)))
    before = state_of(cluster)

    with pytest.raises(PluginError, match="Failing failed at Reserve"):
        DefaultPreemption(PluginContext({}, cluster)).plan_group(GroupDemand("default/work", members, 2), runner)

    assert state_of(cluster) == before


def test_a_node_where_a_plugin_rejects_the_reservation_is_skipped() -> None:
    class Picky:
        name = "Picky"

        def reserve(self, state: CycleState, member: PodRecord, node_name: str) -> Status:
            return SUCCESS if node_name != "a" else Status(Code.UNSCHEDULABLE, ("not here",))

        def unreserve(self, state: CycleState, member: PodRecord, node_name: str) -> None: ...

    cluster = cluster_of(*full("a", "b", "c"))
    runner = reserving(cluster, Picky())
    members = tuple(map(cluster.read, workers(2)))

    plan = DefaultPreemption(PluginContext({}, cluster)).plan_group(GroupDemand("default/work", members, 2), runner)

    assert sorted(victims(plan)) == ["on-b", "on-c"]


def test_a_truncated_search_is_reported() -> None:
    names = [f"n{number}" for number in range(20)]
    plan = planned(full(*names), workers(10), maxSearchSteps=60)

    assert plan.chosen is None
    assert plan.search is not None
    assert not plan.search.is_complete
    assert plan.message == "preemption: no room for 10 members of default/work was found within maxSearchSteps, 60"


def test_alike_members_share_the_verdict_that_no_plan_exists() -> None:
    names = [f"n{number}" for number in range(20)]
    plan = planned(full(*names), workers(21))

    assert plan.chosen is None
    assert plan.search is not None
    assert plan.search.is_complete
    assert plan.message.endswith("would not fit with all less important pods gone that may go")


def test_a_gang_plan_names_a_node_for_each_member_and_all_victims() -> None:
    world = World(full("a", "b"), workers(2))

    result = world.plugin.group_post_filter(world.demand(), world.runner, world.cluster)

    assert result.status.is_success
    assert len(result.placements) == len(result.victims) == 2
    assert result.status.message == "preemption: 2 members are nominated; victims: default/on-a, default/on-b"


def test_an_unreachable_member_minimum_evicts_no_pod() -> None:
    world = World(full("a", "b"), workers(1))

    result = world.plugin.group_post_filter(world.demand(2), world.runner, world.cluster)

    assert result.status.code is Code.UNSCHEDULABLE
    assert not result.victims
