"""The records of disruptions and their groups: of a simulation, a ledger, or reconstructed from a cluster's objects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from podium.api import meta, reading
from podium.api.basis import Caveat
from podium.api.errors import InputError, locating
from podium.api.input.codec import objects_of
from podium.api.input.documents import HiddenKind, Snapshot, is_snapshot, read_snapshot
from podium.api.input.files import FileName, read_bytes, shown_name
from podium.api.kinds import KEPT_KINDS, KINDS
from podium.api.pod import Pod
from podium.api.times import SECOND, format_duration, format_time, parse_duration, parse_time, time_of
from podium.app.accounting.reconstruction import EventRecord, PodObject, Reconstruction, event_records
from podium.app.answers import flat
from podium.app.console import options, progress
from podium.app.console.cells import by_key, counted
from podium.app.console.output import in_csv
from podium.controllers.ledger.disruption import (
    Cause,
    Consumption,
    Disruption,
    Seconds,
    UsageEntry,
    disruption_of,
    since,
)
from podium.controlplane.ledger_file import LEDGER, is_ledger, read_ledger
from podium.sim.recording.tape import is_recording
from podium.sim.results.result import SCHEMA_VERSION


class Account(msgspec.Struct, frozen=True):
    """The ordered records of one run or one cluster.

    Times are seconds since the start of a run or, with ``is_dated``, since 1970. ``end`` is the end of the run, or the
    last known time of a cluster. ``dropped`` is the number of earlier records that were dropped to limit the size.
    ``caveats`` name the gaps of an account that was reconstructed without a ledger. ``usage`` is what namespaces
    requested by priority and hour, with ``usage_caveats``.
    """

    source: str
    records: tuple[Disruption, ...]
    end: Seconds
    is_dated: bool = False
    dropped: int = 0
    caveats: tuple[Caveat, ...] = ()
    usage: tuple[UsageEntry, ...] = ()
    usage_caveats: tuple[Caveat, ...] = ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return which of Pod and Event the user is not allowed to list; disruptions may then be missing."""
        names = (name for caveat in self.caveats if caveat.about == "hidden" for name in caveat.names)
        return tuple(name for name in names if name in ("Pod", "Event"))

    def shown(self, time: Seconds) -> str:
        """Return a time as text."""
        return (format_time if self.is_dated else format_duration)(int(time * SECOND))


def read_account(name: FileName) -> Account:
    """Read the account in a file: the JSON of `podium simulate` or `podium plan`, or a ledger. Raises InputError."""
    if name != "-" and is_ledger(str(name)):
        return ledger_account(str(name))
    source = shown_name(name)
    try:
        raw = msgspec.json.decode(read_bytes(name))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = "is neither JSON nor a ledger; use the output of podium simulate -o json, or the ledger of podium up"
        raise InputError(problem, source=source) from None
    if isinstance(raw, dict) and isinstance(raw.get("items"), list):
        with locating(source=source):
            items = [item for item, _ in objects_of({"kind": "List", **raw})]
        if any(map(is_recording, items)):
            problem = "is a recording; replay it, and use the output of podium simulate -o json"
            raise InputError(problem, source=source)
        return dumped_account(items, source)
    return _of_result(raw, source)


def directory_account(directory: str) -> Account:
    """Read the ledger in a data directory of `podium up`. Raises InputError."""
    path = Path(directory) / LEDGER
    if not path.exists():
        problem = f"there is no {LEDGER} in it; podium up --data-dir keeps one"
        raise InputError(problem, source=directory)
    return ledger_account(str(path))


def ledger_account(path: str) -> Account:
    """Read the account in a ledger. Raises InputError for files that are damaged or not a ledger."""
    kept = read_ledger(path)
    end = max((last_of(record) for record in kept.records), default=0)
    return Account(path, kept.records, end, is_dated=True, dropped=kept.dropped, usage=kept.usage)


def _of_result(raw: Any, source: str) -> Account:
    result = raw.get("result", raw) if isinstance(raw, dict) else None
    if not isinstance(result, dict) or "events" not in result or not isinstance(result.get("summary"), dict):
        problem = "is not a result; use the output of podium simulate -o json or podium plan -o json"
        raise InputError(problem, source=source)
    found = result.get("ledger", [])
    if not isinstance(found, list):
        raise InputError("is not a list of disruptions", source=source, path="ledger")
    records = []
    for number, entry in enumerate(found):
        try:
            records.append(disruption_of(entry))
        except msgspec.ValidationError as error:
            problem = f"is not a record of a disruption: {error}"
            raise InputError(problem, source=source, path=f"ledger[{number}]") from None
    end = result["summary"].get("end", 0)
    if isinstance(end, bool) or not isinstance(end, int | float):
        raise InputError("is not a number of seconds", source=source, path="summary.end")
    try:
        usage = msgspec.convert(result.get("usage", []), tuple[UsageEntry, ...])
    except msgspec.ValidationError as error:
        raise InputError(f"is not a list of what namespaces used: {error}", source=source, path="usage") from None
    return Account(source, tuple(records), end, usage=usage)


