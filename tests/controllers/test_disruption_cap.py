"""The number of pods with a budget that a scheduler disrupts under the DisruptionPolicy's cap."""

import pytest
from msgspec.structs import replace

from podium.api.disruption_policy import Cap, CapStatus, DisruptionPolicy, DisruptionPolicyStatus
from podium.api.meta import ObjectMeta
from podium.api.pod import Pod, PodCondition
from podium.api.times import format_exact_time
from podium.controllers.actions import Bind, ReportStatus, ReportUnschedulable
from tests.builders import budget, node, pod
from tests.controllers.driving import SECOND, Driver, all_of, deletions, nominated, terminating, the

HOUR = 3600
BUDGET = budget("web", "app=web", 5)


def policy(rate: str | None, *, full_after: float = 0) -> DisruptionPolicy:
    """Return a policy with a cap on schedulers (and a tighter one on others) whose bucket is full after so many
    seconds.
    """
    caps = (Cap(component="drain", max="1/9h"), *(() if rate is None else (Cap(component="scheduler", max=rate),)))
    full_time = format_exact_time(round(full_after * SECOND))
    return DisruptionPolicy(
        metadata=ObjectMeta(name="default"),
        spec=replace(DisruptionPolicy().spec, caps=caps),
        status=DisruptionPolicyStatus(caps=(CapStatus(component="scheduler", full_time=full_time),)),
    )


def web(number: int, *, ready: bool = True, app: str = "web") -> Pod:
    """Return a pod with a budget that fills a node."""
    made = pod(f"web-{number}", cpu=4, labels={"app": app}, on=f"n{number}")
    conditions = (PodCondition(type="Ready", status="True" if ready else "False"),)
    return replace(made, status=replace(made.status, conditions=conditions))


def high(number: int, cpu: int = 4) -> Pod:
    return pod(f"high-{number}", cpu=cpu, priority=100)


def full(nodes: int, *more: DisruptionPolicy) -> Driver:
    """Return some nodes, each full of a pod with a budget."""
    return Driver(*(node(f"n{n}", cpu=4) for n in range(nodes)), *map(web, range(nodes)), BUDGET, *more)


def begun(driver: Driver) -> int:
    """Return how many victims the attempts that are due now begin to delete."""
    return len(all_of(ReportStatus, driver.attempts()))


def test_no_preemption_is_begun_for_which_no_token_is_left() -> None:
    driver = full(3, policy("2/1h"))

    driver.see(high(0), high(1), high(2))

    assert begun(driver) == 2
    assert driver.scheduler.cap.next_deadline() == driver.now + HOUR // 2 * SECOND


def test_the_pod_message_names_the_cap_and_the_time_of_the_next_attempt() -> None:
    driver = full(1, policy("2/1h", full_after=2 * HOUR + 0.5))
    driver.see(high(0))

    report = the(ReportUnschedulable, driver.tick())

    assert report.message.endswith(
        "preemption: it would disrupt a pod with a budget, and the cap of 2/1h on component scheduler "
        "(DisruptionPolicy default) leaves 0; the next try is at 1970-01-01T01:30:01Z"
    )
    assert driver.nominated(high(0)) == ""


def test_a_capped_preemption_is_retried_as_soon_as_a_token_is_free() -> None:
    driver = full(1, policy("1/1h", full_after=90))
    driver.see(high(0))
    assert begun(driver) == 0
    assert driver.deadline_seconds == 90

    driver.wait(90)

    assert begun(driver) == 1


def test_a_scheduler_that_has_room_for_the_pod_meanwhile_takes_it() -> None:
    driver = full(1, policy("1/1h", full_after=90))
    driver.see(high(0))
    begun(driver)

    driver.miss(web(0))
    driver.wait(1)

    assert the(Bind, driver.tick()).pod == "default/high-0"


@pytest.mark.parametrize(
    "victim", [web(0, ready=False), web(0, app="db"), terminating(web(0), preempted=False)], ids=lambda pod: ""
)
def test_victims_that_are_not_healthy_or_have_no_budget_or_go_anyway_need_no_token(victim: Pod) -> None:
    driver = Driver(node("n0", cpu=4), victim, BUDGET, policy("1/1h", full_after=HOUR))

    driver.see(high(0))

    driver.tick()
    assert driver.nominated(high(0)) == "n0"


