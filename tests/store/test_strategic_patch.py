"""Strategic merge patch, with the merge keys of the kinds that the project uses."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.store.errors import StoreError
from podium.store.strategic_patch import (
    MergeSchema,
    merge_schema_of,
    strategic_patch,
)

POD = merge_schema_of("Pod")


def patched(spec: Any, patch: Any) -> Any:
    """Return the spec of a pod after a patch of the spec."""
    return strategic_patch({"spec": spec}, {"spec": patch}, POD)["spec"]


def names(items: Any) -> list[str]:
    return [item["name"] for item in items]


def test_items_with_the_same_key_are_merged_and_others_added_in_front() -> None:
    spec = {"containers": [{"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}]}]}
    patch = {"containers": [{"name": "log", "image": "log:1"}, {"name": "web", "env": [{"name": "B", "value": "2"}]}]}

    containers = patched(spec, patch)["containers"]

    assert names(containers) == ["log", "web"]
    assert containers[1]["image"] == "web:1"
    assert containers[1]["env"] == [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]


@pytest.mark.parametrize(
    ("kind", "path", "key"),
    [
        ("Pod", "metadata.ownerReferences", "uid"),
        ("Pod", "spec.initContainers", "name"),
        ("Pod", "spec.topologySpreadConstraints", "topologyKey"),
        ("Pod", "spec.volumes", "name"),
        ("Pod", "status.conditions", "type"),
        ("Node", "status.conditions", "type"),
        ("Node", "status.addresses", "type"),
        ("Deployment", "spec.template.spec.containers", "name"),
        ("StatefulSet", "status.conditions", "type"),
        ("PodDisruptionBudget", "status.conditions", "type"),
        ("CSINode", "spec.drivers", "name"),
        ("Service", "spec.ports", "port"),
    ],
)
def test_each_kind_merges_its_lists_by_their_keys(kind: str, path: str, key: str) -> None:
    def at(value: Any) -> Any:
        for name in reversed(path.split(".")):
            value = {name: value}
        return value

    before, patch = at([{key: "a", "x": 1}, {key: "b", "x": 2}]), at([{key: "b", "y": 3}])

    assert strategic_patch(before, patch, merge_schema_of(kind)) == at([{key: "a", "x": 1}, {key: "b", "x": 2, "y": 3}])


@pytest.mark.parametrize(
    ("kind", "field", "item"),
    [("Pod", "tolerations", {"key": "a"}), ("Node", "taints", {"key": "a", "effect": "NoSchedule"})],
)
def test_lists_without_a_merge_key_are_replaced(kind: str, field: str, item: Any) -> None:
    before = {"spec": {field: [{"key": "old"}, {"key": "a"}]}}

    assert strategic_patch(before, {"spec": {field: [item]}}, merge_schema_of(kind)) == {"spec": {field: [item]}}


def test_the_selector_of_a_budget_is_replaced() -> None:
    before = {"spec": {"selector": {"matchLabels": {"a": "1"}}, "minAvailable": 1}}
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}

    spec = strategic_patch(before, patch, merge_schema_of("PodDisruptionBudget"))["spec"]

    assert spec == {"selector": {"matchLabels": {"b": "2"}}, "minAvailable": 1}


def test_patch_delete_takes_an_item_out_and_empties_an_object() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"zone": "a"}}
    patch = {"containers": [{"name": "a", "$patch": "delete"}], "nodeSelector": {"$patch": "delete"}}

    assert patched(spec, patch) == {"containers": [{"name": "b"}], "nodeSelector": {}}


def test_patch_replace_replaces_a_list_and_an_object() -> None:
    spec = {"containers": [{"name": "a", "image": "a:1"}, {"name": "b"}], "nodeSelector": {"zone": "a"}}
    patch = {
        "containers": [{"name": "c"}, {"name": "a"}, {"$patch": "replace"}],
        "nodeSelector": {"$patch": "replace", "disk": "ssd"},
    }

    assert patched(spec, patch) == {"containers": [{"name": "c"}, {"name": "a"}], "nodeSelector": {"disk": "ssd"}}


def test_delete_from_primitive_list_takes_values_out() -> None:
    before = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"]}}

    assert strategic_patch(before, patch, POD) == {"metadata": {"finalizers": ["d", "a", "c"]}}


def test_retain_keys_lets_the_listed_fields_stay_alone() -> None:
    spec = {"volumes": [{"name": "data", "emptyDir": {}}]}
    patch = {"volumes": [{"name": "data", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}]}

    assert patched(spec, patch) == {"volumes": [{"name": "data", "hostPath": {"path": "/"}}]}


def test_set_element_order_puts_the_listed_items_in_order() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}, {"name": "server-only"}, {"name": "c"}]}
    order = [{"name": "c"}, {"name": "a"}, {"name": "b"}]

    assert names(patched(spec, {"$setElementOrder/containers": order})["containers"]) == ["server-only", "c", "a", "b"]


def test_a_scheduler_s_patch_of_conditions_leaves_other_conditions_alone() -> None:
    before = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Pending"}}
    patch = {
        "status": {
            "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            "nominatedNodeName": "n1",
        }
    }

    status = strategic_patch(before, patch, POD)["status"]

    assert [one["type"] for one in status["conditions"]] == ["Ready", "PodScheduled"]
    assert status["nominatedNodeName"] == "n1"


def test_null_removes_a_field_and_adds_none() -> None:
    assert patched({"a": 1, "b": 2}, {"a": None, "c": None, "d": {"e": None}}) == {"b": 2, "d": {}}


@pytest.mark.parametrize(
    "patch",
    [
        [],
        {"$patch": "merge"},
        {"spec": {"containers": [{"image": "web"}]}},
        {"spec": {"containers": [{"name": {"a": 1}}]}},
        {"spec": {"containers": ["web"]}},
        {"spec": {"containers": [{"name": "a", "$patch": "eat"}]}},
        {"spec": {"$setElementOrder/containers": "a"}},
        {"spec": {"$setElementOrder/tolerations": []}, "x": 1},
        {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}},
        {"spec": {"volumes": [{"name": "a", "$retainKeys": ["x"], "hostPath": {}}]}},
        {"spec": {"volumes": [{"name": "a", "$retainKeys": "name"}]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": {"a": 1}}},
    ],
)
def test_an_invalid_strategic_merge_patch_is_a_bad_request(patch: Any) -> None:
    before = {"metadata": {"finalizers": ["a"]}, "spec": {"containers": [{"name": "a"}], "tolerations": []}}

    with pytest.raises(StoreError) as caught:
        strategic_patch(before, patch, POD)

    assert caught.value.code == 400


# Whole objects: a plain field, an object, a list that is replaced, a set of texts, and a list with keys within another.
ENV = st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"value": st.sampled_from("xy")})
TEXTS = st.lists(st.sampled_from("abcd"), unique=True, max_size=4)


def unique(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, unique_by=lambda item: item["name"], max_size=4)


CONTAINERS = unique(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")}, optional={"image": st.sampled_from("xy"), "env": unique(ENV)}
    )
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "hostname": st.sampled_from("xy"),
        "nodeSelector": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
        "tolerations": st.lists(st.fixed_dictionaries({"key": st.sampled_from("ab")}), max_size=2),
        "containers": CONTAINERS,
        "podCIDRs": TEXTS,
    },
)
SCHEMA = MergeSchema(
    lists={"containers": "name", "podCIDRs": ""},
    fields={"containers": MergeSchema(lists={"env": "name"}), "env": MergeSchema()},
)


def difference(before: Any, after: Any) -> Any:
    """Return the strategic merge patch that leads from one object to the other, with every directive that it takes."""
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for field, new in after.items():
        old = before.get(field)
        if isinstance(new, dict) and isinstance(old, dict):
            patch[field] = difference(old, new)
        elif field in ("containers", "env") and old is not None:
            kept = {item["name"]: item for item in old}
            changed = [difference(kept.get(item["name"], {}), item) | {"name": item["name"]} for item in new]
            gone = [{"name": name, "$patch": "delete"} for name in kept if name not in {item["name"] for item in new}]
            patch[field] = changed + gone
            patch[f"$setElementOrder/{field}"] = [{"name": item["name"]} for item in new]
        elif field == "podCIDRs" and old is not None:
            patch[field] = [item for item in new if item not in old]
            patch[f"$deleteFromPrimitiveList/{field}"] = [item for item in old if item not in new]
            patch[f"$setElementOrder/{field}"] = new
        else:
            patch[field] = new
    return patch


@given(before=SPECS, after=SPECS)
def test_a_difference_with_directives_leads_from_any_spec_to_any_other(before: Any, after: Any) -> None:
    as_given = copy.deepcopy(before)

    assert strategic_patch(before, difference(before, after), SCHEMA) == after
    assert before == as_given


@given(before=CONTAINERS, patch=CONTAINERS)
def test_merging_keeps_both_orders_and_merges_by_key(before: Any, patch: Any) -> None:
    result = strategic_patch({"containers": before}, {"containers": patch}, SCHEMA)["containers"]

    by_name = {item["name"]: item for item in result}
    assert len(by_name) == len(result)
    assert by_name.keys() == {item["name"] for item in (*before, *patch)}
    assert [name for name in names(result) if name in names(patch)] == names(patch)
    server_only = [name for name in names(before) if name not in names(patch)]
    assert [name for name in names(result) if name in server_only] == server_only
    for item in before:
        if item["name"] in server_only:
            assert by_name[item["name"]] == item


@pytest.mark.parametrize(("value", "kind"), [("invalid", "string"), (1, "int64"), (1.5, "float64"), (True, "bool")])
def test_a_map_that_becomes_a_plain_value_is_refused_in_upstreams_words(value: Any, kind: str) -> None:
    with pytest.raises(StoreError) as refused:
        strategic_patch({"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": value}}, POD)

    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert f"cannot restore map from {kind}" in refused.value.status_message
