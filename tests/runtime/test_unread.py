"""The observations that an idle component receives when it wakes."""

from podium.api.meta import Kubernetes, ObjectMeta
from podium.controllers.controller import ADDED, EVERY, PLACED, IdleDeferral
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.observations import Changed, Deleted, Observation
from podium.runtime.runtime import Component, DeferredObservations

PLAIN = EVERY
NEW = EVERY | ADDED


class Rig:
    """Two components for which pods and nodes can wait, and what has happened."""

    def __init__(self) -> None:
        self.unread = DeferredObservations()
        self.components = [
            Component(
                name, Kubelet, controller=Kubelet(), place=place, deferral=IdleDeferral(frozenset(("Node", "Pod")))
            )
            for place, name in ((1, "a"), (2, "b"))
        ]

    def rest(self, *indexes: int) -> None:
        for index in indexes:
            self.unread.begin(self.components[index])

    def changed(self, *uids: str, aspects: int = PLAIN, kind: str = "Pod") -> None:
        for uid in uids:
            self.unread.put(kind, Changed(thing(uid)), aspects)

    def gone(self, *uids: str) -> None:
        for uid in uids:
            self.unread.put("Pod", Deleted(thing(uid)), PLAIN)

    def missed(self, index: int) -> list[str]:
        return [reported(observation) for observation in self.unread.end(self.components[index])]


def thing(uid: str) -> Kubernetes:
    return Kubernetes(kind="Pod", metadata=ObjectMeta(name=uid, uid=uid.partition(".")[0]))


def reported(observation: Observation) -> str:
    assert isinstance(observation, Changed | Deleted)
    return ("-" if isinstance(observation, Deleted) else "") + observation.object.metadata.name


def test_an_idle_component_misses_only_the_last_state_of_each_object_in_order() -> None:
    rig = Rig()
    rig.rest(0)

    rig.changed("x.1", "y.1", "x.2", "z.1", "x.3")

    assert rig.missed(0) == ["x.3", "y.1", "z.1"]
    assert len(rig.unread) == 0


def test_missed_pods_are_delivered_in_order_of_their_placement() -> None:
    rig = Rig()
    rig.rest(0)

    rig.changed("x.1", "y.1", "z.1", aspects=NEW)
    rig.changed("z.2", "x.2", "z.3", "x.3", aspects=EVERY | PLACED)

    assert rig.missed(0) == ["y.1", "z.3", "x.3"]


def test_a_component_that_becomes_idle_later_misses_less() -> None:
    rig = Rig()
    rig.rest(0)
    rig.changed("x.1", "y.1")
    rig.rest(1)
    rig.changed("x.2", "z.1")

    assert rig.missed(1) == ["x.2", "z.1"]
    assert rig.missed(0) == ["x.2", "y.1", "z.1"]


def test_a_component_misses_nothing_of_kinds_that_cannot_wait() -> None:
    rig = Rig()
    rig.rest(0)

    rig.changed("x.1", kind="ReplicaSet")
    rig.changed("n.1", kind="Node")

    assert rig.missed(0) == ["n.1"]


def test_objects_that_came_and_went_leave_no_unread_observations() -> None:
    rig = Rig()
    rig.rest(0)

    rig.changed("x.1", aspects=NEW)
    rig.changed("x.2")
    rig.gone("x.3")

    assert len(rig.unread) == 0
    assert rig.missed(0) == []


def test_deletions_are_kept_while_an_idle_component_knew_the_object() -> None:
    rig = Rig()
    rig.rest(0)
    rig.changed("x.1", aspects=NEW)
    rig.rest(1)
    rig.gone("x.2", "y.1")

    assert rig.missed(1) == ["-x.2", "-y.1"]
    assert len(rig.unread) == 1
    assert rig.missed(0) == ["-y.1"]
    assert len(rig.unread) == 0


def test_observations_known_to_all_idle_components_are_dropped() -> None:
    rig = Rig()
    rig.rest(0)
    rig.changed("x.1", "y.1")
    rig.rest(1)
    rig.changed("y.2")

    rig.missed(0)

    assert len(rig.unread) == 1
    assert rig.missed(1) == ["y.2"]


def test_however_much_comes_and_goes_no_more_is_kept_than_there_is() -> None:
    rig = Rig()
    rig.rest(0, 1)

    for turn in range(300):
        rig.changed(f"p{turn}", aspects=NEW)
        rig.changed(f"p{turn}.2", f"q{turn % 3}.{turn}", aspects=EVERY | PLACED)
        if turn % 2:
            rig.missed(1)
            rig.rest(1)
        rig.gone(f"p{turn}.3")

    assert len(rig.unread) <= 5
