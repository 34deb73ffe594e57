"""Status reports of kubelets and schedulers, written at once."""

from collections.abc import Sequence

from podium.api.meta import Raw
from podium.store.store import Store
from podium.store.stored import Stored, with_conditions


def set_pod_status(store: Store, key: str, fields: Raw, conditions: Sequence[Raw], *, now: int) -> Stored:
    """Set some fields of a pod's status and some of its conditions; a field whose value is None goes."""
    raw = store.get("Pod", key).raw
    status = {**raw["status"], **fields}
    listed = status.get("conditions", [])
    for condition in conditions:
        listed = with_conditions(listed, (condition,), now)
    if listed:
        status["conditions"] = listed
    return store.update_status({**raw, "status": {name: value for name, value in status.items() if value is not None}})
