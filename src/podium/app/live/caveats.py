"""What of Podium's rules does not hold on a cluster, said once when a scheduler begins to run there."""

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
    """What is not sure about how the API server is reached."""
    if access.is_insecure:
        yield Caveat(
            "insecure",
            "the API server's certificate is not checked (insecure-skip-tls-verify): whoever is in between can read "
            "the credentials and answer in its place",
            1,
            (access.name,),
        )
    elif access.server.startswith("http://"):
        yield Caveat("plain-http", "what is said to the API server is not encrypted", 1, (access.server,))


def hidden_kinds(hidden: Collection[str]) -> Iterator[Caveat]:
    """Return which kinds the API server does not show. If it does not serve a kind, there are no objects to know."""
    if hidden:
        yield Caveat(
            "hidden-kinds",
            "the API server does not let this program list these kinds; it goes on as if there were no such objects",
            len(hidden),
            tuple(sorted(hidden)),
        )


def _of_foreign_server(absent: Collection[str]) -> Iterator[Caveat]:
    """What Podium's own API server does, and others do not."""
    yield Caveat(
        "preemption-policies",
        "preemption policies beyond Never and PreemptLowerPriority are refused by this API server; they hold where a "
        "pod's annotation podium.dev/preemption-policy names them",
        0,
    )
    yield Caveat(
        "budgets",
        "budgets are counted by the cluster's own disruption controller, which does not know of a preemption before "
        "the victim is gone; a pod with several budgets cannot be evicted",
        0,
    )
    yield Caveat(
        "rates",
        "rates of budgets are counted by whoever leads here, in the budgets' annotation podium.dev/disruption-rate; "
        "the API server does not ask them when it judges an eviction",
        0,
    )
    if _POLICY in absent:
        yield Caveat(
            "no-policy",
            "there is no DisruptionPolicy here (its definition is not installed): no caps, bounds or default budgets",
            1,
            (_POLICY,),
        )
    else:
        yield Caveat(
            "caps",
            "caps of the DisruptionPolicy hold for preemptions by this scheduler alone; its levels make no classes, "
            "its priority rules give pods none, and its default budgets and bounds need Podium's controllers",
            0,
        )