def last_of(record: Disruption) -> Seconds:
    """Return the time of the last event of a disruption."""
    found = [record.loss.ended_after]
    if record.beneficiary is not None:
        found.append(record.beneficiary.placed_after)
    if record.replacement is not None:
        found += [record.replacement.placed_after, record.replacement.ready_after]
    return record.time + max((after for after in found if after is not None), default=0)


Chain = tuple[Disruption, ...]
"""Disruptions of which each causes the next; the first benefits the most important pod."""

MOST_CHAINS = 100
MOST_LINKS = 50
"""The maximum length of a chain, since pods that displace each other in turn form endless chains."""


def chains_of(records: Sequence[Disruption]) -> list[Chain]:
    """Return the disjoint chains of at least two disruptions: the longest first, then by time."""
    by_taker: defaultdict[str, list[Disruption]] = defaultdict(list)
    for record in records:
        if record.beneficiary is not None and record.beneficiary.uid:
            by_taker[record.beneficiary.uid].append(record)
    followed = {following.id for record in records for following in _following(record, by_taker)}
    # If pods displace each other in turn, no disruption is the first: the chain starts with the earliest.
    order = sorted(records, key=lambda record: (record.id in followed, record.time, record.id))
    used: set[int] = set()
    found = [chain for record in order if len(chain := _longest(record, by_taker, used)) > 1]
    return sorted(found, key=lambda chain: (-len(chain), chain[0].time, chain[0].id))[:MOST_CHAINS]


def _longest(record: Disruption, by_taker: dict[str, list[Disruption]], used: set[int]) -> Chain:
    """Return the chain that starts with a disruption; each next one is the earliest in no other chain."""
    chain: list[Disruption] = []
    following: Disruption | None = None if record.id in used else record
    while following is not None and len(chain) < MOST_LINKS:
        used.add(following.id)
        chain.append(following)
        left = [found for found in _following(following, by_taker) if found.id not in used]
        following = min(left, key=lambda found: (found.time, found.id), default=None)
    if len(chain) == 1:
        used.discard(chain[0].id)
    return tuple(chain)


def _following(record: Disruption, by_taker: dict[str, list[Disruption]]) -> list[Disruption]:
    replacement = record.replacement
    takers = [record.uid] if replacement is None else [record.uid, replacement.uid]
    return [found for uid in takers for found in by_taker.get(uid, ()) if found.id != record.id]


def chain_pods(chain: Chain) -> list[str]:
    """Return the pods of a chain, starting with the pod that benefits from the whole chain."""
    first = chain[0].beneficiary
    return [*([] if first is None else [first.pod]), *(record.pod for record in chain)]


class DisruptionGroup(msgspec.Struct, frozen=True, rename="camel"):
    """A group of disruptions, with its sums.

    ``lost_seconds`` is the lost running time, and ``work`` that time multiplied by the requests. ``replaced`` is the
    number of victims with ready replacements, ``longest_until_ready`` the longest time until then.
    """

    name: str
    disruptions: int
    causes: dict[str, int]
    in_vain: int
    lost_seconds: Seconds
    work: dict[str, int | float]
    replaced: int
    longest_until_ready: Seconds | None


_COLUMNS = {
    **{name: name for name in ("id", "time", "pod", "uid", "owner", "priority", "node", "cause", "by", "rule", "plan")},
    "candidates": "alternatives.candidates",
    **{"for": "beneficiary.pod", "forOwner": "beneficiary.owner", "forPriority": "beneficiary.priority"},
    **{"outcome": "beneficiary.outcome", "forNode": "beneficiary.node", "forPlacedAfter": "beneficiary.placedAfter"},
    **{"ran": "loss.ran", "lost": "loss.lost", "cpuLost": "loss.work.cpu", "memoryLost": "loss.work.memory"},
    **{"grace": "loss.grace", "endedAfter": "loss.endedAfter"},
    **{"replacement": "replacement.pod", "replacementNode": "replacement.node"},
    **{"placedAfter": "replacement.placedAfter", "readyAfter": "replacement.readyAfter", "inVain": "inVain"},
}
"""The columns of CSV, each with the path of its value in the JSON of a disruption."""


