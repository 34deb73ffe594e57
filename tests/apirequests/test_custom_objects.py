"""Requests for objects of custom kinds."""

from __future__ import annotations

from typing import Any

import pytest

from podium.apirequests.request import Request
from tests.apirequests.asking import API
from tests.store.objects import Raw
from tests.store.test_definitions import definition, version, widget

KIND = "Widget.example.com"
OLD = "example.com/v1beta1"


def api(*versions: Raw) -> API:
    found = API()
    body = definition(*(versions or (version(subresources={"status": {}}),)))
    response = found.ask("create", "CustomResourceDefinition", body=body, field_validation="Strict")
    assert (response.code, response.warnings) == (201, ())
    return found


def test_unknown_fields_are_reported_and_dropped() -> None:
    response = api().ask("create", KIND, namespace="default", body=widget(weight=1), field_validation="Warn")

    assert (response.code, response.warnings) == (201, ('unknown field "spec.weight"',))
    assert "weight" not in response.to_dict()["spec"]


def test_unknown_fields_of_metadata_are_reported_and_dropped() -> None:
    raw = widget()
    raw["metadata"]["unknown"] = 1

    response = api().ask("create", KIND, namespace="default", body=raw, field_validation="Warn")

    assert (response.code, response.warnings) == (201, ('unknown field "metadata.unknown"',))
    assert "unknown" not in response.to_dict()["metadata"]


def test_finalizers_without_a_domain_are_warned_of_when_they_are_added() -> None:
    asked = api()
    raw = widget()
    raw["metadata"]["finalizers"] = ["cleanup", "orphan", "example.com/own"]
    created = asked.ask("create", KIND, namespace="default", body=raw)
    more = {"metadata": {"finalizers": ["cleanup", "other"]}}
    patched = asked.ask("patch", KIND, "default/a", body=more)

    report = (
        'metadata.finalizers: "{}": prefer a domain-qualified finalizer name including a path (/) to avoid accidental'
    )
    report += " conflicts with other finalizer writers"
    assert (created.code, created.warnings) == (201, (report.format("cleanup"),))
    assert (patched.code, patched.warnings) == (200, (report.format("other"),))


@pytest.mark.parametrize("verb", ["create", "update", "patch"])
def test_unknown_fields_are_refused_where_that_is_asked(verb: Any) -> None:
    asked = api()
    asked.ask("create", KIND, namespace="default", body=widget())
    name = {"create": "b"}.get(verb, "a")
    body = {"spec": {"weight": 1}} if verb == "patch" else widget(name, weight=1)
    key = "" if verb == "create" else "default/a"

    response = asked.ask(verb, KIND, key, namespace="default", body=body, field_validation="Strict")

    assert response.code == 400
    assert 'unknown field "spec.weight"' in response.to_dict()["message"]


def test_objects_are_given_in_each_version_and_old_ones_are_warned_of() -> None:
    asked = api(version("v1"), version("v1beta1", storage=False, deprecated=True, deprecationWarning="use v1"))
    created = asked.ask("create", KIND, namespace="default", body=widget(api_version=OLD), api_version=OLD)

    assert (created.code, created.warnings, created.to_dict()["apiVersion"]) == (201, ("use v1",), OLD)
    assert asked.ask("get", KIND, "default/a").to_dict()["apiVersion"] == "example.com/v1"
    assert asked.ask("list", KIND, api_version=OLD).to_dict()["items"][0]["apiVersion"] == OLD
    assert asked.ask("list", KIND, api_version=OLD).to_dict()["kind"] == "WidgetList"


def test_an_object_stored_in_an_older_version_is_served_in_the_requested_one() -> None:
    asked = api(version("v1beta1"), version("v1", storage=False))
    asked.ask("create", KIND, namespace="default", body=widget(api_version=OLD))
    change = [{"op": "replace", "path": "/spec/versions", "value": [version("v1"), version("v1beta1", storage=False)]}]
    name = "widgets.example.com"
    assert asked.ask("patch", "CustomResourceDefinition", name, body=change, patch_type="json").code == 200

    for api_version in ("example.com/v1", OLD):
        found = asked.ask("get", KIND, "default/a", api_version=api_version)
        listed = asked.ask("list", KIND, api_version=api_version).to_dict()
        assert found.to_dict()["apiVersion"] == api_version
        assert [raw["apiVersion"] for raw in listed["items"]] == [api_version]


