"""Watches from a version on."""

import pytest

from podium.store.listing import ListOptions, Notice, Watch
from podium.store.store import Store
from tests.pod_statuses import set_pod_status
from tests.store.objects import Raw, node, pod
from tests.store.refusals import answer, refusal


def reported(notices: list[Notice]) -> list[tuple[str, str, int]]:
    return [(one.type, one.raw["metadata"].get("name", ""), one.version) for one in notices]


def watch(store: Store, version: int, **options: str) -> Watch:
    return store.watch("Pod", options=ListOptions(resource_version=str(version), **options))  # type: ignore[arg-type]


def labelled(raw: Raw, **labels: str) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], "labels": labels}}


def test_a_watch_reports_each_event_of_its_kind_once_in_order() -> None:
    store = Store()
    store.create(pod("before"), now=0)
    watcher = watch(store, 1)
    store.create(node("n1"), now=0)
    store.create(pod("a"), now=0)
    store.bind("default/before", "n1", now=0)

    assert reported(watcher.pull()) == [("ADDED", "a", 3), ("MODIFIED", "before", 4)]
    assert watcher.pull() == []

    store.delete("Pod", "default/a", now=0)
    (gone,) = watcher.pull()
    assert reported([gone]) == [("DELETED", "a", 5)]
    assert gone.raw["metadata"]["resourceVersion"] == "5"


def test_an_object_that_enters_or_leaves_the_selector_is_added_or_deleted() -> None:
    store = Store()
    stored = store.create(pod("web"), now=0)
    watcher = watch(store, 1, label_selector="app=web")

    entered = store.update(labelled(stored.raw, app="web"))
    store.update(labelled(entered.raw, app="web", zone="a"))
    store.patch("Pod", "default/web", {"metadata": {"labels": {"app": "other"}}}, "merge")
    store.delete("Pod", "default/web", now=0)

    notices = watcher.pull()
    assert reported(notices) == [("ADDED", "web", 2), ("MODIFIED", "web", 3), ("DELETED", "web", 4)]
    # The event has the object as it was last selected, at the version at which it left.
    assert notices[2].raw["metadata"]["labels"] == {"app": "web", "zone": "a"}
    assert notices[2].raw["metadata"]["resourceVersion"] == "4"


def test_a_field_selector_lets_ended_pods_go() -> None:
    store = Store()
    store.create(pod("web", node="n1"), now=0)
    watcher = watch(store, 1, field_selector="status.phase!=Succeeded,status.phase!=Failed")

    set_pod_status(store, "default/web", {"phase": "Succeeded"}, [], now=0)

    assert reported(watcher.pull()) == [("DELETED", "web", 2)]


def test_a_watch_of_a_namespace_reports_no_other_namespace() -> None:
    store = Store()
    watcher = store.watch("Pod", "shop")
    store.create(pod("a"), now=0)
    store.create(pod("b", namespace="shop"), now=0)

    assert reported(watcher.pull()) == [("ADDED", "b", 2)]


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_from_no_version_begins_with_what_there_is(version: str) -> None:
    store = Store()
    store.create(pod("b"), now=0)
    store.create(pod("a"), now=0)
    watcher = store.watch("Pod", options=ListOptions(resource_version=version))
    store.create(pod("c"), now=0)

    assert reported(watcher.pull()) == [("ADDED", "a", 2), ("ADDED", "b", 1), ("ADDED", "c", 3)]


def initial(**options: str) -> ListOptions:
    return ListOptions(send_initial_events=True, resource_version_match="NotOlderThan", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["", "0", "1"])
def test_initial_events_end_with_an_annotated_bookmark(version: str) -> None:
    store = Store()
    store.create(pod("a"), now=0)
    store.create(node("n1"), now=0)
    store.log.compact(2)

    notices = store.watch("Pod", options=initial(resource_version=version)).pull()

    assert reported(notices) == [("ADDED", "a", 1), ("BOOKMARK", "", 2)]
    assert notices[1].raw == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "2", "annotations": {"k8s.io/initial-events-end": "true"}},
    }


def test_a_watch_without_initial_events_begins_now() -> None:
    store = Store()
    store.create(pod("a"), now=0)
    options = ListOptions(send_initial_events=False, resource_version_match="NotOlderThan")
    watcher = store.watch("Pod", options=options)
    store.create(pod("b"), now=0)

    assert reported(watcher.pull()) == [("ADDED", "b", 2)]


