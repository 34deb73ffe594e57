"""The disruptions that budgets allow, as the eviction API counts."""

from collections.abc import Sequence

from msgspec.structs import replace

from podium.api.policy import PodDisruptionBudget
from podium.cluster.budgets import Budgets
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.evictions import Allowance
from tests.builders import budget, pod

CLUSTER = Cluster()
WEB = [CLUSTER.read(pod(f"web-{number}", labels={"app": "web"})) for number in range(3)]
PLAIN = CLUSTER.read(pod("plain"))
ELSEWHERE = CLUSTER.read(pod("web", namespace="shop", labels={"app": "web"}))


def budgets(*given: PodDisruptionBudget) -> Budgets:
    found = Budgets()
    for one in given:
        found.put(one)
    return found


def taken(allowance: Allowance, pods: Sequence[PodRecord]) -> str:
    """Take pods if all of them may be evicted; return why they may not."""
    why = allowance.why(pods)
    if not why:
        allowance.take(pods)
    return why


def test_several_pods_of_one_budget_are_counted_together() -> None:
    allowance = Allowance(budgets(budget("b", "app=web", 2)))

    assert taken(allowance, WEB[:2]) == ""
    assert taken(allowance, WEB[2:]) == "default/web-2 may not be evicted: the disruption budget default/b is used up"


def test_pods_that_cannot_all_be_evicted_are_not_counted() -> None:
    allowance = Allowance(budgets(budget("b", "app=web", 2)))

    assert taken(allowance, WEB) != ""
    assert taken(allowance, WEB[:2]) == ""


def test_a_pod_that_no_budget_covers_may_go() -> None:
    allowance = Allowance(budgets(budget("b", "app=web", 0), budget("none", None, 0)))

    assert taken(allowance, [PLAIN, ELSEWHERE]) == ""


def test_the_empty_selector_covers_all_pods_of_the_namespace() -> None:
    allowance = Allowance(budgets(budget("b", "", 0)))

    assert taken(allowance, [PLAIN]) != ""
    assert taken(allowance, [ELSEWHERE]) == ""


def test_a_pod_with_several_budgets_stays_unless_all_are_asked() -> None:
    several = budgets(budget("b", "app=web", 5), budget("c", "app", 1))

    assert taken(Allowance(several), WEB[:1]) == "default/web-0 has several disruption budgets: default/b, default/c"

    several.requires_all = True

    allowance = Allowance(several)
    assert taken(allowance, WEB[:1]) == ""
    assert "default/c is used up" in taken(allowance, WEB[1:2])


def test_budget_updates_without_news_are_recognized() -> None:
    found, one = Budgets(), budget("b", "app=web", 1)

    assert found.put(one)
    assert not found.put(replace(one, status=replace(one.status, current_healthy=7)))
    assert found.put(replace(one, status=replace(one.status, disruptions_allowed=2)))


def test_a_deleted_budget_blocks_no_pod() -> None:
    found, one = Budgets(), budget("b", "app=web", 0)
    found.put(one)
    found.remove(one.key)

    assert taken(Allowance(found), WEB) == ""
