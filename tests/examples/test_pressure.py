"""The preemption design's example of preemption and eviction, and a variant, by the second."""

from pathlib import Path

import podium
from podium.sim.results.result import Result

EXAMPLES = Path(__file__).parents[2] / "examples"


def story(result: Result) -> list[str]:
    """Return the events as `time reason pod node`, generated names shortened to their owner's and a number."""
    numbers: dict[str, str] = {}
    report = []
    for event in result.events:
        pod = (event.pod or "").removeprefix("default/")
        owner, dash, _ = pod.rpartition("-")
        if dash and owner == "urgent":
            pod = numbers.setdefault(pod, f"urgent-{len(numbers) + 1}")
        if event.reason not in ("Created", "Preempted", "Nominated", "FailedScheduling"):
            report.append(" ".join(str(part) for part in (event.time, event.reason, pod, event.node) if part))
    return report


def why(result: Result, reason: str) -> list[str]:
    return [event.message for event in result.events if event.reason == reason]


def test_the_scheduler_preempts_by_requests_and_the_kubelet_evicts_by_use() -> None:
    result = podium.simulate(EXAMPLES / "pressure-1.yaml", latency=0)

    assert story(result) == [
        "10 Killing burstable node-1",
        "40 Terminated burstable node-1",
        "40 Scheduled urgent node-1",
        "40 Started urgent node-1",
        "60 NodeChanged node-1",
        "60 NodeChanged node-1",
        "61 Failed best-effort node-1",
        "361 NodeChanged node-1",
        "361 NodeChanged node-1",
    ]
    assert why(result, "Failed") == [
        "Evicted: The node was low on resource: memory. Threshold quantity: 0, available: 0. "
        "Container main was using 953.67Mi, request is 0, has larger consumption of memory."
    ]


def test_an_evicted_pod_moves_once_without_ping_pong() -> None:
    result = podium.simulate(EXAMPLES / "pressure-2.yaml", latency=0)

    assert story(result) == [
        "10 Killing burstable node-1",
        "40 Terminated burstable node-1",
        "40 Scheduled urgent-1 node-1",
        "40 Started urgent-1 node-1",
        "40 NodeChanged node-1",
        "40 NodeChanged node-1",
        "41 Failed urgent-1 node-1",
        "41 Killing batch node-2",
        "61 Terminated batch node-2",
        "61 Scheduled urgent-2 node-2",
        "61 Started urgent-2 node-2",
        "341 NodeChanged node-1",
        "341 NodeChanged node-1",
    ]
    assert why(result, "NodeChanged") == [
        "MemoryPressure is True",
        "taint node.kubernetes.io/memory-pressure added",
        "MemoryPressure is False",
        "taint node.kubernetes.io/memory-pressure removed",
    ]
