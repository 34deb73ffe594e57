"""The events that a plugin registers for, by its declarations and defaults."""

from __future__ import annotations

from collections.abc import Sequence

from podium.framework.events import EVERY_EVENT, ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.settings.registry import registered_events
from tests.builders import cluster_of, pod

POD = cluster_of().read(pod("p"))
TAINTS_CHANGED = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


class Waits:
    """A plugin that waits for some events, with a hint that never wakes."""

    name = "Waits"

    def __init__(self, *actions: ActionType, resource: EventResource = EventResource.NODE) -> None:
        self._events = [EventToRegister(resource, action, lambda pod, event: False) for action in actions]

    def events_to_register(self) -> Sequence[EventToRegister]:
        return self._events


class Silent:
    name = "Silent"


def wakes_for_taints(plugin: Waits) -> bool:
    return any(event.wakes(POD, TAINTS_CHANGED) for event in registered_events(plugin))


def test_a_plugin_without_event_registration_waits_for_every_event() -> None:
    assert registered_events(Silent()) == EVERY_EVENT


def test_a_plugin_that_waits_for_nothing_is_never_woken() -> None:
    assert registered_events(Waits()) == ()


def test_a_plugin_waiting_for_added_nodes_wakes_on_taint_changes_despite_its_hint() -> None:
    assert wakes_for_taints(Waits(ActionType.ADD))
    assert wakes_for_taints(Waits(ActionType.UPDATE_NODE_LABEL, ActionType.ADD | ActionType.DELETE))


def test_a_plugin_that_waits_for_taints_keeps_its_hint() -> None:
    assert not wakes_for_taints(Waits(ActionType.ADD | ActionType.UPDATE_NODE_TAINT))
    assert not wakes_for_taints(Waits(ActionType.ADD, ActionType.UPDATE_NODE_TAINT))
    assert not wakes_for_taints(Waits(ActionType.ADD, ActionType.UPDATE))


def test_a_plugin_not_registered_for_added_nodes_is_not_woken() -> None:
    assert not wakes_for_taints(Waits(ActionType.UPDATE_NODE_LABEL))
    assert not wakes_for_taints(Waits(ActionType.ADD, resource=EventResource.ASSIGNED_POD))
