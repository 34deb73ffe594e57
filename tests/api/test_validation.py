"""Unknown fields, and values that kube-apiserver refuses."""

import json
from typing import Any

import pytest

from podium.api.errors import InputError, Validation
from podium.api.input.codec import Input, Reader, load_text
from podium.api.input.documents import passed_over

Raw = dict[str, Any]
CONTAINERS = [{"name": "main", "image": "web"}]
SPEC = {"containers": CONTAINERS, "nodeSelectors": {}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": SPEC}
LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS, "hostPid": True}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"unscheduleable": True}}


def stored(raw: Raw) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], "uid": "1"}}


def read(raw: Raw, validation: Validation | None = None) -> Input:
    with Reader(validation) as reader:
        reader.read_text(json.dumps(raw), "in")
        return reader.input()


def refused(raw: Raw, validation: Validation | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read(raw, validation)
    return str(caught.value)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (POD, "Pod default/web, .spec.nodeSelectors: there is no such field; did you mean nodeSelector?"),
        (
            DEPLOYMENT,
            "Deployment default/web, .spec.template.spec.hostPid: there is no such field; did you mean hostPID?",
        ),
    ],
)
def test_an_unknown_field_in_a_pod_or_template_written_by_a_user_is_an_error(raw: Raw, error: str) -> None:
    assert refused(raw) == f"in, document 1, {error}; with --validate=warn it is left out"


@pytest.mark.parametrize("raw", [NODE, stored(POD), stored(DEPLOYMENT)], ids=["node", "pod", "deployment"])
def test_elsewhere_it_is_a_warning(raw: Raw) -> None:
    (warning,) = read(raw).warnings

    assert (warning.source, warning.document, warning.reason) == ("in", 1, "unknown-field")
    assert "did you mean " in warning.message


@pytest.mark.parametrize("raw", [NODE, POD, stored(POD), DEPLOYMENT])
def test_strict_rejects_unknown_fields_warn_reports_and_ignore_accepts_them(raw: Raw) -> None:
    assert "there is no such field" in refused(raw, "strict")
    assert len(read(raw, "warn").warnings) == 1
    assert read(raw, "ignore").warnings == []


def test_a_value_that_is_only_handed_on_may_be_wrong_unless_strict() -> None:
    raw = {**POD, "spec": {"containers": [{**CONTAINERS[0], "env": [{"name": "PORT", "value": 80}]}]}}

    (warning,) = read(raw).warnings

    assert str(warning).endswith(".spec.containers[0].env[0].value: 80 is not text; put it in quotes")
    assert warning.reason == "invalid"
    assert "80 is not text" in refused(raw, "strict")


def test_objects_that_kube_apiserver_rejects_are_reported_unless_strict() -> None:
    raw = {**POD, "spec": {"containers": [{"name": "main"}]}}

    (warning,) = read(raw).warnings

    assert str(warning) == "in, document 1, Pod default/web, .spec.containers[0].image: Required value"
    assert "Required value" in refused(raw, "strict")
    assert read(raw, "ignore").warnings == []


@pytest.mark.parametrize("validation", ["strict", "warn", "ignore", None])
def test_used_fields_are_validated_at_every_level(validation: Validation | None) -> None:
    assert ".status.conditions[0]: 5 is not an object" in refused(
        {**POD, "spec": {}, "status": {"conditions": [5]}}, validation
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "error"),
    [
        ("v1", "pod", '.kind: "v1" has no kind "pod"; write Pod'),
        ("apps/v1", "deployment", '.kind: "apps/v1" has no kind "deployment"; write Deployment'),
        ("v1", "list", '.kind: there is no kind "list"; write List'),
    ],
)
def test_a_kind_in_other_letters_is_refused(api_version: str, kind: str, error: str) -> None:
    assert error in refused({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}, "ignore")


def test_a_misspelled_built_in_kind_is_reported_with_a_suggestion() -> None:
    raw = {"apiVersion": "apps/v1", "kind": "Deploymnt", "metadata": {"name": "web"}}

    (warning,) = read(raw).warnings

    assert warning.message == '"apps/v1" has no kind "Deploymnt"; did you mean Deployment?'
    assert read({**raw, "apiVersion": "example.com/v1"}).warnings == []


def test_kinds_that_are_not_read_are_counted() -> None:
    def custom(kind: str, name: str, api_version: str = "example.com/v1") -> str:
        return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})

    with Reader() as reader:
        reader.read_text(custom("Web", "a") + custom("Web", "b") + json.dumps(POD | {"spec": {}}), "one")
        reader.read_text(custom("Web", "c") + custom("ConfigMap", "c", "v1"), "two")
        reader.read_text(custom("Scenario", "c", "podium.dev/v1alpha1"), "three")
        found = passed_over(reader.input().documents)

    assert [(one.kind, one.api_version, one.count) for one in found] == [
        ("ConfigMap", "v1", 1),
        ("Web", "example.com/v1", 3),
    ]


def test_a_stored_object_that_a_dump_lists_twice_is_there_once() -> None:
    dumped = json.dumps(stored({**POD, "spec": {}}))

    assert len(load_text(dumped * 2, "in")) == 1
    with pytest.raises(InputError, match="is given twice"):
        load_text(dumped + dumped.replace('"spec": {}', '"spec": {"priority": 1}'), "in")
