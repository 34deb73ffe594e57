"""The controllers of ResourceClaims and ephemeral volumes: they create claims, and release those of ended pods.

Source: pkg/controller/resourceclaim/controller.go (syncPod, syncClaim), pkg/controller/volume/ephemeral.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from podium.api.devices import DELETE_PROTECTION, POD_CLAIM_NAME, ResourceClaim, ResourceClaimTemplate
from podium.api.meta import Kubernetes, OwnerReference, Raw
from podium.api.pod import Pod, PodResourceClaim
from podium.api.storage import PersistentVolumeClaim
from podium.controllers import actions
from podium.controllers.actions import Action, CreateObject, PatchObject, deletion_of, owner_reference, versioned_patch
from podium.controllers.controller import CLAIMING, NO_CHANGE, IdleDeferral, Reconciler
from podium.controllers.indexes import MultiMap, exchange
from podium.controllers.observations import ActionFinished, Changed

_NAME = "resource-claim-controller"
# How long an unobserved consumer is waited for, because kinds may be observed out of order.
_UNSEEN_NS = 60 * 10**9
# How long a created claim is waited for (the mutation cache of NewController).
_MADE_NS = 60 * 10**9

_MAX_CONSUMERS = 256

_Key = tuple[str, str]
"""An item of the queue: "Pod" or "ResourceClaim", and a key."""


class ResourceClaims(Reconciler[_Key]):
    """Creates claims for templates in pods, reserves claims for placed pods, and releases those of ended pods."""

    watches = frozenset(("Pod", "ResourceClaim", "ResourceClaimTemplate"))
    idle_deferral = IdleDeferral(frozenset(("Pod",)), unless=CLAIMING)
    awaits_answers = True

    def __init__(self) -> None:
        super().__init__()
        # Pods that need claims by key, and the pods that wait for a template or an allocation, by its key.
        self._pods: dict[str, Pod] = {}
        self._waiting: MultiMap[str, str] = MultiMap()
        # The names of deleted claims that were made for a pod, by its key.
        self._lost: MultiMap[str, str] = MultiMap()
        # The uids of all pods, by key.
        self._uid_of: dict[str, str] = {}
        self._templates: dict[str, Raw] = {}
        self.claims = ClaimIndex()
        # When unobserved claims were created, by the key of the pod and their name in it.
        self._unseen: dict[str, dict[str, int]] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether no pod needs claims, and none exist."""
        return not self.claims and not self._pods

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        key = object_.key
        if isinstance(object_, Pod) and shown is not None:
            return [] if self._pod_changed(object_) else NO_CHANGE
        if isinstance(object_, Pod):
            if self._uid_of.get(key) == object_.metadata.uid:
                del self._uid_of[key]
            self._pod_gone(key, object_.metadata.uid)
        elif isinstance(object_, ResourceClaim):
            self.claims.put(key, None if shown is None else object_)
            owner = pod_made_for(object_)
            pod = "" if owner is None else f"{object_.metadata.namespace}/{owner.name}"
            if pod in self._pods:
                self._queue.add(("Pod", pod))
                if shown is None:
                    self._lost.add(pod, object_.metadata.name)
            if shown is None:
                self._forget(("ResourceClaim", key))
            else:
                self._queue.add(("ResourceClaim", key))
                self._queue.add_all(("Pod", pod) for pod in self._waiting.pop(key, ()))
        elif isinstance(object_, ResourceClaimTemplate):
            exchange(self._templates, key, None if shown is None else shown.raw)
            if shown is not None:
                self._queue.add_all(("Pod", pod) for pod in self._waiting.pop(key, ()))
        return []

    def _pod_changed(self, pod: Pod) -> bool:
        """Take in a pod; return whether that concerns any claim."""
        uid = pod.metadata.uid
        before = self._uid_of.get(pod.key, uid)
        if before != uid:
            # Another pod has the name, so the one before is gone.
            self._pod_gone(pod.key, before)
        self._uid_of[pod.key] = uid
        ended = pod.is_terminal or (pod.is_terminating and not pod.spec.node_name)
        has_ended = ended and not self.claims.ended.get(uid)
        self.claims.ended[uid] = ended
        if has_ended:
            self._add_claims_of(uid)
        claims = pod.spec.resource_claims
        needs_claims = any(pod.spec.node_name or claim.resource_claim_template_name for claim in claims)
        if needs_claims and not ended and not pod.is_terminating:
            self._pods[pod.key] = pod
            self._queue.add(("Pod", pod.key))
            return True
        if not self._pods or pod.key not in self._pods:
            return has_ended and bool(self.claims.naming(uid))
        self._forget_pod(pod.key)
        return True

    def _pod_gone(self, key: str, uid: str) -> None:
        self._forget_pod(key)
        self._add_claims_of(uid)
        self.claims.pod_gone(uid)

    def _forget_pod(self, key: str) -> None:
        pod = self._pods.pop(key, None)
        if pod is None:
            return
        self._forget(("Pod", key))
        self._unseen.pop(key, None)
        self._lost.pop(key, ())
        named = [(one.resource_claim_template_name, one.resource_claim_name) for one in pod.spec.resource_claims]
        named += [("", one.resource_claim_name) for one in pod.status.resource_claim_statuses]
        self._waiting.replace(key, (f"{pod.metadata.namespace}/{name}" for name in chain(*named)), ())

    def _add_claims_of(self, uid: str) -> None:
        self._queue.add_all(("ResourceClaim", key) for key in self.claims.naming(uid))

    def _handle_answer(self, key: _Key, finished: ActionFinished, now: int) -> list[Action]:
        if isinstance(finished.action, CreateObject) and finished.problem is None:
            name = finished.action.raw["metadata"]["annotations"][POD_CLAIM_NAME]
            self._unseen.setdefault(key[1], {})[name] = now
            self._queue.add(key)
        return super()._handle_answer(key, finished, now)

    def _reconcile(self, key: _Key, now: int) -> list[Action]:
        kind, name = key
        return self._for_pod(name, now) if kind == "Pod" else self._for_claim(name, now)

    def _for_pod(self, key: str, now: int) -> list[Action]:
        """Create the claims that a pod lacks, and write their names to it when all exist."""
        pod = self._pods.get(key)
        if pod is None:
            return []
        named = ((status.name, status.resource_claim_name) for status in pod.status.resource_claim_statuses)
        known = {name: claim for name, claim in named if claim not in self._lost.get(key, ())}
        metas = (claim.metadata for claim in self.claims.made_for(pod.metadata.uid))
        made = {meta.annotations.get(POD_CLAIM_NAME): meta.name for meta in metas}
        creations: list[Action] = []
        wanted, lacks = dict(known), False
        for claim in pod.spec.resource_claims:
            if claim.resource_claim_template_name is None or claim.name in known:
                continue
            template = f"{pod.metadata.namespace}/{claim.resource_claim_template_name}"
            if claim.name in made:
                wanted[claim.name] = made[claim.name]
                self._unseen.get(key, {}).pop(claim.name, None)
            elif self._is_on_its_way(key, claim.name, now):
                lacks = True
            elif template in self._templates:
                raw = device_claim(pod, pod.metadata.uid, claim, self._templates[template])
                creations.append(CreateObject(raw, _NAME))
            else:
                self._waiting.add(template, key)
        if creations or lacks or wanted == known:
            return creations or [*self._reservations(pod, wanted)]
        statuses = [
            {"name": name, **({} if claim is None else {"resourceClaimName": claim})} for name, claim in wanted.items()
        ]
        # A scheduler must not bind the pod with an outdated name.
        version = pod.metadata.resource_version
        condition = {"metadata": {"resourceVersion": version}} if version else {}
        patch = {**condition, "status": {"resourceClaimStatuses": statuses}}
        return [PatchObject("Pod", key, pod.metadata.uid, patch, _NAME, "status")]

    def _reservations(self, pod: Pod, made: Mapping[str, str | None]) -> Iterator[Action]:
        """Yield the reservations that a pod with a node lacks; ``made`` are the names of claims from templates."""
        meta = pod.metadata
        for stated in pod.spec.resource_claims if pod.spec.node_name else ():
            name = stated.resource_claim_name or made.get(stated.name)
            claim = self.claims.get(f"{meta.namespace}/{name}")
            if claim is None or not claim.is_allocated:
                self._waiting.add(f"{meta.namespace}/{name}", pod.key)
            elif not claim.is_reserved_for(meta.uid) and len(claim.status.reserved_for) < _MAX_CONSUMERS:
                yield actions.ReserveClaim(claim.key, claim.metadata.uid, pod.key, meta.uid)

    def _is_on_its_way(self, pod: str, name: str, now: int) -> bool:
        """Return whether a pod's claim was created recently and may not be observed yet."""
        made_ns = self._unseen.get(pod, {}).get(name)
        if made_ns is None or made_ns + _MADE_NS <= now:
            return False
        self._queue.add_by(("Pod", pod), made_ns + _MADE_NS)
        return True

    def _for_claim(self, key: str, now: int) -> list[Action]:
        """Remove ended pods from a claim; deallocate it without consumers, and delete it with its pod."""
        claim = self.claims.get(key)
        if claim is None:
            return []
        used_by = [consumer for consumer in claim.status.reserved_for if not self._is_over(key, consumer.uid, now)]
        is_protected = DELETE_PROTECTION in claim.metadata.finalizers
        is_deleted = claim.metadata.deletion_timestamp is not None
        if len(used_by) < len(claim.status.reserved_for):
            left = [{"resource": consumer.resource, "name": consumer.name, "uid": consumer.uid} for consumer in used_by]
            status = {"reservedFor": left, **({} if used_by else _FREED)}
            return [versioned_patch(claim, {"status": status}, _NAME, "status")]
        if used_by:
            return []
        if claim.is_allocated:
            is_over = is_deleted and is_protected
            return [versioned_patch(claim, {"status": _FREED}, _NAME, "status")] if is_over else []
        if is_protected:
            left_over = [finalizer for finalizer in claim.metadata.finalizers if finalizer != DELETE_PROTECTION]
            return [versioned_patch(claim, {"metadata": {"finalizers": left_over}}, _NAME)]
        owner = pod_made_for(claim)
        if owner is not None and self.claims.ended.get(owner.uid) and not is_deleted:
            return [deletion_of(claim, _NAME)]
        return []

    def _is_over(self, claim: str, uid: str, now: int) -> bool:
        """Return whether a consumer has ended; one that was never observed has, after a while."""
        if uid in self.claims.ended:
            self.claims.missed.pop((claim, uid), None)
            return self.claims.ended[uid]
        since = self.claims.missed.setdefault((claim, uid), now)
        if now < since + _UNSEEN_NS:
            self._queue.add_by(("ResourceClaim", claim), since + _UNSEEN_NS)
            return False
        return True


