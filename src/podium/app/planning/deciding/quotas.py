"""Pods that workloads want and nobody makes, because a quota refuses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.quota import ResourceQuota
from podium.api.workloads import ReplicaSet, ReplicationController, StatefulSet
from podium.app.explaining.workload import next_pod, wanted_of
from podium.app.planning.deciding.change import Change, Verified
from podium.app.planning.deciding.decisions import Decisions
from podium.cluster.pods import PodRecord
from podium.store.admission.usage import Amounts, is_counted, read_amount, usage_of, written_amount
from podium.store.api_resources import POD
from podium.store.stored import Stored

QUOTA = "quota"
MOST_MADE = 2_000
"""So many pods of a workload are taken to be made at most."""

_MAKERS = (ReplicaSet, ReplicationController, StatefulSet)


@dataclass(frozen=True, slots=True)
class Unmade:
    """So many pods of a workload that are not made: `pod` is one of them, `quota` refuses it for those `names`."""

    workload: str
    number: int
    pod: PodRecord
    quota: ResourceQuota
    used: Amounts
    asked: Amounts
    names: tuple[str, ...]

    @property
    def text(self) -> str:
        """Why they are not made."""
        parts = [
            f"{name} {written_amount(name, self.used[name])} of {self.quota.spec.hard[name]} used, "
            f"{written_amount(name, self.asked[name])} asked"
            for name in self.names
        ]
        return f"ResourceQuota {self.quota.key}: {'; '.join(parts)}"


class Quotas:
    """The quotas of a cluster, and what they refuse to make."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._by_namespace: dict[str, list[ResourceQuota]] = {}
        self._known: dict[str, dict[str, int]] = {}
        for item in decisions.objects:
            if isinstance(item, ResourceQuota):
                self._by_namespace.setdefault(item.metadata.namespace, []).append(item)

    def unmade(self, namespace: str = "") -> list[Unmade]:
        """The pods that quotas refuse, of one namespace or of all, by workload."""
        found = []
        for document in self._decisions.loaded.read.documents if self._by_namespace else ():
            item = document.object
            if isinstance(item, _MAKERS) and (not namespace or item.metadata.namespace == namespace):
                missing = (wanted_of(item) or 0) - self._made[f"{item.kind} {item.key}"]
                quotas = self._by_namespace.get(item.metadata.namespace, [])
                refused = self._refused(document, missing, quotas) if missing > 0 and quotas else None
                found += [] if refused is None else [refused]
        return sorted(found, key=lambda unmade: unmade.workload)

    @cached_property
    def _made(self) -> Counter[str]:
        """By who makes them, how many pods there are that have not ended."""
        return Counter(
            f"{controller.kind} {pod.metadata.namespace}/{controller.name}"
            for pod in self._decisions.pods.values()
            if (controller := pod.metadata.controller) is not None and not pod.is_terminal
        )

    def _refused(self, document: Document, missing: int, quotas: Sequence[ResourceQuota]) -> Unmade | None:
        """The pods that a workload cannot make, None where no quota is the reason."""
        made = next_pod(document, ()).pod
        try:
            pod = self._decisions.read(made)
        except InputError:
            return None
        stored = _stored(made)
        for quota in quotas:
            if not is_counted(quota, stored):
                continue
            asked, used = usage_of(stored), self._used(quota)
            names = tuple(
                name
                for name, hard in sorted(quota.spec.hard.items())
                if asked.get(name, 0) > 0 and used[name] + asked[name] > read_amount(name, hard)
            )
            if names:
                return Unmade(self._decisions.workloads.of(pod), missing, pod, quota, used, asked, names)
        return None

    def _used(self, quota: ResourceQuota) -> dict[str, int]:
        """What is used of a quota, counted once."""
        known = self._known.get(quota.key)
        if known is None:
            known = self._known[quota.key] = self._counted(quota)
        return known

    def _counted(self, quota: ResourceQuota) -> dict[str, int]:
        """What is used of a quota: as its status says, or else by the pods that were read."""
        if quota.status.used:
            return {name: read_amount(name, quota.status.used.get(name, 0)) for name in quota.spec.hard}
        used = dict.fromkeys(quota.spec.hard, 0)
        for pod in self._decisions.pods.values():
            stored = _stored(pod) if pod.metadata.namespace == quota.metadata.namespace else None
            for name, amount in usage_of(stored).items() if stored is not None and is_counted(quota, stored) else ():
                if name in used:
                    used[name] += amount
        return used


def raised(decisions: Decisions, unmade: Sequence[Unmade]) -> Iterator[Verified]:
    """Each quota raised so that all pods are made that it refuses, and which of these get a node then."""
    by_quota: dict[str, list[Unmade]] = {}
    for each in unmade:
        by_quota.setdefault(each.quota.key, []).append(each)
    for key, refused in sorted(by_quota.items()):
        hard = dict.fromkeys(name for each in refused for name in each.names)
        quota = refused[0].quota
        texts = [f"{name} {quota.spec.hard[name]} -> {_enough(refused, name)}" for name in hard]
        with decisions.supposing():
            pods = [pod for each in refused for pod in decisions.copies(each.pod, min(each.number, MOST_MADE))]
            settled = decisions.settle(pods)
        enough = {name: _enough(refused, name) for name in hard}
        yield Verified(
            Change(QUOTA, f"ResourceQuota {key} {', '.join(texts)}", written=_allowing(quota, enough)), settled
        )


def _allowing(quota: ResourceQuota, enough: Mapping[str, str]) -> Callable[[Decisions], list[Kubernetes]]:
    spec = msgspec.structs.replace(quota.spec, hard={**quota.spec.hard, **enough})
    return lambda _: [msgspec.structs.replace(quota, spec=spec)]


def _enough(refused: Sequence[Unmade], name: str) -> str:
    """What a quota has to allow for all the pods."""
    used = refused[0].used[name] + sum(each.number * each.asked.get(name, 0) for each in refused)
    return written_amount(name, used)


def _stored(pod: Pod) -> Stored:
    raw: Mapping[str, object] = msgspec.to_builtins(pod)
    return Stored({"apiVersion": "v1", "kind": "Pod", **raw}, pod, 0, POD, pod.key)