def test_a6_a_bookmark_has_the_version_up_to_which_all_events_were_sent() -> None:
    store = Store()
    watcher = watch(store, 0)
    assert watcher.pull() == []
    store.create(pod("a"), now=0)
    store.create(node("n1"), now=0)

    assert watcher.bookmark().version == 0
    watcher.pull()
    bookmark = watcher.bookmark()
    assert bookmark.type == "BOOKMARK"
    assert bookmark.raw == {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "2"}}


def test_there_is_no_bookmark_before_the_initial_events() -> None:
    store = Store()
    store.create(pod("a"), now=0)

    with pytest.raises(ValueError, match="pulled"):
        store.watch("Pod").bookmark()


def test_a6_b34_a_watch_from_a_forgotten_version_has_expired() -> None:
    store = Store(log_capacity=2)
    for name in ("a", "b", "c", "d"):
        store.create(pod(name), now=0)

    assert reported(watch(store, 2).pull()) == [("ADDED", "c", 3), ("ADDED", "d", 4)]
    assert answer(refusal(store, lambda: watch(store, 1))) == (410, "Expired")


def test_a_watcher_that_falls_behind_gets_an_expired_error() -> None:
    store = Store(log_capacity=2)
    watcher = watch(store, 0)
    watcher.pull()
    for name in ("a", "b", "c"):
        store.create(pod(name), now=0)

    assert answer(refusal(store, watcher.pull)) == (410, "Expired")


@pytest.mark.parametrize("options", [ListOptions(resource_version="2"), initial(resource_version="2")])
def test_a6_b34_a_watch_from_a_version_to_come_times_out(options: ListOptions) -> None:
    store = Store()
    store.create(pod("a"), now=0)

    error = refusal(store, lambda: store.watch("Pod", options=options))

    assert answer(error) == (504, "Timeout")
    assert error.details["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    "options",
    [
        ListOptions(resource_version="1", resource_version_match="Exact"),
        ListOptions(send_initial_events=True),
        ListOptions(send_initial_events=True, resource_version="1", resource_version_match="Exact"),
    ],
)
def test_b35_options_that_contradict_one_another_are_invalid(options: ListOptions) -> None:
    store = Store()
    store.create(pod("a"), now=0)

    assert answer(refusal(store, lambda: store.watch("Pod", options=options))) == (422, "Invalid")


def test_b34_an_invalid_version_is_an_invalid_value() -> None:
    store = Store()

    assert refusal(store, lambda: store.watch("Pod", options=ListOptions(resource_version="x"))).code == 400


class Loop:
    """Counts how often it is woken for each watch, and looks at what is committed then."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.versions: list[int] = []

    def wake(self) -> None:
        self.versions.append(self.store.version)


def test_only_an_event_of_the_kind_wakes_a_watcher() -> None:
    store = Store()
    loop, watcher = Loop(store), watch(store, 0)
    watcher.pull()
    watcher.wake_by(loop.wake)

    store.create(node("n1"), now=0)
    assert loop.versions == []
    store.create(pod("a"), now=0)
    assert loop.versions == [2]


def test_a_watcher_is_woken_once_until_its_next_pull() -> None:
    store = Store()
    loop, watcher = Loop(store), watch(store, 0)
    watcher.wake_by(loop.wake)
    for name in ("a", "b"):
        store.create(pod(name), now=0)
    assert loop.versions == [1]

    assert len(watcher.pull()) == 2
    store.create(pod("c"), now=0)
    assert loop.versions == [1, 3]


def test_a_watcher_with_pending_events_wakes_at_once() -> None:
    store = Store()
    store.create(pod("a"), now=0)
    loop = Loop(store)

    watch(store, 0).wake_by(loop.wake)
    behind = watch(store, 1)
    store.create(pod("b"), now=0)
    behind.wake_by(loop.wake)

    assert loop.versions == [1, 2]


def test_a_transaction_wakes_once_when_it_is_committed_and_a_dry_run_never() -> None:
    store = Store()
    loop, watcher = Loop(store), watch(store, 0)
    watcher.wake_by(loop.wake)
    with store.transaction(dry_run=True):
        store.create(pod("a"), now=0)
    with store.transaction():
        store.create(pod("a"), now=0)
        store.create(pod("b"), now=0)
        assert loop.versions == []

    assert loop.versions == [2]
    assert len(watcher.pull()) == 2


def test_a_closed_watch_wakes_no_component() -> None:
    store = Store()
    loop, watcher, other = Loop(store), watch(store, 0), watch(store, 0)
    for one in (watcher, other):
        one.wake_by(loop.wake)
    watcher.close()
    watcher.close()

    store.create(pod("a"), now=0)
    watcher.pull()
    store.create(pod("b"), now=0)

    assert loop.versions == [1]
