"""The API's invariants (A of the project's list) under any order of writes."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from podium.api.input.codec import decode
from podium.api.pod import Pod
from podium.store.errors import StoreError
from podium.store.listing import ListOptions, ListPage, Watch
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent
from tests.store.objects import SECOND, Raw, pod

NAMES = st.sampled_from(["a", "b", "c"])
PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])
NODES = st.sampled_from(["", "n1", "n2"])
TERMINAL = ("Succeeded", "Failed")


def is_selected(stored: Stored, label: str) -> bool:
    is_x = stored.object.metadata.labels.get("label") == "x"
    return {"": True, "label=x": is_x, "label!=x": not is_x}[label]


def key_of(raw: Raw) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def as_pod(stored: Stored) -> Pod:
    assert isinstance(stored.object, Pod)
    return stored.object


class Writers(RuleBasedStateMachine):
    """Several writers at one store, some of which act on old reads, and watchers at their own pace.

    The invariants have the names of the project's list, A1 to A14.
    """

    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.now = 0
        self.read: list[Stored] = []
        self.uids: dict[str, str] = {}
        self.checked = 0
        self.floor = 0
        self.history: list[WatchEvent] = []
        self.pages: list[tuple[ListPage, str]] = []
        # Each with its selector, its first version, the expected initial events, and the received events.
        self.watches: list[tuple[Watch, str, int, list[tuple[str, str]], list[tuple[str, str]]]] = []

    @initialize()
    def begin(self) -> None:
        self.read.append(self.store.create(pod("a"), now=0))

    def write(self, change: Callable[[], Any], *, base: Stored | None = None) -> None:
        """Make a write. A1, A3, A14: one that is refused changes nothing, and one on an old version is refused."""
        before = {one.key: one for one in self.store.objects("Pod")}
        version = self.store.version
        self.rehearse(change)
        assert {one.key: one for one in self.store.objects("Pod")} == before
        assert self.store.version == version
        try:
            change()
        except StoreError:
            assert {one.key: one for one in self.store.objects("Pod")} == before
            assert self.store.version == version
        else:
            assert self.store.version in (version, version + 1)
            if base is not None:
                assert before[base.key].version == base.version

    def rehearse(self, change: Callable[[], Any]) -> None:
        """A12: a dry run of a write, whatever it answers, leaves no trace."""
        try:
            with self.store.transaction(dry_run=True):
                change()
        except StoreError:
            pass

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

    @rule(data=st.data(), label=st.sampled_from(["x", "y"]), deadline=st.integers(1, 5))
    def update(self, data: st.DataObject, label: str, deadline: int) -> None:
        read = self.some(data)
        metadata = {**read.raw["metadata"], "labels": {"label": label}}
        raw = {**read.raw, "metadata": metadata, "status": {}}
        raw["spec"] = {**read.raw["spec"], "activeDeadlineSeconds": deadline}
        self.write(lambda: self.store.update(raw), base=read)

    @rule(
        name=NAMES, label=st.sampled_from(["x", "y", None]), phase=PHASES, subresource=st.sampled_from(["", "status"])
    )
    def patch(self, name: str, label: str | None, phase: str, subresource: Literal["", "status"]) -> None:
        patch = {"metadata": {"labels": {"label": label}}, "status": {"phase": phase}}
        self.write(lambda: self.store.patch("Pod", f"default/{name}", patch, "merge", subresource))

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
            self.history.append(event)
            self.check_event(event)

    @rule()
    def forget_what_happened(self) -> None:
        """Compact the log, but for what a checker has yet to see."""
        self.floor = max(self.floor, self.checked - 5)
        self.store.log.compact(self.floor)

    @rule(label=st.sampled_from(["", "label=x", "label!=x"]), back=st.integers(0, 8))
    def open_watch(self, label: str, back: int) -> None:
        version = max(self.checked - back, 0)
        options = ListOptions(label_selector=label, resource_version=str(version))
        if version and not self.is_known(version):
            with pytest.raises(StoreError, match="too old"):
                self.store.watch("Pod", options=options)
            return
        begin = version or self.store.version
        watch = self.store.watch("Pod", options=options)
        # Without a version it begins with what there is.
        report = [] if version else [("ADDED", one.key) for one in self.selected(begin, label)]
        self.watches.append((watch, label, begin, report, []))

    @rule(data=st.data())
    def pull(self, data: st.DataObject) -> None:
        self.watches = [one for one in self.watches if data.draw(st.booleans()) or self.check_watch(*one)]

    def teardown(self) -> None:
        for one in self.watches:
            self.check_watch(*one)

    def check_watch(
        self, watch: Watch, label: str, begin: int, report: list[tuple[str, str]], found: list[tuple[str, str]]
    ) -> bool:
        """A4: check that a watcher receives the changes of the selected objects in order, or an expired error."""
        if not self.is_known(watch.version):
            with pytest.raises(StoreError, match="too old"):
                watch.pull()
            return False
        found += [(notice.type, key_of(notice.raw)) for notice in watch.pull()]
        assert found == report + self.happened(begin, label)
        # A6: all changes up to a bookmark's version precede it.
        assert watch.bookmark().version == self.checked
        return True

    @rule(label=st.sampled_from(["", "label=x", "label!=x"]), back=st.integers(0, 8))
    def list_a_version(self, label: str, back: int) -> None:
        """A5: a list at a version is what the history up to it leaves."""
        version = max(self.checked - back, 1)
        exactly = ListOptions(label_selector=label, resource_version=str(version), resource_version_match="Exact")
        if self.is_known(version):
            assert list(self.store.page("Pod", options=exactly).items) == self.selected(version, label)
        else:
            with pytest.raises(StoreError, match="too old"):
                self.store.page("Pod", options=exactly)

    @rule(label=st.sampled_from(["", "label=x"]), limit=st.integers(1, 2))
    def begin_pages(self, label: str, limit: int) -> None:
        self.pages.append((self.store.page("Pod", options=ListOptions(label_selector=label, limit=limit)), label))

    @rule()
    def turn_pages(self) -> None:
        """A5: all pages of a chain are of one version, though the objects have changed since."""
        pages, self.pages = self.pages, []
        for page, label in pages:
            found, token = list(page.items), page.continue_token
            if not self.is_known(page.version):
                continue
            while token:
                options = ListOptions(label_selector=label, limit=1, continue_token=token)
                following = self.store.page("Pod", options=options)
                found, token = [*found, *following.items], following.continue_token
            assert found == self.selected(page.version, label)

    def is_known(self, version: int) -> bool:
        """Return whether the store still has the history after a version."""
        return version >= self.floor

    def selected(self, version: int, label: str) -> list[Stored]:
        """Return what is selected at a version, by the history that this test has kept."""
        objects: dict[str, Stored] = {}
        for event in self.history:
            if event.version <= version:
                objects.pop(event.stored.key, None)
                if event.type != "DELETED":
                    objects[event.stored.key] = event.stored
        return [one for _, one in sorted(objects.items()) if is_selected(one, label)]

    def happened(self, version: int, label: str) -> list[tuple[str, str]]:
        """Return what happened after a version to what is selected."""
        report: list[tuple[str, str]] = []
        for event in self.history:
            was = event.previous is not None and is_selected(event.previous, label)
            now = event.type != "DELETED" and is_selected(event.stored, label)
            if event.version > version and (was or now):
                report.append(("MODIFIED" if was and now else "ADDED" if now else "DELETED", event.stored.key))
        return report

    @invariant()
    def the_log_replayed_gives_the_objects(self) -> None:
        replayed: dict[str, Stored] = {}
        for event in self.history:
            if event.type == "DELETED":
                del replayed[event.stored.key]
            else:
                replayed[event.stored.key] = event.stored
        assert [one for _, one in sorted(replayed.items())] == self.store.objects("Pod")

    def check_event(self, event: WatchEvent) -> None:
        assert event.stored.object == decode(event.stored.raw)
        if event.previous is None:
            assert event.type == "ADDED"
            # A2: each uid belongs to one creation.
            assert self.uids.setdefault(event.stored.uid, f"version {event.version}") == f"version {event.version}"
        else:
            self.check_identity(event.previous, event.stored)
            self.check_pod(as_pod(event.previous), as_pod(event.stored))
            self.check_sections(event.previous, event.stored)
        if event.type == "DELETED":
            assert not event.stored.object.metadata.finalizers
            assert event.stored.object.metadata.deletion_timestamp is not None

    def check_identity(self, old: Stored, new: Stored) -> None:
        """A2, A7."""
        for field in ("uid", "name", "namespace", "creationTimestamp"):
            assert old.raw["metadata"][field] == new.raw["metadata"][field]
        before, after = old.object.metadata, new.object.metadata
        # The first request for deletion counts as a change of the desired state; a binding does not.
        is_deleted = before.deletion_timestamp is None and after.deletion_timestamp is not None
        specs = [{**raw["spec"], "nodeName": ""} if new.kind == "Pod" else raw["spec"] for raw in (old.raw, new.raw)]
        changes = (specs[0] != specs[1]) + is_deleted if new.resource.has_generation else 0
        assert after.generation - before.generation == changes

    def check_pod(self, old: Pod, new: Pod) -> None:
        """A8, A9, A10, A11."""
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
        """A13: a write changes the status or the spec, and only binding both."""
        is_binding = as_pod(new).spec.node_name != as_pod(old).spec.node_name
        spec_changed = old.raw["spec"] != new.raw["spec"]
        assert is_binding or not (spec_changed and old.raw["status"] != new.raw["status"])


TestWriters = Writers.TestCase
