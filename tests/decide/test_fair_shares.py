"""Preemption between pods of equal priority by fair shares, and why it terminates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.errors import InputError
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.placement import full_outcome, place
from podium.decide.post_filter import ask_post_filters
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.plugin import PluginContext
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration
from podium.plugins.default_preemption import DefaultPreemption
from tests.builders import budget, cluster_of, configuration, explain, node, pod, runner_on, service, term
from tests.fuzzing import Effort, efforts

FAIR = configuration({"DefaultPreemption": {"equalPriorityPreemption": True}})
MINE, THEIRS = "ReplicaSet/mine", "ReplicaSet/theirs"


def plan(*objects: Kubernetes) -> PreemptionPlan:
    """Return what preemption finds for the pod `default/p`, which fits nowhere."""
    found = explain(objects, settings=FAIR).plan
    assert found is not None, "the pod fits somewhere"
    return found


def victims(*objects: Kubernetes) -> dict[str, list[str]]:
    """Return the names of the victims on each candidate node, most important first."""
    return {name: [one.name for one in found.victims] for name, found in plan(*objects).candidates.items()}


def theirs(number: int, *, on: str = "n", started: int | None = None, **more: object) -> list[Pod]:
    """So many pods of one cpu of the other owner."""
    fields: dict[str, object] = {"owner": THEIRS, "cpu": 1, **more}
    return [pod(f"t{n}", on=on, started=n if started is None else started, **fields) for n in range(number)]  # type: ignore[arg-type]


P = pod("p", cpu=1, owner=MINE)


# Which owner takes from which


def test_equal_priority_preemption_is_off_by_default() -> None:
    objects = [node("n", cpu=4), *theirs(4), P]

    assert explain(objects).outcome == "unschedulable"
    assert explain(objects, settings=FAIR).outcome == "preempts"


@pytest.mark.parametrize(
    ("mine", "cpu", "found"),
    [(0, 4, ["t3"]), (1, 4, ["t2"]), (2, 4, None), (1, 3, None), (0, 2, ["t1"]), (0, 1, None)],
)
def test_an_owner_takes_as_long_as_it_has_no_more_than_the_other_one_then(
    mine: int, cpu: int, found: list[str] | None
) -> None:
    own = [pod(f"m{n}", on="n", cpu=1, owner=MINE) for n in range(mine)]

    assert victims(node("n", cpu=cpu), *own, *theirs(cpu - mine), P) == ({"n": found} if found else {})


def test_an_owner_takes_nothing_from_itself() -> None:
    assert victims(node("n", cpu=4), *theirs(4, owner=MINE), P) == {}


def fair_by(**arguments: str) -> Configuration:
    return configuration({"DefaultPreemption": {"equalPriorityPreemption": True, **arguments}})


@pytest.mark.parametrize(
    ("arguments", "is_one"),
    [
        ({}, False),
        ({"equalPriorityOwners": "Workload"}, False),
        ({"equalPriorityOwners": "Service"}, True),
        ({"equalPriorityOwners": "Label", "equalPriorityOwnerLabel": "team"}, True),
    ],
)
def test_two_controllers_of_one_service_or_label_have_one_share(arguments: dict[str, str], is_one: bool) -> None:
    """Six cpu: three of the other owner, two of p's Service by another controller, one by its own."""
    mine = {"cpu": 1, "labels": {"app": "mine", "team": "blue"}, "on": "n"}
    own = [pod("m", owner=MINE, **mine), *(pod(f"o{n}", owner="ReplicaSet/older", **mine) for n in range(2))]  # type: ignore[arg-type]
    waiting = pod("p", cpu=1, owner=MINE, labels={"app": "mine", "team": "blue"})
    objects = [node("n", cpu=6), service("mine", app="mine"), *own, *theirs(3), waiting]

    assert explain(objects, settings=fair_by(**arguments)).outcome == ("unschedulable" if is_one else "preempts")


