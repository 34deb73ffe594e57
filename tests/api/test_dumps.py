"""Reading a dump object by object gives the same result as reading it as a whole."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError, Validation
from podium.api.input import codec, listed_items
from podium.api.input.codec import Document, load_text
from podium.api.input.json import UncertainError, without_nulls
from podium.api.pod import Pod
from podium.app.bench.eks_cluster import EKSCluster
from tests.api.dumps import ACCESS, Raw, dump, dumped_pod
from tests.app.test_fuzzed_manifests import MANIFESTS, VALIDATIONS, mutated, mutations, paths_of
from tests.fuzzing import Effort, efforts

PODS = [dumped_pod(number) for number in range(3)]
# What no writer of JSON would write, each behind a key.
TEXTS = (
    *("NaN", "-Infinity", "1e999", "-0", "1E2", "1.50", "12345678901234567890123", "0" * 3),
    *(r'"\ud83d\ude00"', r'"\ud800"', r'"\u0022a\":1"', r'"\u003c\u0026"', r'"\q"', '"\x01"', '"é"', '"\x00"'),
    *('{"a":1,"a":1}', '{"a": 1, "a" :2}', "[" * 250 + "]" * 250, '{"a":' * 195 + "1" + "}" * 195, "null", "[null]"),
)


def outcome(text: str | bytes, validation: Validation | None = None) -> list[Document] | str:
    """Return what a text says: its objects, or what is wrong with it."""
    try:
        return load_text(text, "dump", validation)
    except InputError as error:
        return f"{type(error).__name__} {error}"


def as_a_whole(text: str | bytes, validation: Validation | None = None) -> list[Document] | str:
    """Return the same of a text that is not read object by object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "json_list", lambda _content: None)
        patch.setattr(codec, "yaml_list", lambda _content: None)
        return outcome(text, validation)


def was_listed(documents: list[Document]) -> bool:
    """Return whether the objects were read one by one: then none has its wire form yet."""
    return not any(isinstance(one.written, dict) for one in documents)


@st.composite
def texts(draw: st.DrawFn, pods: list[Raw]) -> str:
    """Draw a dump with these pods and anything wrong in any place, in one of the ways in which JSON is written."""
    whole = dump(*pods, MANIFESTS[0])
    deeds = draw(st.lists(mutations(list(paths_of(whole))[1:]), max_size=2))
    value: Any = mutated(whole, deeds)
    indent = draw(st.sampled_from((None, 1, 4)))
    separators = draw(st.sampled_from(((",", ":"), (", ", ": "), (" ,\n", " : "))))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return draw(st.sampled_from((as_it_is, doubled, garbled, as_it_is)))(draw, text)


def as_it_is(_draw: st.DrawFn, text: str) -> str:
    return text


def doubled(draw: st.DrawFn, text: str) -> str:
    """Give some key twice, with the same value or another one."""
    key = draw(st.sampled_from(('"name"', '"items"', '"kind"', '"spec"', '"status"', '"f:ip"', '"metadata"', '"uid"')))
    places = [place for place in range(len(text)) if text.startswith(key, place)]
    if not places:
        return text
    place = draw(st.sampled_from(places))
    return f"{text[:place]}{key}:{draw(st.sampled_from(('1', '{}', '[]', 'null')))},{text[place:]}"


def garbled(draw: st.DrawFn, text: str) -> str:
    """Something stands behind a key that only a careful reader takes for what it is."""
    keys = ('"name"', '"resourceVersion"', '"f:ip"', '"restartCount"', '"nodeName"', '"time"', '"volumes"')
    key = draw(st.sampled_from(keys))
    start = text.find(key)
    colon = text.find(":", start + len(key))
    if start < 0 or colon < 0:
        return text
    return f'{text[: colon + 1]}{draw(st.sampled_from(TEXTS))}, "extra":{text[colon + 1 :]}'


