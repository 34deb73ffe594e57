"""The controller of claims for devices: it makes them from templates, and lets go of them when their pods have ended.

Source: pkg/controller/resourceclaim/controller.go (syncPod, syncClaim).
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.pod import Pod, PodResourceClaim
from podium.api.resource_claims import DELETE_PROTECTION, POD_CLAIM_NAME, ResourceClaim, ResourceClaimTemplate
from podium.machines.actions import Action, CreateObject, DeleteObject, PatchObject
from podium.machines.concerns import CLAIMING, Rest
from podium.machines.machine import UNMOVED
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue

_NAME = "resource-claim-controller"
# How long a pod is waited for that a claim names: kinds may overtake one another on their way.
_UNSEEN_NS = 60 * 10**9
# How long a claim that was made is waited for before another is made (the mutation cache of NewController).
_MADE_NS = 60 * 10**9

_Key = tuple[str, str]
"""What is to be looked at: "Pod" or "ResourceClaim", and its key."""


class ResourceClaims:
    """Makes claims for pods that name templates, takes ended pods off claims, and frees claims that nobody uses.

    What the controller asked for is not asked for again until that has been answered; what it is shown of the same
    object in the meantime it looks at then.
    """

    watches = frozenset(("Pod", "ResourceClaim", "ResourceClaimTemplate"))
    at_rest = Rest(frozenset(("Pod",)), but_pods=CLAIMING)

    def __init__(self) -> None:
        # Pods that want claims made, by key, and those that wait for a template, by its key.
        self._pods: dict[str, Pod] = {}
        self._waiting: dict[str, dict[str, None]] = {}
        # Of all pods, by key. Whether a pod has ended, by uid, and whether it is gone too; of these those are kept that
        # claims name.
        self._uid_of: dict[str, str] = {}
        self._ended: dict[str, bool] = {}
        self._gone: dict[str, bool] = {}
        self._templates: dict[str, Raw] = {}
        self._claims: dict[str, ResourceClaim] = {}
        # The keys of claims by the uid of a pod that may use them, and by that of the pod they were made for.
        self._used_by: dict[str, dict[str, None]] = {}
        self._made_for: dict[str, dict[str, None]] = {}
        # When a pod that a claim names was first missed, by claim and uid.
        self._missed: dict[tuple[str, str], int] = {}
        # When claims were made that are yet to be seen, by the key of the pod and their name in it.
        self._unseen: dict[str, dict[str, int]] = {}
        # How many requests are yet to be answered, and what is to be looked at once more when they are.
        self._asked: dict[_Key, int] = {}
        self._again: set[_Key] = set()
        self._queue: WorkQueue[_Key] = WorkQueue()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to do."""
        # Most of what a cluster shows are pods: they are told without asking what else it might be.
        if isinstance(observation, Changed) and isinstance(pod := observation.object, Pod):
            return [] if self._pod_changed(pod) else UNMOVED
        match observation:
            case Gone(object=Pod() as pod):
                self._pod_gone(pod)
            case Changed(object=ResourceClaim() as claim):
                self._claim_changed(claim)
            case Gone(object=ResourceClaim() as claim):
                self._forget_claim(claim.key)
            case Changed(object=ResourceClaimTemplate() as template, raw=raw):
                self._templates[template.key] = raw
                for key in self._waiting.pop(template.key, ()):
                    self._queue.add(("Pod", key))
            case Gone(object=ResourceClaimTemplate() as template):
                self._templates.pop(template.key, None)
            case Answered(action=CreateObject() | PatchObject() | DeleteObject() as action):
                self._answered(action, observation, now)
            case Tick():
                return self._tick(now)
        return []

    def deadline(self) -> Deadline:
        """When there is something to look at; that it is refused once more is no news."""
        return self._queue.deadline()

    @property
    def rests(self) -> bool:
        """Pods need no claims as long as none names any, and there are none."""
        return not self._claims and not self._pods

    # What the API shows

    def _pod_changed(self, pod: Pod) -> bool:
        """Take in a pod as it is now; whether that concerns any claim."""
        uid = pod.metadata.uid
        before = self._uid_of.get(pod.key, uid)
        if before != uid:
            # Another pod of that name: nobody has seen the one before go, and it has.
            self._has_gone(pod.key, before)
        self._uid_of[pod.key] = uid
        ended = pod.is_terminal or (pod.is_terminating and not pod.spec.node_name)
        changed = self._ended.get(uid) is not ended
        self._ended[uid] = ended
        if ended and changed:
            self._look_at_claims_of(uid)
        claims = pod.spec.resource_claims
        if claims and not ended and any(claim.resource_claim_template_name for claim in claims):
            self._pods[pod.key] = pod
            self._queue.add(("Pod", pod.key))
        else:
            if not self._pods or pod.key not in self._pods:
                return ended and changed and (uid in self._used_by or uid in self._made_for)
            self._forget_pod(pod.key)
        return True

    def _pod_gone(self, pod: Pod) -> None:
        if self._uid_of.get(pod.key) == pod.metadata.uid:
            del self._uid_of[pod.key]
        self._has_gone(pod.key, pod.metadata.uid)

    def _has_gone(self, key: str, uid: str) -> None:
        self._forget_pod(key)
        self._ended[uid] = self._gone[uid] = True
        self._look_at_claims_of(uid)
        self._forget_pods([uid])

    def _forget_pod(self, key: str) -> None:
        """No claims are to be made for a pod."""
        pod = self._pods.pop(key, None)
        if pod is None:
            return
        self._expect_nothing(("Pod", key))
        self._unseen.pop(key, None)
        for resource_claim in pod.spec.resource_claims:
            _drop(self._waiting, f"{pod.metadata.namespace}/{resource_claim.resource_claim_template_name}", key)

    def _look_at_claims_of(self, uid: str) -> None:
        for index in (self._used_by, self._made_for):
            for key in index.get(uid, ()):
                self._queue.add(("ResourceClaim", key))

    def _claim_changed(self, claim: ResourceClaim) -> None:
        before = self._take_out(claim.key)
        self._claims[claim.key] = claim
        for consumer in claim.status.reserved_for:
            self._used_by.setdefault(consumer.uid, {})[claim.key] = None
        owner = claim.metadata.controller
        if owner is not None and owner.kind == "Pod":
            self._made_for.setdefault(owner.uid, {})[claim.key] = None
            pod = f"{claim.metadata.namespace}/{owner.name}"
            if pod in self._pods:
                self._queue.add(("Pod", pod))
        self._queue.add(("ResourceClaim", claim.key))
        self._forget_pods(before)

    def _forget_claim(self, key: str) -> None:
        before = self._take_out(key)
        self._expect_nothing(("ResourceClaim", key))
        self._forget_pods(before)

    def _take_out(self, key: str) -> list[str]:
        """Forget what a claim says; returns the uids of the pods that it named."""
        claim = self._claims.pop(key, None)
        if claim is None:
            return []
        uids = [consumer.uid for consumer in claim.status.reserved_for]
        for uid in uids:
            _drop(self._used_by, uid, key)
        owner = claim.metadata.controller
        if owner is not None and owner.kind == "Pod":
            _drop(self._made_for, owner.uid, key)
            uids.append(owner.uid)
        return uids

    def _forget_pods(self, uids: list[str]) -> None:
        """Forget pods that have ended, and that no claim names any more."""
        for uid in uids:
            if uid not in self._used_by and uid not in self._made_for:
                for missed in [waiting for waiting in self._missed if waiting[1] == uid]:
                    del self._missed[missed]
                if self._gone.pop(uid, False):
                    del self._ended[uid]

    def _expect_nothing(self, item: _Key) -> None:
        self._asked.pop(item, None)
        self._again.discard(item)
        self._queue.forget(item)

    # What is done

    def _answered(self, action: CreateObject | PatchObject | DeleteObject, answered: Answered, now: int) -> None:
        key = _key_of(action)
        left = self._asked.get(key, 0) - 1
        if left > 0:
            self._asked[key] = left
        else:
            self._asked.pop(key, None)
            if key in self._again:
                self._again.discard(key)
                self._queue.add(key)
        self._queue.answer(key, answered, now)
        if isinstance(action, CreateObject) and answered.problem is None and key[1] in self._pods:
            name = action.raw["metadata"]["annotations"][POD_CLAIM_NAME]
            self._unseen.setdefault(key[1], {})[name] = now
            self._queue.add(key)

    def _tick(self, now: int) -> list[Action]:
        actions: list[Action] = []
        while (item := self._queue.take(now)) is not None:
            if item in self._asked:
                self._again.add(item)
                continue
            kind, key = item
            asked = self._for_pod(key, now) if kind == "Pod" else self._for_claim(key, now)
            if asked:
                self._asked[item] = len(asked)
                actions += asked
        return actions

    def _for_pod(self, key: str, now: int) -> list[Action]:
        """Make the claims that a pod lacks, and tell it their names once all are there."""
        pod = self._pods.get(key)
        if pod is None:
            return []
        known = {
            resource_claim_status.name: resource_claim_status.resource_claim_name
            for resource_claim_status in pod.status.resource_claim_statuses
        }
        made = {self._claims[claim].metadata.annotations.get(POD_CLAIM_NAME): claim for claim in self._made_by(pod)}
        actions: list[Action] = []
        wanted, lacks = dict(known), False
        for resource_claim in pod.spec.resource_claims:
            if resource_claim.resource_claim_template_name is None or resource_claim.name in known:
                continue
            if resource_claim.name in made:
                wanted[resource_claim.name] = self._claims[made[resource_claim.name]].metadata.name
                self._unseen.get(key, {}).pop(resource_claim.name, None)
                continue
            if self._is_on_its_way(key, resource_claim.name, now):
                lacks = True
                continue
            template = f"{pod.metadata.namespace}/{resource_claim.resource_claim_template_name}"
            if template in self._templates:
                actions.append(CreateObject(_claim(pod, resource_claim, self._templates[template]), _NAME))
            else:
                self._waiting.setdefault(template, {})[key] = None
        if actions or lacks or wanted == known:
            return actions
        statuses = [
            {"name": name, **({} if claim is None else {"resourceClaimName": claim})} for name, claim in wanted.items()
        ]
        # Whoever has an old sight of the pod must not take a name from it that it may be bound with.
        version = pod.metadata.resource_version
        condition = {"metadata": {"resourceVersion": version}} if version else {}
        patch = {**condition, "status": {"resourceClaimStatuses": statuses}}
        return [PatchObject("Pod", key, pod.metadata.uid, patch, _NAME, "status")]

    def _is_on_its_way(self, pod: str, name: str, now: int) -> bool:
        """Whether a pod's claim was made a short while ago, and may be yet to be seen."""
        made_ns = self._unseen.get(pod, {}).get(name)
        if made_ns is None or made_ns + _MADE_NS <= now:
            return False
        self._queue.add_at(("Pod", pod), made_ns + _MADE_NS)
        return True

    def _made_by(self, pod: Pod) -> list[str]:
        return [
            key
            for key in sorted(self._made_for.get(pod.metadata.uid, ()))
            if self._claims[key].metadata.deletion_timestamp is None
        ]

    def _for_claim(self, key: str, now: int) -> list[Action]:
        """Take ended pods off a claim; free it when it loses the last, and delete it with the pod it was made for."""
        claim = self._claims.get(key)
        if claim is None:
            return []
        used_by = [consumer for consumer in claim.status.reserved_for if not self._is_over(key, consumer.uid, now)]
        is_protected = DELETE_PROTECTION in claim.metadata.finalizers
        is_deleted = claim.metadata.deletion_timestamp is not None
        if len(used_by) < len(claim.status.reserved_for):
            left = [{"resource": consumer.resource, "name": consumer.name, "uid": consumer.uid} for consumer in used_by]
            return [_patch(claim, {"reservedFor": left, **({} if used_by else _FREED)})]
        if used_by:
            return []
        if claim.is_allocated:
            return [_patch(claim, _FREED)] if is_deleted and is_protected else []
        if is_protected:
            left_over = [finalizer for finalizer in claim.metadata.finalizers if finalizer != DELETE_PROTECTION]
            patch = {"metadata": {"resourceVersion": claim.metadata.resource_version, "finalizers": left_over}}
            return [PatchObject("ResourceClaim", key, claim.metadata.uid, patch, _NAME)]
        owner = claim.metadata.controller
        if owner is not None and owner.kind == "Pod" and self._ended.get(owner.uid) and not is_deleted:
            return [DeleteObject("ResourceClaim", key, claim.metadata.uid, _NAME)]
        return []

    def _is_over(self, claim: str, uid: str, now: int) -> bool:
        """Whether a pod that may use a claim has ended; one that was never seen has, after a while."""
        if uid in self._ended:
            self._missed.pop((claim, uid), None)
            return self._ended[uid]
        since = self._missed.setdefault((claim, uid), now)
        if now < since + _UNSEEN_NS:
            self._queue.add_at(("ResourceClaim", claim), since + _UNSEEN_NS)
            return False
        return True


