"""The drain controller: node drain of the rescheduling design, with kubectl's rules."""

from collections import Counter
from typing import Any

import pytest

from podium.api.meta import Raw
from podium.api.policy import POLICY_ANNOTATION
from podium.controllers.actions import Action, Evict
from podium.controllers.disruption.drain import DrainSettings, DrainState, NodeDrain
from podium.controllers.observations import Problem
from tests.controllers.node_rig import BROKEN, LOST, SECOND, Fault, Rig, budget, crash_after, pod
from tests.store.objects import node

AGENT = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "default", "uid": "DaemonSet/agent"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main"}]}},
    },
}


def healthy(action: Action) -> Problem | None:
    return None


def draining(*given: Raw, name: str = "n1", fault: Fault = healthy, **settings: Any) -> Rig:
    """Return a drain of the node n1, on which (or near which) these objects are."""
    rig = Rig(lambda: NodeDrain(name, DrainSettings(**settings)))
    rig.fault = fault
    for raw in (node("n1"), node("n2"), *given):
        rig.store.create(raw, now=rig.now)
    rig.settle()
    return rig


def drain_of(rig: Rig) -> NodeDrain:
    machine = rig.machines[0]
    assert isinstance(machine, NodeDrain)
    return machine


def state(rig: Rig) -> DrainState:
    return drain_of(rig).report().state


def standing(rig: Rig) -> dict[str, str]:
    """Return what the report says of each pod."""
    return {one.pod.removeprefix("default/"): one.state for one in drain_of(rig).report().pods}


def test_a_node_is_cordoned_before_its_pods_are_evicted_and_drained_when_they_are_gone() -> None:
    rig = draining(pod("web-1", node="n1"), pod("web-2", node="n1"), pod("web-3", node="n2"))

    assert rig.log == ["0 patch n1: cordoned", "0 evict web-1", "0 evict web-2"]
    assert state(rig) == "running"
    assert standing(rig) == {"web-1": "terminating", "web-2": "terminating"}

    rig.pass_to(30)

    assert state(rig) == "drained"
    assert standing(rig) == {"web-1": "gone", "web-2": "gone"}
    assert list(rig.pods()) == ["web-3"]
    assert rig.nodes()["n1"].spec.unschedulable


def test_no_pod_is_evicted_while_the_cordon_fails() -> None:
    rig = draining(pod("web-1", node="n1"), fault=lambda action: None if isinstance(action, Evict) else BROKEN)
    rig.pass_to(7)

    assert rig.log == ["0 patch n1: cordoned (500)", "5 patch n1: cordoned (500)"]

    rig.fault = healthy
    rig.pass_to(10)

    assert rig.log[2:] == ["10 patch n1: cordoned", "10 evict web-1"]


def test_a_drain_that_cannot_cordon_is_settled() -> None:
    rig = draining(fault=lambda action: BROKEN)
    rig.rest()

    assert state(rig) == "running"
    assert len(rig.log) == 2


def test_a_cordon_without_an_answer_counts_when_it_is_seen() -> None:
    rig = draining(pod("web-1", node="n1"), fault=lambda action: None if isinstance(action, Evict) else LOST)

    assert rig.log == ["0 patch n1: cordoned (0)", "0 evict web-1"]


def test_pods_of_daemon_sets_and_of_the_kubelet_stay() -> None:
    mirror = pod("static", owner="", node="n1", annotations={"kubernetes.io/config.mirror": "1"})
    rig = draining(AGENT, pod("agent-1", owner="DaemonSet/agent", node="n1"), mirror)

    assert state(rig) == "drained"
    assert standing(rig) == {"agent-1": "left", "static": "left"}
    assert rig.log == ["0 patch n1: cordoned"]


def test_one_pod_that_may_not_go_keeps_all_of_them_and_the_node_stays_cordoned() -> None:
    rig = draining(pod("web-1", node="n1"), pod("bare", owner="", node="n1"))

    report = drain_of(rig).report()

    assert (report.state, report.message) == ("refused", "some pods may not be evicted")
    assert [(one.pod, one.state, one.reason) for one in report.pods] == [
        ("default/bare", "refused", "it has no controller; --force evicts it"),
        ("default/web-1", "waiting", ""),
    ]
    assert rig.log == ["0 patch n1: cordoned"]
    assert drain_of(rig).deadline().time_ns is None


def test_force_evicts_pods_without_a_controller() -> None:
    rig = draining(pod("bare", owner="", node="n1"), force=True)
    rig.rest()

    assert state(rig) == "drained"


def test_pods_that_are_never_preempted_are_drained_as_others_are() -> None:
    lasting = pod("web-1", node="n1", annotations={POLICY_ANNOTATION: "NonPreemptible"})
    rig = draining(lasting)
    rig.rest()

    assert state(rig) == "drained"
    assert standing(rig) == {"web-1": "gone"}


