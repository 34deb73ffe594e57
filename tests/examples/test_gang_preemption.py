"""The example scenarios of preempting gangs, by the second."""

import podium
from tests.examples.stories import EXAMPLES, story

TOLD = ("Nominated", "Preempted", "Terminated", "Scheduled")


def test_a_gang_without_room_preempts_no_pod_and_a_fitting_gang_preempts_a_whole_group() -> None:
    configuration = EXAMPLES / "gangs" / "scheduler.yaml"
    result = podium.simulate(EXAMPLES / "preemption" / "gang.yaml", configuration=configuration, latency=0)

    assert [line for line in story(result, TOLD) if float(line.split()[0]) > 0] == [
        "10 Nominated worker-1 node-1",
        "10 Nominated worker-2 node-2",
        "10 Nominated worker-3 node-3",
        "10 Preempted batch-3 node-3",
        "10 Preempted render-1 node-1",
        "10 Preempted render-2 node-2",
        "20 Terminated batch-3 node-3",
        "20 Terminated render-1 node-1",
        "30 Terminated render-2 node-2",
        "30 Scheduled worker-1 node-1",
        "30 Scheduled worker-2 node-2",
        "30 Scheduled worker-3 node-3",
    ]
    assert not [event for event in result.events if event.time < 10 and event.reason == "Preempted"]