_FREED: Raw = {"allocation": None, "devices": None}


class ClaimIndex(dict[str, ResourceClaim]):
    """Claims by key, and by the uids of their consumers and owners; change it by `put`.

    It knows whether a pod has ended for all existing pods, and for deleted ones that a claim names.
    """

    def __init__(self) -> None:
        super().__init__()
        # By the uid of a pod, the keys of the claims that it uses, or that were created for it.
        self._naming: MultiMap[str, str] = MultiMap()
        self.ended: dict[str, bool] = {}
        """By uid, whether a pod has ended."""
        self._gone: set[str] = set()
        self.missed: dict[tuple[str, str], int] = {}
        """When an unobserved consumer was first missed, by claim and uid."""

    def put(self, key: str, claim: ResourceClaim | None) -> None:
        """Add, replace or remove a claim."""
        before = _pods_of(exchange(self, key, claim))
        self._naming.replace(key, before, _pods_of(claim))
        self._forget_pods(before)

    def pod_gone(self, uid: str) -> None:
        self.ended[uid] = True
        self._gone.add(uid)
        self._forget_pods([uid])

    def naming(self, uid: str) -> list[str]:
        """Return the keys of the claims that name a pod as consumer or owner."""
        return list(self._naming.get(uid, ()))

    def made_for(self, uid: str) -> list[ResourceClaim]:
        """Return the claims that were created for a pod and are not deleted, by key."""
        claims = (self[key] for key in sorted(self._naming.get(uid, ())))
        staying = (claim for claim in claims if claim.metadata.deletion_timestamp is None)
        return [claim for claim in staying if (owner := pod_made_for(claim)) is not None and owner.uid == uid]

    def _forget_pods(self, uids: Iterable[str]) -> None:
        """Forget deleted pods that no claim names."""
        for uid in uids:
            if uid in self._naming:
                continue
            for missed in [waiting for waiting in self.missed if waiting[1] == uid]:
                del self.missed[missed]
            if uid in self._gone:
                self._gone.discard(uid)
                del self.ended[uid]


