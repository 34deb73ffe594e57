"""The requests that list and watch a kind, and the resulting observations."""

from typing import Any

import pytest

from podium.api.meta import Kubernetes
from podium.api.pod_group import PodGroup
from podium.apirequests.observations import ObjectObservation
from podium.client.reflector_state import ReflectorStage, ReflectorState
from podium.client.session import PAGE, Send, Wait
from podium.controllers.observations import Changed, Deleted
from podium.store.api_resources import BUILT_IN
from podium.store.errors import StoreError
from tests.store.objects import SECOND, Raw, pod

NOW = 1_000 * SECOND


def stored(name: str, version: int, *, uid: str = "", **more: Any) -> Raw:
    raw = pod(name, **more)
    raw["metadata"] |= {"uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return raw


def event(type_: str, raw: Raw) -> Raw:
    return {"type": type_, "object": raw}


def bookmark(version: int, *, ends_initial: bool = False) -> Raw:
    metadata: Raw = {"resourceVersion": str(version)}
    if ends_initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"kind": "Pod", "metadata": metadata})


def error(code: int, reason: str, **details: Any) -> StoreError:
    return StoreError(code, reason, "by way of a test", details)


def reported(seen: list[ObjectObservation]) -> list[str]:
    names = {Changed: "changed", Deleted: "gone"}
    return [f"{names[type(one)]} {shown(one.object)}" for one in seen]


def shown(object_: Kubernetes) -> str:
    return f"{object_.metadata.name}@{object_.metadata.resource_version}"


def asked(machine: ReflectorState, now: int = NOW) -> Send:
    ask = machine.ask(now)
    assert isinstance(ask, Send)
    return ask


def machine_of(**options: Any) -> ReflectorState:
    return ReflectorState(BUILT_IN["", "Pod"], **options)


def synced(*objects: Raw, version: int = 10) -> ReflectorState:
    machine = machine_of()
    asked(machine)
    machine.began()
    machine.events([*(event("ADDED", raw) for raw in objects), bookmark(version, ends_initial=True)], NOW)
    return machine


def test_the_objects_are_first_asked_for_as_events_of_a_watch() -> None:
    options = asked(machine_of(field_selector="status.phase!=Failed")).request.options

    assert options.send_initial_events is True
    assert (options.resource_version, options.resource_version_match) == ("", "NotOlderThan")
    assert options.field_selector == "status.phase!=Failed"


def test_a_namespaced_reflector_lists_only_its_namespace() -> None:
    machine = machine_of(namespace="shop")
    first = asked(machine)
    machine.on_refused(error(400, "BadRequest"), NOW)
    listed = asked(machine)
    assert (first.request.verb, first.request.namespace) == ("watch", "shop")
    assert (listed.request.verb, listed.request.namespace) == ("list", "shop")


def test_no_object_is_reported_before_all_initial_events() -> None:
    machine = machine_of()
    asked(machine)
    machine.began()

    early, _ = machine.events([event("ADDED", stored("b", 3)), event("ADDED", stored("a", 2))], NOW)
    assert (early, machine.is_synced) == ([], False)
    late, goes_on = machine.events([bookmark(7, ends_initial=True)], NOW)

    assert (reported(late), goes_on) == (["changed a@2", "changed b@3"], True)
    assert (machine.is_synced, machine.version) == (True, 7)


def test_a_watch_continues_where_the_list_ended() -> None:
    machine = synced(stored("a", 2))

    seen, _ = machine.events([event("MODIFIED", stored("a", 11)), event("DELETED", stored("a", 12))], NOW)
    machine.on_watch_end(NOW + 300 * SECOND, NOW)

    assert reported(seen) == ["changed a@11", "gone a@12"]
    ask = asked(machine, NOW + 300 * SECOND)
    assert (ask.request.options.resource_version, ask.request.options.send_initial_events) == ("12", None)
    assert 300 <= ask.timeout_seconds < 600


def test_a_bookmark_moves_the_version_from_which_a_watch_goes_on() -> None:
    machine = synced()

    machine.events([bookmark(99)], NOW)

    assert asked(machine).request.options.resource_version == "99"


@pytest.mark.parametrize("code", [400, 415, 422])
def test_a_server_that_knows_no_such_watch_is_asked_for_pages_at_once(code: int) -> None:
    machine = machine_of()
    asked(machine)

    machine.on_refused(error(code, "Invalid"), NOW)
    first = asked(machine).request
    assert (first.verb, first.options.limit, first.options.continue_token) == ("list", PAGE, "")
    assert (
        machine.page({"metadata": {"continue": "more", "resourceVersion": "5"}, "items": [pod_item("a", 1)]}, NOW) == []
    )
    second = asked(machine).request
    seen = machine.page({"metadata": {"resourceVersion": "5"}, "items": [pod_item("b", 2)]}, NOW)

    assert second.options.continue_token == "more"
    assert reported(seen) == ["changed a@1", "changed b@2"]
    assert (machine.stage, machine.version) == (ReflectorStage.WATCH, 5)


