"""The priority rules of a DisruptionPolicy: the class of a new pod."""

from typing import Any

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import Raw, pod, priority_class, replicated
from tests.store.refusals import answer, refusal

CLASSES = {"high": 1000, "middle": 500, "low": 10}


def rule(name: str, to: str, **conditions: Any) -> Raw:
    return {"name": name, "priorityClassName": to, **conditions}


def policy(*rules: Raw, **spec: Any) -> Raw:
    metadata = {"name": "default"}
    spec = {"priorityRules": list(rules), **spec}
    return {"apiVersion": "podium.dev/v1alpha1", "kind": "DisruptionPolicy", "metadata": metadata, "spec": spec}


def namespace(name: str, **labels: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def cluster(*objects: Raw) -> Store:
    store = Store()
    for name, value in CLASSES.items():
        store.create(priority_class(name, value), now=0)
    for one in objects:
        store.create(one, now=0)
    return store


def let_in(store: Store, raw: Raw) -> tuple[str, int, str]:
    """Return the pod's class, priority, and the rule that it names."""
    stored = store.create(raw, now=0).raw
    spec, annotations = stored["spec"], stored["metadata"].get("annotations", {})
    return spec.get("priorityClassName", ""), spec["priority"], annotations.get("podium.dev/priority-rule", "")


def guaranteed() -> Raw:
    amounts = {"cpu": "1", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    return {"containers": [{"name": "main", "image": "app:1", "resources": resources}]}


TIER = {"podSelector": {"matchLabels": {"tier": "front"}}}
TEAM = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["batch"]}]}}


def test_a_pod_gets_the_class_of_the_first_rule_whose_conditions_it_meets() -> None:
    rules = [rule("front", "high", **TIER), rule("batch", "low", **TEAM), rule("others", "middle")]
    store = cluster(policy(*rules), namespace("crawl", team="batch"))

    assert let_in(store, pod("a", labels={"tier": "front"})) == ("high", 1000, "front")
    assert let_in(store, pod("b", namespace="crawl")) == ("low", 10, "batch")
    assert let_in(store, pod("c", namespace="crawl", labels={"tier": "front"})) == ("high", 1000, "front")
    assert let_in(store, pod("d")) == ("middle", 500, "others")


def test_all_conditions_of_a_rule_must_hold() -> None:
    store = cluster(policy(rule("both", "high", **TIER, **TEAM)), namespace("crawl", team="batch"))

    assert let_in(store, pod("a", labels={"tier": "front"})) == ("", 0, "")
    assert let_in(store, pod("b", namespace="crawl")) == ("", 0, "")
    assert let_in(store, pod("c", namespace="crawl", labels={"tier": "front"})) == ("high", 1000, "both")


def test_a_rule_may_ask_for_the_quality_of_service_class() -> None:
    rules = [rule("best", "low", qosClasses=["BestEffort"]), rule("sure", "high", qosClasses=["Guaranteed"])]
    store = cluster(policy(*rules))
    nothing = {"containers": [{"name": "main", "image": "app:1"}]}

    assert let_in(store, pod("a", spec=nothing)) == ("low", 10, "best")
    assert let_in(store, pod("b", spec=guaranteed())) == ("high", 1000, "sure")
    assert let_in(store, pod("c")) == ("", 0, "")


def test_the_quality_of_service_counts_with_what_a_limit_range_fills_in() -> None:
    limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]}
    ranges = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}}
    store = cluster(policy(rule("best", "low", qosClasses=["BestEffort"])), {**ranges, "spec": limits})

    assert let_in(store, pod("a", spec={"containers": [{"name": "main", "image": "app:1"}]})) == ("", 0, "")


@pytest.mark.parametrize("stated", [{"priorityClassName": "high"}, {"priority": 7}])
def test_by_default_a_pod_keeps_the_class_or_priority_that_it_states(stated: Raw) -> None:
    store = cluster(policy(rule("all", "low")))

    assert let_in(store, pod("a", spec=stated)) == (
        stated.get("priorityClassName", ""),
        stated.get("priority", 1000),
        "",
    )


@pytest.mark.parametrize("stated", [{"priorityClassName": "high"}, {"priority": 7}])
def test_a_rule_may_replace_what_a_pod_states(stated: Raw) -> None:
    store = cluster(policy(rule("all", "low", whenStated="Replace")))

    assert let_in(store, pod("a", spec=stated)) == ("low", 10, "all")


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"priorityClassName": "high"}, "priorityClassName high"),
        ({"priority": 7}, "priority 7 without a priorityClassName"),
    ],
)
def test_a_rule_may_refuse_pods_that_state_another_class(stated: Raw, said: str) -> None:
    store = cluster(policy(rule("all", "low", whenStated="Refuse")))

    error = refusal(store, lambda: store.create(pod("a", spec=stated), now=0))

    assert answer(error) == (403, "Forbidden")
    assert error.message == f"Pod default/a is forbidden: {said} is not allowed; priority rule all requires low"
    assert let_in(store, pod("b", spec={"priorityClassName": "low"})) == ("low", 10, "")
    assert let_in(store, pod("c")) == ("low", 10, "all")


