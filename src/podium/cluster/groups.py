"""Which pods belong together, for spreading them when they do not say how themselves.

Source: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

from podium.api.selectors import EVERYTHING, Selector, compile_label_selector, selector_from_labels
from podium.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from podium.cluster.pod_class import PodClass

Group = Service | ReplicationController | ReplicaSet | StatefulSet


class Groups:
    """Services and the workloads that own pods, by kind and key. ``generation`` moves with every change."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], Selector] = {}
        self._services: dict[str, dict[str, Selector]] = {}
        self.generation = 0

    def put(self, group: Group) -> None:
        """Add or replace a group."""
        self.generation += 1
        if isinstance(group, Service):
            services = self._services.setdefault(group.metadata.namespace, {})
            services[group.metadata.name] = selector_from_labels(group.spec.selector)
        else:
            self._owners[type(group).__name__, group.key] = _selector(group)

    def remove(self, group: Group) -> None:
        """Forget a group."""
        self.generation += 1
        if isinstance(group, Service):
            self._services.get(group.metadata.namespace, {}).pop(group.metadata.name, None)
        else:
            self._owners.pop((type(group).__name__, group.key), None)

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
            kind, name = pod_class.owner
            owner = self._owners.get((kind, f"{pod_class.namespace}/{name}"), EVERYTHING)
            requirements += owner.requirements
        return Selector(tuple(requirements))


def _selector(group: ReplicationController | ReplicaSet | StatefulSet) -> Selector:
    if isinstance(group, ReplicationController):
        return selector_from_labels(group.spec.selector)
    return compile_label_selector(group.spec.selector)