def test_an_update_is_stored_in_the_current_storage_version() -> None:
    asked = api(version("v1beta1"), version("v1", storage=False))
    asked.ask("create", KIND, namespace="default", body=widget(api_version=OLD))
    change = [{"op": "replace", "path": "/spec/versions", "value": [version("v1"), version("v1beta1", storage=False)]}]
    asked.ask("patch", "CustomResourceDefinition", "widgets.example.com", body=change, patch_type="json")

    asked.ask("patch", KIND, "default/a", body={"spec": {"size": 3}}, api_version=OLD, field_manager="m")

    assert asked.store.get(KIND, "default/a").raw["apiVersion"] == "example.com/v1"


def test_each_version_prunes_and_checks_by_its_own_schema() -> None:
    other = {"properties": {"size": {"type": "integer", "maximum": 2}, "weight": {"type": "integer"}}}
    asked = api(version("v1"), version("v1beta1", storage=False, spec=other))

    refused = asked.ask("create", KIND, namespace="default", body=widget(api_version=OLD, size=3), api_version=OLD)
    created = asked.ask("create", KIND, namespace="default", body=widget(api_version=OLD, size=2), api_version=OLD)

    assert (refused.code, refused.to_dict()["details"]["causes"][0]["field"]) == (422, "spec.size")
    assert (created.code, "color" in created.to_dict()["spec"]) == (201, False)
    assert asked.ask("get", KIND, "default/a", api_version="example.com/v1").to_dict()["spec"]["color"] == "blue"


def test_a_strategic_merge_patch_is_not_for_custom_kinds() -> None:
    asked = api()
    asked.ask("create", KIND, namespace="default", body=widget())

    assert asked.ask("patch", KIND, "default/a", patch_type="strategic", body={}).code == 415


ANYTHING: Raw = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
COSTLY = "exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("self = 1", "compilation failed: ERROR: <input>:1:"),
        ("self.weight == 1", "undefined field 'weight'"),
        ("self.parts.all(part, part.size > 1)", "undefined field 'size'"),
        ("image(self.note).registry() == 'docker.io'", "undeclared reference to 'registry'"),
        ("self.size + 1", "cel expression must evaluate to a bool"),
        ("self.size + self.color == 'x'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("self.tags.all(a, self.tags.exists(b, a != b))", COSTLY),
    ],
)
def test_rules_that_do_not_compile_or_may_cost_too_much_are_refused(rule: str, problem: str) -> None:
    body = definition(version(spec={"x-kubernetes-validations": [{"rule": rule}]}))

    response = API().ask("create", "CustomResourceDefinition", body=body)

    cause, *others = response.to_dict()["details"]["causes"]
    assert (response.code, cause in others) == (422, False)
    assert cause["field"].endswith("properties[spec].x-kubernetes-validations[0].rule")
    assert problem in cause["message"]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("messageExpression", "self.size", "messageExpression must evaluate to a string"),
        ("messageExpression", "self.weight", "compilation failed: ERROR: <input>:1:5: undefined field 'weight'"),
        ("reason", "Other", 'supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid"'),
    ],
)
def test_what_a_rule_says_about_a_violation_is_checked_with_the_definition(
    field: str, value: str, problem: str
) -> None:
    body = definition(version(spec={"x-kubernetes-validations": [{"rule": "self.size > 0", field: value}]}))

    response = API().ask("create", "CustomResourceDefinition", body=body)

    [cause] = response.to_dict()["details"]["causes"]
    assert response.code == 422
    assert cause["field"].endswith(f"properties[spec].x-kubernetes-validations[0].{field}")
    assert problem in cause["message"]


