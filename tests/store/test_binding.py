"""Binding a pod to a node: scenario rows 43 and 44 (TestDefaultBinder, TestEtcdCreateBinding)."""

import pytest

from podium.api.pod import Pod
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.pod_statuses import set_pod_status
from tests.store.objects import SECOND, Raw, pod
from tests.store.refusals import answer, refusal


def test_binding_sets_node_and_condition_and_clears_the_nomination_in_one_version() -> None:
    store = Store()
    store.create(pod("web", status={"nominatedNodeName": "n2"}), now=0)

    bound = store.bind("default/web", "n1", now=SECOND)

    assert isinstance(bound.object, Pod)
    assert store.version == 2
    assert bound.object.spec.node_name == bound.raw["spec"]["nodeName"] == "n1"
    assert bound.object.nominated_node_name == bound.raw["status"].get("nominatedNodeName", "") == ""
    condition = bound.object.status.condition("PodScheduled")
    assert condition is not None
    assert condition.status == "True"
    assert bound.object.metadata.generation == 1


def test_a_binding_for_the_right_uid_is_taken() -> None:
    store = Store()
    uid = store.create(pod("web"), now=0).uid

    assert store.bind("default/web", "n1", now=0, uid=uid).version == 2


@pytest.mark.parametrize(
    ("raw", "uid", "message"),
    [
        (pod("web", node="n1"), "", "is already assigned to node n1"),
        (pod("web", spec={"schedulingGates": [{"name": "example.com/quota"}]}), "", "schedulingGates"),
        (pod("web"), "someone-else", "has uid"),
        (
            pod("web", metadata={"finalizers": ["example.com/a"], "deletionTimestamp": "1970-01-01T00:00:00Z"}),
            "",
            "is being deleted",
        ),
    ],
)
def test_a_pod_that_cannot_be_bound_conflicts_and_stays_as_it_is(raw: Raw, uid: str, message: str) -> None:
    store = Store()
    before = store.create(raw, now=0)

    with pytest.raises(StoreError, match=message) as caught:
        store.bind("default/web", "n2", now=0, uid=uid)

    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert store.get("Pod", "default/web") is before


def test_a_pod_that_does_not_exist_cannot_be_bound() -> None:
    with pytest.raises(StoreError) as caught:
        Store().bind("default/web", "n1", now=0)

    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


def test_a_binding_for_an_older_version_conflicts() -> None:
    store = Store()
    store.create(pod("web"), now=0)
    set_pod_status(store, "default/web", {"nominatedNodeName": "n1"}, [], now=0)

    error = refusal(store, lambda: store.bind("default/web", "n1", now=0, resource_version="1"))

    assert answer(error) == (409, "Conflict")
    assert store.bind("default/web", "n1", now=0, resource_version="2").version == 3


@pytest.mark.parametrize(("kind", "name"), [("Pod", "n1"), ("Node", "")])
def test_a_target_that_is_no_node_is_answered_as_the_api_server_does(kind: str, name: str) -> None:
    store = Store()
    store.create(pod("web"), now=0)

    error = refusal(store, lambda: store.bind("default/web", name, now=0, target_kind=kind))

    assert answer(error) == (500, "")
    assert "reason" not in error.to_dict()


def test_a_pod_gets_the_labels_and_annotations_of_its_binding() -> None:
    store = Store()
    store.create(pod("web", metadata={"labels": {"app": "web", "track": "a"}}), now=0)

    bound = store.bind("default/web", "n1", now=0, marks={"annotations": {"by": "me"}, "labels": {"track": "b"}})

    metadata = bound.object.metadata
    assert metadata.labels == bound.raw["metadata"]["labels"] == {"app": "web", "track": "b"}
    assert metadata.annotations == bound.raw["metadata"]["annotations"] == {"by": "me"}
