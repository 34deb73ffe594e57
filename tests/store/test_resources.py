"""The kinds that a store holds."""

import pytest

from podium.api.structural.structural import read_structural
from podium.store.api_resources import APIResource, APIResources
from podium.store.store import Store
from tests.store.objects import pod, priority_class, serving
from tests.store.refusals import answer, refusal


def test_an_unknown_kind_is_not_found() -> None:
    store = Store()

    assert (
        refusal(store, lambda: store.create({"apiVersion": "v1", "kind": "Gadget", "metadata": {}}, now=0)).code == 404
    )
    assert refusal(store, lambda: store.objects("Gadget")).code == 404


def test_a_built_in_kind_that_podium_does_not_read_is_kept_as_it_is() -> None:
    store = Store()
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "value"}}

    stored = store.create(raw, now=0)
    changed_data = store.update({**stored.raw, "data": {"key": "other"}})

    assert stored.key == "default/a"
    assert changed_data.raw["data"] == {"key": "other"}
    assert "generation" not in changed_data.raw["metadata"]


def test_a_custom_resource_is_kept_beside_the_built_in_kind_of_its_name() -> None:
    widget = APIResource(group="example.com", kind="Pod", plural="pods", namespaced=False, is_custom=True)
    store = Store(resources=serving(widget))
    store.create(pod("web"), now=0)

    raw = {"apiVersion": "example.com/v2", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"anything": 1}}
    stored = store.create(raw, now=0)

    assert (stored.kind, stored.key) == ("Pod.example.com", "web")
    assert [one.key for one in store.objects("Pod")] == ["default/web"]
    assert store.update({**stored.raw, "spec": {"anything": 2}}).object.metadata.generation == 2


def test_a_kind_is_served_once() -> None:
    resources = APIResources()

    with pytest.raises(ValueError, match="Pod is a kind of Kubernetes'"):
        resources.define(APIResource(group="", kind="Pod", plural="pods", namespaced=True), {})


def test_a_kind_without_a_status_has_no_such_subresource() -> None:
    store = Store()
    stored = store.create(priority_class("high", 1), now=0)

    assert answer(refusal(store, lambda: store.update_status(stored.raw))) == (404, "NotFound")


def test_an_object_of_a_custom_kind_gets_the_defaults_of_its_schema() -> None:
    resources = APIResources()
    widget = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=True, is_custom=True)
    size = {"type": "integer", "default": 3}
    spec = {"type": "object", "properties": {"size": size, "color": {"type": "string"}}}
    schema = read_structural({"type": "object", "properties": {"spec": spec}})
    resources.define(widget, {"example.com/v1": schema})
    store = Store(resources=resources)
    raw = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": "red"}}

    assert store.create(raw, now=0).raw["spec"] == {"color": "red", "size": 3}
    updated = store.update({**raw, "spec": {"color": "blue"}})
    assert updated.raw["spec"] == {"color": "blue", "size": 3}
    assert updated.raw["metadata"]["generation"] == 2
    assert store.update({**raw, "spec": {"color": "blue"}}) is updated
