"""Invariants of every write of a simulation.

The letters are those of the list of invariants that the project holds to.
"""

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.times import parse_time
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent


class Writes:
    """Looks at what was written since it looked last; raises AssertionError."""

    def __init__(self, store: Store, scheduler_names: frozenset[str]) -> None:
        self.store = store
        self.scheduler_names = scheduler_names
        self.version = 0
        self.uids: set[str] = set()
        self.bound: dict[str, str] = {}
        self.clears_nominations = True
        """Whether the API server ends nominations at binding."""

    def check(self) -> list[WatchEvent]:
        """Return the writes since the last time, all of which are as they should be."""
        events = self.store.events_since(self.version)
        for event in events:
            # A1
            assert event.version == self.version + 1
            self.version = event.version
            self._check_write(event)
        return events

    def _check_write(self, event: WatchEvent) -> None:
        new, old = event.stored, event.previous
        if old is None:
            # A2
            assert new.uid not in self.uids
            self.uids.add(new.uid)
        else:
            self._check_change(old, new)
        if event.type == "DELETED":
            # A11
            assert not new.object.metadata.finalizers
        if isinstance(new.object, Pod) and old is not None and isinstance(old.object, Pod):
            self._check_pod(old.object, new.object)

    @staticmethod
    def _check_change(old: Stored, new: Stored) -> None:
        # A1: what changes nothing is not written. A2
        assert unversioned(old) != unversioned(new), old.key
        for name in ("uid", "name", "namespace", "creationTimestamp"):
            assert old.raw["metadata"].get(name) == new.raw["metadata"].get(name)
        spec_changed = old.raw.get("spec") != new.raw.get("spec")
        is_binding = (
            isinstance(new.object, Pod)
            and isinstance(old.object, Pod)
            and (new.object.spec.node_name != old.object.spec.node_name)
        )
        # A7: changes of the spec count but for a binding, and so does the first request for deletion.
        before, after = old.object.metadata, new.object.metadata
        is_deleted = before.deletion_timestamp is None and after.deletion_timestamp is not None
        changes = (spec_changed and not is_binding) + is_deleted if new.resource.has_generation else 0
        assert after.generation - before.generation == changes
        # A13
        status_changed = old.raw.get("status") != new.raw.get("status")
        labels_changed = old.object.metadata.labels != new.object.metadata.labels
        assert is_binding or not (status_changed and (spec_changed or labels_changed))

    def _check_pod(self, old: Pod, new: Pod) -> None:
        if new.spec.node_name != old.spec.node_name:
            # A8, A9
            assert not old.spec.node_name
            assert new.metadata.uid not in self.bound
            self.bound[new.metadata.uid] = new.spec.node_name
            scheduled = new.status.condition("PodScheduled")
            assert scheduled is not None
            assert scheduled.status == "True"
            assert not (self.clears_nominations and new.status.nominated_node_name)
            # D3
            assert not new.spec.scheduling_gates
            assert new.spec.scheduler_name in self.scheduler_names
        # A10
        assert not old.is_terminal or new.status.phase == old.status.phase
        if old.metadata.deletion_timestamp is not None:
            # A11
            assert new.metadata.deletion_timestamp is not None
            assert parse_time(new.metadata.deletion_timestamp) <= parse_time(old.metadata.deletion_timestamp)
        self._check_marks(old, new)

    @staticmethod
    def _check_marks(old: Pod, new: Pod) -> None:
        marked_before, marked = (one.status.condition("DisruptionTarget") for one in (old, new))
        if marked is not None and marked != marked_before and marked.reason == "PreemptionByScheduler":
            # E12
            others = [one for one in new.status.conditions if one.type != "DisruptionTarget"]
            assert others == [one for one in old.status.conditions if one.type != "DisruptionTarget"]
            assert new.spec == old.spec
            # E11: the mark comes before the deletion.
            assert not new.is_terminating or old.is_terminating


def unversioned(stored: Stored) -> Raw:
    """Return the object without its version."""
    return {**stored.raw, "metadata": {**stored.raw["metadata"], "resourceVersion": None}}
