"""The API's invariants (A of the list that the project holds to) under any order of writes."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from podium.api.codec import decode
from podium.api.pod import Pod
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent
from tests.store.objects import SECOND, pod

NAMES = st.sampled_from(["a", "b", "c"])
PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])
NODES = st.sampled_from(["", "n1", "n2"])
TERMINAL = ("Succeeded", "Failed")


def as_pod(stored: Stored) -> Pod:
    assert isinstance(stored.object, Pod)
    return stored.object


class Writers(RuleBasedStateMachine):
    """Several writers at one store, some of whom act on what they read long ago."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.now = 0
        self.read: list[Stored] = []
        self.uids: dict[str, str] = {}
        self.checked = 0

    @initialize()
    def begin(self) -> None:
        self.read.append(self.store.create(pod("a"), now=0))

    def write(self, change: Callable[[], Any], *, base: Stored | None = None) -> None:
        """Make a write; one that is refused must change nothing, one on an old version must be refused."""
        before = {one.key: one for one in self.store.objects("Pod")}
        version = self.store.version
        try:
            change()
        except StoreError:
            assert {one.key: one for one in self.store.objects("Pod")} == before
            assert self.store.version == version
        else:
            assert self.store.version in (version, version + 1)
            if base is not None:
                assert before[base.key].version == base.version

    def some(self, data: st.DataObject) -> Stored:
        return data.draw(st.sampled_from(self.read[-8:]))

    @rule(seconds=st.integers(1, 40))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * SECOND

    @rule(name=NAMES, node_name=NODES, finalizers=st.sampled_from([[], ["example.com/f"]]))
    def create(self, name: str, node_name: str, finalizers: list[str]) -> None:
        raw = pod(name, node=node_name, metadata={"finalizers": finalizers})
        self.write(lambda: self.store.create(raw, now=self.now))

    @rule(name=NAMES)
    def look(self, name: str) -> None:
        found = self.store.find("Pod", f"default/{name}")
        if found is not None:
            self.read.append(found)

    @rule(data=st.data(), node_name=st.sampled_from(["n1", "n2"]))
    def bind(self, data: st.DataObject, node_name: str) -> None:
        read = self.some(data)
        self.write(lambda: self.store.bind(read.key, node_name, now=self.now, uid=read.uid))

    @rule(data=st.data(), label=st.sampled_from(["x", "y"]), hostname=st.sampled_from(["h1", "h2"]))
    def update(self, data: st.DataObject, label: str, hostname: str) -> None:
        read = self.some(data)
        metadata = {**read.raw["metadata"], "labels": {"label": label}}
        raw = {**read.raw, "metadata": metadata, "spec": {**read.raw["spec"], "hostname": hostname}, "status": {}}
        self.write(lambda: self.store.update(raw), base=read)

    @rule(data=st.data())
    def drop_finalizers(self, data: st.DataObject) -> None:
        read = self.some(data)
        raw = {**read.raw, "metadata": {**read.raw["metadata"], "finalizers": []}}
        self.write(lambda: self.store.update(raw), base=read)

    @rule(data=st.data(), phase=PHASES, nominated=NODES)
    def update_status(self, data: st.DataObject, phase: str, nominated: str) -> None:
        read = self.some(data)
        raw = {**read.raw, "spec": {}, "status": {"phase": phase, "nominatedNodeName": nominated}}
        self.write(lambda: self.store.update_status(raw), base=read)

    @rule(data=st.data(), grace=st.sampled_from([None, -1, 0, 5, 60]))
    def delete(self, data: st.DataObject, grace: int | None) -> None:
        read = self.some(data)
        self.write(lambda: self.store.delete("Pod", read.key, now=self.now, grace_seconds=grace, uid=read.uid))

    @invariant()
    def history_holds(self) -> None:
        for event in self.store.events_since(self.checked):
            assert event.version == self.checked + 1
            self.checked = event.version
            self.check_event(event)

    @invariant()
    def the_log_replayed_gives_the_objects(self) -> None:
        replayed: dict[str, Stored] = {}
        for event in self.store.events_since(0):
            if event.type == "DELETED":
                del replayed[event.stored.key]
            else:
                replayed[event.stored.key] = event.stored
        assert [one for _, one in sorted(replayed.items())] == self.store.objects("Pod")

    def check_event(self, event: WatchEvent) -> None:
        assert event.stored.object == decode(event.stored.raw)
        if event.previous is None:
            assert event.type == "ADDED"
            # A uid is never used again: each belongs to one creation.
            assert self.uids.setdefault(event.stored.uid, f"version {event.version}") == f"version {event.version}"
        else:
            self.check_identity(event.previous, event.stored)
            self.check_pod(as_pod(event.previous), as_pod(event.stored))
            self.check_sections(event.previous, event.stored)
        if event.type == "DELETED":
            assert not event.stored.object.metadata.finalizers
            assert event.stored.object.metadata.deletion_timestamp is not None

    def check_identity(self, old: Stored, new: Stored) -> None:
        for field in ("uid", "name", "namespace", "creationTimestamp"):
            assert old.raw["metadata"][field] == new.raw["metadata"][field]
        spec_changed = old.raw["spec"] != new.raw["spec"]
        assert new.object.metadata.generation - old.object.metadata.generation == int(spec_changed)

    def check_pod(self, old: Pod, new: Pod) -> None:
        if new.spec.node_name != old.spec.node_name:
            assert old.spec.node_name == ""
            condition = new.status.condition("PodScheduled")
            assert condition is not None
            assert (condition.status, new.status.nominated_node_name) == ("True", "")
        if old.status.phase in TERMINAL:
            assert new.status.phase == old.status.phase
        if old.metadata.deletion_timestamp is not None:
            assert new.metadata.deletion_timestamp is not None
            assert new.metadata.deletion_timestamp <= old.metadata.deletion_timestamp
            assert (new.metadata.deletion_grace_period_seconds or 0) <= (
                old.metadata.deletion_grace_period_seconds or 0
            )

    def check_sections(self, old: Stored, new: Stored) -> None:
        """A write changes the status or the rest, and only binding both."""
        is_binding = as_pod(new).spec.node_name != as_pod(old).spec.node_name
        rest_changed = old.raw["spec"] != new.raw["spec"] or old.object.metadata.labels != new.object.metadata.labels
        assert is_binding or not (rest_changed and old.raw["status"] != new.raw["status"])


TestWriters = Writers.TestCase
