import gc
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.input import files
from podium.api.input.codec import Document, decode, load_files, load_text
from podium.api.kinds import KINDS
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n"


def manifest(kind: str = "Pod", api_version: str = "v1", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", **metadata}}


def names(documents: list[Document]) -> list[tuple[str, int, str]]:
    return [(one.source, one.index, one.raw["metadata"]["name"]) for one in documents]


def error_of(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        load_text(text, "in.yaml")
    return str(caught.value)


def test_a_document_is_an_object_as_written_beside_its_typed_reading() -> None:
    (document,) = load_text(f"{POD}spec: {{nodeName: n1, dnsPolicy: Default}}\n", "pods.yaml")

    assert (document.source, document.index) == ("pods.yaml", 1)
    assert document.raw["spec"] == {"nodeName": "n1", "dnsPolicy": "Default"}
    assert isinstance(document.object, Pod)
    assert (document.object.key, document.object.spec.node_name) == ("shop/web", "n1")


def test_json_and_yaml_read_as_the_same_objects() -> None:
    as_yaml = load_text(POD, "in")
    as_json = load_text(" \n" + json.dumps(manifest(namespace="shop")), "in")

    assert as_yaml == as_json


def test_documents_are_numbered_and_empty_ones_are_left_out() -> None:
    text = f"---\n{POD}---\n---\n{POD.replace('web', 'other')}"

    assert names(load_text(text, "in")) == [("in", 1, "web"), ("in", 3, "other")]


def test_json_documents_may_follow_one_another() -> None:
    text = json.dumps(manifest(name="a")) + "\n" + json.dumps(manifest(name="b"))

    assert names(load_text(text, "in")) == [("in", 1, "a"), ("in", 2, "b")]


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_lists_are_flattened(kind: str) -> None:
    items = [manifest(name="a"), manifest(name="b")]

    documents = load_text(json.dumps({"apiVersion": "v1", "kind": kind, "items": items}), "in")

    assert names(documents) == [("in", 1, "a"), ("in", 1, "b")]


def test_the_items_of_a_typed_list_get_its_kind_and_version() -> None:
    text = json.dumps(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudgetList", "items": [{"metadata": {"name": "a"}}]}
    )

    (document,) = load_text(text, "in")

    assert isinstance(document.object, PodDisruptionBudget)
    assert (document.raw["apiVersion"], document.raw["kind"]) == ("policy/v1", "PodDisruptionBudget")


def test_an_empty_list_holds_no_objects() -> None:
    assert load_text('{"apiVersion": "v1", "kind": "List", "items": []}', "in") == []
    assert load_text('{"apiVersion": "v1", "kind": "List", "items": null}', "in") == []


# What an object of the kind cannot be without.
NEEDED: dict[str, dict[str, Any]] = {
    **{name: {"spec": {"selector": {}}} for name in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")},
    "DeviceTaintRule": {"spec": {"taint": {"key": "broken", "effect": "NoSchedule"}}},
    "ResourceSlice": {"spec": {"driver": "gpu.example.com", "pool": {"name": "n1"}, "nodeName": "n1"}},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_is_read_by_group_and_kind_in_every_version(kind: Any) -> None:
    name = "default" if kind.name == "DisruptionPolicy" else "web"
    raw = manifest(kind.name, f"{kind.group}/v9beta1" if kind.group else "v9", name=name)
    raw |= NEEDED.get(kind.name, {})

    read = decode(raw)

    assert read is not None
    assert type(read) is kind.type
    assert read.metadata.namespace == ("default" if kind.namespaced else "")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "ConfigMap"), ("podium.dev/v1alpha1", "Scenario"), ("serving.knative.dev/v1", "Service")],
)
def test_kinds_that_are_not_read_are_given_as_written(api_version: str, kind: str) -> None:
    raw = {"apiVersion": api_version, "kind": kind, "anything": {"else": [1]}}

    assert load_text(json.dumps(raw), "in") == [Document("in", 1, raw, None)]


def test_a_kind_of_another_group_is_refused_with_the_right_one() -> None:
    assert error_of("apiVersion: v1\nkind: Deployment\nmetadata: {name: a}") == (
        'in.yaml, document 1, Deployment a, .apiVersion: "v1" has no kind Deployment; write apps/v1'
    )


def test_an_object_without_a_namespace_is_in_default() -> None:
    (document,) = load_text(POD.replace(", namespace: shop", ""), "in")

    assert document.object is not None
    assert document.object.key == "default/web"
    assert document.raw["metadata"]["namespace"] == "default"


def test_decoding_leaves_its_argument_as_it_is() -> None:
    raw = manifest()

    read = decode(raw)

    assert read is not None
    assert read.metadata.namespace == "default"
    assert raw == manifest()


def test_kinds_without_namespaces_get_none() -> None:
    (document,) = load_text(json.dumps(manifest("Node")), "in")

    assert isinstance(document.object, Node)
    assert document.raw == manifest("Node")


def test_an_error_of_decoding_names_source_document_object_and_path() -> None:
    with pytest.raises(InputError) as caught:
        decode({**manifest(), "spec": {"priority": "x"}}, "pods.yaml", 2)

    assert str(caught.value) == 'pods.yaml, document 2, Pod default/web, .spec.priority: "x" is not a whole number'


def test_an_object_without_a_name_is_found_by_its_path_in_the_document() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest(), manifest(name="")]})

    assert error_of(text).startswith("in.yaml, document 1, Pod, .items[1].metadata.name: is missing")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("text", 'in.yaml, document 1: an object with apiVersion and kind is expected, not "text"'),
        ("[1]", "in.yaml, document 1: an object with apiVersion and kind is expected, not a list"),
        ("{}", "in.yaml, document 1, .apiVersion: is missing, and must be given"),
        ("apiVersion: v1", "in.yaml, document 1, .kind: is missing, and must be given"),
        ("apiVersion: 1\nkind: Pod", "in.yaml, document 1, Pod, .apiVersion: 1 is not text"),
        ("apiVersion: v1\nkind: [Pod]", "in.yaml, document 1, .kind: a list is not text"),
        ("apiVersion: v1\nkind: Pod\nmetadata: []", "in.yaml, document 1, Pod, .metadata: a list is not an object"),
        ("apiVersion: v1\nkind: List\nitems: {}", "in.yaml, document 1, .items: an object is not a list"),
        (
            "apiVersion: v1\nkind: List\nitems: [1]",
            "in.yaml, document 1, .items[0]: an object with apiVersion and kind is expected, not 1",
        ),
        (
            'kind: Status\napiVersion: v1\nstatus: Failure\nmessage: "no right"\ncode: 403',
            'in.yaml, document 1: a server answered this instead of objects: "no right"',
        ),
    ],
)
def test_values_that_are_not_objects_are_rejected_with_their_place(text: str, error: str) -> None:
    assert error_of(text) == error


