"""A gang's plan against every set of victims and every placement of its members, over random small clusters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.times import parse_duration
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.gang_placement import domains_of
from podium.decide.preempting.criteria import CriterionName, VictimCost
from podium.decide.preempting.eligibility import VictimProtection
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.gang_search import plan_gang
from podium.decide.preempting.preemption import PreemptionOptions
from podium.decide.preempting.preemption_plan import GangPlan
from podium.decide.preempting.trials import Trials
from podium.decide.preempting.wide.wide_search import WideSettings, WideTrials
from podium.framework.pre_filters import EVERYWHERE, Domain
from tests.builders import DAY_ONE_NS, ZONE, cluster_of, plain_runner
from tests.decide.test_wide_preemption_by_twin import dressed
from tests.fuzzing import Effort, efforts
from tests.generators import NAMESPACES, Objects, Traits, clusters, targets
from tests.pod_groups import gang, of_gang
from tests.twins.gang_victims import GangPreemption, Step
from tests.twins.stated_costs import StatedCost
from tests.twins.victims import started
from tests.twins.wide_victims import Cost, Rules

TRAITS = {
    "room": Traits(heavy_target=True, budgets=True, always_requests=True),
    "ports and nominations": Traits(heavy_target=True, ports=True, nominated=True, tolerations=True),
    "affinity": Traits(affinity=True, heavy_target=True),
    "spread": Traits(spread=True),
    "all together": Traits(affinity=True, spread=True, heavy_target=True, budgets=True, nominated=True, ports=True),
}
ENOUGH = 50_000_000
NOW = DAY_ONE_NS + 2_500_000_000
STATED = st.fixed_dictionaries(
    {
        "victimCost": st.lists(st.sampled_from(get_args(CriterionName)), min_size=1, max_size=4, unique=True),
        "budgets": st.sampled_from(("Count", "Require")),
        "minimumRunningTime": st.sampled_from(("0s", "0s", "1s")),
    }
)
WIDE = st.builds(WideSettings, keeps_partners=st.booleans(), with_dependents=st.booleans())


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, and a gang that waits for room in it."""

    objects: Objects
    members: list[Pod]
    needed: int
    key: str
    whole: tuple[str, ...] = ()

    @property
    def surroundings(self) -> list[Kubernetes]:
        """The cluster; the pods that are named ``whole`` are one group, and one victim."""
        others = [item for item in self.objects.surroundings if not isinstance(item, Pod)]
        pods = [of_gang(pod, "whole") if pod.metadata.name in self.whole else pod for pod in self.objects.pods]
        return [*others, *(gang("whole", whole=True, namespace=name) for name in NAMESPACES), *pods]

    @property
    def together(self) -> dict[str, list[str]]:
        """The names of the pods of each group, by its namespace."""
        pods = [pod for pod in self.objects.pods if pod.metadata.name in self.whole]
        return {
            namespace: [pod.metadata.name for pod in pods if pod.metadata.namespace == namespace]
            for namespace in NAMESPACES
        }

    @property
    def priority(self) -> int:
        return max(0, *(member.priority for member in self.members))

    def twin(self, rules: Rules | None = None) -> GangPreemption:
        return GangPreemption(
            self.surroundings,
            self.members,
            self.needed,
            self.priority,
            together=self.together,
            key=self.key,
            rules=rules,
        )


@st.composite
def cases(draw: st.DrawFn, traits: Traits, made: st.SearchStrategy[Objects] | None = None) -> Case:
    objects = draw(clusters(traits, most_nodes=3, most_pods=5) if made is None else made)
    names = [node.metadata.name for node in objects.nodes]
    shapes = [objects.target, draw(targets(names, traits))]
    number = draw(st.integers(1, 3))
    members = [_member(shapes[draw(st.sampled_from((0, 0, 1)))], f"member-{place}") for place in range(number)]
    key = draw(st.sampled_from(("", "", ZONE, "rack")))
    whole = draw(st.sampled_from(((), (), ("pod-0", "pod-1"), ("pod-0", "pod-1", "pod-2"))))
    return Case(objects, members, draw(st.integers(1, number)), key, whole)