def test_data_on_the_node_is_kept_unless_it_may_go() -> None:
    cache = pod("web-1", node="n1", spec={"volumes": [{"name": "cache", "emptyDir": {}}]})

    assert state(draining(cache)) == "refused"
    assert draining(cache, delete_empty_dir_data=True).log[-1] == "0 evict web-1"


def test_there_is_nothing_to_drain_where_there_is_no_node() -> None:
    rig = draining(name="n9")

    report = drain_of(rig).report()

    assert (report.state, report.message) == ("refused", "there is no node n9")


def test_a_drain_is_over_when_the_node_and_its_pods_are_gone() -> None:
    rig = draining(pod("web-1", node="n1", labels={"app": "web"}), budget("web", 0, app="web"))
    rig.delete("Node", "n1")
    rig.delete("Pod", "default/web-1", grace=0)

    assert state(rig) == "drained"


# Refusals and errors


def test_pods_of_a_node_deleted_before_its_cordon_are_evicted() -> None:
    rig = draining(pod("web-1", node="n1"), fault=lambda action: None if isinstance(action, Evict) else BROKEN)

    rig.delete("Node", "n1")

    assert rig.log == ["0 patch n1: cordoned (500)", "0 evict web-1"]
    assert drain_of(rig).deadline().time_ns != 0


def test_a_refused_eviction_is_repeated_every_5_seconds_until_the_budget_allows_it() -> None:
    rig = draining(pod("web-1", node="n1", labels={"app": "web"}), budget("web", 0, app="web"))
    rig.pass_to(12)
    rig.allow("web", 1)
    rig.rest()

    assert rig.log[1:] == ["0 evict web-1 (429)", "5 evict web-1 (429)", "10 evict web-1 (429)", "15 evict web-1"]
    assert state(rig) == "drained"
    assert [(one.state, one.tries) for one in drain_of(rig).report().pods] == [("gone", 4)]


def test_a_refused_eviction_is_repeated_when_the_answer_says() -> None:
    later = Problem(429, "TooManyRequests", "later", 17 * SECOND)
    rig = draining(pod("web-1", node="n1"), fault=lambda action: later if isinstance(action, Evict) else None)
    rig.pass_to(16)
    rig.fault = healthy
    rig.rest()

    assert rig.log[1:] == ["0 evict web-1 (429)", "17 evict web-1"]


def test_errors_are_met_with_a_back_off() -> None:
    rig = draining(pod("web-1", node="n1"), fault=lambda action: BROKEN if isinstance(action, Evict) else None)
    rig.pass_to(15)

    assert rig.log[1:] == [f"{seconds} evict web-1 (500)" for seconds in (0, 1, 3, 7, 15)]


def test_an_eviction_without_an_answer_that_took_place_is_not_repeated() -> None:
    rig = draining(pod("web-1", node="n1"), fault=lambda action: LOST if isinstance(action, Evict) else None)
    rig.rest()

    assert rig.log[1:] == ["0 evict web-1 (0)"]
    assert state(rig) == "drained"


def test_a_drain_is_blocked_and_settled_while_every_pod_left_is_refused_again_and_again() -> None:
    rig = draining(pod("web-1", node="n1", labels={"app": "web"}), budget("web", 0, app="web"), pod("web-2", node="n1"))

    assert state(rig) == "running"
    assert drain_of(rig).deadline().keeps_alive

    rig.rest()

    (blocked, gone) = drain_of(rig).report().pods
    assert state(rig) == "blocked"
    assert (blocked.pod, blocked.state, gone.pod) == ("default/web-1", "waiting", "default/web-2")
    assert "disruption budget web" in blocked.reason
    assert drain_of(rig).deadline().time_ns is not None


def test_a_blocked_drain_has_hope_again_when_a_budget_changes() -> None:
    rig = draining(pod("web-1", node="n1", labels={"app": "web"}), budget("web", 0, app="web"))
    rig.rest()
    assert not drain_of(rig).deadline().keeps_alive

    rig.allow("web", 1)

    assert drain_of(rig).deadline().keeps_alive
    rig.rest()
    assert state(rig) == "drained"


def test_a_blocked_drain_has_hope_again_when_one_of_its_pods_has_left() -> None:
    rig = draining(
        pod("web-1", node="n1", labels={"app": "web"}),
        pod("web-2", node="n1", labels={"app": "web"}),
        budget("web", 0, app="web"),
    )
    rig.rest()
    assert not drain_of(rig).deadline().keeps_alive

    rig.store.delete("Pod", "default/web-2", now=rig.now, grace_seconds=0)
    rig.settle()

    assert standing(rig) == {"web-1": "waiting", "web-2": "gone"}
    assert drain_of(rig).deadline().keeps_alive