def _pods_of(claim: ResourceClaim | None) -> list[str]:
    if claim is None:
        return []
    owner = pod_made_for(claim)
    return [*(consumer.uid for consumer in claim.status.reserved_for), *(() if owner is None else (owner.uid,))]


def pod_made_for(claim: ResourceClaim) -> OwnerReference | None:
    """Return the reference to the pod that a claim was created for, or None."""
    owner = claim.metadata.controller
    return owner if owner is not None and owner.kind == "Pod" else None


def device_claim(pod: Pod, uid: str, pod_claim: PodResourceClaim, template: Raw) -> Raw:
    """Return the ResourceClaim for a pod with that uid, with a generated name.

    Source: pkg/controller/resourceclaim, handleClaim.
    """
    spec = template.get("spec", {})
    like, meta = spec.get("metadata", {}), pod.metadata
    metadata: Raw = {
        "generateName": f"{meta.name}-{pod_claim.name}-",
        "namespace": meta.namespace,
        "annotations": {**like.get("annotations", {}), POD_CLAIM_NAME: pod_claim.name},
        "ownerReferences": [{**owner_reference(pod), "uid": uid}],
        **({"labels": like["labels"]} if like.get("labels") else {}),
    }
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
    return {**claim, "spec": spec.get("spec", {})}


