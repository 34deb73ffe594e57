"""Which pods belong together, for spreading them when they do not say how themselves.

Source: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

from podium.api.selectors import EVERYTHING, Selector, compile_label_selector, selector_from_labels
from podium.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from podium.cluster.pod_class import Owner, PodClass

Group = Service | ReplicationController | ReplicaSet | StatefulSet
_API_GROUPS = {ReplicationController: "", ReplicaSet: "apps", StatefulSet: "apps"}


class Groups:
    """Services and the workloads that own pods. ``generation`` moves with every change."""

    def __init__(self) -> None:
        # By namespace, then as the classes of pods name their owners.
        self._owners: dict[tuple[str, Owner], Selector] = {}
        self._services: dict[str, dict[str, Selector]] = {}
        self.generation = 0

    def put(self, group: Group) -> None:
        """Add or replace a group."""
        self.generation += 1
        if isinstance(group, Service):
            services = self._services.setdefault(group.metadata.namespace, {})
            services[group.metadata.name] = selector_from_labels(group.spec.selector)
        else:
            self._owners[group.metadata.namespace, _owner(group)] = _selector(group)

    def remove(self, group: Group) -> None:
        """Forget a group."""
        self.generation += 1
        if isinstance(group, Service):
            self._services.get(group.metadata.namespace, {}).pop(group.metadata.name, None)
        else:
            self._owners.pop((group.metadata.namespace, _owner(group)), None)

    def selector(self, pod_class: PodClass) -> Selector:
        """The pods that belong with those of the class: all requirements of its services and its owner together.

        The selector that matches everything means that the pods belong to nothing.
        """
        requirements = [
            requirement
            for service in self._services.get(pod_class.namespace, {}).values()
            if service.requirements and service.matches(pod_class.labels)
            for requirement in service.requirements
        ]
        if pod_class.owner is not None:
            requirements += self._owners.get((pod_class.namespace, pod_class.owner), EVERYTHING).requirements
        return Selector(tuple(requirements))


def _owner(group: ReplicationController | ReplicaSet | StatefulSet) -> Owner:
    return (_API_GROUPS[type(group)], type(group).__name__, group.metadata.name)


def _selector(group: ReplicationController | ReplicaSet | StatefulSet) -> Selector:
    if isinstance(group, ReplicationController):
        return selector_from_labels(group.spec.selector)
    return compile_label_selector(group.spec.selector)
