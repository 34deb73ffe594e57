"""The cap on disruptions by schedulers, shared by the API server and the scheduler."""

import pytest

from tests.sim.objects import budget, scenario, workload
from tests.sim.played import instantly
from tests.store.objects import Raw, disruption_policy, node, running


def owned(name: str, priority: int) -> Raw:
    """Return a ReplicaSet of three pods of one cpu."""
    requests = {"requests": {"cpu": "1"}}
    spec = {
        "priority": priority,
        "terminationGracePeriodSeconds": 5,
        "containers": [{"name": "main", "image": "i", "resources": requests}],
    }
    made = workload("ReplicaSet", name, 3, template={"metadata": {"labels": {"app": name}}, "spec": spec})
    return {**made, "spec": {**made["spec"], "selector": {"matchLabels": {"app": name}}}}


def times_of_preemptions(*objects: Raw, steps: tuple[Raw, ...] = ()) -> list[float]:
    """Return when pods go: for three urgent ones that come after 10 seconds to three full nodes, and in other steps."""
    nodes = [node(f"n{number}", cpu=1) for number in range(3)]
    arrival = scenario(*steps, {"at": "10s", "apply": [owned("urgent", 10)]}, until="1h")
    events = instantly([*nodes, owned("web", 0), *objects, arrival]).events
    return [event.time for event in events if event.reason == "Killing"]


GENEROUS = budget("web", maxUnavailable="100%")


@pytest.mark.parametrize(
    ("rate", "times"), [("1/10m", [10, 610, 1210]), ("2/10m", [10, 10, 310]), ("5/10m", [10, 10, 10])]
)
def test_as_many_pods_with_a_budget_are_preempted_as_the_cap_allows(rate: str, times: list[float]) -> None:
    policy = disruption_policy(caps=[{"component": "scheduler", "max": rate}])

    assert times_of_preemptions(GENEROUS, policy) == times


def test_pods_without_a_budget_and_other_components_caps_do_not_count() -> None:
    policy = disruption_policy(caps=[{"component": "scheduler", "max": "1/10m"}])
    others = disruption_policy(caps=[{"component": "drain", "max": "1/10m"}])

    assert times_of_preemptions(policy) == [10, 10, 10]
    assert times_of_preemptions(GENEROUS, others) == [10, 10, 10]


def test_a_cap_on_each_namespace_holds_for_preemptions_and_evictions_together() -> None:
    """Two in ten minutes: an eviction and a preemption use them up, and the next waits until one is back."""
    policy = disruption_policy(caps=[{"max": "2/10m", "per": "Namespace"}])
    full = node("n9", cpu=0)
    evict: Raw = {"at": "5s", "evict": {"name": "other"}}
    other = running("other", node="n9", labels={"app": "other"})

    its = budget("other", selector={"matchLabels": {"app": "other"}}, minAvailable=0)

    times = times_of_preemptions(GENEROUS, its, policy, other, full, steps=(evict,))

    assert times == [5, 10, 305, 605]


def test_an_evict_step_takes_what_the_subresource_takes() -> None:
    """Its own grace period, and the component whose cap counts."""
    policy = disruption_policy(caps=[{"component": "rescheduler", "max": "1/10m"}])
    pods = [running(f"web-{number}", node="n") for number in range(3)]
    steps = [
        {"at": "1s", "evict": {"name": "web-0", "component": "rescheduler", "gracePeriodSeconds": 3}},
        {"at": "2s", "evict": {"name": "web-1", "component": "rescheduler"}},
        {"at": "3s", "evict": {"name": "web-2"}},
    ]

    result = instantly([node("n"), *pods, budget("web", minAvailable=0), policy, scenario(*steps)])

    report = [(event.time, event.reason, event.pod) for event in result.events]
    assert [one for one in report if one[1] != "Created"] == [
        (1, "Killing", "default/web-0"),
        (2, "StepSkipped", "default/web-1"),
        (3, "Killing", "default/web-2"),
        (4, "Terminated", "default/web-0"),
        (33, "Terminated", "default/web-2"),
    ]
    assert "rescheduler may disrupt 1/10m pods with a budget" in result.events[1].message
