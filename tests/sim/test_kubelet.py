"""When pods start, run and end on their nodes."""

import pytest

import podium
from podium.api.clock_inference import DEFAULT_START_NS
from podium.api.errors import InputError
from podium.api.times import format_time
from podium.controllers.scheduling.scheduler import Scheduler
from podium.sim.scenario.scenario import split_documents
from tests.sim.objects import documents, scenario
from tests.sim.played import played, pods, reported, simulation_of
from tests.store.objects import SECOND, Raw, node, pod


def deleted(at: str, name: str = "a") -> Raw:
    return {"at": at, "delete": {"kind": "Pod", "name": name}}


def at(seconds: int) -> str:
    return format_time(DEFAULT_START_NS + seconds * SECOND)


def test_a_pod_with_a_node_runs_there_from_the_start() -> None:
    simulation = played(node("n1"), pod("a", node="n1"))

    running = pods(simulation)["a"]
    ready = running.status.condition("Ready")
    assert reported(simulation) == []
    assert running.status.phase == "Running"
    assert running.status.start_time == at(0)
    assert ready is not None
    assert ready.status == "True"


def test_a_pod_that_says_it_is_pending_on_its_node_starts_there() -> None:
    simulation = played(node("n1"), pod("a", node="n1", status={"phase": "Pending"}), start_delay_ns=SECOND)

    assert reported(simulation) == ["1 Started default/a on n1 by kubelet"]


def test_a_pod_that_ran_before_lasts_as_much_less() -> None:
    started = {"phase": "Running", "startTime": at(-60)}
    running = pod("a", node="n1", annotations={"podium.dev/duration": "90s"}, status=started)

    assert reported(played(node("n1"), running, start_ns=DEFAULT_START_NS)) == [
        "30 Finished default/a on n1 by kubelet"
    ]


def test_a_deleted_pod_takes_its_grace_period() -> None:
    running = pod("a", node="n1", spec={"terminationGracePeriodSeconds": 45})

    assert reported(played(node("n1"), running, scenario(deleted("5s")))) == [
        "5 Killing default/a on n1 by scenario",
        "50 Terminated default/a on n1 by kubelet",
    ]


@pytest.mark.parametrize(("termination", "end"), [("12s", 17), ("10m", 35), ("0s", 5)])
def test_a_pod_may_end_sooner_than_its_grace_period_never_later(termination: str, end: int) -> None:
    running = pod("a", node="n1", annotations={"podium.dev/termination": termination})

    simulation = played(node("n1"), running, scenario(deleted("5s")))

    assert reported(simulation, "Terminated") == [f"{end} Terminated default/a on n1 by kubelet"]


def test_a_pod_that_was_terminating_before_has_only_the_rest_of_its_grace_period() -> None:
    metadata = {"deletionTimestamp": at(20), "deletionGracePeriodSeconds": 30}
    running = pod("a", node="n1", metadata=metadata)

    simulation = played(node("n1"), running, start_ns=DEFAULT_START_NS)

    assert reported(simulation) == ["20 Terminated default/a on n1 by kubelet"]


def test_a_grace_period_that_is_over_ends_at_once() -> None:
    metadata = {"deletionTimestamp": at(-20), "deletionGracePeriodSeconds": 30}

    simulation = played(node("n1"), pod("a", node="n1", metadata=metadata), start_ns=DEFAULT_START_NS)

    assert reported(simulation) == ["0 Terminated default/a on n1 by kubelet"]


def test_containers_that_exit_while_their_pod_is_killed_end_it() -> None:
    running = pod("a", node="n1", annotations={"podium.dev/duration": "10s"})

    simulation = played(node("n1"), running, scenario(deleted("5s")))

    assert reported(simulation, "Finished", "Deleted", "Terminated") == [
        "10 Finished default/a on n1 by kubelet",
        "10 Deleted default/a on n1 by kubelet",
    ]


def test_finish_lets_a_running_pod_succeed_and_give_back_its_room() -> None:
    steps = scenario({"at": "40s", "finish": {"name": "a"}})

    simulation = played(node("n1", cpu=1), pod("a", node="n1"), pod("b"), steps)

    assert reported(simulation, "Finished", "Scheduled") == [
        "40 Finished default/a on n1 by kubelet",
        "40 Scheduled default/b on n1 by default-scheduler",
    ]


