"""The account that a live program keeps of disruptions in its cluster."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from podium.api.meta import OwnerReference
from podium.api.pod import Pod, PodCondition
from podium.api.times import format_time
from podium.app.live.accounting import AccountedController, LiveAccount
from podium.controllers.actions import Action
from podium.controllers.controller import NO_CHANGE
from podium.controllers.deadlines import NEVER, Deadline
from podium.controllers.observations import Changed, Deleted, Observation, Tick
from podium.controlplane.ledger_file import read_ledger
from tests.builders import pod

_SECOND = 10**9
CONDITION = PodCondition(type="DisruptionTarget", status="True")


class Onlooker:
    """A machine that looks at pods, and wants nothing."""

    watches = frozenset(("Pod",))

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """See `Machine`."""
        return NO_CHANGE

    def deadline(self) -> Deadline:
        """See `Machine`."""
        return NEVER


def show(machine: AccountedController, found: Pod, at_s: int) -> None:
    """Show a pod to the account."""
    machine.handle(Changed(found), at_s * _SECOND)


def of_web(name: str, created_s: int, *, on: str = "") -> Pod:
    """Return a pod of a ReplicaSet, as the API server has made it by its own clock."""
    found = pod(name, on=on)
    owner = OwnerReference(kind="ReplicaSet", name="web", uid="web", controller=True)
    created = format_time(created_s * _SECOND)
    metadata = replace(found.metadata, owner_references=(owner,), creation_timestamp=created)
    return replace(found, metadata=metadata, status=replace(found.status, phase="Running" if on else "Pending"))


def evicted(found: Pod, at_s: int) -> Pod:
    """Return the pod as it ends because of an eviction."""
    target = replace(CONDITION, reason="EvictionByEvictionAPI")
    metadata = replace(found.metadata, deletion_timestamp=format_time(at_s * _SECOND), deletion_grace_period_seconds=0)
    return replace(found, metadata=metadata, status=replace(found.status, conditions=(target,)))


def test_a_replacement_is_found_when_the_api_servers_clock_is_behind(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    account = LiveAccount(path, 0, lambda kind, key: None, lambda problem: None)
    machine = account.of(Onlooker(), "scheduler")
    victim, sibling = of_web("web-a", 10, on="n"), of_web("web-b", 10, on="n")
    show(machine, victim, 100)
    show(machine, sibling, 100)
    machine.handle(Tick(), 100 * _SECOND)

    show(machine, evicted(victim, 70), 100)
    show(machine, sibling, 100)
    show(machine, of_web("web-c", 70), 100)
    machine.handle(Deleted(evicted(victim, 70)), 101 * _SECOND)
    show(machine, of_web("web-c", 70, on="m"), 103)
    account.close()

    (record,) = read_ledger(path).records
    assert record.cause == "eviction"
    assert record.replacement is not None
    assert (record.replacement.pod, record.replacement.node, record.replacement.placed_after) == (
        "default/web-c",
        "m",
        3,
    )
