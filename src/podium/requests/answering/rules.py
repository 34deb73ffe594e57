"""What an administrator decides about how requests are answered, beside what stands in objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from podium.api.disruption_policy import SCHEDULER
from podium.requests.request import Request

_ANYBODY = ("", "system:anonymous", "system:unsecured")
_COMPONENTS = ("kube-controller-manager", "kube-scheduler", "kubelet", "cloud-controller-manager")
_COMPONENT_USERS = ("system:kube-", "system:node:", "system:serviceaccount:kube-system:")

DELETE = "podium.dev/delete"
"""The annotation of a pod that says how deletions of it are taken: `direct` is as Kubernetes takes them."""

DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Rules:
    """How requests are answered where Kubernetes leaves no choice, and Podium does.

    `deletes_by_eviction`: people who delete a pod evict it (controlled-rescheduling.md). It is judged as an eviction,
    and answered as one, unless it asks for more: with a grace period of 0 (`kubectl delete --force`), or of a pod with
    the annotation `podium.dev/delete: direct`. The components of a cluster delete as ever, by their names: a controller
    that scales down is no person.

    `components` says which component an identity is, whose cap counts its evictions, whatever they say themselves; of
    an identity that is not listed, the annotation of the Eviction counts. An identity is the name of a user, or where
    nobody is told from another, the field manager, which over HTTP is the program's name.
    """

    deletes_by_eviction: bool = False
    components: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({"system:kube-scheduler": SCHEDULER, "kube-scheduler": SCHEDULER})
    )

    def component_of(self, request: Request, said: str) -> str:
        """The component whose cap counts an eviction that says it is of this one."""
        return self.components.get(identity_of(request), said)

    def is_person(self, request: Request) -> bool:
        """Whether it is a person who asks, and no component of the cluster."""
        identity = identity_of(request)
        return bool(identity) and identity not in _COMPONENTS and not identity.startswith(_COMPONENT_USERS)


def identity_of(request: Request) -> str:
    """Who asks: "" is a component in the same process."""
    return request.user if request.user not in _ANYBODY else request.field_manager or request.user


PLAIN = Rules()