@dataclass(frozen=True, slots=True)
class LedgerAnswer:
    """The selected disruptions, their total, their groups (most disruptions first) and their chains."""

    account: Account
    grouping: Grouping
    records: tuple[Disruption, ...]
    total: DisruptionGroup
    groups: tuple[DisruptionGroup, ...]
    chains: tuple[Chain, ...]

    @property
    def in_vain(self) -> tuple[Disruption, ...]:
        return tuple(record for record in self.records if record.in_vain)

    def to_dict(self) -> dict[str, Any]:
        account = self.account
        return {
            "schemaVersion": SCHEMA_VERSION,
            "source": account.source,
            "times": "since 1970" if account.is_dated else "since the start",
            "dropped": account.dropped,
            "total": msgspec.to_builtins(self.total),
            "groupedBy": self.grouping,
            "groups": msgspec.to_builtins(self.groups),
            "chains": [
                {"pods": chain_pods(chain), "disruptions": [record.id for record in chain]} for chain in self.chains
            ],
            "records": [record.to_dict() for record in self.records],
            "caveats": [caveat.to_dict() for caveat in account.caveats],
        }

    def csv(self) -> str:
        """Return a row for each disruption as CSV."""
        rows = []
        for record in self.records:
            found = flat(record.to_dict())
            if self.account.is_dated:
                found["time"] = self.account.shown(record.time)
            rows.append([found.get(path) for path in _COLUMNS.values()])
        return in_csv(tuple(_COLUMNS), rows)


def answer_of(account: Account, query: LedgerQuery) -> LedgerAnswer:
    """Answer the query from the account. Raises InputError."""
    records = query.of(account)
    by_name = by_key((_GROUP_OF[query.grouping](record), record) for record in records)
    groups = [_summed(name, found) for name, found in by_name.items()]
    groups.sort(key=lambda group: (-group.disruptions, -group.lost_seconds, group.name))
    # Chains with a selected disruption are shown whole, including disruptions that are not selected.
    wanted = {record.id for record in records}
    chains = [chain for chain in chains_of(account.records) if any(record.id in wanted for record in chain)]
    return LedgerAnswer(account, query.grouping, records, _summed("all", records), tuple(groups), tuple(chains))


def _summed(name: str, records: Sequence[Disruption]) -> DisruptionGroup:
    work: Counter[str] = Counter()
    for record in records:
        work.update(record.loss.work)
    ready = [
        record.replacement.ready_after
        for record in records
        if record.replacement is not None and record.replacement.ready_after is not None
    ]
    return DisruptionGroup(
        name,
        len(records),
        dict(sorted(Counter[str](record.cause for record in records).items())),
        sum(bool(record.in_vain) for record in records),
        sum(record.loss.lost for record in records),
        {resource: round(amount, 3) for resource, amount in sorted(work.items())},
        len(ready),
        max(ready, default=None),
    )


Grouping = Literal["owner", "namespace", "priority", "cause", "node", "by", "for"]


class LedgerQuery(msgspec.Struct, frozen=True):
    """A query for disruptions: those that match every filter that is set, grouped.

    ``owners`` are workloads, as in `Deployment shop/web` or `shop/web`, or keys of pods without a workload. ``since``
    and ``until`` are times, or durations before the end of the account.
    """

    owners: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    lowest_priority: int | None = None
    highest_priority: int | None = None
    since: str = ""
    until: str = ""
    only_in_vain: bool = False
    grouping: Grouping = "owner"

    def of(self, account: Account) -> tuple[Disruption, ...]:
        """Return the matching disruptions of an account. Raises InputError for invalid times."""
        since_s, until_s = self.period(account)

        def is_owned(record: Disruption) -> bool:
            owner = owner_name(record.owner, record.pod)
            return owner in self.owners or owner.partition(" ")[2] in self.owners

        return tuple(
            record
            for record in account.records
            if (since_s is None or record.time >= since_s)
            and (until_s is None or record.time <= until_s)
            and (not self.owners or is_owned(record))
            and self.covers(record)
            and (not self.causes or record.cause in self.causes)
            and (not self.only_in_vain or bool(record.in_vain))
        )

    def covers(self, record: Disruption | UsageEntry) -> bool:
        """Return whether the record's namespace and priority match."""
        return (
            (not self.namespaces or record.namespace in self.namespaces)
            and (self.lowest_priority is None or record.priority >= self.lowest_priority)
            and (self.highest_priority is None or record.priority <= self.highest_priority)
        )

    def period(self, account: Account) -> tuple[float | None, float | None]:
        """Return the start and end in the account's seconds; None is open. Raises InputError."""
        since_s = _seconds("--since", self.since, account) if self.since else None
        return since_s, _seconds("--until", self.until, account) if self.until else None


def owner_name(owner: str, pod: str) -> str:
    """Return the name of a pod's workload, or of the pod if it has none."""
    return owner or f"Pod {pod}"