def test_the_replica_sets_of_a_deployment_have_one_share_by_workload() -> None:
    def of(template_hash: str, **more: object) -> dict[str, object]:
        labels = {"pod-template-hash": template_hash}
        return {"cpu": 1, "owner": f"ReplicaSet/mine-{template_hash}", "labels": labels, **more}

    own = [pod(f"m{n}", **of("old" if n else "new", on="n")) for n in range(3)]  # type: ignore[arg-type]
    objects = [node("n", cpu=6), *own, *theirs(3), pod("p", **of("new"))]  # type: ignore[arg-type]

    assert explain(objects, settings=FAIR).outcome == "preempts"
    assert explain(objects, settings=fair_by(equalPriorityOwners="Workload")).outcome == "unschedulable"


def test_shares_are_added_up_again_when_a_service_comes_that_joins_controllers() -> None:
    own = [pod(f"o{n}", on="n", cpu=1, owner="ReplicaSet/older", labels={"app": "mine"}) for n in range(3)]
    cluster = cluster_of(node("n", cpu=6), *own, *theirs(3))
    runner = runner_on(cluster, fair_by(equalPriorityOwners="Service"))
    record = cluster.read(pod("p", cpu=1, owner=MINE, labels={"app": "mine"}))

    def is_fair() -> bool:
        return any(answer.is_success for answer in ask_post_filters(runner, place(runner, record)).answers)

    before = is_fair()
    cluster.put(service("mine", app="mine"))

    assert (before, is_fair()) == (True, False)


@pytest.mark.parametrize(
    "arguments", [{"equalPriorityOwners": "Label"}, {"equalPriorityOwnerLabel": "team"}], ids=["none", "unused"]
)
def test_a_label_of_owners_is_named_where_it_counts_and_nowhere_else(arguments: dict[str, str]) -> None:
    with pytest.raises(InputError, match="equalPriorityOwnerLabel names a label if equalPriorityOwners is Label"):
        runner_on(cluster_of(), fair_by(**arguments))


def test_an_exchange_never_takes_more_than_a_budgets_rate_has_left() -> None:
    """Not even what is on its way there already."""
    there = theirs(4, labels={"app": "t"}, ready=True)
    objects = [node("n", cpu=4), *there, P]

    assert victims(*objects, budget("b", "app=t", 9, rate="2/1h", used=1)) == {"n": ["t3"]}
    assert victims(*objects, budget("b", "app=t", 9, rate="2/1h", used=2)) == {}


def test_started_exchanges_count_for_budgets_and_rates_before_the_api_shows_them() -> None:
    there = theirs(4, labels={"app": "t"}, ready=True)
    mine = [pod(f"m{number}", cpu=1, owner=f"ReplicaSet/mine-{number}") for number in range(2)]
    for guard in (budget("b", "app=t", 9, rate="1/1h"), budget("b", "app=t", 1)):
        cluster = cluster_of(node("n", cpu=4), *there, guard)
        runner = runner_on(cluster, FAIR)
        (plugin,) = (one for one in runner.profile.post_filter if isinstance(one, DefaultPreemption))
        found = []
        for one in mine:
            record = cluster.read(one)
            placement = place(runner, record)
            result = plugin.post_filter(placement.state, record, runner, cluster, full_outcome(cluster, placement))
            found.append([victim.name for victim in result.victims])
            if result.nominated_node:
                cluster.nominations.put(record, result.nominated_node, (victim.uid for victim in result.victims))

        assert found == [["t3"], []]


def test_pods_without_a_controller_are_their_own_owners() -> None:
    assert victims(node("n", cpu=4), *theirs(4, owner=""), P) == {}
    assert victims(node("n", cpu=4), pod("big", on="n", cpu=4), pod("p", cpu=1)) == {}
    assert victims(node("n", cpu=4), *theirs(4), pod("p", cpu=1)) == {"n": ["t3"]}


def test_pods_of_other_priorities_count_for_no_share() -> None:
    more = pod("more", on="m", cpu=8, priority=9, owner=MINE, node_selector={"only": "m"})
    there = [node("n", cpu=2), node("m", cpu=8), more]

    assert victims(*there, *theirs(2), P) == {"n": ["t1"]}
    assert victims(*there, pod("t", on="n", cpu=2, priority=9, owner=THEIRS), P) == {}


