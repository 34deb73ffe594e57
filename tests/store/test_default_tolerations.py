"""How long new pods tolerate failures of their node (plugin/pkg/admission/defaulttolerationseconds)."""

from typing import Any

import pytest

from podium.store.admission.pod_admission import DEFAULT_TOLERATIONS
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import Raw, pod

NOT_READY, UNREACHABLE = DEFAULT_TOLERATIONS


def tolerations(raw: Raw) -> Any:
    return Store().create(raw, now=0).raw["spec"].get("tolerations")


def tolerating(*given: Raw) -> Raw:
    return pod("web", spec={"tolerations": list(given)})


def test_a_new_pod_tolerates_for_5_minutes_that_its_node_is_not_ready_or_unreachable() -> None:
    assert tolerations(pod("web")) == [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for name in ("not-ready", "unreachable")
    ]


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({"key": "gpu", "operator": "Exists"}, [NOT_READY, UNREACHABLE]),
        ({"operator": "Exists"}, []),
        ({"operator": "Exists", "effect": "NoExecute"}, []),
        ({"operator": "Exists", "effect": "NoSchedule"}, [NOT_READY, UNREACHABLE]),
        ({**NOT_READY, "tolerationSeconds": 5}, [UNREACHABLE]),
        ({"key": NOT_READY["key"], "operator": "Exists"}, [UNREACHABLE]),
        ({"key": UNREACHABLE["key"], "operator": "Exists", "effect": "NoSchedule"}, [NOT_READY, UNREACHABLE]),
    ],
)
def test_a_pod_that_says_itself_how_long_is_left_alone(given: Raw, added: list[Raw]) -> None:
    assert tolerations(tolerating(given)) == [given, *added]


def test_a_pod_that_was_in_a_cluster_before_has_what_it_has() -> None:
    assert tolerations(pod("web", metadata={"uid": "web"})) is None


def test_an_update_that_leaves_them_out_does_not_take_them_away() -> None:
    store = Store()
    stored = store.create(pod("web"), now=0).raw
    own = {"key": "gpu", "operator": "Exists"}

    changed = store.update({**stored, "spec": {**stored["spec"], "tolerations": [own]}}).raw
    again = store.update({**changed, "spec": {**changed["spec"], "tolerations": [{"operator": "Exists"}, own]}}).raw

    assert changed["spec"]["tolerations"] == [own, NOT_READY, UNREACHABLE]
    assert again["spec"]["tolerations"] == [{"operator": "Exists"}, own, NOT_READY, UNREACHABLE]


def test_an_update_adds_none_that_were_not_there() -> None:
    store = Store()
    stored = store.create(pod("web", metadata={"uid": "web"}), now=0).raw

    labelled = store.update({**stored, "metadata": {**stored["metadata"], "labels": {"app": "web"}}}).raw

    assert "tolerations" not in labelled["spec"]


def test_their_seconds_can_be_changed() -> None:
    store = Store()
    stored = store.create(pod("web"), now=0).raw
    longer = [{**NOT_READY, "tolerationSeconds": 600}, UNREACHABLE]

    changed = store.update({**stored, "spec": {**stored["spec"], "tolerations": longer}}).raw

    assert changed["spec"]["tolerations"] == longer


@pytest.mark.parametrize("wrong", [5, "all", {"key": "gpu"}, ["gpu"], [5]])
def test_invalid_tolerations_are_rejected(wrong: Any) -> None:
    store = Store()
    with pytest.raises(StoreError, match="tolerations"):
        store.create(pod("web", spec={"tolerations": wrong}), now=0)

    stored = store.create(pod("web"), now=0).raw
    with pytest.raises(StoreError, match="tolerations"):
        store.update({**stored, "spec": {**stored["spec"], "tolerations": wrong}})
