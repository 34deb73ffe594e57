"""Custom kinds and their definitions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podium.store.durable_journal import DurableJournal
from podium.store.errors import StoreError
from podium.store.listing import ListOptions, Watch
from podium.store.store import Store
from podium.store.verbs.updates import scale_of, scaled
from tests.store.objects import Raw, node
from tests.store.refusals import answer, refusal

SPEC: Raw = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "default": "blue", "enum": ["blue", "red"]},
        "port": {"x-kubernetes-int-or-string": True},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
        "note": {"type": "string", "nullable": True, "pattern": "^[a-z]+$"},
        "parts": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
            },
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    },
}
STATUS: Raw = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}


def version(name: str = "v1", *, storage: bool = True, served: bool = True, **more: Any) -> Raw:
    schema = {"type": "object", "properties": {"spec": {**SPEC, **more.pop("spec", {})}, "status": STATUS}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: Raw, kind: str = "Widget", plural: str = "widgets", **spec: Any) -> Raw:
    names = {"kind": kind, "plural": plural, **spec.pop("names", {})}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": list(versions) or [version(subresources={"status": {}})],
            **spec,
        },
    }


def widget(name: str = "a", api_version: str = "example.com/v1", **spec: Any) -> Raw:
    spec = {"size": 1, **spec}
    return {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def defining(*raws: Raw) -> Store:
    store = Store()
    for raw in raws or (definition(),):
        store.create(raw, now=0, is_new=True)
    return store


def conditions(store: Store, name: str = "widgets.example.com") -> dict[str, tuple[str, str]]:
    listed = store.get("CustomResourceDefinition", name).raw["status"]["conditions"]
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in listed}


class TestServing:
    def test_a_definition_makes_its_kind_served(self) -> None:
        store = Store()
        before = store.resources.version

        raw = store.create(definition(names={"shortNames": ["wd"]}), now=0, is_new=True).raw

        assert conditions(store)["Established"] == ("True", "InitialNamesAccepted")
        assert raw["status"]["storedVersions"] == ["v1"]
        assert raw["spec"]["names"]["listKind"] == "WidgetList"
        resource = store.resources.served_at("example.com/v1", "widgets")
        assert resource is not None
        assert (resource.name, resource.short_names, resource.singular) == ("Widget.example.com", ("wd",), "widget")
        assert store.resources.version > before

    def test_served_versions_are_listed_by_maturity(self) -> None:
        versions = [version("v1beta1", storage=False), version("v2"), version("v3", storage=False, served=False)]
        store = defining(definition(*versions, version("v1", storage=False, deprecated=True)))

        resource = store.resources.named("Widget.example.com")

        assert resource.served_versions == ("example.com/v2", "example.com/v1", "example.com/v1beta1")
        assert resource.version == "v2"
        assert resource.deprecations == {"example.com/v1": "example.com/v1 Widget is deprecated"}

    def test_a_changed_definition_changes_what_is_served(self) -> None:
        store = defining()
        raw = store.get("CustomResourceDefinition", "widgets.example.com").raw
        loose = version(spec={"properties": {**SPEC["properties"], "size": {"type": "integer"}}})

        store.update({**raw, "spec": {**raw["spec"], "versions": [loose]}})

        assert store.create(widget(size=100), now=0, is_new=True).raw["spec"]["size"] == 100

    def test_a_dry_run_serves_nothing_for_long(self) -> None:
        store = Store()

        with store.transaction(dry_run=True):
            store.create(definition(), now=0, is_new=True)
        store.definitions.follow()

        assert answer(refusal(store, lambda: store.objects("Widget.example.com"))) == (404, "NotFound")

    def test_the_columns_of_tables_are_known_by_version(self) -> None:
        column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
        store = defining(definition(version(additionalPrinterColumns=[column])))

        assert store.resources.named("Widget.example.com").columns == {"example.com/v1": (column,)}

    def test_objects_are_selected_by_the_fields_that_the_definition_names(self) -> None:
        store = defining(definition(version(selectableFields=[{"jsonPath": ".spec.color"}])))
        for name, color in (("a", "red"), ("b", "blue")):
            store.create(widget(name, color=color), now=0, is_new=True)

        page = store.page("Widget.example.com", options=ListOptions(field_selector="spec.color=red"))

        assert [stored.key for stored in page.items] == ["default/a"]

    def test_scale_is_where_the_definition_says(self) -> None:
        scale = {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
        store = defining(definition(version(subresources={"status": {}, "scale": scale})))
        store.create(widget(), now=0, is_new=True)
        store.update_status({**widget(), "status": {"replicas": 3, "selector": "app=x"}})

        report = scale_of(store.get("Widget.example.com", "default/a"))
        store.update(scaled(store.get("Widget.example.com", "default/a"), {**report, "spec": {"replicas": 5}}))

        assert (report["spec"], report["status"]) == ({"replicas": 1}, {"replicas": 3, "selector": "app=x"})
        assert store.get("Widget.example.com", "default/a").raw["spec"]["size"] == 5


class TestObjects:
    def test_defaults_are_filled_in_and_unknown_fields_go(self) -> None:
        store = defining()

        raw = store.create(
            widget(weight=7, anything={"goes": [1]}, parts=[{"name": "x", "y": 1}], color=None), now=0, is_new=True
        ).raw

        assert raw["spec"] == {
            "size": 1,
            "color": "blue",
            "anything": {"goes": [1]},
            "parts": [{"name": "x", "count": 1}],
        }

    @pytest.mark.parametrize(
        ("spec", "field", "words"),
        [
            ({"size": 0}, "spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
            ({"size": 10}, "spec.size", "Invalid value: 10: spec.size in body should be less than or equal to 9"),
            ({"size": "1"}, "spec.size", 'spec.size in body must be of type integer: "string"'),
            ({"size": None}, "spec.size", "Required value"),
            ({"color": "green"}, "spec.color", 'Unsupported value: "green": supported values: "blue", "red"'),
            ({"port": 1.5}, "spec.port", 'must be of type integer,string: "number"'),
            ({"labels": {"a": "long"}}, "spec.labels.a", "Too long: may not be more than 3 bytes"),
            ({"note": "A"}, "spec.note", "spec.note in body should match '^[a-z]+$'"),
            ({"parts": [{"count": 1}]}, "spec.parts[0].name", "Required value"),
            ({"parts": [{"name": "x"}, {"name": "x"}]}, "spec.parts[1]", "Duplicate value"),
            ({"parts": [{"name": str(n)} for n in range(4)]}, "spec.parts", "Too many: 4: must have at most 3 items"),
            ({"tags": ["x", "x"]}, "spec.tags[1]", 'Duplicate value: "x"'),
        ],
    )
    def test_definitions_reject_objects_that_the_schema_forbids(self, spec: Raw, field: str, words: str) -> None:
        store = defining()

        error = refusal(store, lambda: store.create(widget(**spec), now=0, is_new=True))

        causes = error.details["causes"]
        assert (error.code, [cause["field"] for cause in causes]) == (422, [field])
        assert words in causes[0]["message"]

    @pytest.mark.parametrize("spec", [{"note": None}, {"port": "http"}, {"port": 80}, {"anything": {}}, {"parts": []}])
    def test_definitions_accept_objects_that_the_schema_allows(self, spec: Raw) -> None:
        store = defining()

        raw = store.create(widget(**spec), now=0, is_new=True).raw

        assert raw["spec"] == {"size": 1, "color": "blue", **spec}

    def test_existing_violations_may_remain(self) -> None:
        store = defining(definition(version(spec={"properties": {**SPEC["properties"], "size": {"type": "integer"}}})))
        store.create(widget(size=100), now=0, is_new=True)
        raw = store.get("CustomResourceDefinition", "widgets.example.com").raw
        store.update({**raw, "spec": {**raw["spec"], "versions": [version()]}})

        assert store.update(widget(size=100, color="red")).raw["spec"]["color"] == "red"
        assert refusal(store, lambda: store.update(widget(size=200))).code == 422

    def test_a_status_is_written_by_itself(self) -> None:
        store = defining()
        store.create({**widget(), "status": {"replicas": 9}}, now=0, is_new=True)

        assert "status" not in store.get("Widget.example.com", "default/a").raw
        raw = store.update_status({**widget(size=5), "status": {"replicas": 2, "more": 1}}).raw
        assert (raw["spec"]["size"], raw["status"]) == (1, {"replicas": 2})
        assert refusal(store, lambda: store.update_status({**widget(), "status": {"replicas": "x"}})).code == 422

    def test_without_that_subresource_it_is_a_field_like_any_other(self) -> None:
        store = defining(definition(version()))

        raw = store.create({**widget(), "status": {"replicas": 9}}, now=0, is_new=True).raw

        assert raw["status"] == {"replicas": 9}


class TestRules:
    RULES = (
        {"rule": "self.size <= 5 || self.color == 'red'", "message": "large ones are red"},
        {"rule": "oldSelf.size <= self.size", "messageExpression": "'was ' + string(oldSelf.size)"},
        {"rule": "!has(self.tags) || self.tags.all(t, t.size() < 3)", "fieldPath": ".tags"},
    )

    def store(self) -> Store:
        return defining(definition(version(spec={"x-kubernetes-validations": list(self.RULES)})))

    def test_a_violated_validation_rule_is_reported_with_its_message(self) -> None:
        store = self.store()

        error = refusal(store, lambda: store.create(widget(size=6), now=0, is_new=True))

        assert error.details["causes"] == [
            {"reason": "FieldValueInvalid", "message": 'Invalid value: "object": large ones are red', "field": "spec"}
        ]

    def test_the_field_at_fault_is_named(self) -> None:
        store = self.store()

        error = refusal(store, lambda: store.create(widget(tags=["long"]), now=0, is_new=True))

        assert error.details["causes"][0]["field"] == "spec.tags"
        assert "failed rule: !has(self.tags)" in error.details["causes"][0]["message"]

    def test_a_rule_about_a_change_is_asked_of_changes(self) -> None:
        store = self.store()
        store.create(widget(size=3), now=0, is_new=True)

        error = refusal(store, lambda: store.update(widget(size=2)))

        assert "was 3" in error.message
        assert store.update(widget(size=4)).raw["spec"]["size"] == 4

    def test_a_rule_with_an_optional_old_value_holds_for_what_is_created_too(self) -> None:
        rule = {
            "rule": "oldSelf.hasValue() ? self.size >= oldSelf.value().size : self.size == 1",
            "messageExpression": "oldSelf.optMap(o, 'not below %d'.format([o.size])).orValue('begin with 1')",
            "optionalOldSelf": True,
        }
        store = defining(definition(version(spec={"x-kubernetes-validations": [rule]})))

        error = refusal(store, lambda: store.create(widget(size=2), now=0, is_new=True))
        assert error.message.endswith("begin with 1")

        store.create(widget(size=1), now=0, is_new=True)
        store.update(widget(size=3))
        assert refusal(store, lambda: store.update(widget(size=2))).message.endswith("not below 3")

    def test_texts_are_what_their_format_says_and_numbers_doubles(self) -> None:
        properties = {
            "wait": {"type": "string", "format": "duration"},
            "from": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "data": {"type": "string", "format": "byte"},
            "ratio": {"type": "number"},
            "by-key": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": True}},
        }
        rules = [
            "!has(self.wait) || self.wait > duration('90s')",
            "!has(self.from) || self.from.getFullYear() > 2000 && self.from > timestamp('2001-01-01T00:00:00Z')",
            "!has(self.day) || self.day.getMonth() == 1",
            "!has(self.data) || self.data == b'hello'",
            "!has(self.ratio) || self.ratio / 2.0 == 0.5",
            "!has(self.by__dash__key) || self.by__dash__key['a-b']['c-d'] == 1",
        ]
        spec = {
            "properties": properties,
            "required": [],
            "x-kubernetes-validations": [{"rule": rule} for rule in rules],
        }
        store = defining(definition(version(spec=spec)))

        right = {"wait": "2m", "from": "2026-01-01T00:00:00Z", "day": "2026-02-03", "data": "aGVsbG8=", "ratio": 1}
        made = {**widget(), "spec": {**right, "by-key": {"a-b": {"c-d": 1}}}}
        assert store.create(made, now=0, is_new=True)
        wrong = {"wait": "80s", "from": "1999-01-01T00:00:00Z", "day": "2026-03-03", "data": "aGVs", "ratio": 2}
        for name, value in wrong.items():
            raw = {**widget("b"), "spec": {name: value}}
            assert "failed rule" in refusal(store, partial(store.create, raw, now=0, is_new=True)).message

    def test_rules_that_cost_too_much_are_given_up(self) -> None:
        rules = [{"rule": "self.all(a, self.all(b, a + b != 'x'))"}, {"rule": "size(self) < 5"}]
        text = {"type": "string", "maxLength": 5}
        tags = {"type": "array", "maxItems": 900, "items": text, "x-kubernetes-validations": rules}
        store = defining(definition(version(spec={"properties": {**SPEC["properties"], "tags": tags}})))

        error = refusal(store, lambda: store.create(widget(tags=[f"{n}" for n in range(900)]), now=0, is_new=True))

        given_up = "no further validation rules will be run due to call cost exceeds limit for rule"
        assert f"'operation cancelled: actual cost limit exceeded': {given_up}: {rules[0]['rule']}" in error.message
        assert "failed rule" not in error.message


def test_stored_objects_have_the_defaults_that_a_definition_gains(tmp_path: Path) -> None:
    journal = DurableJournal(str(tmp_path / "journal"))
    store = Store(journal=journal)
    store.create(definition(), now=0)
    before = store.create(widget(), now=0, is_new=True)
    properties = {**SPEC["properties"], "level": {"type": "integer", "default": 3}}
    raw = definition(version(spec={"properties": properties}))
    with store.transaction(dry_run=True):
        store.update(raw)
    store.definitions.follow()
    assert "level" not in store.get("Widget.example.com", "default/a").raw["spec"]

    store.update(raw)
    found = store.get("Widget.example.com", "default/a")
    assert (found.raw["spec"]["level"], found.version) == (3, before.version)
    journal.close()
    reopened = Store(journal=DurableJournal(str(tmp_path / "journal")))
    assert reopened.get("Widget.example.com", "default/a").raw["spec"]["level"] == 3


class TestDefinitionsThatAreRefused:
    @pytest.mark.parametrize(
        ("change", "field", "words"),
        [
            ({"group": "nodots"}, "spec.group", "should be a lower-case domain with at least one dot"),
            ({"scope": "Galaxy"}, "spec.scope", "supported values"),
            ({"scope": ""}, "spec.scope", "Required value"),
            ({"names": {"plural": "widgets"}}, "spec.names.kind", "Required value"),
            ({"names": {"kind": "Widget", "plural": "gadgets"}}, "metadata.name", 'spec.names.plural+"."+spec.group'),
            ({"versions": []}, "spec.versions", "must have at least one version"),
            ({"versions": [version(), version("v2")]}, "spec.versions", "exactly one version marked as storage"),
            ({"versions": [version(), version(storage=False)]}, "spec.versions[1].name", "Duplicate value"),
            ({"preserveUnknownFields": True}, "spec.preserveUnknownFields", "must be false"),
            ({"conversion": {"strategy": "Magic"}}, "spec.conversion.strategy", "supported values"),
            ({"group": "x.k8s.io"}, "metadata.annotations[api-approved.kubernetes.io]", "protected groups"),
        ],
    )
    def test_a_definition_that_defines_nothing(self, change: Any, field: str, words: str) -> None:
        raw = definition()
        raw["spec"] = {**raw["spec"], **change} if isinstance(change, dict) else change
        if field.startswith("metadata.annotations"):
            raw["metadata"]["name"] = "widgets.x.k8s.io"
        store = Store()

        error = refusal(store, lambda: store.create(raw, now=0, is_new=True))

        report = {cause["field"]: cause["message"] for cause in error.details["causes"]}
        assert error.code == 422
        assert words in report[field]

    @pytest.mark.parametrize(
        ("schema", "field", "words"),
        [
            ({"type": "string"}, "type", "must be object at the root"),
            ({}, "type", "must not be empty at the root"),
            ({"properties": {"a": {}}}, "properties[a].type", "must not be empty for specified object fields"),
            ({"properties": {"a": {"type": "array"}}}, "properties[a].items", "must be specified"),
            (
                {"properties": {"a": {"type": "array", "items": {}}}},
                "properties[a].items.type",
                "must not be empty for specified array items",
            ),
            ({"properties": {"a": {"type": "text"}}}, "properties[a].type", "Unsupported value"),
            ({"properties": {"a": {"$ref": "#/x", "type": "object"}}}, "properties[a].$ref", "Forbidden"),
            (
                {"properties": {"a": {"type": "array", "uniqueItems": True, "items": {"type": "string"}}}},
                "properties[a].uniqueItems",
                "quadratic",
            ),
            (
                {"properties": {"a": {"type": "object"}}, "additionalProperties": {"type": "string"}},
                "additionalProperties",
                "mutual exclusive",
            ),
            ({"anyOf": [{"type": "object"}]}, "anyOf[0].type", "must be empty to be structural"),
            ({"anyOf": [{"properties": {"b": {}}}]}, "properties[b]", "because it is defined in"),
            (
                {"properties": {"a": {"type": "integer", "default": "x"}}},
                "properties[a].default",
                "must be of type integer",
            ),
            ({"properties": {"a": {"type": "string", "pattern": "("}}}, "properties[a].pattern", "regular expression"),
            (
                {"properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}},
                "properties[metadata]",
                "must not specify anything other than name and generateName",
            ),
            ({"properties": 7}, "properties", "must be an object"),
            ({"properties": {"a": {"type": "string", "maxLength": "x"}}}, "properties[a].maxLength", "whole number"),
        ],
    )
    def test_a_schema_that_is_not_structural(self, schema: Raw, field: str, words: str) -> None:
        whole = schema if schema in ({}, {"type": "string"}) else {"type": "object", **schema}
        store = Store()

        error = refusal(
            store,
            lambda: store.create(definition({**version(), "schema": {"openAPIV3Schema": whole}}), now=0, is_new=True),
        )

        report = {cause["field"]: cause["message"] for cause in error.details["causes"]}
        assert words in report[f"spec.versions[0].schema.openAPIV3Schema.{field}"]

    @pytest.mark.parametrize("schema", [{}, [], 7, {"openAPIV3Schema": None}, {"openAPIV3Schema": []}])
    def test_a_version_without_a_schema(self, schema: Any) -> None:
        store = Store()

        error = refusal(store, lambda: store.create(definition({**version(), "schema": schema}), now=0, is_new=True))

        assert error.code in (400, 422)

    @pytest.mark.parametrize("change", [{"scope": "Cluster"}, {"names": {"kind": "Other", "plural": "widgets"}}])
    def test_immutable_fields_of_a_definition_cannot_change(self, change: Raw) -> None:
        store = defining()
        raw = store.get("CustomResourceDefinition", "widgets.example.com").raw

        error = refusal(store, lambda: store.update({**raw, "spec": {**raw["spec"], **change}}))

        assert "field is immutable" in error.message

    def test_a_version_that_objects_are_stored_in_stays_listed(self) -> None:
        store = defining()
        raw = store.get("CustomResourceDefinition", "widgets.example.com").raw

        error = refusal(store, lambda: store.update({**raw, "spec": {**raw["spec"], "versions": [version("v2")]}}))

        assert error.details["causes"][0]["field"] == "status.storedVersions[0]"


class TestNames:
    @pytest.mark.parametrize(
        ("other", "reason"),
        [
            ({"plural": "gadgets", "kind": "Widget"}, "ListKindConflict"),
            ({"plural": "gadgets", "kind": "Gadget", "names": {"singular": "widget"}}, "SingularConflict"),
            ({"plural": "gadgets", "kind": "Gadget", "names": {"shortNames": ["widgets"]}}, "ShortNamesConflict"),
        ],
    )
    def test_names_that_another_kind_has_are_not_accepted_until_it_goes(self, other: Raw, reason: str) -> None:
        store = defining(definition(), definition(**other))

        assert conditions(store, "gadgets.example.com")["NamesAccepted"] == ("False", reason)
        assert conditions(store, "gadgets.example.com")["Established"] == ("False", "NotAccepted")
        assert store.resources.served_at("example.com/v1", "gadgets") is None

        store.delete("CustomResourceDefinition", "widgets.example.com", now=1)

        assert conditions(store, "gadgets.example.com")["Established"][0] == "True"
        assert store.resources.served_at("example.com/v1", "gadgets") is not None

    def test_the_definition_of_a_kind_that_is_built_in_changes_nothing(self) -> None:
        raw = definition(version("v1alpha1"), kind="DisruptionPolicy", plural="disruptionpolicies", scope="Cluster")
        raw["metadata"]["name"] = "disruptionpolicies.podium.dev"
        raw["spec"]["group"] = "podium.dev"
        store = defining(raw)
        before = store.resources.named("DisruptionPolicy")

        store.delete("CustomResourceDefinition", "disruptionpolicies.podium.dev", now=0)

        assert store.resources.named("DisruptionPolicy") is before

    def test_a_kind_in_a_built_in_version_is_not_served(self) -> None:
        raw = definition(version("v1"), kind="Foo", plural="foos")
        raw["metadata"] |= {
            "name": "foos.networking.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved"},
        }
        raw["spec"]["group"] = "networking.k8s.io"
        store = defining(raw)

        assert conditions(store, "foos.networking.k8s.io")["Established"][0] == "True"
        assert store.resources.served_at("networking.k8s.io/v1", "foos") is None
        assert store.delete("CustomResourceDefinition", "foos.networking.k8s.io", now=0) is None


class TestDeleting:
    def test_a_store_can_keep_custom_objects_until_the_definition_is_deleted_again(self) -> None:
        store = defining()
        store.keeps_custom_objects = True
        store.create(widget(), now=0, is_new=True)

        left = store.delete("CustomResourceDefinition", "widgets.example.com", now=1)

        assert left is not None
        assert conditions(store)["Terminating"][0] == "True"
        assert store.get("Widget.example.com", "default/a").object.metadata.deletion_timestamp is None
        assert store.delete("CustomResourceDefinition", "widgets.example.com", now=2) is None
        assert store.count() == 0

    def test_the_objects_go_with_the_definition_and_the_kind_with_both(self) -> None:
        store = defining()
        store.create(widget(), now=0, is_new=True)

        assert store.delete("CustomResourceDefinition", "widgets.example.com", now=1) is None

        assert refusal(store, lambda: store.objects("Widget.example.com")).code == 404
        deleted = [event.stored.kind for event in store.events_since(0) if event.type == "DELETED"]
        assert deleted == ["Widget.example.com", "CustomResourceDefinition"]

    def test_a_definition_waits_for_objects_with_finalizers(self) -> None:
        store = defining()
        raw = widget()
        raw["metadata"]["finalizers"] = ["example.com/wait"]
        store.create(raw, now=0, is_new=True)

        left = store.delete("CustomResourceDefinition", "widgets.example.com", now=1)

        assert left is not None
        assert conditions(store)["Terminating"][0] == "True"
        refused = refusal(store, lambda: store.create(widget("b"), now=1, is_new=True))
        assert answer(refused) == (405, "MethodNotAllowed")
        held = store.get("Widget.example.com", "default/a").raw
        store.update({**held, "metadata": {**held["metadata"], "finalizers": []}})
        assert store.find("CustomResourceDefinition", "widgets.example.com") is None
        assert refusal(store, lambda: store.objects("Widget.example.com")).code == 404


class TestWatching:
    @staticmethod
    def watched(store: Store) -> Watch:
        watch = store.watch("Widget.example.com", "", ListOptions(resource_version=str(store.version)))
        watch.wake_by(lambda: None)
        return watch

    def test_a_watch_ends_with_the_definition_after_reporting_its_objects(self) -> None:
        store = defining()
        store.create(widget(), now=0, is_new=True)
        watch, woken = self.watched(store), []
        watch.wake_by(lambda: woken.append(watch.is_ended))

        store.delete("CustomResourceDefinition", "widgets.example.com", now=1)

        assert woken == [True]
        assert [(notice.type, notice.raw["metadata"]["name"]) for notice in watch.pull()] == [("DELETED", "a")]
        assert watch.pull() == []

    def test_a_watch_ends_when_the_definition_says_something_else_and_not_otherwise(self) -> None:
        store = defining()
        raw = store.get("CustomResourceDefinition", "widgets.example.com").raw
        watch = self.watched(store)

        labelled = store.update({**raw, "metadata": {**raw["metadata"], "labels": {"a": "b"}}})
        was_ended = watch.is_ended

        store.update({**labelled.raw, "spec": {**raw["spec"], "versions": [version(), version("v2", storage=False)]}})
        assert (was_ended, watch.is_ended) == (False, True)
        again = self.watched(store)
        store.create(widget(), now=0, is_new=True)
        assert [notice.type for notice in again.pull()] == ["ADDED"]

    def test_a_dry_run_ends_no_watch(self) -> None:
        store = defining()
        watch = self.watched(store)

        with store.transaction(dry_run=True):
            store.delete("CustomResourceDefinition", "widgets.example.com", now=1)
        store.definitions.follow()

        store.create(widget(), now=0, is_new=True)
        assert not watch.is_ended
        assert [notice.type for notice in watch.pull()] == ["ADDED"]

    def test_observations_of_a_removed_kind_are_forgotten_when_one_of_its_name_returns(self) -> None:
        store = defining()
        store.create(widget(), now=0, is_new=True)
        before = store.version
        store.delete("CustomResourceDefinition", "widgets.example.com", now=1)
        assert "Widget.example.com" not in store._revisions.kinds()
        store.create(definition(), now=2, is_new=True)

        options = ListOptions(resource_version=str(before))

        assert answer(refusal(store, lambda: store.watch("Widget.example.com", "", options))) == (410, "Expired")

    def test_the_log_goes_on_where_it_has_events_of_a_kind_that_is_gone(self) -> None:
        store = Store(log_capacity=3)
        store.create(definition(), now=0, is_new=True)
        store.create(widget(), now=0, is_new=True)
        store.delete("CustomResourceDefinition", "widgets.example.com", now=1)

        for number in range(5):
            store.create(node(f"n{number}"), now=2)

        assert [event.stored.key for event in store.events_since(store.version - 3)] == ["n2", "n3", "n4"]


@pytest.mark.parametrize("keep", [0, 100])
def test_kinds_that_a_journal_keeps_are_served_again(tmp_path: Any, keep: int) -> None:
    path = str(tmp_path / "journal")
    journal = DurableJournal(path)
    store = Store(journal=journal)
    store.create(definition(), now=0, is_new=True)
    store.create(definition(kind="Gadget", plural="gadgets"), now=0, is_new=True)
    store.create(widget(), now=0, is_new=True)
    store.create({**widget(), "kind": "Gadget"}, now=0, is_new=True)
    store.delete("CustomResourceDefinition", "gadgets.example.com", now=0)
    journal.compact(keep)
    journal.close()

    journal = DurableJournal(path)
    again = Store(journal=journal)

    assert again.get("Widget.example.com", "default/a").raw["spec"]["color"] == "blue"
    assert refusal(again, lambda: again.objects("Gadget.example.com")).code == 404
    with pytest.raises(StoreError):
        again.create(widget("b", size=100), now=0, is_new=True)
    journal.close()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "multipleOf": 0.5},
        {"type": "number", "x-kubernetes-validations": [{"rule": "double(self) > 0.0"}]},
    ],
)
def test_an_integer_that_is_larger_than_all_doubles_is_refused_where_a_double_is_wanted(schema: Raw) -> None:
    spec = {**SPEC, "properties": {**SPEC["properties"], "share": schema}}
    store = defining(definition(version(spec=spec)))

    error = refusal(store, lambda: store.create(widget(share=10**400), now=0))

    assert (error.code, [cause["field"] for cause in error.details["causes"]]) == (422, ["spec.share"])