def test_without_a_rule_that_matches_the_default_class_counts() -> None:
    store = cluster(policy(rule("front", "high", **TIER)), priority_class("usual", 50, globalDefault=True))

    assert let_in(store, pod("a")) == ("usual", 50, "")


def test_a_pod_cannot_claim_a_rule_that_did_not_decide() -> None:
    store = cluster(policy(rule("front", "high", **TIER)))

    assert let_in(store, pod("a", annotations={"podium.dev/priority-rule": "front"})) == ("", 0, "")


def test_equal_pods_of_different_labels_and_namespaces_are_decided_each_by_itself() -> None:
    """Admission remembers what became of a specification; with rules that is not enough to know."""
    store = cluster(namespace("crawl", team="batch"))
    assert let_in(store, pod("before")) == ("", 0, "")

    store.create(policy(rule("front", "high", **TIER), rule("batch", "low", **TEAM)), now=0)

    assert let_in(store, pod("a")) == ("", 0, "")
    assert let_in(store, pod("b", labels={"tier": "front"})) == ("high", 1000, "front")
    assert let_in(store, pod("c", namespace="crawl")) == ("low", 10, "batch")
    store.update(policy())
    assert let_in(store, pod("d", labels={"tier": "front"})) == ("", 0, "")


def test_rules_follow_the_labels_of_a_namespace() -> None:
    store = cluster(policy(rule("batch", "low", **TEAM)), namespace("crawl"))
    assert let_in(store, pod("a", namespace="crawl")) == ("", 0, "")

    stored = store.find("Namespace", "crawl")
    assert stored is not None
    store.update({**stored.raw, "metadata": {**stored.raw["metadata"], "labels": {"team": "batch"}}})

    assert let_in(store, pod("b", namespace="crawl")) == ("low", 10, "batch")


def test_every_namespace_can_be_named() -> None:
    by_name = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "crawl"}}}
    store = cluster(policy(rule("crawl", "low", **by_name)))

    assert let_in(store, pod("a", namespace="crawl")) == ("low", 10, "crawl")


def test_a_pod_that_was_in_a_cluster_keeps_what_it_was_given_there() -> None:
    store = cluster(policy(rule("all", "low", whenStated="Replace")))

    assert let_in(store, pod("a", metadata={"uid": "u"}, priority=3)) == ("", 3, "")


def test_a_rule_may_name_a_level_of_its_policy_in_any_letters_and_classes_of_the_system() -> None:
    rules = [rule("front", "Critical", **TIER), rule("all", "system-cluster-critical")]
    store = cluster(policy(*rules, priorities="Critical > Normal"))

    assert let_in(store, pod("a", labels={"tier": "front"}))[0] == "critical"
    assert let_in(store, pod("b")) == ("system-cluster-critical", 2_000_000_000, "all")


def test_a_rule_whose_class_is_not_there_is_refused() -> None:
    store = cluster(policy(rule("all", "low")))

    error = refusal(store, lambda: store.update(policy(rule("front", "high", **TIER), rule("all", "lwo"))))

    assert answer(error) == (422, "Invalid")
    assert (
        "spec.priorityRules[1].priorityClassName: no PriorityClass with name lwo was found; did you mean low?"
        in str(error.message)
    )
    with pytest.raises(StoreError, match="no PriorityClass with name none was found"):
        cluster(policy(rule("all", "none")))


def test_pods_are_refused_while_the_class_of_their_rule_is_gone() -> None:
    store = cluster(policy(rule("all", "low")))
    store.delete("PriorityClass", "low", now=0)

    error = refusal(store, lambda: store.create(pod("a"), now=0))

    assert "no PriorityClass with name low was found" in error.message


def test_bounds_of_budgets_go_by_the_priority_that_rules_give_to_pods_of_workloads() -> None:
    bounds = [{"minPriority": 1000, "minRate": "1/24h"}, {"minDisruptions": 1}]
    store = cluster(policy(rule("front", "high", **TIER), budgetBounds=bounds))
    strict = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": strict}
    budget["metadata"] = {"name": "web", "namespace": "default"}
    template_labels = {"app": "web"}
    keeper = replicated("Deployment", "web", 2, pod("x")["spec"])
    store.create(keeper, now=0)
    refusal(store, lambda: store.create(budget, now=0))

    other = Store()
    for one in (*(priority_class(name, value) for name, value in CLASSES.items()), store_policy(store)):
        other.create(one, now=0)
    keeper["spec"]["template"]["metadata"]["labels"] = {**template_labels, "tier": "front"}
    other.create(keeper, now=0)
    other.create(budget, now=0)


def store_policy(store: Store) -> Raw:
    stored = store.find("DisruptionPolicy", "default")
    assert stored is not None
    return {**stored.raw, "metadata": {"name": "default"}}