def test_a_pod_that_is_deleted_before_it_started_goes_at_once() -> None:
    simulation = played(node("n1"), pod("a"), scenario(deleted("1s")), start_delay_ns=5 * SECOND)

    assert reported(simulation, "Killing", "Started", "Terminated") == [
        "1 Killing default/a on n1 by scenario",
        "1 Terminated default/a on n1 by kubelet",
    ]


@pytest.mark.parametrize(("there", "reason"), [(node("n1", cpu=1), "OutOfcpu"), (node("n1", pods=1), "OutOfpods")])
def test_a_pod_that_does_not_fit_fails_and_holds_nothing(there: Raw, reason: str) -> None:
    late = {"at": "1s", "apply": [pod("b", node="n1"), pod("c", node="n1", cpu=0)]}

    simulation = played(there, pod("a", node="n1"), scenario(late))

    failed = simulation.store.get("Pod", "default/b").raw["status"]
    assert (failed["phase"], failed["reason"]) == ("Failed", reason)
    assert pods(simulation)["c"].status.phase == ("Running" if reason == "OutOfcpu" else "Failed")


def test_pods_that_ran_before_keep_running_however_full_the_node_is() -> None:
    simulation = played(node("n1", cpu=1), pod("a", node="n1"), pod("b", node="n1"))

    assert {one.status.phase for one in pods(simulation).values()} == {"Running"}


def test_a_pod_waits_for_an_unknown_node() -> None:
    steps = scenario({"at": "3s", "apply": [node("n1")]})

    simulation = played(pod("a", node="n1", status={"phase": "Pending"}), steps)

    assert reported(simulation, "Started") == ["3 Started default/a on n1 by kubelet"]


def test_when_a_node_goes_its_pods_are_collected_after_a_while() -> None:
    steps = scenario({"at": "3s", "delete": {"kind": "Node", "name": "n1"}})

    simulation = played(node("n1"), pod("a", node="n1"), steps)

    assert reported(simulation) == [
        "3 NodeRemoved on n1 by scenario",
        "43 Failed default/a on n1 by pod-garbage-collector",
        "43 Deleted default/a on n1 by pod-garbage-collector",
    ]


@pytest.mark.parametrize("name", ["duration", "termination"])
@pytest.mark.parametrize(("text", "problem"), [("soon", "is not a duration"), ("-5s", "is negative")])
def test_an_annotation_that_cannot_be_read_is_an_error_at_its_field(name: str, text: str, problem: str) -> None:
    wrong = pod("a", annotations={f"podium.dev/{name}": text})

    with pytest.raises(InputError, match=problem) as caught:
        played(node("n1"), wrong)
    assert f'Pod default/a, .metadata.annotations["podium.dev/{name}"]' in str(caught.value)

    with pytest.raises(InputError, match=problem) as caught:
        split_documents(documents(scenario({"at": "0s", "apply": [wrong]})))
    assert f'.spec.steps[0].apply[0].metadata.annotations["podium.dev/{name}"]' in str(caught.value)