def test_a_budget_over_all_pods_of_a_namespace_counts_too() -> None:
    """The eviction API counts such a budget, although it covers no pod for preemption."""
    driver = Driver(node("n0", cpu=4), web(0), budget("all", "", 5), policy("1/1h", full_after=HOUR))

    driver.see(high(0))

    assert begun(driver) == 0


@pytest.mark.parametrize("lifted", ["no policy", "no cap"])
def test_lifting_the_cap_retries_the_waiting_pods_at_once(lifted: str) -> None:
    driver = full(1, policy("1/1h", full_after=HOUR))
    driver.see(high(0))
    assert begun(driver) == 0

    if lifted == "no policy":
        driver.miss(policy("1/1h"))
    else:
        driver.see(policy(None))

    assert begun(driver) == 1


def test_a_larger_cap_counts_from_what_the_api_shows() -> None:
    driver = full(2, policy("1/1h", full_after=HOUR))
    driver.see(high(0), high(1))
    assert begun(driver) == 0

    driver.see(policy("4/1h", full_after=3 * HOUR / 4))

    assert begun(driver) == 1


def test_a_preemption_that_needs_more_tokens_than_are_left_waits_for_all_of_them() -> None:
    small = [replace(web(n), spec=replace(pod("", cpu=2).spec, node_name="n0")) for n in range(2)]
    driver = Driver(node("n0", cpu=4), *small, BUDGET, policy("3/3h", full_after=2 * HOUR))
    driver.see(high(0))

    assert begun(driver) == 0
    assert driver.scheduler.cap.next_deadline() == HOUR * SECOND


def test_a_preemption_above_the_maximum_cap_waits_for_all_tokens() -> None:
    small = [replace(web(n), spec=replace(pod("", cpu=2).spec, node_name="n0")) for n in range(2)]
    driver = Driver(node("n0", cpu=4), *small, BUDGET, policy("1/1h", full_after=60))
    driver.see(high(0))
    assert begun(driver) == 0

    driver.wait(60)

    driver.carry_out(driver.tick())
    assert driver.nominated(high(0)) == "n0"


def test_started_disruptions_count_once_until_the_api_shows_them() -> None:
    driver = full(3, policy("2/2h"))
    driver.see(high(0), high(1), high(2))
    assert begun(driver) == 2

    driver.see(policy("2/2h", full_after=HOUR))
    driver.see(policy("2/2h", full_after=2 * HOUR))

    assert begun(driver) == 0
    driver.wait(HOUR)
    assert begun(driver) == 1


def test_the_cap_is_no_reason_to_call_it_a_day() -> None:
    """A simulation that is quiet but for it goes on to the next token."""
    driver = full(1, policy("1/1h", full_after=HOUR))
    assert not driver.scheduler.deadline().keeps_alive
    driver.see(high(0))
    begun(driver)
    assert driver.scheduler.deadline().keeps_alive

    driver.miss(high(0))

    assert not driver.scheduler.deadline().keeps_alive


def test_without_a_policy_there_is_no_cap() -> None:
    driver = full(4)

    driver.see(*map(high, range(4)))

    assert begun(driver) == 4
    assert deletions(driver.see(nominated(high(0), "n0"))) == []


def test_victims_without_a_budget_take_no_token_of_a_cap() -> None:
    driver = Driver(*(node(f"n{n}", cpu=4) for n in range(3)), *(web(n, app="db") for n in range(3)), BUDGET)
    driver.see(policy("1/1h"), high(0), high(1), high(2))

    assert begun(driver) == 3
    assert driver.scheduler.cluster.caps.used() == []


def test_each_pod_of_a_class_waits_for_the_cap_itself() -> None:
    """A postponed preemption is not a failure shared with the class: the other pods would wait in vain."""
    driver = full(1, policy("1/1h", full_after=HOUR))
    driver.see(high(0), high(1))

    driver.attempts()

    assert set(driver.scheduler.cap.held) == {"default/high-0", "default/high-1"}
    assert not driver.scheduler.known._found