def test_rules_see_the_escaped_names_and_the_metadata_of_the_root() -> None:
    rules = [{"rule": "self.metadata.name.startsWith('a') && self.kind == 'Widget'"}]
    spec = {"x-kubernetes-validations": [{"rule": "self.port__dash__number > 0 && self.anything.other == 1"}]}
    properties = {"port-number": {"type": "integer"}, "anything": ANYTHING}
    raw = version(spec={"properties": properties, "required": [], **spec})
    raw["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = rules
    assert API().ask("create", "CustomResourceDefinition", body=definition(raw)).code == 201


def test_the_cost_of_a_rule_within_a_list_counts_for_each_item() -> None:
    rule = {"rule": "self.matches('a+') && self.contains('bcd')"}
    item = {"type": "string", "x-kubernetes-validations": [rule]}
    short = {**item, "maxLength": 99}
    many: Raw = {"properties": {"list": {"type": "array", "items": item}}, "required": []}
    few: Raw = {"properties": {"list": {"type": "array", "items": short, "maxItems": 9}}, "required": []}

    response = API().ask("create", "CustomResourceDefinition", body=definition(version(spec=many)))
    assert "estimated rule cost total for entire OpenAPIv3 schema" in response.to_dict()["message"]
    assert API().ask("create", "CustomResourceDefinition", body=definition(version(spec=few))).code == 201


@pytest.mark.parametrize(
    ("around", "code"),
    [
        ({"x-kubernetes-list-type": "atomic"}, 422),
        ({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}, 201),
    ],
)
def test_transition_rules_are_only_for_parts_with_a_part_before(around: Raw, code: int) -> None:
    value = {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    names = {"name": {"type": "string", "maxLength": 9}, "value": value}
    item = {"type": "object", "required": ["name"], "properties": names}
    spec = {"properties": {"list": {"type": "array", "maxItems": 9, "items": item, **around}}, "required": []}

    response = API().ask("create", "CustomResourceDefinition", body=definition(version(spec=spec)))

    problem = (
        "oldSelf cannot be used on the uncorrelatable portion of the schema within "
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[list]"
    )
    assert (response.code, problem in str(response.to_dict().get("message"))) == (code, code == 422)


def test_rules_are_only_for_values_other_than_null_and_for_objects_of_the_right_form() -> None:
    limit: Raw = {"x-kubernetes-int-or-string": True, "nullable": True}
    limit["x-kubernetes-validations"] = [{"rule": "type(self) == int && self == 123"}]
    texts = {"type": "array", "maxItems": 1, "items": {"type": "string", "pattern": "^a$"}}
    asked = api(version(spec={"properties": {"limit": limit, "texts": texts}, "required": []}))

    def created(**spec: Any) -> list[str]:
        body = {**widget(), "spec": spec}
        response = asked.ask("create", KIND, namespace="default", body=body, dry_run=True)
        return [] if response.code == 201 else fields_of(response)

    assert (created(limit=None), created(limit=123)) == ([], [])
    assert created(limit="123", texts=["b"]) == ["spec.texts[0]", "spec.limit"]
    assert created(limit="123", texts=["a", "a"]) == ["spec.texts", "<nil>"]


def test_unknown_fields_may_be_allowed_beside_known_ones() -> None:
    body = definition(version(spec={"properties": {"size": {"type": "integer"}}, "additionalProperties": True}))
    asked = API()
    assert asked.ask("create", "CustomResourceDefinition", body=body).code == 201
    created = asked.ask("create", KIND, namespace="default", body=widget(other=[1]), field_validation="Strict")
    assert (created.code, created.to_dict()["spec"]["other"]) == (201, [1])


def test_a_definition_of_a_dry_run_is_not_served() -> None:
    asked = API()

    response = asked.answer(Request(verb="create", kind="CustomResourceDefinition", body=definition(), dry_run=True))

    assert response.code == 201
    assert asked.ask("list", KIND).code == 404


def test_a_definition_that_is_refused_in_the_end_changes_nothing() -> None:
    asked = api()
    before = asked.store.resources.named(KIND)
    change = {"spec": {"versions": [version(), version("v2", storage=False)], "colour": "red"}}

    response = asked.ask(
        "patch", "CustomResourceDefinition", "widgets.example.com", body=change, field_validation="Strict"
    )

    assert response.code == 400
    assert asked.store.resources.named(KIND) == before


def test_deleting_the_objects_of_a_kind_together_leaves_the_kind() -> None:
    asked = api()
    for name in ("a", "b"):
        asked.ask("create", KIND, namespace="default", body=widget(name))

    response = asked.ask("deletecollection", KIND, namespace="default")

    assert [raw["metadata"]["name"] for raw in response.to_dict()["items"]] == ["a", "b"]
    assert asked.ask("list", KIND).to_dict()["items"] == []


@pytest.mark.parametrize("subresource", ["", "status"])
def test_an_update_says_which_version_it_is_about(subresource: str) -> None:
    asked = api()
    made = asked.ask("create", KIND, namespace="default", body=widget()).to_dict()

    refused = asked.ask("update", KIND, "default/a", subresource=subresource, body=widget())
    taken = asked.ask("update", KIND, "default/a", subresource=subresource, body=made)

    assert (refused.code, taken.code) == (422, 200)
    assert refused.to_dict()["details"]["causes"][0]["field"] == "metadata.resourceVersion"


@pytest.mark.parametrize("kind", ["Lease", "PodDisruptionBudget", "RuntimeClass"])
def test_some_built_in_kinds_are_served_as_custom_objects(kind: str) -> None:
    asked = API()
    resource = asked.router.store.resources.named(kind)
    name = {"metadata": {"name": "a"}}
    raw: Raw = {"apiVersion": resource.api_version, "kind": kind, **name, "spec": {}, "handler": "h"}
    asked.ask("create", kind, namespace="default" if resource.namespaced else "", body=raw)

    refused = asked.ask("update", kind, "default/a" if resource.namespaced else "a", body=raw)

    assert (refused.code, refused.to_dict()["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")


def test_an_update_may_keep_values_that_a_newer_schema_refuses_and_change_none_of_them_to_another_such() -> None:
    kept: Raw = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    asked = api(version(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": kept}}}))
    asked.ask("create", KIND, namespace="default", body=widget(size=5, color="red", shape="odd"))
    properties = {
        "size": {"type": "integer"},
        "color": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'blue'"}]},
        "shape": {"type": "string", "enum": ["round"]},
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    stricter = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]
    name = asked.store.objects("CustomResourceDefinition")[0].key
    changed = asked.ask("patch", "CustomResourceDefinition", name, body=stricter, patch_type="json")
    assert changed.code == 200, changed.to_dict()

    def patched(**spec: Any) -> int:
        return asked.ask("patch", KIND, "default/a", body={"spec": spec}).code

    assert (patched(size=6), patched(color="green"), patched(shape="square")) == (200, 422, 422)
    assert (patched(color="blue"), patched(shape="round")) == (200, 200)


def ratcheting(rule: Raw) -> API:
    """Return an API with an object `a`, to whose fields the rule was added later; `extra` is a map."""
    text = {"type": "string", "maxLength": 9}

    def versions(field: Raw) -> Raw:
        values = {"type": "object", "properties": {"field": field}}
        extra = {"type": "object", "maxProperties": 3, "additionalProperties": values}
        return version(spec={"required": [], "properties": {"field": field, "extra": extra}})

    found = api(versions(text))
    spec = {"field": "old", "extra": {"one": {"field": "old"}}}
    assert found.ask("create", KIND, namespace="default", body={**widget(), "spec": spec}).code == 201
    change = [{"op": "replace", "path": "/spec/versions", "value": [versions({**text, **rule})]}]
    name = "widgets.example.com"
    assert found.ask("patch", "CustomResourceDefinition", name, body=change, patch_type="json").code == 200
    return found


def fields_of(response: Any) -> list[str]:
    return [cause["field"] for cause in response.to_dict()["details"]["causes"]]


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"rule": "self == 'new'"}, 200),
        ({"rule": "self != oldSelf"}, 422),
        ({"rule": "!oldSelf.hasValue() || self != oldSelf.value()", "optionalOldSelf": True}, 422),
    ],
)
def test_only_transition_rules_apply_to_unchanged_values(rule: Raw, code: int) -> None:
    found = ratcheting({"x-kubernetes-validations": [rule]})

    response = found.ask("patch", KIND, "default/a", body={"metadata": {"labels": {"a": "b"}}})

    assert response.code == code
    # The entries of a map are in brackets, for rules alone.
    assert code == 200 or fields_of(response) == ["spec.field", "spec.extra[one].field"]


def test_a_limit_names_the_entries_of_a_map_as_fields() -> None:
    found = ratcheting({"enum": ["old"]})

    spec = {"field": "new", "extra": {"one": {"field": "new"}}}
    response = found.ask("patch", KIND, "default/a", body={"spec": spec})

    assert fields_of(response) == ["spec.field", "spec.extra.one.field"]


def test_problems_of_the_metadata_and_of_the_schema_are_reported_together() -> None:
    asked = api()
    raw = widget(size=99)
    raw["metadata"]["labels"] = {"#/(%)=": "a"}
    created = asked.ask("create", KIND, namespace="default", body=raw)
    asked.ask("create", KIND, namespace="default", body=widget())
    updated = asked.ask("patch", KIND, "default/a", body=raw)

    for response in (created, updated):
        assert response.code == 422
        assert fields_of(response) == ['metadata.labels["#/(%)="]', "spec.size"]