def pod_item(name: str, version: int) -> Raw:
    """Return the pod as in a list: without a kind."""
    raw = stored(name, version)
    return {"metadata": raw["metadata"], "spec": raw["spec"]}


@pytest.mark.parametrize("by_event", [False, True])
def test_an_expired_version_causes_a_relist_that_reports_missing_objects(by_event: bool) -> None:
    machine = synced(stored("a", 2), stored("b", 3), stored("c", 4))
    asked(machine)

    if by_event:
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        assert machine.events([event("ERROR", status)], NOW) == ([], False)
    else:
        machine.on_refused(error(410, "Expired"), NOW)
    assert asked(machine, NOW + 10 * SECOND).request.options.send_initial_events is True
    seen, _ = machine.events(
        [event("ADDED", stored("a", 2)), event("ADDED", stored("c", 20, uid="other")), bookmark(30, ends_initial=True)],
        NOW,
    )

    assert reported(seen) == ["gone b@3", "changed c@20"]
    assert machine.counts.expired == 1


def test_a_list_with_expired_pages_restarts() -> None:
    machine = machine_of()
    asked(machine)
    machine.on_refused(error(422, "Invalid"), NOW)
    machine.page({"metadata": {"continue": "more"}, "items": [pod_item("a", 1)]}, NOW)

    machine.on_refused(error(410, "Expired"), NOW)

    again = asked(machine, NOW + 10 * SECOND).request.options
    assert again.continue_token == ""
    assert reported(machine.page({"metadata": {"resourceVersion": "9"}, "items": []}, NOW)) == []


def test_reconnect_waits_grow_to_half_a_minute_and_reset_after_success() -> None:
    machine = machine_of(seed=3)
    now, waits = NOW, []
    for _ in range(8):
        machine.on_broken("connection refused", now)
        ask = machine.ask(now)
        assert isinstance(ask, Wait)
        waits.append((ask.until_ns - now) / SECOND)
        now = ask.until_ns

    assert all(
        least <= wait <= 2 * least for wait, least in zip(waits, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30], strict=True)
    )
    now += 300 * SECOND
    machine.on_broken("connection refused", now)
    last = machine.ask(now)
    assert isinstance(last, Wait)
    assert last.until_ns - now <= 1.6 * SECOND


def test_a_server_that_asks_for_patience_has_it() -> None:
    machine = machine_of()

    machine.on_refused(error(429, "TooManyRequests", retryAfterSeconds=9), NOW)

    assert machine.ask(NOW + 8 * SECOND) == Wait(NOW + 9 * SECOND)


def test_a_kind_that_the_server_does_not_have_has_no_objects_and_is_asked_for_again_later() -> None:
    machine = synced(stored("a", 2))

    seen = machine.on_refused(error(404, "NotFound"), NOW)

    assert reported(seen) == ["gone a@2"]
    assert (machine.is_synced, machine.is_absent) == (True, True)
    assert isinstance(machine.ask(NOW + 59 * SECOND), Wait)
    asked(machine, NOW + 60 * SECOND)
    machine.events([event("ADDED", stored("b", 5)), bookmark(6, ends_initial=True)], NOW)
    assert not machine.is_absent


@pytest.mark.parametrize("is_optional", [False, True])
def test_a_kind_that_is_hidden_counts_as_absent_where_it_may_be_absent_alone(is_optional: bool) -> None:
    machine = machine_of(is_optional=is_optional)
    asked(machine)

    machine.on_refused(error(403, "Forbidden"), NOW)

    assert (machine.is_absent, machine.is_hidden, machine.is_synced) == (is_optional,) * 3
    assert machine.problem.startswith("403 Forbidden")


def test_unreadable_objects_are_counted_and_keep_their_last_state() -> None:
    machine = synced(stored("a", 2))
    broken = stored("a", 11)
    broken["spec"]["containers"] = "none"
    nameless: Raw = {"kind": "Pod", "metadata": "?"}

    seen, goes_on = machine.events([event("MODIFIED", broken), event("ADDED", nameless)], NOW)

    assert (seen, goes_on, machine.reader.failed) == ([], True, 2)
    assert machine.version == 11
    assert list(machine.known) == ["default/a"]
    assert "default/a" in machine.reader.unreadable
    gone, _ = machine.events([event("DELETED", broken)], NOW)
    assert reported(gone) == ["gone a@2"]


def test_unreadable_listed_objects_keep_their_last_state_until_they_are_missing() -> None:
    machine = synced(stored("a", 2))
    broken = stored("a", 11)
    broken["spec"]["containers"] = "none"

    machine.relist()
    asked(machine)
    first, _ = machine.events([event("ADDED", broken), bookmark(12, ends_initial=True)], NOW)
    machine.relist()
    asked(machine)
    second, _ = machine.events([bookmark(13, ends_initial=True)], NOW)

    assert (reported(first), reported(second), machine.reader.unreadable) == ([], ["gone a@2"], {})