def test_a_drain_gives_up_when_its_time_is_up_and_asks_for_no_more() -> None:
    rig = draining(pod("web-1", node="n1", labels={"app": "web"}), budget("web", 0, app="web"), timeout_ns=12 * SECOND)
    rig.rest()

    assert (state(rig), rig.seconds) == ("timed-out", 12)
    assert Counter(rig.log)["10 evict web-1 (429)"] == 1
    assert drain_of(rig).deadline().time_ns is None


def test_a_drain_may_delete_pods_past_their_budgets_and_shorten_their_grace_periods() -> None:
    protected = (pod("web-1", node="n1", labels={"app": "web"}), budget("web", 0, app="web"))
    rig = draining(*protected, disable_eviction=True, grace_seconds=3)

    assert rig.log[-1] == "0 delete web-1"
    rig.rest()
    assert (state(rig), rig.seconds) == ("drained", 3)


def test_a_terminating_pod_that_never_ends_is_left_after_a_time() -> None:
    rig = draining(
        pod("web-1", node="n1", metadata={"finalizers": ["example.com/wait"]}), skip_wait_for_delete_ns=SECOND
    )
    rig.pass_to(40)

    assert state(rig) == "drained"
    assert standing(rig) == {"web-1": "left"}


# What happens meanwhile


def test_pods_that_were_bound_before_the_cordon_was_known_are_evicted_too() -> None:
    rig = draining(pod("web-1", node="n1"), pod("late"))
    rig.pass_to(10)
    rig.bind("late", "n1")

    assert rig.log[-1] == "10 evict late"
    rig.rest()
    assert state(rig) == "drained"


def test_pods_that_come_in_spite_of_the_cordon_do_not_keep_the_drain_busy() -> None:
    anywhere = {"tolerations": [{"operator": "Exists"}]}
    rig = draining(pod("web-1", node="n1", spec=anywhere), pod("web-2", spec=anywhere))
    rig.bind("web-2", "n1")
    rig.rest()

    assert state(rig) == "drained"
    assert standing(rig) == {"web-2": "left", "web-1": "gone"}


def test_a_drain_of_an_uncordoned_node_ends_and_keeps_new_pods() -> None:
    rig = draining(pod("web-1", node="n1", labels={"app": "web"}), budget("web", 0, app="web"), pod("new"))
    rig.pass_to(10)

    rig.patch("Node", "n1", {"spec": {"unschedulable": False}})
    rig.bind("new", "n1")
    rig.pass_to(600)

    assert state(rig) == "withdrawn"
    assert drain_of(rig).report().message == "the node was uncordoned; drain it again to continue"
    assert standing(rig) == {"web-1": "waiting"}
    assert not any("evict new" in line for line in rig.log)


def test_a_machine_that_takes_the_nodes_name_is_cordoned_before_its_pods_go() -> None:
    rig = draining(pod("web-1", node="n1", labels={"app": "web"}), budget("web", 0, app="web"))
    rig.pass_to(10)

    rig.delete("Node", "n1")
    rig.apply(node("n1"))

    assert [line for line in rig.log if "cordon" in line] == ["0 patch n1: cordoned", "10 patch n1: cordoned"]


def test_a_namesake_on_another_node_shows_that_a_pod_is_gone() -> None:
    rig = draining(pod("web-0", node="n1", labels={"app": "web"}), budget("web", 0, app="web"))
    rig.lags = True
    rig.delete("Pod", "default/web-0", grace=0)
    rig.miss()
    rig.lags = False
    rig.apply(pod("web-0", node="n2"))

    assert state(rig) == "drained"
    assert standing(rig) == {"web-0": "gone"}


def test_a_drain_that_is_over_does_nothing_more() -> None:
    rig = draining(pod("web-1", node="n1"))
    rig.rest()
    rig.patch("Node", "n1", {"spec": {"unschedulable": False}})
    rig.apply(pod("web-2", node="n1"))

    assert rig.log == ["0 patch n1: cordoned", "0 evict web-1"]


def test_the_report_of_a_drain_that_is_over_stays_as_it_was() -> None:
    rig = draining(pod("bare", owner="", node="n1"))
    ended = drain_of(rig).report()

    rig.delete("Pod", "default/bare", grace=0)

    assert drain_of(rig).report() == ended


@pytest.mark.parametrize("after", range(6))
def test_a_drain_resumes_after_a_restart_at_any_moment(after: int) -> None:
    objects = [pod(f"web-{n}", node="n1", labels={"app": "web"}) for n in range(3)]
    rig = draining(*objects, budget("web", 2, app="web"), fault=crash_after(after))
    rig.fault = healthy
    rig.restart()
    rig.allow("web", 3)
    rig.rest()

    assert state(rig) == "drained"
    assert not rig.pods()
    assert sum("cordoned" in one for one in rig.log) <= 2