@pytest.mark.parametrize(("mine", "takes"), [("1Gi", True), ("2Gi", False)])
def test_a_share_is_the_largest_part_of_any_resource(mine: str, takes: bool) -> None:
    """They have a quarter of all cpu, and one pod less is 3 of 16."""
    nodes = [node("n", cpu=4, memory="4Gi"), node("m", cpu=12, memory="4Gi")]
    full = [pod("m0", on="m", memory=mine, owner=MINE), pod("fill", on="m", cpu=12, priority=9)]

    assert victims(*nodes, *full, *theirs(4), P) == ({"n": ["t3"]} if takes else {})


def test_custom_resources_count_for_fair_shares() -> None:
    nodes = [node("n", cpu=4, example_com__gpu=1), node("m", cpu=12, example_com__gpu=3)]
    full = pod("fill", on="m", cpu=12, priority=9)

    assert victims(*nodes, full, pod("m0", on="m", owner=MINE, example_com__gpu=1), *theirs(4), P) == {}
    assert victims(*nodes, full, pod("m0", on="m", owner=MINE), *theirs(4), P) == {"n": ["t3"]}


def test_equal_dominant_shares_are_compared_by_their_sum() -> None:
    """Each has half the memory; the cpu of the others decides, and must stay so."""
    there = [node("n", cpu=6, memory="4Gi"), pod("m0", on="n", memory="2Gi", owner=MINE)]

    def taken(number: int) -> dict[str, list[str]]:
        others = [pod("hold", on="n", memory="2Gi", owner=THEIRS, started=0), *theirs(number)]
        fill = pod("fill", on="n", cpu=6 - number, priority=9)
        return victims(*there, *others, fill, P)

    assert taken(1) == {}
    assert taken(2) == {"n": ["t1"]}


def test_a_pod_that_another_controller_adopts_counts_for_that_one() -> None:
    cluster = cluster_of(node("n", cpu=4), *theirs(4))
    runner, record = runner_on(cluster, FAIR), cluster.read(P)
    assert plan_of(runner, record).chosen is not None

    for one in theirs(4):
        (owner,) = one.metadata.owner_references
        adopter = replace(owner, uid=MINE)
        cluster.replace_pod(cluster.read(replace(one, metadata=replace(one.metadata, owner_references=(adopter,)))))

    assert plan_of(runner, record).chosen is None


def test_resources_that_no_node_has_count_for_no_share() -> None:
    left_over = pod("t", on="gone", owner=MINE, example_com__gpu=8)

    assert victims(node("n", cpu=2), left_over, *theirs(2), P) == {"n": ["t1"]}


def test_a_pod_that_requests_nothing_takes_nothing() -> None:
    """Its owner's share would not rise, and so nothing would keep the others from taking the place back."""
    holder = pod("holder", on="n", cpu=1, ports=[80], owner=THEIRS)

    assert victims(node("n", cpu=4), holder, pod("p", ports=[80], owner=MINE)) == {}
    assert victims(node("n", cpu=4), holder, *theirs(2), pod("p", cpu=1, ports=[80], owner=MINE)) == {"n": ["holder"]}


def test_several_pods_go_if_their_owners_stay_ahead_together() -> None:
    big = pod("p", cpu=2, owner=MINE)

    assert victims(node("n", cpu=6), *theirs(6), big) == {"n": ["t4", "t5"]}
    assert victims(node("n", cpu=3), *theirs(3), big) == {}


def test_the_preemptor_must_keep_a_larger_share_than_each_owner() -> None:
    few, many = pod("few", on="n", cpu=1, owner="ReplicaSet/few", started=9), theirs(3)

    assert victims(node("n", cpu=4), few, *many, P) == {"n": ["t2"]}
    assert victims(node("n", cpu=4), few, *many, pod("p", cpu=2, owner=MINE)) == {}


# Who is spared