@efforts(50)
def test_a_dump_says_the_same_read_object_by_object_and_as_a_whole(effort: Effort) -> None:
    @effort
    @given(texts(PODS), VALIDATIONS, st.sampled_from((1, 1_000, 1 << 16)))
    def check_same(text: str, validation: Validation | None, window_bytes: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(listed_items, "_WINDOW_BYTES", window_bytes)
            found = outcome(text, validation)
        assert found == as_a_whole(text, validation)

    check_same()


def eks_pods() -> list[Raw]:
    """Pods as they are in a cluster: of a DaemonSet, a Deployment and a StatefulSet, three each, and a pending one."""
    by_owner: dict[str, list[Raw]] = {}
    pods = [raw for raw in EKSCluster(100).objects() if raw["kind"] == "Pod"]
    for pod in pods:
        by_owner.setdefault(pod["metadata"]["ownerReferences"][0]["kind"], []).append(pod)
    assert set(by_owner) == {"DaemonSet", "ReplicaSet", "StatefulSet"}
    return [*(pod for owned in by_owner.values() for pod in owned[:3]), pods[-1]]


EKS_PODS = eks_pods()


@efforts(50)
def test_pods_of_any_owner_say_the_same_read_object_by_object_and_as_a_whole(effort: Effort) -> None:
    @effort
    @given(st.permutations(EKS_PODS).map(lambda pods: pods[:4]).flatmap(texts), VALIDATIONS)
    def check_same(text: str, validation: Validation | None) -> None:
        assert outcome(text, validation) == as_a_whole(text, validation)

    check_same()


def test_most_pods_of_a_cluster_are_read_without_being_decoded(decoded_items: list[bytes]) -> None:
    documents = load_text(json.dumps(dump(*EKSCluster(100).objects())), "dump")

    pods = [one for one in documents if isinstance(one.object, Pod)]
    workloads = {one.object.metadata.controller for one in pods if one.object is not None}
    # One pod of each workload, and another one that has no node.
    assert len(decoded_items) - (len(documents) - len(pods)) <= len(workloads) + 1
    assert [one.raw for one in documents] == [without_nulls(raw) for raw in EKSCluster(100).objects()]


def test_between_items_stands_nothing_but_what_is_space_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_items, "_WINDOW_BYTES", 100)
    text = json.dumps(dump(*(dumped_pod(number) for number in range(4))))
    head, comma, tail = text.rpartition(', {"apiVersion": "v1", "kind": "Pod"')
    assert comma

    for space in ("\v", "\f", "\u00a0"):
        spaced = f"{head},{space}{comma[2:]}{tail}"
        assert outcome(spaced, None) == as_a_whole(spaced, None)
    assert outcome(f"{head},{' ' * 1_000}{comma[2:]}{tail}", None) == outcome(text, None)


