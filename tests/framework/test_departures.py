"""Caveats about settings that kube-scheduler does not have."""

from typing import Any

from msgspec.structs import replace

from podium.framework.settings.configuration import default_configuration, upstream_departures
from tests.builders import configuration


def test_the_default_configuration_has_nothing_of_its_own() -> None:
    assert upstream_departures(default_configuration()) == ()


def test_each_setting_that_differs_is_named_once() -> None:
    args: dict[str, dict[str, Any]] = {
        "DefaultPreemption": {"equalPriorityPreemption": True, "equalPriorityOrder": "QoS", "spareMirrorPods": True},
        "InterPodAffinity": {"nominatedPodsRepel": True},
    }
    plain = configuration(args, plugins={})
    settings = replace(plain, max_futile_preemptions=3, nomination_clearing="Unfit", profiles=plain.profiles * 2)

    (caveat,) = upstream_departures(settings)

    assert (caveat.about, caveat.count) == ("own-settings", 6)
    assert caveat.message == (
        "settings that kube-scheduler does not have: maxFutilePreemptions: 3, nominationClearing: Unfit, "
        "equalPriorityPreemption: true of DefaultPreemption, equalPriorityOrder: QoS of DefaultPreemption, "
        "spareMirrorPods: true of DefaultPreemption, nominatedPodsRepel: true of InterPodAffinity"
    )


def test_features_of_kube_scheduler_are_no_departure() -> None:
    args: dict[str, dict[str, Any]] = {
        "DefaultPreemption": {"equalPriorityPreemption": False, "minCandidateNodesAbsolute": 7},
        "InterPodAffinity": {"nominatedPodsRepel": False, "hardPodAffinityWeight": 9},
    }

    assert upstream_departures(configuration(args, plugins={})) == ()
