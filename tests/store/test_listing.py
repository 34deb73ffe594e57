"""Lists at one version, in pages."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.store.errors import StoreError
from podium.store.listing import ListOptions
from podium.store.store import Store
from tests.store.objects import SECOND, Raw, node, pod
from tests.store.refusals import answer, refusal


def store_of(count: int, log_capacity: int = 1_000) -> Store:
    store = Store(log_capacity=log_capacity)
    for number in range(count):
        store.create(pod(f"p{number}", labels={"even": str(number % 2 == 0)}), now=0)
    return store


def names(store: Store, namespace: str = "", **options: str) -> list[str]:
    page = store.page("Pod", namespace, ListOptions(**options))  # type: ignore[arg-type]
    return [stored.object.metadata.name for stored in page.items]


def test_a_list_states_its_latest_version() -> None:
    store = store_of(2)
    store.create(node("n1"), now=0)

    listed = store.page("Pod").to_dict()

    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert listed["metadata"] == {"resourceVersion": "3"}
    assert [item["metadata"]["name"] for item in listed["items"]] == ["p0", "p1"]


def test_a_list_of_a_namespace_holds_its_objects_alone() -> None:
    store = store_of(1)
    store.create(pod("other", namespace="shop"), now=0)

    assert names(store, "shop") == ["other"]
    assert names(store) == ["p0", "other"]


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({"label_selector": "even=True"}, ["p0", "p2"]),
        ({"label_selector": "even notin (True)"}, ["p1"]),
        ({"field_selector": "metadata.name=p1"}, ["p1"]),
        ({"field_selector": "spec.nodeName!=,metadata.namespace=default"}, ["p2"]),
        ({"field_selector": "status.phase!=Succeeded,status.phase!=Failed"}, ["p0", "p1", "p2"]),
        ({"field_selector": "spec.nodeName=", "label_selector": "even=True"}, ["p0"]),
    ],
)
def test_selectors_choose_among_the_objects(selector: dict[str, str], selected: list[str]) -> None:
    store = store_of(3)
    store.bind("default/p2", "n1", now=0)

    assert names(store, **selector) == selected


def test_an_absent_field_has_its_default_value_in_selectors() -> None:
    store = Store()
    store.create(node("n1"), now=0)
    store.create({**node("n2"), "spec": {"unschedulable": True}}, now=0)

    def selected(text: str) -> list[str]:
        return [one.key for one in store.page("Node", options=ListOptions(field_selector=text)).items]

    assert selected("spec.unschedulable=false") == ["n1"]
    assert selected("spec.unschedulable=true") == ["n2"]


@pytest.mark.parametrize(
    ("selector", "selected"),
    [("spec.driver=a", ["a"]), ("spec.nodeName=n1", ["b"]), ("spec.nodeName=,spec.driver!=c", ["a"])],
)
def test_slices_are_selected_by_their_driver_and_node(selector: str, selected: list[str]) -> None:
    store = Store()
    for driver, place in (("a", {"allNodes": True}), ("b", {"nodeName": "n1"}), ("c", {"allNodes": True})):
        spec = {"driver": driver, "pool": {"name": driver, "generation": 1, "resourceSliceCount": 1}, **place}
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        store.create({**kind, "metadata": {"name": driver}, "spec": spec}, now=0)

    page = store.page("ResourceSlice", options=ListOptions(field_selector=selector))

    assert [one.key for one in page.items] == selected


@pytest.mark.parametrize(
    ("selector", "selected"),
    [("spec.type=NodePort", ["b"]), ("spec.clusterIP=None", ["a"]), ("spec.clusterIP!=None", ["b"])],
)
def test_services_are_selected_by_their_type_and_address(selector: str, selected: list[str]) -> None:
    store = Store()
    for name, spec in (("a", {"type": "ClusterIP", "clusterIP": "None"}), ("b", {"type": "NodePort"})):
        store.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}, now=0)

    page = store.page("Service", options=ListOptions(field_selector=selector))

    assert [one.object.metadata.name for one in page.items] == selected


@pytest.mark.parametrize(
    "selector",
    [
        {"label_selector": "a in ("},
        {"label_selector": "a b"},
        {"field_selector": "a==b,,c"},
        {"field_selector": "spec.hostname=web"},
        {"field_selector": "metadata.name"},
    ],
)
def test_b24_a_selector_that_cannot_be_read_is_a_bad_request(selector: dict[str, str]) -> None:
    store = store_of(1)

    assert answer(refusal(store, lambda: names(store, **selector))) == (400, "BadRequest")


def test_an_exact_version_is_listed_as_it_was() -> None:
    store = store_of(3)
    store.delete("Pod", "default/p0", now=0)
    store.bind("default/p1", "n1", now=0)
    store.create(pod("p0"), now=0)

    then = store.page("Pod", options=ListOptions(resource_version="3", resource_version_match="Exact"))

    assert [one.object.metadata.name for one in then.items] == ["p0", "p1", "p2"]
    assert [one.version for one in then.items] == [1, 2, 3]
    assert then.version == 3


@pytest.mark.parametrize("version", ["", "0", "1", "3"])
def test_a_list_not_older_than_a_version_is_of_the_newest(version: str) -> None:
    store = store_of(3)

    assert store.page("Pod", options=ListOptions(resource_version=version)).version == 3


def test_b34_a_version_to_come_times_out_and_says_why() -> None:
    store = store_of(1)

    error = refusal(store, lambda: store.page("Pod", options=ListOptions(resource_version="2")))

    assert answer(error) == (504, "Timeout")
    assert error.details["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize("version", ["abc", "-1", "1.0", "٣", "9" * 30, " 1"])
def test_b34_an_invalid_version_is_an_invalid_value(version: str) -> None:
    store = store_of(1)

    error = refusal(store, lambda: store.page("Pod", options=ListOptions(resource_version=version)))

    assert error.code == 400
    assert "Invalid value" in error.message


def test_a_forgotten_list_version_has_expired() -> None:
    store = store_of(3, log_capacity=1)
    exactly = ListOptions(resource_version="1", resource_version_match="Exact")

    assert answer(refusal(store, lambda: store.page("Pod", options=exactly))) == (410, "Expired")


def test_lists_forget_versions_after_five_minutes_while_watches_remain() -> None:
    store = store_of(3)
    exactly = ListOptions(resource_version="3", resource_version_match="Exact")
    store.forget_lists(0)
    store.create(pod("late"), now=0)
    store.forget_lists(60 * SECOND)
    store.forget_lists(359 * SECOND)
    assert len(store.page("Pod", options=exactly).items) == 3

    store.forget_lists(360 * SECOND)

    error = refusal(store, lambda: store.page("Pod", options=exactly))
    assert (answer(error), error.message) == (
        (410, "Expired"),
        "The resourceVersion for the provided list is too old.",
    )
    assert [
        notice.raw["metadata"]["name"]
        for notice in store.watch("Pod", options=ListOptions(resource_version="3")).pull()
    ] == ["late"]


def test_the_newest_version_is_never_forgotten() -> None:
    store = store_of(3)
    store.forget_lists(0)
    store.forget_lists(3600 * SECOND)

    assert len(store.page("Pod", options=ListOptions(resource_version="3", resource_version_match="Exact")).items) == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (ListOptions(resource_version_match="Exact"), "is forbidden unless resourceVersion is provided"),
        (
            ListOptions(resource_version="0", resource_version_match="Exact"),
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            ListOptions(resource_version="1", resource_version_match="Newer"),
            'Unsupported value: "Newer": supported values: "Exact", "NotOlderThan"',
        ),
        (
            ListOptions(resource_version="1", resource_version_match="Exact", continue_token="x"),
            "is forbidden when continue is provided",
        ),
        (ListOptions(send_initial_events=True), "sendInitialEvents is forbidden for list"),
    ],
)
def test_b35_options_that_contradict_one_another_are_invalid(options: ListOptions, problem: str) -> None:
    store = store_of(1)

    error = refusal(store, lambda: store.page("Pod", options=options))

    assert answer(error) == (422, "Invalid")
    assert error.details["kind"] == "ListOptions"
    assert str(error).startswith('ListOptions.meta.k8s.io "" is invalid: ')
    assert problem in str(error)


def pages(store: Store, limit: int, **selector: str) -> list[list[str]]:
    """Return the names on each page of a list; between pages everything changes."""
    found: list[list[str]] = []
    token = ""
    versions = set()
    while True:
        options = ListOptions(limit=limit, continue_token=token, **selector)  # type: ignore[arg-type]
        page = store.page("Pod", options=options)
        found.append([stored.object.metadata.name for stored in page.items])
        versions.add(page.version)
        token = page.continue_token
        if not token:
            assert len(versions) == 1
            return found
        for stored in store.objects("Pod"):
            store.delete("Pod", stored.key, now=0)
        store.create(pod(f"late-{store.version}"), now=0)


@given(count=st.integers(0, 12), limit=st.integers(1, 5), selector=st.sampled_from(["", "even=True"]))
def test_a5_b36_the_pages_of_a_list_are_the_list_at_its_version(count: int, limit: int, selector: str) -> None:
    store = store_of(count)
    whole = names(store, label_selector=selector)

    found = pages(store, limit, label_selector=selector)

    assert [name for page in found for name in page] == whole
    assert all(len(page) == limit for page in found[:-1])


def test_a_page_says_how_many_objects_are_left_unless_selectors_leave_some_out() -> None:
    store = store_of(5)

    assert store.page("Pod", options=ListOptions(limit=2)).to_dict()["metadata"]["remainingItemCount"] == 3
    selecting = store.page("Pod", options=ListOptions(limit=2, label_selector="even=True"))
    assert "remainingItemCount" not in selecting.to_dict()["metadata"]
    assert selecting.continue_token


def test_a_list_at_version_0_has_no_limit() -> None:
    page = store_of(5).page("Pod", options=ListOptions(limit=2, resource_version="0"))

    assert (len(page.items), page.continue_token, page.remaining) == (5, "", None)


def test_b36_a_token_of_a_forgotten_version_has_expired() -> None:
    store = store_of(5)
    token = store.page("Pod", options=ListOptions(limit=2)).continue_token
    store.create(pod("late"), now=0)
    store.log.compact(6)

    error = refusal(store, lambda: store.page("Pod", options=ListOptions(limit=2, continue_token=token)))

    assert answer(error) == (410, "Expired")
    assert error.message.startswith("The provided continue parameter is too old to display a consistent list result.")


def test_an_expired_token_is_exchanged_for_one_that_continues_at_the_newest_version() -> None:
    store = store_of(5)
    names = [stored.object.metadata.name for stored in store.objects("Pod")]
    first = store.page("Pod", options=ListOptions(limit=2))
    store.create(pod("zz-late"), now=0)
    store.log.compact(6)
    error = refusal(store, lambda: store.page("Pod", options=ListOptions(limit=2, continue_token=first.continue_token)))

    token = error.to_dict()["metadata"]["continue"]
    second = store.page("Pod", options=ListOptions(limit=2, continue_token=token))
    third = store.page("Pod", options=ListOptions(limit=2, continue_token=second.continue_token))

    found = [stored.object.metadata.name for page in (first, second, third) for stored in page.items]
    assert found == [*names, "zz-late"]
    assert (second.version, third.version, second.remaining) == (6, 6, 2)


def token_of(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "token",
    [
        "garbage",
        "é",
        "a",
        token_of([]),
        token_of({"v": "meta.k8s.io/v1", "rv": "1", "start": "a"}),
        token_of({"v": "meta.k8s.io/v1", "rv": -2, "start": "a"}),
        token_of({"v": "meta.k8s.io/v1", "rv": True, "start": "a"}),
        token_of({"v": "meta.k8s.io/v1", "rv": 99, "start": "a"}),
        token_of({"v": "meta.k8s.io/v2", "rv": 1, "start": "a"}),
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    ],
)
def test_b36_a_token_that_no_list_gave_out_is_a_bad_request(token: str) -> None:
    store = store_of(1)

    error = refusal(store, lambda: store.page("Pod", options=ListOptions(continue_token=token)))

    assert answer(error) == (400, "BadRequest")


def test_a_token_has_its_own_version() -> None:
    store = store_of(3)
    token = store.page("Pod", options=ListOptions(limit=1)).continue_token
    options = ListOptions(continue_token=token, resource_version="1")

    assert answer(refusal(store, lambda: store.page("Pod", options=options))) == (400, "BadRequest")


def test_an_unknown_resource_is_not_found() -> None:
    raw: Raw = {"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "a"}}
    store = Store()

    assert answer(refusal(store, lambda: store.page("Gadget"))) == (404, "NotFound")
    assert answer(refusal(store, lambda: store.create(raw, now=0))) == (404, "NotFound")


@pytest.mark.parametrize("reporter", [{"source": {"component": "kubelet"}}, {"reportingComponent": "kubelet"}])
def test_events_are_selected_by_either_form_of_their_source(reporter: Raw) -> None:
    store = Store()
    involved = {"kind": "Pod", "namespace": "default", "name": "a"}
    metadata = {"name": "a", "namespace": "default"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": involved, **reporter}
    store.create(event, now=0)

    for source, count in (("kubelet", 1), ("scheduler", 0)):
        assert len(store.page("Event", "default", ListOptions(field_selector=f"source={source}")).items) == count


@pytest.mark.parametrize(("name", "is_valid"), [("10.0.0.1", True), ("2001:db8::1", True), ("2001:DB8::1", False)])
def test_an_ip_address_is_named_by_an_address_in_canonical_form(name: str, is_valid: bool) -> None:
    parent = {"group": "", "resource": "services", "namespace": "default", "name": "a"}
    raw = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {"name": name},
        "spec": {"parentRef": parent},
    }

    if is_valid:
        assert Store().create(raw, now=0, is_new=True).key == name
    else:
        with pytest.raises(StoreError):
            Store().create(raw, now=0, is_new=True)
