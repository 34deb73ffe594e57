"""The events that each plugin of a profile waits for.

Source: pkg/scheduler/scheduler.go (buildQueueingHintMap) and pkg/scheduler/framework/runtime/framework.go
(EnqueueExtensions, defaultEnqueueExtension).
"""

from __future__ import annotations

from podium.framework.events import EVERY_EVENT, ActionType, EventResource, EventToRegister
from podium.framework.plugin import EnqueuePlugin, Plugin
from podium.framework.settings.profile import Profile

_TAINTS_CHANGED = EventToRegister(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


def registrations(profile: Profile) -> dict[str, tuple[EventToRegister, ...]]:
    """What the profile's plugins registered, by plugin name."""
    return {plugin.name: registered_events(plugin) for plugin in profile.plugins()}


def registered_events(plugin: Plugin) -> tuple[EventToRegister, ...]:
    """What a plugin registered; every event for a plugin that does not say.

    Who waits for nodes to be added, and not for their taints to change, waits for the latter too, whatever its hint
    would say: a node that was added with a taint (or cordoned) woke nobody, and becomes of use when that ends.
    """
    if not isinstance(plugin, EnqueuePlugin):
        return EVERY_EVENT
    events = tuple(plugin.events_to_register())
    for_nodes = ActionType(0)
    for event in events:
        if event.resource is EventResource.NODE:
            for_nodes |= event.action
    if ActionType.ADD in for_nodes and ActionType.UPDATE_NODE_TAINT not in for_nodes:
        events += (_TAINTS_CHANGED,)
    return events
