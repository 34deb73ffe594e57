"""Queueing hints never miss a change that makes a pod schedulable: random changes and rejected pods.

A pod waits with the plugins that refused it. When one change makes it fit some node, one of those plugins must have
registered the change, and its hint must wake the pod; or it would wait for minutes though there is room.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.hints import node_changes, pod_changes
from podium.decide.placement import place, rejecting_plugins
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.framework.runner import Runner
from podium.framework.settings.registry import event_registrations
from tests.builders import cluster_of, namespace, plain_runner
from tests.fuzzing import usual
from tests.generators import LABELS, TOLERATING, Objects, Traits, clusters, nodes, pods

# What pods and nodes are about: one kind of plugin each, and all together.
SUBJECTS = {
    "affinity": Traits(affinity=True),
    "spread": Traits(spread=True, tolerations=True),
    "ports": Traits(ports=True),
    "nodes": Traits(node_affinity=True, tolerations=True),
    "resources": Traits(heavy_target=True),
    "all": Traits(
        affinity=True,
        spread=True,
        ports=True,
        node_affinity=True,
        tolerations=True,
        terminating=True,
        heavy_target=True,
    ),
}
replace = msgspec.structs.replace


class Change:
    """One change to a cluster with a pending pod, and its event."""

    def __init__(self, objects: Objects, cluster: Cluster, waiting: PodRecord, traits: Traits) -> None:
        self.objects, self.cluster, self.waiting, self.traits = objects, cluster, waiting, traits

    def drawn(self, data: st.DataObject) -> ClusterEvent | None:
        """Make a change, drawn; None where there is nothing to change in that way."""
        kinds = (self.node, self.node, self.pod_goes, self.pod_relabelled, self.pod_comes, self.itself, self.namespace)
        return data.draw(st.sampled_from(kinds))(data)

    def node(self, data: st.DataObject) -> ClusterEvent | None:
        """Add, remove or change a node."""
        name = data.draw(st.sampled_from([*(one.metadata.name for one in self.objects.nodes), "new"]))
        old = next((one for one in self.objects.nodes if one.metadata.name == name), None)
        if old is not None and data.draw(st.integers(0, 4)) == 0:
            self.cluster.remove_node(name)
            return ClusterEvent(EventResource.NODE, ActionType.DELETE, old, None)
        new: Node = data.draw(nodes(name, self.traits))
        changes = ActionType.ADD if old is None else node_changes(old, new)
        if not changes:
            return None
        self.cluster.put_node(new)
        return ClusterEvent(EventResource.NODE, changes, old, new)

    def pod_goes(self, data: st.DataObject) -> ClusterEvent | None:
        if not self.objects.pods:
            return None
        gone = self._record(data.draw(st.sampled_from(self.objects.pods)))
        if gone is None:
            return None
        self.cluster.remove_pod(gone.uid)
        return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, gone, None)

    def pod_relabelled(self, data: st.DataObject) -> ClusterEvent | None:
        if not self.objects.pods:
            return None
        one = data.draw(st.sampled_from(self.objects.pods))
        before = self._record(one)
        if before is None:
            return None
        labels = data.draw(st.sampled_from(LABELS))
        after = self.cluster.read(replace(one, metadata=replace(one.metadata, labels=labels)))
        self.cluster.replace_pod(after)
        return ClusterEvent(EventResource.ASSIGNED_POD, pod_changes(before, after), before, after)

    def pod_comes(self, data: st.DataObject) -> ClusterEvent | None:
        names = [one.metadata.name for one in self.objects.nodes]
        come: Pod = data.draw(pods("come", names, self.traits, self.objects.pods))
        if not come.spec.node_name:
            return None
        record = self.cluster.read(come)
        self.cluster.add_pod(record)
        return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, None, record)

    def itself(self, data: st.DataObject) -> ClusterEvent | None:
        """Change the pod's labels, or add a toleration."""
        target, before = self.objects.target, self.waiting
        if data.draw(st.booleans()):
            changed = replace(target, metadata=replace(target.metadata, labels=data.draw(st.sampled_from(LABELS))))
        else:
            tolerations = (*target.spec.tolerations, data.draw(TOLERATING))
            changed = replace(target, spec=replace(target.spec, tolerations=tolerations))
        self.waiting = self.cluster.read(changed)
        return ClusterEvent(EventResource.POD, pod_changes(before, self.waiting), before, self.waiting)

    def namespace(self, data: st.DataObject) -> ClusterEvent | None:
        changed = namespace("shop", team=data.draw(st.sampled_from(("red", "blue"))))
        self.cluster.put(changed)
        return ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE_OTHER, changed, changed)

    def _record(self, one: Pod) -> PodRecord | None:
        return self.cluster.placed.get(one.metadata.uid)


def wakes(runner: Runner, rejecting: list[str], waiting: PodRecord, happened: ClusterEvent) -> bool:
    registered = event_registrations(runner.profile)
    return any(one.wakes(waiting, happened) for name in rejecting for one in registered[name])


@pytest.mark.parametrize("subject", SUBJECTS)
@settings(max_examples=usual(80), deadline=None)
@given(data=st.data())
def test_a_change_that_makes_a_pod_fit_wakes_it(subject: str, data: st.DataObject) -> None:
    traits = SUBJECTS[subject]
    objects: Objects = data.draw(clusters(traits, most_nodes=3))
    cluster = cluster_of(*objects.surroundings)
    runner, waiting = plain_runner(cluster), cluster.read(objects.target)
    before = place(runner, waiting)
    assume(before.row is None)
    rejecting = rejecting_plugins(before)

    change = Change(objects, cluster, waiting, traits)
    happened = change.drawn(data)
    assume(happened is not None and happened.action)
    assert happened is not None

    if place(runner, change.waiting).row is not None:
        event(f"{happened.resource.value} {rejecting}")
        assert wakes(runner, rejecting, change.waiting, happened)