def test_less_important_pods_go_before_equals_do() -> None:
    lower = pod("lower", on="n", cpu=1, priority=-1)

    assert victims(node("n", cpu=4), *theirs(3), lower, P) == {"n": ["lower"]}
    assert victims(node("n", cpu=5), *theirs(4), lower, pod("p", cpu=2, owner=MINE)) == {"n": ["t3", "lower"]}


def test_fair_shares_skip_pods_that_cannot_be_preempted() -> None:
    assert victims(node("n", cpu=4), *theirs(4, policy="NonPreemptible"), P) == {}


def test_a_pod_that_never_preempts_takes_nothing_from_equals() -> None:
    found = plan(node("n", cpu=4), *theirs(4), pod("p", cpu=1, owner=MINE, policy="Never"))

    assert not found.eligible


def test_no_budget_is_violated_for_fairness() -> None:
    there = [node("n", cpu=4), *theirs(4, labels={"app": "web"})]

    assert victims(*there, budget("web", "app=web", 0), P) == {}
    assert victims(*there, budget("web", "app=web", 1), P) == {"n": ["t3"]}
    lower = pod("lower", on="n", cpu=1, priority=-1, labels={"app": "db"})
    big = pod("p", cpu=2, owner=MINE)
    assert victims(node("n", cpu=5), *theirs(4), lower, budget("db", "app=db", 0), big) == {"n": ["t2", "t3"]}


class SparesT3(DefaultPreemption):
    """A plugin that protects one pod from disruption."""

    def may_disrupt(self, pod: PodRecord, victim: PodRecord) -> bool:
        return victim.name != "t3"


def test_a_subclass_has_its_say_about_equals_too() -> None:
    cluster = cluster_of(node("n", cpu=4), *theirs(4))
    plugin = SparesT3(PluginContext({"equalPriorityPreemption": True}, cluster))

    assert chosen(cluster, plugin, P) == ["t2"]


# What is under way


def chosen(cluster: Cluster, plugin: DefaultPreemption, target: Pod) -> list[str]:
    """Return the victims that the plugin proposes for a pod, which is then nominated."""
    runner, record = runner_on(cluster, FAIR), cluster.read(target)
    placement = place(runner, record)
    result = plugin.post_filter(placement.state, record, runner, cluster, full_outcome(cluster, placement))
    if result.nominated_node:
        cluster.nominations.put(record, result.nominated_node, (victim.uid for victim in result.victims))
    return [victim.name for victim in result.victims]


def test_pending_moves_count_as_done() -> None:
    """Or a burst of pods would take more than their owner's due, and the others take it back."""
    nodes = [node(f"n{n}", cpu=1) for n in range(4)]
    running = [pod(f"t{n}", on=f"n{n}", cpu=1, owner=THEIRS) for n in range(4)]
    cluster = cluster_of(*nodes, *running)
    plugin = DefaultPreemption(PluginContext({"equalPriorityPreemption": True}, cluster))

    taken = [chosen(cluster, plugin, pod(f"p{n}", cpu=1, owner=MINE)) for n in range(4)]

    assert [len(one) for one in taken] == [1, 1, 0, 0]


def test_actions_for_a_cancelled_preemptor_do_not_count() -> None:
    nodes = [node(f"n{n}", cpu=1) for n in range(2)]
    cluster = cluster_of(*nodes, *(pod(f"t{n}", on=f"n{n}", cpu=1, owner=THEIRS) for n in range(2)))
    plugin = DefaultPreemption(PluginContext({"equalPriorityPreemption": True}, cluster))
    assert len(chosen(cluster, plugin, pod("p", cpu=1, owner=MINE))) == 1
    assert chosen(cluster, plugin, pod("q", cpu=1, owner="ReplicaSet/third")) == []

    cluster.nominations.remove("default/p")

    assert len(chosen(cluster, plugin, pod("q", cpu=1, owner="ReplicaSet/third"))) == 1