_GROUP_OF: Mapping[Grouping, Callable[[Disruption], str]] = {
    "owner": lambda record: owner_name(record.owner, record.pod),
    "namespace": lambda record: record.namespace,
    "priority": lambda record: str(record.priority),
    "cause": lambda record: record.cause,
    "node": lambda record: record.node,
    "by": lambda record: record.by or "unknown",
    "for": lambda record: owner_name(for_.owner, for_.pod) if (for_ := record.beneficiary) else "no pod",
}
"""The name of the group that a disruption belongs to."""


def _seconds(option: str, text: str, account: Account) -> float:
    """Return a time in the account's seconds. A duration counts back from its end."""
    try:
        return account.end - parse_duration(text) / SECOND
    except ValueError:
        pass
    if not account.is_dated:
        problem = f"{option}: {text!r} is not a duration; a run has no dates: use a duration before its end (10m)"
        raise InputError(problem)
    try:
        return parse_time(text) / SECOND
    except ValueError:
        problem = f"{option}: {text!r} is neither a duration such as 10m nor a time such as 2026-01-31T09:30:00Z"
        raise InputError(problem) from None


_EVENT = "Event"
_OWNERS = ("Namespace", "ReplicationController", "ReplicaSet", "StatefulSet", "Job")
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
    raws = {kind: [msgspec.json.decode(text) for text in objects] for kind, objects in listed}
    return reconstructed_account(raws, f"context {snapshot.context}", snapshot.taken_ns or 0, kept, snapshot.hidden)


def dumped_account(items: Sequence[meta.Raw], source: str) -> Account:
    """Reconstruct the disruptions in a dump: `kubectl get pods,replicasets,statefulsets,jobs,events -A -o json`."""
    raws = by_key((str(item.get("kind")), item) for item in items)
    snapshot = next(map(read_snapshot, filter(is_snapshot, items)), Snapshot())
    return reconstructed_account(raws, source, snapshot.taken_ns or 0, hidden=snapshot.hidden)


def reconstructed_account(
    raws: dict[str, list[meta.Raw]],
    source: str,
    taken_ns: int,
    kept: Account | None = None,
    hidden: Sequence[HiddenKind] = (),
) -> Account:
    """Return the account of objects, by kind, that were read at a time; 0: the time of the last Event."""
    account = kept or Account(source, (), 0)
    found = [(_read(raw, "Pod"), raw) for raw in raws.get("Pod", ())]
    seen = [PodObject(pod, raw) for pod, raw in found if isinstance(pod, Pod) and _is_dated(pod)]
    objects = {
        (kind, owner.key): owner
        for kind in _OWNERS
        for raw in raws.get(kind, ())
        if (owner := _read(raw, kind)) is not None
    }
    events = event_records(raws.get(_EVENT, ()))
    last_id = max((record.id for record in account.records), default=0)
    reconstruction = Reconstruction(seen, objects, events, {record.uid for record in account.records}, last_id)
    reconstructed = reconstruction.run()
    ordered = sorted((*account.records, *reconstructed), key=lambda record: (record.time, record.id))
    caveats = (*_of_events(events, hidden), *_of_records(reconstruction, len(found) - len(seen)))
    # A dump was made at an unknown time after its last Event.
    taken_ns = taken_ns or max((event.time_ns for event in events), default=0)
    end = max(taken_ns / SECOND, account.end, *map(last_of, reconstructed))
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
        consumption.on_update(pod, time)
    until_ns = max(taken_ns, *(time for time, _ in known), 0)
    message = "only pods that run now are counted, since they were scheduled; earlier usage is unknown"
    found = [Caveat("usage-of-the-present", message, len(known))]
    if len(known) < len(running):
        number = len(running) - len(known)
        found.append(Caveat("usage-undated", f"{number:,} pods do not show when they were scheduled", number))
    return consumption.read(until_ns), tuple(found)


def _read(raw: meta.Raw, kind: str) -> meta.Kubernetes | None:
    """Return the typed object; None if it cannot be read, for example of a newer Kubernetes version."""
    with suppress(InputError, ValueError):
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
    message = f"{counted(unread, 'pod', 'is')} unreadable"
    found = [Caveat("unread", message, unread)] if unread else []
    unsaid = "it is unknown whether they were deleted or evicted, since an eviction leaves no Event"
    for about, names, message in (
        ("unsaid", reconstruction.ambiguous, unsaid),
        ("guessed", reconstruction.guessed, "that are deleted, priority and requests are unknown; they count as 0"),
        ("without-node", reconstruction.without_node, "the node is unknown; they are omitted"),
    ):
        if names:
            shown = f"for {counted(len(names), 'pod')} {message}"
            found.append(Caveat(about, shown, len(names), tuple(names[:_MAX_NAMES])))
    return found