def _member(shape: Pod, name: str) -> Pod:
    return replace(shape, metadata=replace(shape.metadata, name=name, uid=f"default/{name}"))


def planned(
    case: Case, most_steps: int = ENOUGH, args: Mapping[str, Any] | None = None, wide: WideSettings | None = None
) -> GangPlan:
    cluster = cluster_of(*case.surroundings)
    cluster.pass_time(NOW if args else 0)
    members: list[PodRecord] = []
    for member in case.members:
        record = cluster.read(member)
        if record.nominated_node_name:
            cluster.nominations.put(record, record.nominated_node_name)
        members.append(record)
    wanted = Gang("default/gang", tuple(members), case.needed, domains(cluster, case.key), priority=case.priority)
    trials = Trials(cluster, "StartTime")
    options = options_of(cluster, args) if args else PreemptionOptions()
    if wide is not None:
        options = replace(options, wide=WideTrials(cluster, trials, wide))
    return plan_gang(plain_runner(cluster), wanted, trials, options, most_steps=most_steps)


def options_of(cluster: Cluster, args: Mapping[str, Any]) -> PreemptionOptions:
    protection = VictimProtection(
        parse_duration(args["minimumRunningTime"]) or None, required=args["budgets"] == "Require"
    )
    return PreemptionOptions(
        may_disrupt=protection.on(cluster, None),
        cost=VictimCost.of_names(args["victimCost"]),
        requires_budgets=protection.required,
    )


def domains(cluster: Cluster, key: str) -> tuple[Domain, ...]:
    return domains_of(cluster, key)[0] if key else EVERYWHERE


def steps_of(case: Case, plan: GangPlan) -> list[Step]:
    assert plan.chosen is not None
    by_name = {member.metadata.name: member for member in case.members}
    return [(by_name[record.name], node_name) for record, node_name in plan.chosen.placements]


def victims_of(twin: GangPreemption, plan: GangPlan) -> list[Pod]:
    assert plan.chosen is not None
    uids = [victim.uid for victim in plan.chosen.victims]
    assert len(set(uids)) == len(uids)
    units = [unit for unit in twin.units() if any(one.metadata.uid in uids for one in unit)]
    found = [one for unit in units for one in unit]
    assert sorted(one.metadata.uid for one in found) == sorted(uids), "somebody goes who may not, or without its group"
    return found


def cost_of(case: Case, twin: GangPreemption, plan: GangPlan) -> Cost:
    """Return what a plan costs; of members beyond those that are needed it does not hang who is alone."""
    assert plan.chosen is not None
    victims, steps = victims_of(twin, plan), steps_of(case, plan)
    if len(steps) == case.needed or not victims:
        return twin.cost_of(victims, steps)
    report, found = plan.chosen.cost, twin.cost_of(victims, [])
    return (report[0], *found[1:]) if len(report) > len(twin.cost(victims)) else found


def holds(case: Case, plan: GangPlan, rules: Rules | None = None) -> None:
    """Check that the members fit after the plan, and that no victim is unnecessary."""
    twin = case.twin(rules)
    steps, victims = steps_of(case, plan), victims_of(twin, plan)
    assert len(steps) >= case.needed
    assert twin.is_one_domain(steps)
    assert twin.stands(victims, steps)
    if len(steps) == case.needed:
        assert twin.is_closed(victims), "somebody depends on a victim, and stays"
        for unit in twin.units():
            left = twin.closed([one for one in victims if one not in unit])
            assert left is not None
            is_less = len(left) < len(victims)
            assert not is_less or not twin.stands(left, steps), "somebody goes without need"


