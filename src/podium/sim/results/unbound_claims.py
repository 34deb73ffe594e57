"""Claims that pods wait for at the end of a run, and that nobody in a simulation binds."""

from __future__ import annotations

from collections.abc import Iterator

from podium.api.basis import Caveat, caveat_of
from podium.api.pod import Pod
from podium.api.storage import PersistentVolumeClaim, StorageClass
from podium.cluster.pod_class import claim_names
from podium.store.store import Store


def unbound_claims(store: Store) -> Iterator[Caveat]:
    """That claims are left that a scheduler leaves to the persistent volume controller, if there are any."""
    pods = (stored.object for stored in store.objects("Pod"))
    waiting = [pod for pod in pods if isinstance(pod, Pod) and pod.waits_for_node]
    mounted = {f"{pod.metadata.namespace}/{name}" for pod in waiting for name in claim_names(pod.metadata, pod.spec)}
    keys = [key for key in sorted(mounted) if _is_left(store, key)]
    if keys:
        count = f"{len(keys):,} claim{'' if len(keys) == 1 else 's'}"
        message = f"{count} that no scheduler binds, as the class binds at once or is not there: nobody does here"
        yield caveat_of("claims-unbound", message, keys)


def _is_left(store: Store, key: str) -> bool:
    stored = store.find("PersistentVolumeClaim", key)
    if stored is None or not isinstance(claim := stored.object, PersistentVolumeClaim) or claim.status.phase == "Bound":
        return False
    found = store.find("StorageClass", claim.class_name)
    binds_late = isinstance(of := found and found.object, StorageClass) and of.volume_binding_mode != "Immediate"
    return not binds_late or bool(claim.spec.volume_name)