def test_a_pod_waits_for_room_that_comes_anyway() -> None:
    leaves = pod("leaves", on="m", cpu=1, terminating=True, owner=THEIRS)

    assert victims(node("n", cpu=4), *theirs(4), node("m", cpu=1), leaves, P) == {}
    small = pod("leaves", on="m", cpu=1, terminating=True, owner=THEIRS)
    assert victims(node("n", cpu=4), *theirs(4), node("m", cpu=1), small, pod("p", cpu=2, owner=MINE)) == {
        "n": ["t2", "t3"]
    }


def test_pods_that_leave_the_node_make_room_without_being_victims() -> None:
    leaves = pod("leaves", on="n", cpu=1, terminating=True, owner="ReplicaSet/third")

    assert victims(node("n", cpu=5), *theirs(4), leaves, pod("p", cpu=2, owner=MINE)) == {"n": ["t3"]}


def test_a_pod_preempts_nothing_more_while_an_equal_that_it_preempted_is_leaving() -> None:
    leaves = pod("leaves", on="n", cpu=1, terminating=True, preempted=True, owner=THEIRS)
    waiting = pod("p", cpu=2, owner=MINE, nominated="n")

    found = plan(node("n", cpu=4), *theirs(3), leaves, waiting)

    assert (found.eligible, found.reason) == (False, "not eligible due to a terminating pod on the nominated node.")


def test_its_own_nomination_gives_an_owner_no_larger_share() -> None:
    assert victims(node("n", cpu=2), *theirs(2), pod("p", cpu=1, owner=MINE, nominated="n")) == {"n": ["t1"]}


# Plans


def test_a_plan_says_that_it_is_an_exchange() -> None:
    lower = pod("lower", on="n", cpu=1, priority=-1)

    assert plan(node("n", cpu=4), *theirs(4), P).is_exchange
    assert not plan(node("n", cpu=4), *theirs(3), lower, P).is_exchange
    assert not plan(node("n", cpu=1), *theirs(1), P).is_exchange


def test_exchanges_leave_what_is_kept_of_ordinary_trials_as_it_is() -> None:
    cluster = cluster_of(node("n", cpu=4), *theirs(4))
    runner = runner_on(cluster, FAIR)
    first, second = cluster.read(P), cluster.read(pod("q", cpu=1, owner=THEIRS))
    higher = cluster.read(pod("h", cpu=1, priority=1, owner=MINE))

    def found(record: PodRecord) -> list[str]:
        made = plan_of(runner, record)
        return [] if made.chosen is None else [one.name for one in made.chosen.victims]

    assert [found(one) for one in (first, second, higher, first, second, higher)] == [["t3"], [], ["t3"]] * 2


def test_an_exchange_must_not_help_with_what_removing_pods_cannot_help_with() -> None:
    keeps_off = node("n", cpu=4, taints=["gone:NoSchedule"])

    assert victims(keeps_off, *theirs(4), P) == {}


def test_affinity_counts_in_exchanges_as_it_does_everywhere() -> None:
    apart = pod("p", cpu=1, owner=MINE, apart=[term("app=web", "zone")])
    labels = {"zone": "z"}
    web = pod("web", on="n", cpu=1, labels={"app": "web"}, owner=THEIRS, started=0)

    assert victims(node("n", cpu=8, labels=labels), web, *theirs(3), apart) == {"n": ["web"]}


# Why it ends


def plan_of(runner: Runner, record: PodRecord) -> PreemptionPlan:
    placement = place(runner, record)
    assert placement.row is None
    plugin = runner.profile.post_filter[-1]
    assert isinstance(plugin, DefaultPreemption)
    return plugin.plan(placement.state, record, runner, full_outcome(runner.cluster, placement))


OWNERS = ("ReplicaSet/a", "ReplicaSet/b", "ReplicaSet/c", "")
# Cpus and gibibytes of a node, and of a pod.
SIZES = st.sampled_from(((2, 4), (4, 2), (4, 4), (6, 4)))
REQUESTS = st.sampled_from(((1, 0), (0, 1), (1, 1), (1, 1), (2, 1), (1, 2)))


