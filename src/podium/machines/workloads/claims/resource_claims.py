"""The controller of claims for devices: it makes them from templates, and lets go of them when their pods have ended.

Source: pkg/controller/resourceclaim/controller.go (syncPod, syncClaim).
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.resource_claims import DELETE_PROTECTION, POD_CLAIM_NAME, ResourceClaim, ResourceClaimTemplate
from podium.machines.actions import Action, CreateObject, DeleteObject, PatchObject
from podium.machines.concerns import CLAIMING, Rest
from podium.machines.machine import UNMOVED
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue
from podium.machines.workloads.claims.claim_index import ClaimIndex, drop, pod_made_for
from podium.machines.workloads.claims.made_claims import device_claim

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
        # Of all pods, by key.
        self._uid_of: dict[str, str] = {}
        self._templates: dict[str, Raw] = {}
        self.claims = ClaimIndex()
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
        return not self.claims and not self._pods

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
        has_ended = self.claims.pod_seen(uid, ended=ended)
        if has_ended:
            self._look_at_claims_of(uid)
        claims = pod.spec.resource_claims
        if claims and not ended and any(claim.resource_claim_template_name for claim in claims):
            self._pods[pod.key] = pod
            self._queue.add(("Pod", pod.key))
        else:
            if not self._pods or pod.key not in self._pods:
                return has_ended and self.claims.names(uid)
            self._forget_pod(pod.key)
        return True

    def _pod_gone(self, pod: Pod) -> None:
        if self._uid_of.get(pod.key) == pod.metadata.uid:
            del self._uid_of[pod.key]
        self._has_gone(pod.key, pod.metadata.uid)

    def _has_gone(self, key: str, uid: str) -> None:
        self._forget_pod(key)
        self._look_at_claims_of(uid)
        self.claims.pod_gone(uid)

    def _forget_pod(self, key: str) -> None:
        """No claims are to be made for a pod."""
        pod = self._pods.pop(key, None)
        if pod is None:
            return
        self._expect_nothing(("Pod", key))
        self._unseen.pop(key, None)
        for resource_claim in pod.spec.resource_claims:
            drop(self._waiting, f"{pod.metadata.namespace}/{resource_claim.resource_claim_template_name}", key)

    def _look_at_claims_of(self, uid: str) -> None:
        for key in self.claims.naming(uid):
            self._queue.add(("ResourceClaim", key))

    def _claim_changed(self, claim: ResourceClaim) -> None:
        self.claims.put(claim)
        owner = pod_made_for(claim)
        if owner is not None and owner.key in self._pods:
            self._queue.add(("Pod", owner.key))
        self._queue.add(("ResourceClaim", claim.key))

    def _forget_claim(self, key: str) -> None:
        self.claims.remove(key)
        self._expect_nothing(("ResourceClaim", key))

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
        made = {
            claim.metadata.annotations.get(POD_CLAIM_NAME): claim.metadata.name
            for claim in self.claims.made_for(pod.metadata.uid)
        }
        actions: list[Action] = []
        wanted, lacks = dict(known), False
        for resource_claim in pod.spec.resource_claims:
            if resource_claim.resource_claim_template_name is None or resource_claim.name in known:
                continue
            if resource_claim.name in made:
                wanted[resource_claim.name] = made[resource_claim.name]
                self._unseen.get(key, {}).pop(resource_claim.name, None)
                continue
            if self._is_on_its_way(key, resource_claim.name, now):
                lacks = True
                continue
            template = f"{pod.metadata.namespace}/{resource_claim.resource_claim_template_name}"
            if template in self._templates:
                actions.append(
                    CreateObject(device_claim(pod, pod.metadata.uid, resource_claim, self._templates[template]), _NAME)
                )
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

    def _for_claim(self, key: str, now: int) -> list[Action]:
        """Take ended pods off a claim; free it when it loses the last, and delete it with the pod it was made for."""
        claim = self.claims.get(key)
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
        owner = pod_made_for(claim)
        if owner is not None and self.claims.has_ended(owner.uid) and not is_deleted:
            return [DeleteObject("ResourceClaim", key, claim.metadata.uid, _NAME)]
        return []

    def _is_over(self, claim: str, uid: str, now: int) -> bool:
        """Whether a pod that may use a claim has ended; one that was never seen has, after a while."""
        has_ended = self.claims.has_ended(uid)
        if has_ended is not None:
            self.claims.found(claim, uid)
            return has_ended
        since = self.claims.missed_since(claim, uid, now)
        if now < since + _UNSEEN_NS:
            self._queue.add_at(("ResourceClaim", claim), since + _UNSEEN_NS)
            return False
        return True


_FREED: Raw = {"allocation": None, "devices": None}


def _patch(claim: ResourceClaim, status: Raw) -> PatchObject:
    patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
    return PatchObject("ResourceClaim", claim.key, claim.metadata.uid, patch, _NAME, "status")


def _key_of(action: CreateObject | PatchObject | DeleteObject) -> _Key:
    """Whose turn it was that an action was asked for."""
    if isinstance(action, CreateObject):
        metadata = action.raw["metadata"]
        return "Pod", f"{metadata['namespace']}/{metadata['ownerReferences'][0]['name']}"
    return action.kind, action.key
