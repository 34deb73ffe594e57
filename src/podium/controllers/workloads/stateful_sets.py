"""The controller of StatefulSets.

Source: pkg/controller/statefulset (stateful_set_control.go, stateful_set_utils.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from podium.api.budget_limits import pods_of_share
from podium.api.meta import Kubernetes, Raw, plain
from podium.api.pod import Pod
from podium.api.storage import PersistentVolumeClaim
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.api.workloads import ControllerRevision, StatefulSet
from podium.controllers.actions import Action, owner_reference, versioned_patch
from podium.controllers.indexes import exchange
from podium.controllers.workloads import template_revisions
from podium.controllers.workloads.owned_pods import OwnedPod, WorkloadObject, label_of, status_with

_Workload = WorkloadObject[StatefulSet]


class _Numbered(Struct, frozen=True):
    """The pods of a StatefulSet by ordinal, wanted and condemned, and its two revisions at ``now``."""

    wanted: Mapping[int, OwnedPod | None]
    condemned: Mapping[int, OwnedPod]
    current: ControllerRevision
    update: ControllerRevision
    min_ready_seconds: int
    now: int

    @property
    def pods(self) -> list[OwnedPod]:
        """Return all existing pods, by ordinal."""
        found = {**{ordinal: pod for ordinal, pod in self.wanted.items() if pod is not None}, **self.condemned}
        return [pod for _, pod in sorted(found.items())]

    def is_available(self, pod: OwnedPod) -> bool:
        """Return whether a pod runs and has been ready for long enough."""
        time = pod.available_ns(self.min_ready_seconds) if pod.pod.status.phase == "Running" else None
        return time is not None and time <= self.now

    def is_healthy(self, pod: OwnedPod) -> bool:
        """Return whether a pod is available and not deleted."""
        return self.is_available(pod) and not pod.pod.is_terminating


class StatefulSets(template_revisions.RevisionedController[StatefulSet]):
    """Creates missing pods and claims; deletes pods that ended, are surplus, or have an old template.

    A pod is recreated when its predecessor is gone. With OrderedReady, one pod at a time is created or deleted, while
    all before it are available. Updates replace one pod after the other, or with a feature gate of the ``release`` up
    to `maxUnavailable` at a time.
    """

    watches = template_revisions.RevisionedController.watches | {"PersistentVolumeClaim", "Pod", "StatefulSet"}
    hash_label = "controller.kubernetes.io/hash"

    def __init__(self, release: Release = DEFAULT_RELEASE, *, adopts: bool = False) -> None:
        super().__init__(StatefulSet, adopts=adopts)
        self._counts_unavailable = release.enabled(Gate.MAX_UNAVAILABLE_STATEFUL)
        self._claims: dict[str, PersistentVolumeClaim] = {}
        # By claim, the StatefulSet that waits for it.
        self._claim_users: dict[str, str] = {}

    def _may_own(self, workload: _Workload, object_: Kubernetes) -> bool:
        """Return whether a pod has the StatefulSet's name with an ordinal."""
        name = workload.object.metadata.name
        return not isinstance(object_, Pod) or ordinal_of(name, object_.metadata.name) is not None

    def _see(self, object_: Kubernetes, *, is_gone: bool) -> None:
        if not isinstance(object_, PersistentVolumeClaim):
            return
        exchange(self._claims, object_.key, None if is_gone else object_)
        if (uid := self._claim_users.pop(object_.key, None)) is not None:
            self._expectations.see(uid, label_of(object_))
            self._queue.add(uid)

    def _sync_revision(
        self, workload: _Workload, history: list[ControllerRevision], update: ControllerRevision, now: int
    ) -> list[Action]:
        name, spec = workload.object.status.current_revision, workload.object.spec
        current = next((revision for revision in history if revision.metadata.name == name), update)
        set_name, pods = workload.object.metadata.name, self._pods.of(workload.uid).all.values()
        by_ordinal = ((ordinal_of(set_name, pod.pod.metadata.name), pod) for pod in pods)
        found = {ordinal: pod for ordinal, pod in by_ordinal if ordinal is not None}
        times = (pod.available_ns(spec.min_ready_seconds) for pod in found.values())
        self._times.extend(time for time in times if time is not None and time > now)
        ordinals = range(spec.ordinals.start, spec.ordinals.start + spec.replicas)
        condemned = {ordinal: pod for ordinal, pod in found.items() if ordinal not in ordinals}
        wanted = {ordinal: found.get(ordinal) for ordinal in ordinals}
        numbered = _Numbered(wanted, condemned, current, update, spec.min_ready_seconds, now)
        actions: list[Action] = []
        if not workload.is_deleted and self._expectations.are_met(workload.uid):
            used = (current.metadata.name, update.metadata.name)
            actions += self._step(workload, numbered) or self._forget_history(workload, history, used, now)
        return actions + self._write_status(workload, _status(workload, numbered))

    def _step(self, workload: _Workload, numbered: _Numbered) -> list[Action]:
        is_ordered = workload.object.spec.pod_management_policy == "OrderedReady"
        actions = self._own_claims(workload, numbered)
        if actions:
            return actions
        for ordinal, pod in numbered.wanted.items():
            actions += self._keep(workload, numbered, ordinal, pod)
            if is_ordered and (actions or pod is None or not numbered.is_healthy(pod)):
                return actions
        condemned = [pod for _, pod in sorted(numbered.condemned.items(), reverse=True)]
        if condemned and is_ordered:
            # An unhealthy pod stays while another one before it is unhealthy, too; but one that has ended is deleted in
            # any case. Upstream waits forever if two have.
            last = condemned[0]
            unwell = [pod for pod in condemned if not numbered.is_healthy(pod)]
            waits = not last.pod.is_terminal and not numbered.is_available(last) and unwell[-1] is not last
            return [] if last.pod.is_terminating or waits else [self._delete(workload, last.pod, numbered.now)]
        actions += [self._delete(workload, pod.pod, numbered.now) for pod in condemned if not pod.pod.is_terminating]
        return actions or self._exchange(workload, numbered)

    def _keep(self, workload: _Workload, numbered: _Numbered, ordinal: int, pod: OwnedPod | None) -> list[Action]:
        """Create a missing pod or its missing claims; delete a pod that has ended.

        A pod gets the current template, one before the partition the previous template.
        """
        now = numbered.now
        if pod is not None and pod.pod.is_terminating:
            return []
        if pod is not None and pod.pod.is_terminal:
            return [self._delete(workload, pod.pod, now)]
        if pod is not None:
            return self._make_claims(workload, ordinal, now)[0] if pod.pod.status.phase == "Pending" else []
        claims, is_waiting = self._make_claims(workload, ordinal, now)
        if is_waiting or not self._may_create(workload, now):
            return claims
        spec = workload.object.spec
        strategy = spec.update_strategy
        is_kept = strategy.type == "RollingUpdate" and ordinal < spec.ordinals.start + strategy.rolling_update.partition
        revision = numbered.current if is_kept else numbered.update
        raw = numbered_pod(workload, ordinal, template_revisions.template_of(revision), revision.metadata.name)
        return [self._create_named(workload, raw, now)]

    def _make_claims(self, workload: _Workload, ordinal: int, now: int) -> tuple[list[Action], bool]:
        """Create missing claims; return also whether the pod waits for any, as for those of a pod before it."""
        actions: list[Action] = []
        is_waiting = False
        policy = workload.object.spec.persistent_volume_claim_retention_policy
        owner = f"{workload.object.metadata.name}-{ordinal}" if policy.when_scaled == "Delete" else ""
        for claim in claims_of(workload, ordinal).values():
            metadata = claim["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            known = self._claims.get(key)
            owners = known.metadata.owner_references if known is not None else ()
            is_stale = any((each.kind, each.name) == ("Pod", owner) for each in owners)
            if known is None or known.metadata.deletion_timestamp is not None or is_stale:
                is_waiting = True
                self._claim_users[key] = workload.uid
                if known is None and self._may_create(workload, now):
                    actions.append(self._create_named(workload, claim, now))
        return actions, is_waiting

    def _own_claims(self, workload: _Workload, numbered: _Numbered) -> list[Action]:
        """Return the changes of claims' owners, with which the claims are deleted (updateClaimOwnerRefForSetAndPod)."""
        meta, spec = workload.object.metadata, workload.object.spec
        names = [claim.metadata.name for claim in spec.volume_claim_templates]
        policy = spec.persistent_volume_claim_retention_policy
        pods = {ordinal: pod for ordinal, pod in numbered.wanted.items() if pod is not None} if names else {}
        actions: list[Action] = []
        for ordinal, pod in (*pods.items(), *numbered.condemned.items()):
            goes_with_pod = ordinal in numbered.condemned and policy.when_scaled == "Delete"
            owner = pod.pod if goes_with_pod else workload.object if policy.when_deleted == "Delete" else None
            for name in names:
                claim = self._claims.get(f"{meta.namespace}/{name}-{meta.name}-{ordinal}")
                patch = _with_owner(claim, owner, workload, pod) if claim is not None else None
                if claim is not None and patch is not None:
                    self._claim_users[claim.key] = workload.uid
                    self._expectations.expect(workload.uid, label_of(claim), numbered.now)
                    actions.append(versioned_patch(claim, patch, workload.label))
        return actions

    def _exchange(self, workload: _Workload, numbered: _Numbered) -> list[Action]:
        """Delete the last pods of an old template, down to the partition, until too many are unavailable.

        Without the feature gate, this is one at a time, while all after it are healthy.
        """
        spec, strategy = workload.object.spec, workload.object.spec.update_strategy
        if strategy.type != "RollingUpdate":
            return []
        rolling, pods, update = strategy.rolling_update, list(numbered.wanted.values()), numbered.update.metadata.name
        unhealthy = sum(pod is None or not numbered.is_healthy(pod) for pod in pods)
        most = max(pods_of_share(rolling.max_unavailable, spec.replicas, rounds_up=False), 1) - unhealthy
        outdated: list[OwnedPod] = []
        for pod in reversed(pods[rolling.partition :]):
            if pod is not None and not pod.pod.is_terminating and template_revisions.is_outdated(pod.pod, update):
                outdated.append(pod)
            elif not self._counts_unavailable and (pod is None or not numbered.is_healthy(pod)):
                break
        most = max(most, 0) if self._counts_unavailable else 1
        return [self._delete(workload, pod.pod, numbered.now) for pod in outdated[:most]]

    def _given_hash(self, workload: _Workload) -> str:
        revision, prefix = workload.object.status.update_revision, f"{workload.object.metadata.name}-"
        return revision.removeprefix(prefix) if revision.startswith(prefix) else ""


def _status(workload: _Workload, numbered: _Numbered) -> Raw:
    pods, spec = numbered.pods, workload.object.spec
    current, update = numbered.current.metadata.name, numbered.update.metadata.name
    ready = sum(pod.is_ready and pod.pod.status.phase == "Running" for pod in pods)
    kept = [pod.pod for pod in pods if not pod.pod.is_terminating]
    updated = sum(not template_revisions.is_outdated(pod, update) for pod in kept)
    if spec.update_strategy.type == "RollingUpdate" and updated == ready == len(pods) == spec.replicas:
        current = update
    counts = {
        "observedGeneration": workload.object.metadata.generation,
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": sum(numbered.is_available(pod) for pod in pods),
        "currentReplicas": sum(not template_revisions.is_outdated(pod, current) for pod in kept),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": update,
    }
    return status_with(workload.status, counts, always=("replicas", "availableReplicas"))


POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"

_NUMBERED = re.compile(r"(.*)-(0|[1-9][0-9]{0,9})")


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """Return the ordinal of a StatefulSet's pod; None for another name."""
    found = _NUMBERED.fullmatch(pod_name)
    return int(found[2]) if found is not None and found[1] == set_name else None


def claims_of(workload: _Workload, ordinal: int) -> dict[str, Raw]:
    """Return the claims of a pod by the name of their template, which is also the volume's name."""
    labels = workload.spec.get("selector", {}).get("matchLabels", {})
    claims = {}
    for claim in workload.spec.get("volumeClaimTemplates", ()):
        given, meta = claim["metadata"], workload.object.metadata
        metadata = {
            "name": f"{given['name']}-{meta.name}-{ordinal}",
            "namespace": meta.namespace,
            "labels": {**given.get("labels", {}), **labels},
        }
        if "annotations" in given:
            metadata["annotations"] = given["annotations"]
        base = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        claims[given["name"]] = {**base, "spec": claim.get("spec", {})}
    return claims


def _with_owner(
    claim: PersistentVolumeClaim, owner: StatefulSet | Pod | None, workload: _Workload, pod: OwnedPod
) -> Raw | None:
    """Return the patch by which StatefulSet and pod own the claim only as ``owner``; None if there is nothing to do."""
    references = claim.metadata.owner_references
    pod_name = pod.pod.metadata.name
    others = [each for each in references if each.uid != workload.uid and (each.kind, each.name) != ("Pod", pod_name)]
    mine = {each.uid for each in references if each not in others}
    if mine == ({owner.metadata.uid} if owner is not None else set()):
        return None
    if claim.metadata.deletion_timestamp is not None or any(each.controller for each in others):
        return None
    kept = [*map(plain, others), *([owner_reference(owner)] if owner is not None else [])]
    return {"metadata": {"ownerReferences": kept or None}}


def numbered_pod(workload: _Workload, ordinal: int, template: Raw, revision: str) -> Raw:
    """Return the pod with an ordinal, made from the template of a revision."""
    claims = claims_of(workload, ordinal)
    spec = template.get("spec", {})
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for name, claim in claims.items()
    ]
    volumes += [volume for volume in spec.get("volumes", ()) if volume.get("name") not in claims]
    name = f"{workload.object.metadata.name}-{ordinal}"
    spec = {**spec, "hostname": name}
    if workload.object.spec.service_name:
        spec["subdomain"] = workload.object.spec.service_name
    if volumes:
        spec["volumes"] = volumes
    labels = {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal), template_revisions.REVISION_LABEL: revision}
    return workload.new_pod(template, {"name": name}, labels, spec)
