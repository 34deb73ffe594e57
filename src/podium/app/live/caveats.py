"""The rules of Podium that do not hold on a cluster, reported once when a scheduler begins to run there."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from podium.api.basis import Caveat
from podium.client.credentials import ClusterAccess
from podium.framework.settings.configuration import Configuration, upstream_departures

_POLICY = "DisruptionPolicy"


def caveats(
    access: ClusterAccess,
    configuration: Configuration,
    absent: Collection[str],
    hidden: Collection[str],
    *,
    knows_ours: bool,
) -> list[Caveat]:
    """Return what is unknown or does not hold.

    ``knows_ours``: the API server is Podium's own. ``absent`` are the kinds that it does not serve, or does not show;
    ``hidden`` are the latter.
    """
    found = [*upstream_departures(configuration), *of_access(access), *hidden_kinds(hidden)]
    return found if knows_ours else found + list(_of_foreign_server(absent))


def of_access(access: ClusterAccess) -> Iterator[Caveat]:
    """Yield what is insecure about the connection to the API server."""
    if access.is_insecure:
        message = (
            "the API server's certificate is not checked (insecure-skip-tls-verify): others on the way can read the "
            "credentials and answer in its place"
        )
        yield Caveat("insecure", message, 1, (access.name,))
    elif access.server.startswith("http://"):
        yield Caveat("plain-http", "what is said to the API server is not encrypted", 1, (access.server,))


def hidden_kinds(hidden: Collection[str]) -> Iterator[Caveat]:
    """Return which kinds the API server does not show. If it does not serve a kind, there are no objects to know."""
    if hidden:
        message = (
            "the API server does not let this program list these kinds; it goes on as if there were no such objects"
        )
        yield Caveat("hidden-kinds", message, len(hidden), tuple(sorted(hidden)))


_FOREIGN_SERVER = {
    "preemption-policies": "preemption policies beyond Never and PreemptLowerPriority are refused by this API server; "
    "they hold where a pod's annotation podium.dev/preemption-policy names them",
    "budgets": "budgets are counted by the cluster's own disruption controller, which does not know of a preemption "
    "before the victim is gone; a pod with several budgets cannot be evicted",
    "rates": "rates of budgets are counted by the leader here, in the budgets' annotation podium.dev/disruption-rate; "
    "the API server does not ask them when it judges an eviction",
}
_NO_POLICY = "there is no DisruptionPolicy here (its definition is not installed): no caps, bounds or default budgets"
_CAPS = (
    "caps of the DisruptionPolicy hold for preemptions by this scheduler alone; its levels make no classes, its "
    "priority rules give pods none, and its default budgets and bounds need Podium's controllers"
)


def _of_foreign_server(absent: Collection[str]) -> Iterator[Caveat]:
    """Yield what Podium's own API server does, and others do not."""
    yield from (Caveat(about, message, 0) for about, message in _FOREIGN_SERVER.items())
    yield Caveat("no-policy", _NO_POLICY, 1, (_POLICY,)) if _POLICY in absent else Caveat("caps", _CAPS, 0)
