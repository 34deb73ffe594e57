"""Each controller watches what it reads: other events do not change what it does."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.pod import Pod
from podium.controllers.autoscaling.autoscaler import Autoscaler
from podium.controllers.controller import (
    CUSTOM_KINDS,
    EVERY,
    NO_CHANGE,
    PLACED,
    UNOWNED,
    Controller,
    is_watched_kind,
    needed_aspects,
)
from podium.controllers.disruption.drain import NodeDrain
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.observations import Changed, Deleted
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.sim.player import SimulatedControlPlane
from podium.sim.scenario.scenario import Scenario
from podium.store.api_resources import BUILT_IN
from tests.app.manifests import manifests
from tests.sim.objects import documents
from tests.sizes import sizes
from tests.store.objects import SECOND

MAKERS: dict[str, Callable[[], Controller]] = {
    **{one.name: one.make for one in SimulatedControlPlane(Scenario(), KubeletSettings(), {}, 0).components},
    "scheduler": Scheduler,
    "autoscaler": lambda: Autoscaler([]),
    "rescheduler": lambda: Rescheduler(ReschedulerSettings(policies=())),
    "drain": lambda: NodeDrain("web"),
}
OBJECTS = [(one.object, one.raw) for one in documents(*manifests()) if one.object is not None]
# Everything that a machine may keep: by time it may forget, which is not what this is about.
NOW = 1_800_000_000 * SECOND


def shown_all(name: str) -> Controller:
    """Return a machine that was shown all that it watches."""
    machine = MAKERS[name]()
    for object_, raw in OBJECTS:
        if is_watched_kind(object_.kind, machine.watches):
            machine.handle(Changed(object_, raw), NOW)
    return machine


def there(machine: Controller) -> tuple[object, ...]:
    return machine.deadline(), sizes(machine=machine)


@pytest.mark.parametrize("name", MAKERS)
def test_a_kind_that_a_controller_does_not_watch_changes_nothing(name: str) -> None:
    machine = MAKERS[name]()
    watched = [one for one in OBJECTS if is_watched_kind(one[0].kind, machine.watches)]
    others = [one for one in OBJECTS if not is_watched_kind(one[0].kind, machine.watches)]
    for object_, raw in watched:
        machine.handle(Changed(object_, raw), NOW)
    before = there(machine)

    for object_, raw in others:
        assert machine.handle(Changed(object_, raw), NOW) == []
        assert machine.handle(Changed(object_, raw), NOW) == []
        assert there(machine) == before, f"it looks at a {object_.kind}"
        assert machine.handle(Deleted(object_), NOW) == []
        assert there(machine) == before, f"it looks at a {object_.kind} that is gone"
    assert others


@pytest.mark.parametrize("name", MAKERS)
def test_a_pod_without_owner_changes_nothing_for_a_controller_that_watches_owned_pods(name: str) -> None:
    machine = shown_all(name)
    before, others = there(machine), EVERY | PLACED | UNOWNED

    for object_, raw in OBJECTS:
        if is_watched_kind(object_.kind, machine.watches) and not needed_aspects(machine, object_.kind) & others:
            metadata = replace(object_.metadata, name="of-nobody", uid="of-nobody", owner_references=())
            unowned = replace(object_, metadata=metadata)
            assert machine.handle(Changed(unowned, raw), NOW) is NO_CHANGE
            assert machine.handle(Deleted(unowned), NOW) is NO_CHANGE
            assert there(machine) == before


@pytest.mark.parametrize("name", MAKERS)
def test_a_pending_pod_changes_nothing_for_a_controller_of_placed_pods(name: str) -> None:
    machine = shown_all(name)
    before, deadline = there(machine), machine.deadline()

    if is_watched_kind("Pod", machine.watches) and not needed_aspects(machine, "Pod") & (EVERY | UNOWNED):
        waiting = Pod(kind="Pod", metadata=ObjectMeta(namespace="default", name="waits", uid="waits"))
        assert waiting.waits_for_node
        assert machine.handle(Changed(waiting, {}), NOW) is NO_CHANGE
        assert machine.handle(Deleted(waiting), NOW) == []
        assert there(machine) == before
        assert machine.deadline() == deadline


@pytest.mark.parametrize("name", MAKERS)
def test_controllers_watch_only_existing_kinds(name: str) -> None:
    known = {kind.name for kind in KIND_OF.values()}

    assert MAKERS[name]().watches <= known | {CUSTOM_KINDS}


def test_only_the_disruption_controller_watches_custom_kinds() -> None:
    watching = [name for name, make in MAKERS.items() if is_watched_kind("Rollout", make().watches)]

    assert watching == ["disruption-controller"]
    assert not any(is_watched_kind("ConfigMap", make().watches) for make in MAKERS.values())


def test_every_kind_is_tried() -> None:
    shown: set[type[Kubernetes]] = {type(object_) for object_, _ in OBJECTS}

    assert shown >= {type_ for type_, kind in KIND_OF.items() if BUILT_IN[kind.group, kind.name].served_versions}
