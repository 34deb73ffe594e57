"""metadata.managedFields, which only the server writes."""

from typing import Any

import pytest

from podium.store.store import Store
from tests.pod_statuses import set_pod_status
from tests.store.objects import pod

MANAGERS = [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]


def managed(store: Store) -> Any:
    return store.get("Pod", "default/web").raw["metadata"].get("managedFields")


@pytest.mark.parametrize("sent", [None, [], [{"manager": "another"}]], ids=["nothing", "none", "others"])
def test_the_managers_of_an_object_outlast_its_updates(sent: list[Any] | None) -> None:
    store = Store()
    stored = store.create(pod("web", metadata={"managedFields": MANAGERS}), now=0)
    metadata = {name: one for name, one in stored.raw["metadata"].items() if name != "managedFields"}
    if sent is not None:
        metadata["managedFields"] = sent

    unchanged = store.update({**stored.raw, "metadata": metadata})
    assert unchanged is stored
    changed = store.update({**stored.raw, "metadata": {**metadata, "labels": {"a": "b"}}})
    assert changed.version == stored.version + 1
    assert managed(store) == MANAGERS


def test_managed_fields_are_not_added_to_an_object_without_managers() -> None:
    store = Store()
    store.create(pod("web"), now=0)

    store.patch("Pod", "default/web", {"metadata": {"managedFields": MANAGERS, "labels": {"a": "b"}}}, "merge")
    set_pod_status(store, "default/web", {"phase": "Running"}, [], now=0)

    assert managed(store) is None
