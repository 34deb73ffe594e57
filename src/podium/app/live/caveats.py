"""The caveats of a scheduler on a cluster, logged once when it starts."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from podium.api.basis import Caveat
from podium.client.credentials import ClusterAccess

_POLICY = "DisruptionPolicy"


def of_access(access: ClusterAccess) -> Iterator[Caveat]:
    """Yield what is insecure about the connection to the API server."""
    if access.is_insecure:
        message = (
            "the API server's certificate is not checked (insecure-skip-tls-verify): attackers on the network can read "
            "the credentials and impersonate the server"
        )
        yield Caveat("insecure", message, 1, (access.name,))
    elif access.server.startswith("http://"):
        yield Caveat("plain-http", "the connection to the API server is not encrypted", 1, (access.server,))


def hidden_kinds(hidden: Collection[str]) -> Iterator[Caveat]:
    """Yield the kinds that the API server does not allow to list. Kinds that it does not serve have no objects."""
    if hidden:
        message = (
            "the API server does not allow this program to list these kinds; it runs as if there were no such objects"
        )
        yield Caveat("hidden-kinds", message, len(hidden), tuple(sorted(hidden)))


_FOREIGN_SERVER = {
    "preemption-policies": "preemption policies beyond Never and PreemptLowerPriority are refused by this API server; "
    "set them in a pod's annotation podium.dev/preemption-policy",
    "budgets": "budgets are counted by the cluster's own disruption controller, which does not know of a preemption "
    "before the victim is gone; a pod with several budgets cannot be evicted",
    "rates": "rates of budgets are counted by the leader here, in the budgets' annotation podium.dev/disruption-rate; "
    "the API server ignores them when it decides an eviction",
}
_NO_POLICY = "there is no DisruptionPolicy here (its definition is not installed): no caps, bounds or default budgets"
_CAPS = (
    "caps of the DisruptionPolicy apply only to preemptions by this scheduler; its levels create no PriorityClasses, "
    "its priority rules are not applied to pods, and its default budgets and bounds need Podium's controllers"
)


def of_foreign_server(absent: Collection[str]) -> Iterator[Caveat]:
    """Yield the features that only Podium's own API server has."""
    yield from (Caveat(about, message, 0) for about, message in _FOREIGN_SERVER.items())
    yield Caveat("no-policy", _NO_POLICY, 1, (_POLICY,)) if _POLICY in absent else Caveat("caps", _CAPS, 0)
