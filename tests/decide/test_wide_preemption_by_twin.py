"""Victims on any nodes against every set of pods, over random small clusters."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.meta import OwnerReference
from podium.api.pod import Pod
from podium.api.times import parse_duration
from podium.decide.placement import full_outcome, place
from podium.decide.preempting.criteria import CriterionName
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.plugins.default_preemption import DefaultPreemption
from tests.builders import (
    DAY_ONE_NS,
    ZONE,
    cluster_of,
    configuration,
    node,
    runner_on,
    spread_over,
    term,
)
from tests.builders import pod as pod_of
from tests.fuzzing import Effort, efforts
from tests.generators import NAMESPACES, OWNERS, Objects, Traits, clusters
from tests.pod_groups import gang, of_gang
from tests.twins.stated_costs import StatedCost
from tests.twins.victims import started
from tests.twins.wide_victims import Cost, Rules, WidePreemption

TRAITS = {
    "affinity": Traits(affinity=True),
    "spread": Traits(spread=True),
    "affinity and room": Traits(affinity=True, heavy_target=True, budgets=True),
    "all together": Traits(affinity=True, spread=True, heavy_target=True, budgets=True, nominated=True, ports=True),
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "across": {"acrossNodes": True},
    "across, beside partners": {"acrossNodes": True, "keepAffinityPartners": True},
    "across, with dependents": {"acrossNodes": True, "includeDependents": True},
    "all": {"acrossNodes": True, "keepAffinityPartners": True, "includeDependents": True},
}


WHOLE: dict[str, dict[str, Any]] = {
    "on the node": {"wholeGroups": True},
    "across": {"wholeGroups": True, "acrossNodes": True},
}


def planned(
    objects: Objects, args: dict[str, Any], *, detailed: bool, now: int = 0
) -> tuple[PreemptionPlan, list[str], frozenset[str]]:
    """Return the plan for the target; the nodes that preemption may help on, and who had nothing to say of it."""
    cluster = cluster_of(*objects.surroundings)
    cluster.pass_time(now)
    runner = runner_on(cluster, configuration({"DefaultPreemption": args}))
    record = cluster.read(objects.target)
    placement = place(runner, record, nominated_first=False)
    if placement.row is not None:
        return PreemptionPlan(False), [], frozenset()
    (plugin,) = (one for one in runner.profile.post_filter if isinstance(one, DefaultPreemption))
    outcome = full_outcome(cluster, placement)
    plan = plugin.plan(placement.state, record, runner, outcome, detailed=detailed)
    tried = [cluster.nodes.name(int(row)) for row in outcome.resolvable()]
    return plan, tried, placement.state.skip_filter


@pytest.mark.parametrize("theme", TRAITS)
@pytest.mark.parametrize("setting", ARGUMENTS)
@efforts(6)
def test_the_plan_costs_what_the_best_of_all_sets_costs(theme: str, setting: str, effort: Effort) -> None:
    args = ARGUMENTS[setting]

    @effort
    @given(clusters(TRAITS[theme], most_nodes=3, most_pods=6))
    def check(objects: Objects) -> None:
        plan, tried, skipped = planned(objects, args, detailed=True)
        if plan.search is None:
            return
        rules = Rules(dependents="includeDependents" in args, keeps_partners="keepAffinityPartners" in args)
        twin = WidePreemption(objects.surroundings, objects.target, skipped, rules)
        best = twin.best(tried)
        event(f"{len(best)} nodes are best" if best else "no set is enough")
        brief, _, _ = planned(objects, args, detailed=False)

        assert plan.search.is_complete
        assert list(plan.selected) == sorted(best)
        for found in (plan, brief):
            assert (found.chosen is None) == (not best)
            assert found.chosen is None or costs(twin, found) == best[found.chosen.node_name]

    check()


CRITERIA = get_args(CriterionName)
NOW = DAY_ONE_NS + 2_500_000_000
STATED = st.fixed_dictionaries(
    {
        "acrossNodes": st.sampled_from((True, True, False)),
        "keepAffinityPartners": st.booleans(),
        "includeDependents": st.booleans(),
        "victimCost": st.lists(st.sampled_from(CRITERIA), min_size=1, max_size=4, unique=True),
        "budgets": st.sampled_from(("Count", "Require")),
        "minimumRunningTime": st.sampled_from(("0s", "0s", "1s")),
    }
)


@st.composite
def dressed(draw: st.DrawFn, traits: Traits) -> Objects:
    """Draw a cluster whose pods have owners, periods of grace and limits, so that each criterion can tell some
    apart.
    """
    objects = draw(clusters(traits, most_nodes=3, most_pods=6))
    return dataclasses.replace(objects, pods=[draw(_dressed(one)) for one in objects.pods])


@st.composite
def _dressed(draw: st.DrawFn, item: Pod) -> Pod:
    owner = draw(st.sampled_from((*OWNERS, "")))
    grace = draw(st.sampled_from((1, 30, 600)))
    spec = replace(item.spec, termination_grace_period_seconds=grace)
    kind, _, name = owner.partition("/")
    owners = (OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=owner, controller=True),) if owner else ()
    return replace(item, spec=spec, metadata=replace(item.metadata, owner_references=owners))


@pytest.mark.parametrize("theme", TRAITS)
@efforts(12)
def test_with_a_stated_cost_there_is_a_plan_where_one_exists_and_none_is_cheaper(theme: str, effort: Effort) -> None:
    """With any other settings: partners are kept if possible, and budgets and pods that just started are spared."""

    @effort
    @given(dressed(TRAITS[theme]), STATED)
    def check(objects: Objects, args: dict[str, Any]) -> None:
        plan, tried, skipped = planned(objects, args, detailed=True, now=NOW)
        if plan.search is None:
            return
        twin = stated_twin(objects, args, skipped)
        best = twin.best(tried)
        event(f"{len(best)} nodes are best" if best else "no set is enough")
        brief, _, _ = planned(objects, args, detailed=False, now=NOW)

        assert plan.search.is_complete
        assert list(plan.selected) == sorted(best)
        for found in (plan, brief):
            assert (found.chosen is None) == (not best)
            assert found.chosen is None or costs(twin, found) == best[found.chosen.node_name]
            assert found.chosen is None or all(v.priority < objects.target.priority for v in found.chosen.victims)

    check()


def stated_twin(objects: Objects, args: dict[str, Any], skipped: frozenset[str]) -> WidePreemption:
    least = parse_duration(args["minimumRunningTime"])
    young = {one.metadata.uid for one in objects.pods if started(one) > NOW - least} if least else set()
    rules = Rules(
        dependents=args["includeDependents"],
        keeps_partners=args["keepAffinityPartners"],
        across=args["acrossNodes"],
        cost=StatedCost(objects.surroundings, objects.target, args["victimCost"], NOW),
        requires_budgets=args["budgets"] == "Require",
        spared=young,
        now=NOW,
    )
    return WidePreemption(objects.surroundings, objects.target, skipped, rules)


def costs(twin: WidePreemption, plan: PreemptionPlan) -> Cost:
    assert plan.chosen is not None
    uids = {victim.uid for victim in plan.chosen.victims}
    assert plan.chosen.node_name in twin.fitting(uids)
    return twin.cost([one for one in twin.placed if one.metadata.uid in uids], plan.chosen.node_name)


@pytest.mark.parametrize("theme", TRAITS)
@pytest.mark.parametrize("setting", WHOLE)
@efforts(6)
def test_a_group_that_goes_as_a_whole_counts_whole_in_the_best_of_all_sets(
    theme: str, setting: str, effort: Effort
) -> None:
    args = WHOLE[setting]

    @effort
    @given(clusters(TRAITS[theme], most_nodes=3, most_pods=6), st.integers(2, 4))
    def check(objects: Objects, number: int) -> None:
        names = [f"pod-{place}" for place in range(number)]
        pods = [of_gang(pod, "whole") if pod.metadata.name in names else pod for pod in objects.pods]
        groups: list[Any] = [gang("whole", whole=True, namespace=name) for name in NAMESPACES]
        changed = dataclasses.replace(objects, pods=pods, namespaces=[*groups, *objects.namespaces])
        plan, tried, skipped = planned(changed, args, detailed=True)
        if plan.search is None:
            return
        together = [
            [
                pod.metadata.name
                for pod in pods
                if pod.metadata.name in names and pod.spec.node_name and pod.metadata.namespace == name
            ]
            for name in NAMESPACES
        ]
        across = "acrossNodes" in args
        twin = WidePreemption(changed.surroundings, changed.target, skipped, Rules(across=across, together=together))
        best = twin.best(tried)
        event(f"{len(best)} nodes are best" if best else "no set is enough")

        assert plan.search.is_complete
        assert list(plan.selected) == sorted(best)
        assert plan.chosen is None or costs(twin, plan) == best[plan.chosen.node_name]
        gone = {victim.name for victim in plan.chosen.victims} if plan.chosen is not None else set()
        for group in together:
            assert gone.isdisjoint(group) or gone.issuperset(group)

    check()


@pytest.mark.parametrize(("setting", "found"), [("on the node", ["left"]), ("across", [])])
def test_a_nomination_to_another_node_counts_only_if_victims_may_be_on_other_nodes(
    setting: str, found: list[str]
) -> None:
    """The target comes to an even spread as the first of its like, unless one is as good as there on the other side."""
    nodes = [node("left", labels={ZONE: "za"}), node("right", cpu=0, labels={ZONE: "zb"})]
    group: list[Any] = [gang("whole", whole=True)]
    running = of_gang(pod_of("running", on="left", priority=0, labels={"app": "a"}), "whole")
    waiting = pod_of("waiting", nominated="right", priority=1, labels={"app": "a"})
    asked: dict[str, Any] = {"near": [term("app=a", ZONE)], "spread": [spread_over(ZONE, "app=a")]}
    target = pod_of("target", priority=1, cpu=1, labels={"app": "a"}, **asked)
    objects = Objects(nodes, [running, waiting], target, group)

    plan, tried, skipped = planned(objects, WHOLE[setting], detailed=True)

    rules = Rules(across="acrossNodes" in WHOLE[setting], together=[["running"]])
    twin = WidePreemption(objects.surroundings, target, skipped, rules)
    assert (list(plan.selected), sorted(twin.best(tried))) == (found, found)