def volume_claims(pod: Pod, uid: str) -> Iterator[Raw]:
    """Yield the PersistentVolumeClaims of a pod's ephemeral volumes, in their order."""
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template
            like = template.get("metadata", {})
            metadata: Raw = {
                "name": f"{pod.metadata.name}-{volume.name}",
                "namespace": pod.metadata.namespace,
                "ownerReferences": [{**owner_reference(pod), "uid": uid}],
                **{field: like[field] for field in ("annotations", "labels") if like.get(field)},
            }
            spec = template.get("spec", {})
            yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


_EPHEMERAL_VOLUME_CONTROLLER = "ephemeral-volume-controller"


class EphemeralVolumes(Reconciler[str]):
    """Creates the claims of ephemeral volumes of pods (by key), again if they are deleted.

    If another claim has the name, the pod waits until it is gone. The garbage collector deletes claims with their pods.
    """

    watches = frozenset(("Pod", "PersistentVolumeClaim"))
    pod_aspects = CLAIMING
    awaits_answers = True

    def __init__(self) -> None:
        super().__init__()
        # By the pod's key, its claims by key; by the claim's key, the pods that need it.
        self._wanted: dict[str, dict[str, Raw]] = {}
        self._naming: MultiMap[str, str] = MultiMap()
        # The keys of existing claims.
        self._there: set[str] = set()

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        key, meta = object_.key, object_.metadata
        if isinstance(object_, PersistentVolumeClaim) and shown is not None:
            self._there.add(key)
        elif isinstance(object_, PersistentVolumeClaim):
            self._there.discard(key)
            self._queue.add_all(self._naming.get(key, ()))
        if not isinstance(object_, Pod):
            return []
        claims = () if shown is None or object_.is_terminating else volume_claims(object_, meta.uid)
        wanted = {f"{meta.namespace}/{claim['metadata']['name']}": claim for claim in claims}
        before = exchange(self._wanted, key, wanted or None) or {}
        if wanted == before:
            return NO_CHANGE
        self._naming.replace(key, before, wanted)
        self._forget(key)
        if wanted:
            self._queue.add(key)
        return []

    def _reconcile(self, key: str, now: int) -> list[Action]:
        lacking = (raw for claim, raw in self._wanted.get(key, {}).items() if claim not in self._there)
        return [CreateObject(raw, _EPHEMERAL_VOLUME_CONTROLLER) for raw in lacking]
