"""The account of a cluster without a ledger, reconstructed from its objects and Events."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import json

from podium.api import errors, meta, reading
from podium.api.basis import Caveat
from podium.api.input.documents import HiddenKind
from podium.api.kinds import KEPT_KINDS, KINDS
from podium.api.pod import Pod
from podium.api.times import format_time, parse_time, time_of
from podium.app.accounting.account import Account, last_of
from podium.app.accounting.reconstruction import EventRecord, PodObject, Reconstruction, event_records
from podium.app.console import cells, options, progress
from podium.controllers.ledger.consumption import Consumption, UsageEntry
from podium.controllers.ledger.disruption import since

_EVENT = "Event"
_OWNERS = ("Namespace", "ReplicationController", "ReplicaSet", "StatefulSet", "Job")
_SECOND = 10**9
_MAX_NAMES = 20


def cluster_account(cluster: options.ClusterSource, kept: Account | None) -> Account:
    """Reconstruct the disruptions of a cluster, in addition to those in its ledger ``kept`` (None: no ledger).

    Raises PodiumError if the cluster cannot be read.
    """
    from podium.app.snapshots.cluster import read_cluster

    kinds = [kind for kind in (*KINDS.values(), *KEPT_KINDS) if kind.name in ("Pod", _EVENT, *_OWNERS)]
    with progress.ProgressBar("reading") as bar:
        snapshot, listed = read_cluster(
            cluster, lambda raw: raw, kinds=kinds, progress=lambda share: bar.update(share, lambda: "reading")
        )
    raws = {kind: [json.decode(text) for text in objects] for kind, objects in listed}
    taken_ns = parse_time(snapshot.taken_at)
    return reconstructed_account(raws, f"context {snapshot.context}", taken_ns, kept, snapshot.hidden)


def dumped_account(items: Sequence[object], source: str) -> Account:
    """Reconstruct the disruptions in a dump: `kubectl get pods,replicasets,statefulsets,jobs,events -A -o json`."""
    objects = (item for item in items if isinstance(item, dict) and isinstance(item.get("kind"), str))
    raws = cells.by_key((item["kind"], item) for item in objects)
    return reconstructed_account(raws, source, 0)


def reconstructed_account(
    raws: dict[str, list[meta.Raw]],
    source: str,
    taken_ns: int,
    kept: Account | None = None,
    hidden: Sequence[HiddenKind] = (),
) -> Account:
    """Return the account of objects, by kind, that were read at a time; 0: the time of the last Event."""
    records = () if kept is None else kept.records
    found = [(_read(raw, "Pod"), raw) for raw in raws.get("Pod", ())]
    seen = [PodObject(pod, raw) for pod, raw in found if isinstance(pod, Pod) and _is_dated(pod)]
    objects = {
        (kind, owner.key): owner
        for kind in _OWNERS
        for raw in raws.get(kind, ())
        if (owner := _read(raw, kind)) is not None
    }
    events = event_records(raws.get(_EVENT, ()))
    last_id = max((record.id for record in records), default=0)
    reconstruction = Reconstruction(seen, objects, events, {record.uid for record in records}, last_id)
    reconstructed = reconstruction.run()
    ordered = sorted((*records, *reconstructed), key=lambda record: (record.time, record.id))
    caveats = (*_of_events(events, hidden), *_of_records(reconstruction, len(found) - len(seen)))
    account = kept or Account(source, (), 0)
    # A dump was made at an unknown time after its last Event.
    taken_ns = taken_ns or max((event.time_ns for event in events), default=0)
    end = max(taken_ns / _SECOND, account.end, *map(last_of, reconstructed))
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


def _usage_of(seen: Sequence[PodObject], taken_ns: int) -> tuple[tuple[UsageEntry, ...], tuple[Caveat, ...]]:
    """Return what the existing pods requested since they were scheduled, and the caveats."""
    consumption = Consumption()
    running = [(pod, raw) for pod, raw in seen if pod.spec.node_name and not pod.is_terminal]
    dated = [(since(raw, "PodScheduled") or time_of(pod.status.start_time), pod) for pod, raw in running]
    known = sorted(((time, pod) for time, pod in dated if time is not None), key=lambda item: (item[0], item[1].key))
    for time, pod in known:
        consumption.changed(pod, time)
    until_ns = max(taken_ns, *(time for time, _ in known), 0)
    message = "only pods that run now are counted, since they were scheduled; earlier usage is unknown"
    found = [Caveat("usage-of-the-present", message, len(known))]
    if len(known) < len(running):
        number = len(running) - len(known)
        found.append(Caveat("usage-undated", f"{number:,} pods do not show when they were scheduled", number))
    return consumption.read(until_ns), tuple(found)


def _read(raw: meta.Raw, kind: str) -> meta.Kubernetes | None:
    """Return the typed object; None if it cannot be read, for example of a newer Kubernetes version."""
    with suppress(errors.InputError, ValueError):
        return reading.read(raw, next(known for known in KINDS.values() if known.name == kind).type)
    return None


def _is_dated(pod: Pod) -> bool:
    """Return whether the times of a pod are valid."""
    times = (pod.metadata.creation_timestamp, pod.metadata.deletion_timestamp, pod.status.start_time)
    return all(text is None or time_of(text) is not None for text in times)


def _of_events(events: Sequence[EventRecord], hidden: Sequence[HiddenKind]) -> list[Caveat]:
    """Return the caveats about the period of the Events and about hidden kinds."""
    found = [Caveat("hidden", f"listing {kind.kind} is forbidden: {kind.message}", 1, (kind.kind,)) for kind in hidden]
    if any(kind.kind == _EVENT for kind in hidden):
        return found
    since = f"the first here is of {format_time(events[0].time_ns)}" if events else "there are none here"
    message = f"deleted pods are known only from Events, which clusters usually keep for an hour: {since}"
    return [*found, Caveat("events", message, len(events))]


def _of_records(reconstruction: Reconstruction, unread: int) -> list[Caveat]:
    """Return the caveats about incomplete records; ``unread`` is the number of pods that cannot be read."""
    message = f"{cells.counted(unread, 'pod', 'is')} unreadable"
    found = [Caveat("unread", message, unread)] if unread else []
    unsaid = "it is unknown whether they were deleted or evicted, since an eviction leaves no Event"
    for about, names, message in (
        ("unsaid", reconstruction.ambiguous, unsaid),
        ("guessed", reconstruction.guessed, "that are deleted, priority and requests are unknown; they count as 0"),
        ("without-node", reconstruction.without_node, "the node is unknown; they are omitted"),
    ):
        if names:
            shown = f"for {cells.counted(len(names), 'pod')} {message}"
            found.append(Caveat(about, shown, len(names), tuple(names[:_MAX_NAMES])))
    return found
