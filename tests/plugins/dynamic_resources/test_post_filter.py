"""PostFilter of DynamicResources for pods that fit nowhere and claim no devices."""

from __future__ import annotations

import pytest

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.placement import full_outcome, place
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext, PreFilterPlugin
from podium.framework.runner import Runner
from podium.framework.settings.registry import Profile
from podium.framework.verdicts import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from podium.plugins.dynamic_resources.plugin import DynamicResources
from tests.builders import cluster_of, node, pod


class Answers:
    """A plugin with a scripted answer at PreFilter."""

    name = "Answers"

    def __init__(self, answer: Status) -> None:
        self._answer = answer

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return self._answer


def said_beside(answer: Status, *, comes_first: bool = True, is_asked: bool = True) -> Status:
    """Return what it says at PostFilter beside another plugin that answers so at PreFilter; ``is_asked`` there
    itself.
    """
    cluster = cluster_of(node("n1"))
    devices = DynamicResources(PluginContext({}, cluster))
    asked: list[PreFilterPlugin] = [Answers(answer), *([devices] if is_asked else [])]
    pre_filter = asked if comes_first else asked[::-1]
    runner = Runner(Profile("s", pre_filter=pre_filter, filter=[devices] if is_asked else []), cluster)
    record = cluster.read(pod("target"))
    placement = place(runner, record)
    return devices.post_filter(placement.state, record, runner, cluster, full_outcome(cluster, placement)).status


@pytest.mark.parametrize("answer", [SUCCESS, SKIP, unschedulable("not now")])
def test_a_pod_that_wants_no_devices_has_no_claims_to_deallocate(answer: Status) -> None:
    assert said_beside(answer).message == "no new claims to deallocate"


def test_a_pod_rejected_for_good_before_device_checks_is_an_error() -> None:
    """Source: dynamicresources.go, getStateData: PreFilter has left no state."""
    assert said_beside(unresolvable("never")) == Status(Code.ERROR, ("not found",))


def test_a_pod_rejected_for_good_after_device_checks_has_no_claims_to_deallocate() -> None:
    assert said_beside(unresolvable("never"), comes_first=False).message == "no new claims to deallocate"


def test_without_its_pre_filter_it_has_no_state() -> None:
    assert said_beside(SUCCESS, is_asked=False) == Status(Code.ERROR, ("not found",))