@pytest.mark.parametrize(("text", "problem"), [("much", "much"), ("-1Gi", "is negative")])
def test_an_amount_of_memory_that_cannot_be_read_is_an_error_at_its_field(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        played(node("n1"), pod("a", annotations={"podium.dev/memory-usage": text}))

    assert 'Pod default/a, .metadata.annotations["podium.dev/memory-usage"]' in str(caught.value)


def test_a_pod_becomes_ready_some_time_after_its_start() -> None:
    simulation = simulation_of(node("n1"), pod("a", annotations={"podium.dev/ready-after": "20s"}))
    seen = []
    while simulation.step():
        ready = pods(simulation)["a"].status.condition("Ready")
        seen.append((simulation.elapsed_ns // SECOND, ready and (ready.status, ready.reason)))

    assert seen[-2:] == [(0, ("False", "ContainersNotReady")), (20, ("True", ""))]


def small(name: str, memory: str) -> Raw:
    there = node(name)
    return {**there, "status": {"allocatable": {**there["status"]["allocatable"], "memory": memory}}}


def test_a_pod_with_excessive_usage_is_evicted_and_its_node_tainted_for_a_while() -> None:
    steps = scenario(
        {"at": "5s", "usage": {"name": "a", "memory": "3Gi"}},
        {"at": "6s", "apply": [pod("b"), pod("c", spec={"tolerations": [{"operator": "Exists"}]})]},
        kubelets={"pressureTransition": "1m"},
    )

    simulation = played(small("n1", "2Gi"), pod("a", node="n1"), steps, schedulers=[Scheduler()])

    assert reported(simulation, "Failed", "Scheduled", "NodeChanged") == [
        "5 NodeChanged on n1 by kubelet",
        "5 NodeChanged on n1 by node-lifecycle-controller",
        "6 Failed default/a on n1 by kubelet",
        "6 Scheduled default/c on n1 by default-scheduler",
        "66 NodeChanged on n1 by kubelet",
        "66 NodeChanged on n1 by node-lifecycle-controller",
        "66 Scheduled default/b on n1 by default-scheduler",
    ]


def test_the_kubelets_threshold_can_be_set() -> None:
    using = pod("a", node="n1", annotations={"podium.dev/memory-usage": "1900Mi"})

    plain = played(small("n1", "2Gi"), using)
    careful = played(small("n1", "2Gi"), using, scenario(kubelets={"memoryThreshold": "200Mi"}))

    assert reported(plain, "Failed") == []
    assert reported(careful, "Failed") == ["1 Failed default/a on n1 by kubelet"]


def test_a_pod_bound_to_a_full_node_may_wait_there_for_its_victims() -> None:
    late = pod("b", node="n1", status={"phase": "Pending"})
    steps = (deleted("5s"), {"at": "6s", "apply": [late]})
    victim = pod("a", node="n1", spec={"terminationGracePeriodSeconds": 10})

    strict = played(node("n1", cpu=1), victim, scenario(*steps))
    waiting = played(node("n1", cpu=1), victim, scenario(*steps, kubelets={"waitForVictims": True}))

    assert reported(strict, "Failed", "Started") == ["6 Failed default/b on n1 by kubelet"]
    assert reported(waiting, "Failed", "Started") == ["15 Started default/b on n1 by kubelet"]


def test_the_use_of_a_pod_that_is_gone_is_skipped_and_of_one_that_never_was_an_error() -> None:
    use = {"at": "60s", "usage": {"name": "a", "memory": "1Gi"}}

    simulation = played(node("n1"), pod("a", node="n1"), scenario(deleted("5s"), use))

    assert reported(simulation, "StepSkipped") == ["60 StepSkipped default/a by scenario"]
    with pytest.raises(InputError, match="there is no Pod default/a"):
        played(node("n1"), scenario(use))


@pytest.mark.parametrize(("order", "first"), [(None, "large"), ("PercentageOfRequest", "small")])
def test_the_kubelet_can_rank_evictions_by_percentage_of_the_request(order: str | None, first: str) -> None:
    """large uses 2Gi more than its request, which is half of it; small 1Gi, which is all of it once more."""

    def using(name: str, requested: str, used: str) -> Raw:
        made = pod(name, node="n1", metadata={"annotations": {"podium.dev/memory-usage": used}})
        made["spec"]["containers"][0]["resources"] = {"requests": {"memory": requested}}
        return made

    there = node("n1")
    there["status"]["allocatable"]["memory"] = "7Gi"
    kubelets: Raw = {} if order is None else {"kubelets": {"evictionOrder": order}}

    result = podium.simulate(
        [there, using("large", "4Gi", "6Gi"), using("small", "1Gi", "2Gi"), scenario(until="5s", **kubelets)]
    )

    assert [event.pod for event in result.events if event.reason == "Failed"] == [f"default/{first}"]


def test_a_pod_that_is_not_preemptible_does_not_end_for_a_critical_one_unless_the_gate_is_off() -> None:
    never = pod("never", cpu=1, node="n1", metadata={"annotations": {"podium.dev/preemption-policy": "NonPreemptible"}})
    critical = pod("critical", cpu=1, priority=2_000_000_000)
    steps = scenario({"at": "1s", "apply": [{**critical, "spec": {**critical["spec"], "nodeName": "n1"}}]}, until="1m")

    def failed(gates: str) -> list[str | None]:
        result = podium.simulate([node("n1", cpu=1), never, steps], feature_gates=gates)
        return [event.pod for event in result.events if event.reason == "Failed"]

    assert failed("") == ["default/critical"]
    assert failed("NonPreemptingPriority=false") == ["default/never"]
