"""Pods that equal an earlier pod in form are read through a stencil; all others are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from podium.api.errors import Validation
from podium.api.input import pod_stencil
from podium.api.input.codec import load_text
from podium.api.input.documents import Document, Encoded
from podium.api.input.json import decode
from podium.api.input.pod_gaps import JSON
from podium.api.input.pod_stencil import FilledStencil, PodStencil, PodStencils, stencil_of
from podium.api.pod import Pod
from tests.api.dumps import ACCESS, Raw, dump, dumped_pod
from tests.api.test_dumps import as_a_whole, outcome, texts
from tests.app.test_fuzzed_manifests import VALIDATIONS
from tests.fuzzing import Effort, efforts

COUNT = 8


def pod_of(number: int, *, is_bound_by_name: bool = False) -> Raw:
    """Return a pod that differs from others in nothing but what each has for itself."""
    pod = dumped_pod(number)
    pod["status"]["containerStatuses"][0]["restartCount"] = 0
    if is_bound_by_name:
        field = {"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod


def text_of(pod: Raw) -> bytes:
    return json.dumps(pod, indent=4).encode()


def looked_into(pod: Raw) -> Pod:
    """Return the pod as it is read by itself, all of it decoded."""
    documents = as_a_whole(json.dumps(dump(pod)))
    assert isinstance(documents, list)
    assert isinstance(documents[0].object, Pod)
    return documents[0].object


def read_through(stencil: PodStencil, text: bytes) -> Pod | None:
    """Return the pod that the stencil reads, of which the text can be made anew."""
    found = stencil.read(text)
    if found is None:
        return None
    assert isinstance(found.text, FilledStencil)
    assert bytes(found.text) == text
    return found.pod


def stencil(pod: Raw) -> PodStencil:
    found = stencil_of(text_of(pod), looked_into(pod), JSON)
    assert found is not None
    return found


@pytest.mark.parametrize("is_bound_by_name", [False, True])
def test_pods_of_one_template_are_read_through_the_stencil_of_one_of_them(is_bound_by_name: bool) -> None:
    pods = [pod_of(number, is_bound_by_name=is_bound_by_name) for number in range(COUNT)]
    first = stencil(pods[0])

    for pod in pods:
        assert read_through(first, text_of(pod)) == looked_into(pod)


def pod_of_stateful_set(number: int, name: str = "") -> Raw:
    """Return a pod that also has its name in a label and as its hostname, and its index in a label."""
    pod = pod_of(number)
    pod["metadata"]["name"] = name or f"db-{9 + number}"
    labels = {"statefulset.kubernetes.io/pod-name": pod["metadata"]["name"]}
    pod["metadata"]["labels"] |= {**labels, "apps.kubernetes.io/pod-index": str(9 + number)}
    pod["spec"]["hostname"] = pod["metadata"]["name"]
    return pod


def test_pods_of_a_stateful_set_are_read_through_the_stencil_of_one_of_them() -> None:
    pods = [pod_of_stateful_set(number) for number in range(COUNT)]
    first = stencil(pods[0])

    for pod in pods:
        assert read_through(first, text_of(pod)) == looked_into(pod)


@pytest.mark.parametrize("name", ["db.1", "d" * 64])
def test_names_that_are_no_hostname_or_label_are_not_read_through_a_stencil(name: str) -> None:
    first = stencil(pod_of_stateful_set(0))

    assert first.read(text_of(pod_of_stateful_set(1, name))) is None


@pytest.mark.parametrize("place", ["label", "hostname"])
def test_another_name_in_a_label_or_as_the_hostname_is_not_read_through_a_stencil(place: str) -> None:
    first = stencil(pod_of_stateful_set(0))
    other = pod_of_stateful_set(1)
    if place == "label":
        other["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = "db-7"
    else:
        other["spec"]["hostname"] = "db-7"

    assert first.read(text_of(other)) is None


def test_a_dump_is_read_through_stencils_from_the_second_pod_of_an_owner_on(decoded_items: list[bytes]) -> None:
    pods = [pod_of(number) for number in range(COUNT)]

    documents = load_text(json.dumps(dump(*pods)), "dump")

    assert [document.object for document in documents] == [looked_into(pod) for pod in pods]
    assert len(decoded_items) == 1


@efforts(50)
def test_a_dump_says_the_same_through_stencils_and_as_a_whole(effort: Effort) -> None:
    @effort
    @given(texts([pod_of(number) for number in range(3)]), VALIDATIONS)
    def check_same(text: str, validation: Validation | None) -> None:
        assert outcome(text, validation) == as_a_whole(text, validation)

    check_same()


def no_address(pod: Raw) -> None:
    pod["status"]["podIP"] = "nowhere"


def other_address(pod: Raw) -> None:
    pod["status"]["podIPs"][0]["ip"] = "10.9.9.9"


def host_as_address(pod: Raw) -> None:
    pod["status"]["hostIP"] = pod["status"]["podIP"]


def renamed_mount(pod: Raw) -> None:
    pod["spec"]["containers"][0]["volumeMounts"][0]["name"] = f"{ACCESS}other"


def bound_elsewhere(pod: Raw) -> None:
    pod["spec"]["affinity"] = pod_of(7, is_bound_by_name=True)["spec"]["affinity"]


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod["metadata"].update(name="web_1"),
        lambda pod: pod["metadata"].update(name=""),
        lambda pod: pod["metadata"].update(name='web"1'),
        lambda pod: pod["metadata"].update(name="ä"),
        lambda pod: pod["metadata"].update(uid=""),
        lambda pod: pod["metadata"].update(uid="ü"),
        lambda pod: pod["metadata"].update(uid=None),
        lambda pod: pod["metadata"].update(resourceVersion='1"'),
        lambda pod: pod["metadata"].update(creationTimestamp="2026-02-30T00:00:00Z"),
        lambda pod: pod["metadata"].update(creationTimestamp=None),
        lambda pod: pod["metadata"]["managedFields"][0].update(time="now"),
        lambda pod: pod["metadata"]["labels"].update(app="other"),
        lambda pod: pod["spec"].update(nodeName="Node"),
        lambda pod: pod["spec"].update(nodeName=""),
        lambda pod: pod["spec"]["volumes"][0].update(name="kube-api-access-"),
        lambda pod: pod["status"].update(startTime="yesterday"),
        lambda pod: pod["status"].update(startTime="2026-01-01T00:00:00+24:00"),
        lambda pod: pod["status"]["containerStatuses"][0].update(containerID="docker"),
        lambda pod: pod["status"]["conditions"][0].update(lastTransitionTime=""),
        lambda pod: pod.update(kind="Node"),
        lambda pod: pod.update(extra={}),
        no_address,
        other_address,
        host_as_address,
        renamed_mount,
        bound_elsewhere,
    ],
)
@pytest.mark.parametrize("is_bound_by_name", [False, True])
def test_a_pod_that_is_unlike_those_before_it_says_what_it_would_say_alone(
    change: Callable[[Raw], object], is_bound_by_name: bool
) -> None:
    pods = [pod_of(number, is_bound_by_name=is_bound_by_name) for number in range(3)]
    change(pods[1])
    text = json.dumps(dump(*pods))

    for validation in (None, "strict"):
        assert outcome(text, validation) == as_a_whole(text, validation)


def with_two_addresses(number: int, *addresses: str) -> str:
    pod = pod_of(number)
    pod["status"]["podIPs"] = [{"ip": address} for address in addresses]
    pod["status"]["podIP"] = addresses[0]
    owners = ",".join(rf'"k:{{\"ip\":\"{address}\"}}": {{}}' for address in addresses)
    pod["metadata"]["managedFields"][1]["fieldsV1"] = "OWNERS"
    return json.dumps(pod).replace('"OWNERS"', f"{{{owners}}}")


def test_owners_of_duplicate_fields_are_reported_though_another_pod_has_two() -> None:
    pods = (with_two_addresses(0, "10.0.0.1", "fd00::1"), with_two_addresses(1, "10.0.0.2", "10.0.0.2"))
    text = f'{{"apiVersion": "v1", "kind": "List", "items": [{",".join(pods)}]}}'

    assert "is given twice" in str(outcome(text))
    assert outcome(text) == as_a_whole(text)


@pytest.mark.parametrize("escaped", [r"k:{\"ip\":\"10.7.7.7\"}", r"k:{\u0022ip\":\"10.7.7.7\"}"])
def test_there_is_no_stencil_where_another_owner_could_be_the_one_of_a_pods_own_address(escaped: str) -> None:
    text = json.dumps(pod_of(0)).replace(r'"k:{\"ip\"', rf'"{escaped}": {{}}, "k:{{\"ip\"').encode()

    assert stencil_of(text, looked_into(pod_of(0)), JSON) is None


def with_other_access() -> Raw:
    pod = pod_of(0)
    pod["spec"]["volumes"].append({"name": f"{ACCESS}zzzzz", "emptyDir": {}})
    return pod


def with_mark() -> Raw:
    pod = pod_of(0)
    pod["metadata"]["annotations"]["note"] = "podium.gap.1"
    return pod


def too_large() -> Raw:
    pod = pod_of(0)
    pod["metadata"]["annotations"]["note"] = "x" * 100_000
    return pod


@pytest.mark.parametrize("made", [with_other_access, with_mark, too_large])
def test_there_is_no_stencil_of_a_pod_whose_own_names_could_meet_others(made: Callable[[], Raw]) -> None:
    assert stencil_of(text_of(made()), looked_into(made()), JSON) is None


def test_values_repeated_elsewhere_are_not_template_gaps() -> None:
    pods = [pod_of(number) for number in range(3)]
    for pod in pods:
        pod["metadata"]["annotations"]["first"] = pods[0]["metadata"]["name"]
        pod["metadata"]["labels"]["of"] = pods[0]["metadata"]["uid"]
    pods[1]["metadata"]["annotations"]["first"] = pods[1]["metadata"]["name"]
    text = json.dumps(dump(*pods))

    assert stencil(pods[0]).read(text_of(pods[1])) is None
    assert outcome(text) == as_a_whole(text)


def test_the_stencils_of_no_more_owners_are_kept_than_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_stencil, "_MAX_OWNERS", 2)
    stencils = PodStencils(JSON)
    owned = [f'{{"ownerReferences": [{{"uid": "{number}"}}]}}'.encode() for number in range(3)]

    first, second = (stencils.of(text, {}) for text in owned[:2])
    assert stencils.of(owned[0], {}) is first
    stencils.of(owned[2], {})

    assert stencils.of(owned[0], {}) is first
    assert stencils.of(owned[1], {}) is not second


def test_a_list_of_pods_and_one_that_says_the_same_of_its_items_share_no_stencils() -> None:
    stencils = PodStencils(JSON)
    common: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod"}

    assert stencils.of(b"{}", {}) is not stencils.of(b"{}", common)


def test_texts_of_a_length_that_was_seen_are_read_as_all_others() -> None:
    first = stencil(pod_of(0))
    same, longer = pod_of(1), pod_of(2)
    longer["spec"]["nodeName"] = "node-20"
    # As long as the one before, with other things in other places.
    shifted = pod_of(3)
    shifted["metadata"]["uid"] = "uid-33"
    shifted["metadata"]["resourceVersion"] = "3" * 2
    elsewhere = pod_of(4)
    elsewhere["metadata"]["labels"]["app"] = "wob"

    for pod in (same, longer, shifted, same, longer):
        assert read_through(first, text_of(pod)) == looked_into(pod)
    assert first.read(text_of(elsewhere)) is None


@pytest.mark.parametrize("make", [pod_of, pod_of_stateful_set, partial(pod_of, is_bound_by_name=True)])
def test_wire_form_of_a_pod_from_its_template_equals_that_of_its_text(make: Callable[[int], Raw]) -> None:
    first = stencil(make(0))

    for number in range(COUNT):
        text = text_of(make(number))
        read = first.read(text)
        assert read is not None
        encoded = Encoded(read.text, {}, JSON)
        assert encoded.template() is not None
        assert json.dumps(encoded.decode()) == json.dumps(decode(text))
        times = [condition["lastTransitionTime"] for condition in decode(text)["status"]["conditions"]]
        assert times
        assert list(Document("", 1, encoded, read.pod).condition_times()) == times


def test_addresses_in_keys_of_managed_fields_are_part_of_the_template() -> None:
    pods = pod_of(0), pod_of(1)
    first, other = (stencil(pods[0]).read(text_of(pod)) for pod in pods)
    assert first is not None
    assert isinstance(first.text, FilledStencil)
    assert other is not None
    assert isinstance(other.text, FilledStencil)
    template = Encoded(first.text, {}, JSON).template()
    assert template is not None

    # Also if the store has completed the first pod.
    for made in (template, template.on(pods[0], first.text.values)):
        assert made.of(other.text.values)["metadata"]["managedFields"] == pods[1]["metadata"]["managedFields"]
        assert pods[0]["metadata"]["managedFields"] != pods[1]["metadata"]["managedFields"]