@pytest.mark.parametrize("theme", TRAITS)
@efforts(6)
def test_a_gang_has_a_plan_where_any_set_makes_room_and_it_costs_what_the_best_costs(
    theme: str, effort: Effort
) -> None:
    @effort
    @given(cases(TRAITS[theme]))
    def check(case: Case) -> None:
        plan = planned(case)
        if plan.reason:
            return
        best = case.twin().best()
        event("no way" if best is None else f"{best[3] if best else 0} victims")

        assert plan.search is not None
        assert plan.search.is_complete
        assert (plan.chosen is None) == (best is None)
        if plan.chosen is not None:
            holds(case, plan)
            victims = victims_of(case.twin(), plan)
            assert (case.twin().cost(victims) if victims else ()) == best

    check()


BEYOND = {
    "beside partners": WideSettings(keeps_partners=True),
    "with dependents": WideSettings(with_dependents=True),
    "both": WideSettings(keeps_partners=True, with_dependents=True),
}


def rules_of(wide: WideSettings) -> Rules:
    return Rules(dependents=wide.with_dependents, keeps_partners=wide.keeps_partners)


@pytest.mark.parametrize("theme", ["affinity", "all together"])
@pytest.mark.parametrize("setting", BEYOND)
@efforts(6)
def test_dependents_go_and_partners_stay_at_the_cost_of_the_best_set_there_is(
    theme: str, setting: str, effort: Effort
) -> None:
    wide = BEYOND[setting]
    rules = rules_of(wide)

    @effort
    @given(cases(TRAITS[theme]))
    def check(case: Case) -> None:
        plan = planned(case, wide=wide)
        if plan.reason:
            return
        twin = case.twin(rules)
        best = twin.best()
        event("no way" if best is None else f"{best[:1]}")

        assert plan.search is not None
        assert plan.search.is_complete
        assert (plan.chosen is None) == (best is None)
        if plan.chosen is not None:
            holds(case, plan, rules)
            assert cost_of(case, twin, plan) == best

    check()


@pytest.mark.parametrize("setting", BEYOND)
@efforts(6)
def test_a_step_limit_still_takes_all_dependents_and_no_other_pods(setting: str, effort: Effort) -> None:
    @effort
    @given(cases(TRAITS["all together"]), st.integers(1, 2_500))
    def check(case: Case, most_steps: int) -> None:
        plan = planned(case, most_steps, wide=BEYOND[setting])
        if plan.chosen is not None:
            holds(case, plan, rules_of(BEYOND[setting]))

    check()


@pytest.mark.parametrize("theme", TRAITS)
@efforts(6)
def test_a_step_limit_leaves_a_whole_plan_without_needless_victims(theme: str, effort: Effort) -> None:
    @effort
    @given(cases(TRAITS[theme]), st.integers(1, 2_500))
    def check(case: Case, most_steps: int) -> None:
        plan = planned(case, most_steps)
        event("found" if plan.chosen else "not found")
        if plan.chosen is not None:
            holds(case, plan)

    check()


@pytest.mark.parametrize("theme", TRAITS)
@efforts(6)
def test_with_a_stated_cost_no_plan_is_cheaper_and_budgets_and_the_young_are_spared(theme: str, effort: Effort) -> None:
    @effort
    @given(cases(TRAITS[theme], dressed(TRAITS[theme])), STATED, WIDE)
    def check(case: Case, args: dict[str, Any], wide: WideSettings) -> None:
        plan = planned(case, args=args, wide=wide)
        if plan.reason:
            return
        least = parse_duration(args["minimumRunningTime"])
        rules = dataclasses.replace(
            rules_of(wide),
            cost=StatedCost(case.surroundings, case.members[0], args["victimCost"], NOW),
            requires_budgets=args["budgets"] == "Require",
            spared={one.metadata.uid for one in case.objects.pods if started(one) > NOW - least} if least else (),
            now=NOW,
        )
        twin = case.twin(rules)
        best = twin.best()
        event("no way" if best is None else "a way")

        assert plan.search is not None
        assert plan.search.is_complete
        assert (plan.chosen is None) == (best is None)
        if plan.chosen is not None:
            holds(case, plan, rules)
            victims = victims_of(twin, plan)
            assert cost_of(case, twin, plan) == best
            assert not (rules.requires_budgets and twin.violations(victims))

    check()