def shares(nodes: Iterable[Node], pods: Iterable[Pod], owners: set[str]) -> list[tuple[Fraction, Fraction]]:
    """Return the shares of all owners, the smallest first: the largest part of cpu or memory, and the sum of both
    parts.
    """
    total = Counter[str]()
    for one in nodes:
        total.update({name: node_allocatable(one.status)[name] for name in ("cpu", "memory")})
    requested = {owner: Counter[str]() for owner in owners}
    for each in pods:
        requested[owner_of(each)].update(pod_requests(each.spec))
    parts = [[Fraction(of[name], all_) for name, all_ in total.items() if all_] for of in requested.values()]
    return sorted((max(one), sum(one, Fraction())) for one in parts)


def owner_of(one: Pod) -> str:
    controller = one.metadata.controller
    return controller.uid if controller else one.metadata.uid.partition("#")[0]


class Contest:
    """Pods that come, are placed where there is room, and take room from one another where there is none."""

    def __init__(self, nodes: list[Node], pods: list[Pod]) -> None:
        self.nodes = nodes
        # One owner's pods come before another's, so that the first ones have more than their share.
        self.pending = sorted(pods, key=owner_of)
        self.placed: dict[str, Pod] = {}
        self.owners = {owner_of(one) for one in pods}
        self.cluster = cluster_of(*nodes)
        self.runner = runner_on(self.cluster, FAIR)
        self.numbers = count()
        self.exchanges = 0

    def shares(self) -> list[tuple[Fraction, Fraction]]:
        return shares(self.nodes, self.placed.values(), self.owners)

    def attempt(self, target: Pod) -> bool:
        """Try to find a place for a pod; whether anything has changed by that."""
        record = self.cluster.read(target)
        row = place(self.runner, record).row
        if row is not None:
            self._put(target, self.cluster.nodes.name(row))
            return True
        found = plan_of(self.runner, record)
        if found.chosen is None:
            return False
        before = self.shares()
        for victim in found.chosen.victims:
            self._take(victim.uid)
        self._put(target, found.chosen.node_name)
        self.exchanges += 1
        assert self.shares() > before
        return True

    def _put(self, one: Pod, node_name: str) -> None:
        uid = one.metadata.uid
        self.pending.remove(one)
        self.placed[uid] = replace(one, spec=replace(one.spec, node_name=node_name))
        self.cluster.add_pod(self.cluster.read(self.placed[uid]))

    def _take(self, uid: str) -> None:
        """Remove a victim; another pod of its owner becomes pending."""
        gone = self.placed.pop(uid)
        self.cluster.remove_pod(uid)
        renewed = replace(gone.metadata, uid=f"{uid.partition('#')[0]}#{next(self.numbers)}")
        self.pending.append(replace(gone, metadata=renewed, spec=replace(gone.spec, node_name="")))


@efforts(50)
def test_every_exchange_makes_the_shares_fairer_and_there_is_a_last_one(effort: Effort) -> None:
    """The list of all shares, the smallest first, grows with each exchange, in any order of attempts."""

    @effort
    @given(
        st.lists(SIZES, min_size=1, max_size=3),
        st.lists(st.tuples(REQUESTS, st.sampled_from(OWNERS)), min_size=6, max_size=16),
        st.randoms(use_true_random=False),
    )
    def check(sizes: list[tuple[int, int]], wanted: list[tuple[tuple[int, int], str]], chance: object) -> None:
        nodes = [node(f"n{n}", cpu=cpu, memory=f"{gib}Gi") for n, (cpu, gib) in enumerate(sizes)]
        pods = [pod(f"p{n}", cpu=cpu, memory=f"{gib}Gi", owner=owner) for n, ((cpu, gib), owner) in enumerate(wanted)]
        there = Contest(nodes, pods)

        order = list(there.pending)
        while any([there.attempt(one) for one in order]):  # noqa: C419 - each of them is tried
            order = shuffled(there.pending, chance)

        event(f"{there.exchanges} exchanges")

    check()


def shuffled(pods: list[Pod], chance: object) -> list[Pod]:
    mixed = list(pods)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    return mixed