class Watched(BytesIO):
    """A stream that knows how much of it was asked for at a time."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        self.most = max(self.most, len(content))
        return content


@pytest.mark.parametrize(
    ("indent", "separators"), [(None, (",", ":")), (None, (", ", ": ")), (4, (",", ": ")), (1, (" ,\n", " : "))]
)
@pytest.mark.parametrize("sort_keys", [False, True])
@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_a_dump_is_read_in_parts_in_every_json_layout(
    indent: int | None, separators: tuple[str, str], sort_keys: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_items, "_WINDOW_BYTES", 10_000)
    pods = [dumped_pod(number % 8) for number in range(40)]
    if kind == "PodList":
        pods = [{key: value for key, value in pod.items() if key not in ("apiVersion", "kind")} for pod in pods]
    items = [*pods, {"apiVersion": "apps/v1", "kind": "ReplicaSet"}, *pods] if kind == "List" else pods
    text = json.dumps(dump(*items, kind=kind), indent=indent, separators=separators, sort_keys=sort_keys)
    stream = Watched(text.encode())

    found = listed_items.json_list(stream)

    assert found is not None
    assert found.envelope["kind"] == kind
    assert [json.loads(item) for item, _ in found.items] == items
    assert stream.most == 10_000


@pytest.mark.parametrize(
    "text",
    [
        '[{"kind": "List", "items": [{}]}]',
        '{"metadata": {"items": [{}]}, "kind": "List", "apiVersion": "v1"}',
        '{"kind": "List", "items": [{}], "items": []}',
        '{"kind": "List", "items": [{}], "metadata": {"a": [1]}}',
        '{"kind": "List", "items": [{}, ], "metadata": {}}',
        '{"kind": "List", "items": [{}} ], "metadata": {}}',
        '{"kind": "List", "items": [{}] "metadata": {}}',
        '{"kind": "List", "items": [{} {}]}',
        '{"kind": "List", "items": [{}, 1, null]}',
        '{"kind": "List", "items": [{}]',
        '{"kind": "List", "items": [{}',
        '"items": [{}]',
    ],
)
def test_a_document_that_is_not_entirely_a_list_is_read_as_one_document(text: str) -> None:
    pod = json.dumps(PODS[0])
    for whole in (text, text.replace("{}", pod, 1), text.replace("{}", pod)):
        assert outcome(whole) == as_a_whole(whole)


def test_a_dump_truncated_while_reading_is_read_again() -> None:
    stream = BytesIO(json.dumps(dump(*PODS)).encode())
    found = listed_items.json_list(stream)
    stream.truncate(500)

    assert found is not None
    with pytest.raises(UncertainError):
        list(found.items)


def test_dump_objects_keep_their_text_until_their_wire_form_is_used() -> None:
    documents = load_text(json.dumps(dump(*PODS, MANIFESTS[0]), indent=4), "dump")

    assert was_listed(documents)
    assert documents[0].raw["status"]["conditions"][0] == {
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "status": "True",
        "type": "PodScheduled",
    }
    assert documents[0].raw is documents[0].raw
    assert not was_listed(documents)


@pytest.mark.parametrize("form", [json.dumps, yaml.safe_dump])
def test_documents_of_a_dump_can_be_sent_to_another_process(form: Callable[[Any], str]) -> None:
    documents = load_text(form(dump(*PODS)), "dump")

    sent = pickle.loads(pickle.dumps(documents))

    assert [one.raw for one in sent] == [one.raw for one in documents]


def test_pods_of_one_template_share_what_was_read_of_it_and_keep_what_is_their_own() -> None:
    first, second = (typed(one) for one in load_text(json.dumps(dump(*PODS[:2])), "dump"))

    assert first.spec.containers is second.spec.containers
    assert first.metadata.labels is second.metadata.labels
    assert (first.spec.node_name, second.spec.node_name) == ("node-0", "node-1")
    assert [one.spec.volumes[0].name for one in (first, second)] == [f"{ACCESS}b4x8z", f"{ACCESS}c4x8z"]


def typed(document: Document) -> Pod:
    assert isinstance(document.object, Pod)
    return document.object


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod["metadata"]["labels"].update({"web-5d4f-bx2zq": "-"}),
        lambda pod: pod["metadata"]["labels"].update({"no key": "a"}),
        lambda pod: pod["metadata"]["managedFields"][0].update(fieldsV2={}),
        lambda pod: pod["metadata"].update(creationTimestamp=""),
        lambda pod: pod["metadata"].update(resourceVersion=1),
        lambda pod: pod["metadata"].update(name="web_1"),
        lambda pod: pod["metadata"].update(generation=-1),
        lambda pod: pod["spec"].update(nodeName="Node"),
        lambda pod: pod["spec"].update(nodeNmae="node-1"),
        lambda pod: pod["spec"]["containers"][0]["volumeMounts"][0].update(name=f"{ACCESS}any"),
        lambda pod: pod["spec"]["containers"][0]["resources"]["requests"].update(memory="100m"),
        lambda pod: pod["status"].update(phase="Walking"),
        lambda pod: pod["status"].update(startTime="yesterday"),
        lambda pod: pod["status"]["containerStatuses"][0].update(restartCount="1"),
    ],
)
def test_a_pod_with_other_errors_than_its_template_is_reported(
    change: Callable[[dict[str, Any]], None],
) -> None:
    pod = dumped_pod(1)
    change(pod)
    text = json.dumps(dump(PODS[0], pod))

    found = outcome(text, "strict")

    assert isinstance(found, str) or found[1].warnings
    assert found == as_a_whole(text, "strict")


def test_a_json_syntax_error_is_reported_before_an_invalid_object() -> None:
    text = json.dumps(dump(dumped_pod(0, nodeNmae="a"), PODS[1])).replace("node-1", r"\q")

    assert "not valid JSON" in str(outcome(text, "strict"))


def test_a_list_of_one_kind_says_it_of_its_items() -> None:
    pod = {key: value for key, value in PODS[0].items() if key not in ("apiVersion", "kind")}

    (document,) = load_text(json.dumps(dump(pod, kind="PodList")), "dump")

    assert document.raw["kind"] == "Pod"
    assert typed(document).key == "default/web-5d4f-ax2zq"


def test_a_mark_of_the_order_of_bytes_before_a_dump_is_passed_over() -> None:
    text = b"\xef\xbb\xbf" + json.dumps(dump(*PODS)).encode()

    assert was_listed(load_text(text, "dump"))