def _drop(index: dict[str, dict[str, None]], uid: str, key: str) -> None:
    keys = index.get(uid, {})
    keys.pop(key, None)
    if not keys:
        index.pop(uid, None)


_FREED: Raw = {"allocation": None, "devices": None}


def _patch(claim: ResourceClaim, status: Raw) -> PatchObject:
    patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
    return PatchObject("ResourceClaim", claim.key, claim.metadata.uid, patch, _NAME, "status")


def _claim(pod: Pod, pod_claim: PodResourceClaim, template: Raw) -> Raw:
    """The claim that a pod wants made."""
    like = template["spec"].get("metadata", {})
    meta = pod.metadata
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: Raw = {
        "generateName": f"{meta.name}-{pod_claim.name}-",
        "namespace": meta.namespace,
        "annotations": {**like.get("annotations", {}), POD_CLAIM_NAME: pod_claim.name},
        "ownerReferences": [owner],
    }
    if like.get("labels"):
        metadata["labels"] = like["labels"]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": template["spec"].get("spec", {}),
    }


def _key_of(action: CreateObject | PatchObject | DeleteObject) -> _Key:
    """Whose turn it was that an action was asked for."""
    if isinstance(action, CreateObject):
        metadata = action.raw["metadata"]
        return "Pod", f"{metadata['namespace']}/{metadata['ownerReferences'][0]['name']}"
    return action.kind, action.key