def test_a_list_may_be_asked_to_be_as_new_as_a_version() -> None:
    machine = synced(stored("a", 2))

    machine.relist(77)

    options = asked(machine).request.options
    assert (options.resource_version, options.resource_version_match) == ("77", "NotOlderThan")


def test_managed_fields_are_dropped_from_the_cache() -> None:
    raw = stored("a", 2)
    raw["metadata"]["managedFields"] = [{"manager": "kubectl"}]

    machine = synced(raw)

    assert "managedFields" not in machine.known["default/a"].raw["metadata"]


def test_a_page_requested_before_a_relist_is_not_the_whole_list() -> None:
    machine = machine_of()
    asked(machine)
    machine.on_refused(error(400, "BadRequest"), NOW)
    asked(machine)
    machine.page({"metadata": {"resourceVersion": "10"}, "items": [stored("a", 2), stored("b", 3)]}, NOW)
    machine.relist()
    asked(machine)
    machine.page({"metadata": {"resourceVersion": "11", "continue": "more"}, "items": [stored("a", 2)]}, NOW)
    assert asked(machine).request.options.continue_token == "more"

    machine.relist(12)
    assert machine.page({"metadata": {"resourceVersion": "11"}, "items": [stored("b", 3)]}, NOW) == []

    assert sorted(machine.known) == ["default/a", "default/b"]
    assert asked(machine).request.options.continue_token == ""


def test_watch_events_are_ignored_once_a_relist_is_due() -> None:
    machine = synced(stored("a", 2), stored("b", 3))
    machine.relist(20)
    asked(machine)
    machine.events([event("ADDED", stored("a", 2))], NOW)

    machine.relist(30)
    rest = [event("ADDED", stored("b", 3)), bookmark(20, ends_initial=True)]

    assert machine.events(rest, NOW) == ([], False)
    assert sorted(machine.known) == ["default/a", "default/b"]
    assert machine.version == 10


@pytest.mark.parametrize(("said", "most_s"), [("a while", 2), (10**12, 300), (None, 2), (7, 7)])
def test_however_long_a_server_asks_to_wait_it_is_asked_again(said: object, most_s: int) -> None:
    machine = synced(stored("a", 2))
    asked(machine)
    status = {"kind": "Status", "code": 500, "reason": "InternalError", "details": {"retryAfterSeconds": said}}

    machine.events([event("ERROR", status)], NOW)

    assert isinstance(machine.ask(NOW), Wait)
    assert isinstance(machine.ask(NOW + most_s * SECOND), Send)


class TestAKindInSeveralVersions:
    NEWER, OLDER = "scheduling.k8s.io/v1beta1", "scheduling.x-k8s.io/v1alpha1"

    def given(self, missing: int = 3, *, is_optional: bool = True) -> ReflectorState:
        """Return the state after so many of the four versions were missing."""
        machine = ReflectorState(BUILT_IN["scheduling.k8s.io", "PodGroup"], is_optional=is_optional)
        for _ in range(missing):
            asked(machine)
            machine.on_refused(error(404, "NotFound"), NOW)
        return machine

    def test_a_cluster_of_1_37_has_newer_versions(self) -> None:
        machine = self.given(1)

        request = asked(machine).request
        metadata = {"name": "g", "namespace": "default", "resourceVersion": "5"}
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}}
        seen = machine.page(
            {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": metadata, "spec": spec}]}, NOW
        )

        assert request.api_version == self.NEWER
        (shown_group,) = [each.object for each in seen]
        assert isinstance(shown_group, PodGroup)
        assert (shown_group.min_count, shown_group.is_one_victim) == (3, True)

    def test_a_kind_is_requested_in_its_other_version_if_the_first_is_missing(self) -> None:
        machine = self.given()

        request = asked(machine).request
        group = {"metadata": {"name": "g", "namespace": "default", "resourceVersion": "5"}, "spec": {"minMember": 3}}
        seen = machine.page({"metadata": {"resourceVersion": "9"}, "items": [group]}, NOW)

        assert request.api_version == self.OLDER
        (shown_group,) = [each.object for each in seen]
        assert isinstance(shown_group, PodGroup)
        assert shown_group.min_count == 3

    def test_a_kind_is_absent_if_the_server_has_no_version_and_is_then_probed_again(self) -> None:
        machine = self.given()

        machine.on_refused(error(404, "NotFound"), NOW)

        assert machine.is_absent
        assert asked(machine, NOW + 60 * SECOND).request.api_version == ""

    def test_nothing_is_wrong_while_a_version_is_left_to_be_tried(self) -> None:
        machine = self.given()
        assert machine.problem == ""

        machine.on_refused(error(404, "NotFound"), NOW)

        problem = machine.problem
        assert problem.startswith("404 NotFound")
        machine.on_refused(error(404, "NotFound"), NOW + 60 * SECOND)
        assert machine.problem == problem

    def test_a_required_kind_is_not_requested_in_another_version(self) -> None:
        assert self.given(1, is_optional=False).is_absent