def test_the_same_object_twice_is_refused_naming_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POD)
    (tmp_path / "b.yaml").write_text(f"{POD.replace('web', 'other')}---\n{POD}")

    with pytest.raises(InputError) as caught:
        load_files([tmp_path / "a.yaml", tmp_path / "b.yaml"])

    assert str(caught.value) == (
        f"{tmp_path}/b.yaml, document 2, Pod shop/web: is given twice, "
        f"first in {tmp_path}/a.yaml, document 1; remove one"
    )


def test_the_same_object_in_two_versions_is_the_same_object() -> None:
    versions = [manifest("Job", "batch/v1"), manifest("Job", "batch/v1beta1", namespace="default")]

    assert "is given twice" in error_of("\n".join(map(json.dumps, versions)))


def test_objects_of_other_kinds_or_namespaces_may_share_a_name() -> None:
    raws = [manifest(), manifest("Service"), manifest(namespace="shop"), manifest("Node")]

    assert len(load_text("\n".join(map(json.dumps, raws)), "in")) == 4


def test_a_directory_gives_its_yaml_and_json_files_by_name(tmp_path: Path) -> None:
    for file, name in (("c.json", "c"), ("a.yml", "a"), ("b.yaml", "b")):
        (tmp_path / file).write_text(json.dumps(manifest(name=name)))
    (tmp_path / "notes.txt").write_text("not an object")
    (tmp_path / "deeper.yaml").mkdir()

    documents = load_files([tmp_path])

    assert [name for _, _, name in names(documents)] == ["a", "b", "c"]
    assert documents[0].source == str(tmp_path / "a.yml")


def test_a_directory_without_such_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no \.yaml, \.yml, \.json or \.podium file"):
        load_files([tmp_path])


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))

    assert names(load_files(["-"])) == [("standard input", 1, "web")]


def test_one_pass_streams_are_read_like_files() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        stream.write(POD)
    try:
        assert names(load_files([f"/dev/fd/{reading}"])) == [(f"/dev/fd/{reading}", 1, "web")]
    finally:
        os.close(reading)


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_files([str(tmp_path / "none.yaml")])

    assert str(caught.value) == f"{tmp_path}/none.yaml: cannot be read: No such file or directory"


def test_a_file_beyond_the_size_cap_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", len(POD) - 1)
    (tmp_path / "a.yaml").write_text(POD)

    with pytest.raises(InputError, match="is larger than"):
        load_files([tmp_path / "a.yaml"])


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_as_it_was_after_loading(enabled: bool) -> None:
    was_enabled = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        load_text(POD, "in")
        with pytest.raises(InputError):
            load_text("", "in")
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if was_enabled else gc.disable()


def test_a_byte_order_mark_at_the_start_is_left_out() -> None:
    assert names(load_text(b"\xef\xbb\xbf" + POD.encode(), "in")) == [("in", 1, "web")]


def check_that_it_is_read_or_refused(content: bytes | str) -> None:
    """Nothing but an InputError with its place may come out of a text."""
    problem = "in"
    try:
        load_text(content, "in")
    except InputError as error:
        problem = str(error)
    assert problem.startswith("in")
    assert problem.isprintable()


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "labels", "containers", "items", "kind", "name", "selector"]), inner
        )
    ),
    max_leaves=20,
)


@given(ANYTHING, ANYTHING, st.sampled_from(["Pod", "Node", "Deployment", "PodDisruptionBudget", "List", "PodList"]))
def test_any_object_is_read_or_refused(metadata: Any, spec: Any, kind: str) -> None:
    group = {"Deployment": "apps/", "PodDisruptionBudget": "policy/"}.get(kind, "")
    raw = {"apiVersion": f"{group}v1", "kind": kind, "metadata": metadata, "spec": spec, "items": spec}

    check_that_it_is_read_or_refused(json.dumps(raw))


@given(st.binary() | st.text())
def test_any_content_is_read_or_refused(content: bytes | str) -> None:
    check_that_it_is_read_or_refused(content)
