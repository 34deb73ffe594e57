"""The account of a cluster that nobody kept: what its objects and its Events tell of disruptions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import json

from podium.api.basis import Caveat
from podium.api.errors import InputError
from podium.api.kinds import KEPT_KINDS, KINDS
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.reading import read
from podium.api.snapshot import HiddenKind
from podium.api.times import format_time, parse_time, time_of
from podium.app.accounting.account import Account, last_of
from podium.app.accounting.traces.retold import Retelling, Retold, Seen
from podium.app.accounting.traces.sightings import ToldEvent, told_events
from podium.app.console.options import ClusterSource
from podium.app.console.progress import ProgressBar
from podium.controllers.ledger.consumption import Consumption, UsageEntry
from podium.controllers.ledger.disruption import since

_EVENT = "Event"
_OWNERS = ("Namespace", "ReplicationController", "ReplicaSet", "StatefulSet", "Job")
_SECOND = 10**9
_MOST_NAMES = 20


def cluster_account(cluster: ClusterSource, kept: Account | None) -> Account:
    """What can be told of a cluster's disruptions, beside those that a ledger of it has kept (None: there is none).

    Raises PodiumError where the cluster cannot be read.
    """
    from podium.app.snapshots.cluster import read_cluster

    kinds = [kind for kind in (*KINDS.values(), *KEPT_KINDS) if kind.name in ("Pod", _EVENT, *_OWNERS)]
    with ProgressBar("reading") as bar:
        found = read_cluster(cluster, _whole, kinds=kinds, progress=lambda share: bar.update(share, lambda: "reading"))
    raws = {kind: [json.decode(text) for text in objects] for kind, objects in found.objects}
    taken_ns = parse_time(found.snapshot.taken_at)
    return retold_account(raws, f"context {found.snapshot.context}", taken_ns, kept, found.snapshot.hidden)


def dumped_account(items: Sequence[object], source: str) -> Account:
    """What can be told of a dump, as `kubectl get pods,replicasets,statefulsets,jobs,events -A -o json` makes it."""
    raws: dict[str, list[Raw]] = {}
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("kind"), str):
            raws.setdefault(item["kind"], []).append(item)
    return retold_account(raws, source, 0)


def retold_account(
    raws: dict[str, list[Raw]],
    source: str,
    taken_ns: int,
    kept: Account | None = None,
    hidden: Sequence[HiddenKind] = (),
) -> Account:
    """The account of what was read at a time, by kind."""
    records = () if kept is None else kept.records
    found = [(_read(raw, "Pod"), raw) for raw in raws.get("Pod", ())]
    seen = [Seen(pod, raw) for pod, raw in found if isinstance(pod, Pod) and _is_dated(pod)]
    objects = {
        (kind, owner.key): owner
        for kind in _OWNERS
        for raw in raws.get(kind, ())
        if (owner := _read(raw, kind)) is not None
    }
    events = told_events(raws.get(_EVENT, ()))
    last_id = max((record.id for record in records), default=0)
    retold = Retelling(seen, objects, events, {record.uid for record in records}, last_id).told()
    ordered = sorted((*records, *retold.records), key=lambda record: (record.time, record.id))
    caveats = (*_of_events(events, hidden), *_of_records(retold, len(found) - len(seen)))
    account = kept or Account(source, (), 0)
    # What was read from a file was so at some time after the last that it tells.
    taken_ns = taken_ns or max((event.time_ns for event in events), default=0)
    end = max(taken_ns / _SECOND, account.end, *(last_of(record) for record in retold.records))
    usage, usage_caveats = (account.usage, ()) if account.usage else _usage_of(seen, taken_ns)
    return Account(
        source,
        tuple(ordered),
        end,
        is_dated=True,
        dropped=account.dropped,
        caveats=caveats,
        usage=usage,
        usage_caveats=usage_caveats,
    )


def _usage_of(seen: Sequence[Seen], taken_ns: int) -> tuple[tuple[UsageEntry, ...], tuple[Caveat, ...]]:
    """Return what the pods that are there have requested since they were scheduled, and what that leaves out."""
    consumption = Consumption()
    running = [(pod, raw) for pod, raw in seen if pod.spec.node_name and not pod.is_terminal]
    dated = [(since(raw, "PodScheduled") or time_of(pod.status.start_time), pod) for pod, raw in running]
    known = sorted(((time, pod) for time, pod in dated if time is not None), key=lambda item: (item[0], item[1].key))
    for time, pod in known:
        consumption.changed(pod, time)
    until_ns = max(taken_ns, *(time for time, _ in known), 0)
    message = "only pods that run now count, since they were scheduled: what others used before is not known"
    found = [Caveat("usage-of-the-present", message, len(known))]
    if len(known) < len(running):
        number = len(running) - len(known)
        found.append(Caveat("usage-undated", f"{number:,} pods do not say since when they have a node", number))
    return consumption.read(until_ns), tuple(found)


def _read(raw: Raw, kind: str) -> Kubernetes | None:
    """The typed reading; what a newer Kubernetes has made of an object may not be read at all."""
    with suppress(InputError, ValueError):
        return read(raw, next(known for known in KINDS.values() if known.name == kind).type)
    return None


def _is_dated(pod: Pod) -> bool:
    """Whether the times of a pod are times."""
    times = (pod.metadata.creation_timestamp, pod.metadata.deletion_timestamp, pod.status.start_time)
    return all(text is None or time_of(text) is not None for text in times)


def _whole(raw: Raw) -> Raw:
    return raw


def _of_events(events: Sequence[ToldEvent], hidden: Sequence[HiddenKind]) -> list[Caveat]:
    """How far back it can be told, and what may not be seen."""
    found = [Caveat("hidden", f"{kind.kind} may not be listed: {kind.message}", 1, (kind.kind,)) for kind in hidden]
    if any(kind.kind == _EVENT for kind in hidden):
        return found
    since = f"here from {format_time(events[0].time_ns)} on" if events else "here there are none"
    message = f"Of pods that are gone only Events tell, which clusters keep for an hour as a rule: {since}"
    return [*found, Caveat("events", message, len(events))]


def _of_records(retold: Retold, unread: int) -> list[Caveat]:
    """What is not known of those of whom something is; ``unread`` are pods that cannot be read."""
    message = f"{unread:,} pod{' is' if unread == 1 else 's are'} not such as can be read"
    found = [Caveat("unread", message, unread)] if unread else []
    for about, names, message in (
        (
            "unsaid",
            retold.unsaid,
            "nobody says whether they were deleted or evicted, since an eviction leaves no Event",
        ),
        (
            "guessed",
            retold.guessed,
            "that are gone nobody says what they were like: their priority counts as 0, their requests as none",
        ),
        ("without-node", retold.without_node, "nobody says from which node they had to go: they are left out"),
    ):
        if names:
            shown = f"Of {len(names):,} pod{'' if len(names) == 1 else 's'} {message}"
            found.append(Caveat(about, shown, len(names), tuple(names[:_MOST_NAMES])))
    return found
