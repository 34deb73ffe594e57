"""Which pods belong together, for spreading them when they do not say how themselves.

Source: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

from podium.api.selectors import EVERYTHING, Selector, compile_label_selector, selector_from_labels
from podium.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from podium.cluster.marks import NAMESPACE, Questions, selector_needs
from podium.cluster.pod_class import Owner, PodClass

Group = Service | ReplicationController | ReplicaSet | StatefulSet
_API_GROUPS = {ReplicationController: "", ReplicaSet: "apps", StatefulSet: "apps"}


class Groups:
    """Services and the workloads that own pods. ``generation`` moves with every change of what they select."""

    def __init__(self) -> None:
        # By namespace, then as the classes of pods name their owners.
        self._owners: dict[tuple[str, Owner], Selector] = {}
        # By namespace and name.
        self._services: dict[tuple[str, str], Selector] = {}
        self._questions: Questions[tuple[str, str]] = Questions()
        self.generation = 0

    def put(self, group: Group) -> None:
        """Add or replace a group."""
        if isinstance(group, Service):
            self._put_service(
                (group.metadata.namespace, group.metadata.name), selector_from_labels(group.spec.selector)
            )
            return
        owner, selector = (group.metadata.namespace, _owner(group)), _selector(group)
        if self._owners.get(owner) != selector:
            self._owners[owner] = selector
            self.generation += 1

    def remove(self, group: Group) -> None:
        """Forget a group."""
        if isinstance(group, Service):
            self._put_service((group.metadata.namespace, group.metadata.name), EVERYTHING)
        elif self._owners.pop((group.metadata.namespace, _owner(group)), None) is not None:
            self.generation += 1

    def selector(self, pod_class: PodClass) -> Selector:
        """The pods that belong with those of the class: all requirements of its services and its owner together.

        The selector that matches everything means that the pods belong to nothing.
        """
        matching = (
            self._services[place]
            for place in sorted(self._questions.candidates(pod_class.marks))
            if place[0] == pod_class.namespace and self._services[place].matches(pod_class.labels)
        )
        requirements = [requirement for service in matching for requirement in service.requirements]
        if pod_class.owner is not None:
            requirements += self._owners.get((pod_class.namespace, pod_class.owner), EVERYTHING).requirements
        return Selector(tuple(requirements))

    def _put_service(self, place: tuple[str, str], selector: Selector) -> None:
        """Let a service select so; one that selects everything belongs to no pods."""
        if self._services.get(place, EVERYTHING) == selector:
            return
        self.generation += 1
        if selector == EVERYTHING:
            del self._services[place]
            self._questions.remove(place)
        else:
            self._services[place] = selector
            self._questions.put(place, [*selector_needs(selector), [(NAMESPACE, place[0])]])


def _owner(group: ReplicationController | ReplicaSet | StatefulSet) -> Owner:
    return (_API_GROUPS[type(group)], type(group).__name__, group.metadata.name)


def _selector(group: ReplicationController | ReplicaSet | StatefulSet) -> Selector:
    if isinstance(group, ReplicationController):
        return selector_from_labels(group.spec.selector)
    return compile_label_selector(group.spec.selector)
