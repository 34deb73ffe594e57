"""The events that requeue a pod."""

from __future__ import annotations

import pytest

from podium.framework.events import EVERY_EVENT, ActionType, ClusterEvent, EventResource, EventToRegister
from tests.builders import cluster_of, pod

POD = cluster_of().read(pod("p"))
NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)
ANYTHING = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)


@pytest.mark.parametrize(
    ("registered", "wakes"),
    [
        (EventToRegister(EventResource.NODE, ActionType.ADD), True),
        (EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), True),
        (EventToRegister(EventResource.NODE, ActionType.UPDATE), False),
        (EventToRegister(EventResource.ASSIGNED_POD, ActionType.ADD), False),
        (EventToRegister(EventResource.WILDCARD, ActionType.ALL), True),
    ],
)
def test_an_event_wakes_plugins_registered_for_its_kind_and_action(registered: EventToRegister, wakes: bool) -> None:
    assert registered.wakes(POD, NODE_ADDED) is wakes


def test_an_update_is_any_of_its_parts() -> None:
    updated = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)

    assert EventToRegister(EventResource.NODE, ActionType.UPDATE).wakes(POD, updated)
    assert not EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.DELETE).wakes(POD, updated)


def test_a_hint_has_the_last_word_except_about_an_event_that_stands_for_all() -> None:
    never = EventToRegister(EventResource.NODE, ActionType.ADD, lambda pod, event: False)

    assert not never.wakes(POD, NODE_ADDED)
    assert never.wakes(POD, ANYTHING)


def test_a_plugin_without_registration_waits_for_everything() -> None:
    assert all(one.wakes(POD, NODE_ADDED) for one in EVERY_EVENT)
