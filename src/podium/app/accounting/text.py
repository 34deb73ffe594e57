"""The account of disruptions as text: totals, groups, chains, futile disruptions and the latest ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from podium.api.quantity import CPU, MEMORY, is_bytes
from podium.api.quantity import PODS as POD_COUNT
from podium.api.times import SECOND, format_duration
from podium.app.accounting.account import Account, DisruptionGroup, LedgerAnswer, LedgerQuery, chain_pods
from podium.app.console.cells import NODES, PODS, WORKLOADS, by_key
from podium.app.console.output import in_csv
from podium.app.console.page import Cell, Name, Page, Part, counted
from podium.controllers.ledger.disruption import Disruption, Seconds, UsageEntry
from podium.sim.results.result import SCHEMA_VERSION

_MAX_CHAINS = 8
_MAX_RECORDS = 20
_MAX_PODS = 8

TITLES = {
    "owner": "Most disrupted",
    "namespace": "By namespace",
    "priority": "By priority",
    "cause": "By cause",
    "node": "By node",
    "by": "By initiator",
    "for": "By beneficiary",
}
"""The titles of groups, by what disruptions are grouped by."""


def write_ledger(page: Page, answer: LedgerAnswer, *, every: bool) -> None:
    """Write the first screen; with `every`, each disruption."""
    account = answer.account
    page.paragraph(Cell(headline_of(answer), "bold"), hanging=2)
    if account.dropped:
        page.paragraph(Cell(f"{account.dropped:,} earlier ones are no longer kept", "dim"), indent=2)
    if answer.records:
        page.title(TITLES[answer.grouping])
        headings = ("", "disruptions", "in vain", "lost", "cpu lost", "ready again", "by")
        page.table(list(map(_group_row, answer.groups)), headings, most=15, right=range(1, 6))
        if answer.chains:
            page.title("Chains", "each pod displaced the next")
        for chain in answer.chains[:_MAX_CHAINS]:
            pods = chain_pods(chain)
            more = f" → and {len(pods) - _MAX_PODS:,} more" if len(pods) > _MAX_PODS else ""
            page.paragraph(f"{' → '.join(pods[:_MAX_PODS])}{more}", indent=2, hanging=2)
        page.more(len(answer.chains) - _MAX_CHAINS)
    if answer.in_vain:
        page.title("In vain", counted(len(answer.in_vain), "disruption"))
        rows = [
            (account.shown(record.time), Name(record.pod, PODS), Cell(record.in_vain, "warn"))
            for record in answer.in_vain
        ]
        page.table(rows, most=8)
    if answer.records:
        records = answer.records if every else answer.records[-_MAX_RECORDS:]
        some = f"the last {len(records)} of {len(answer.records):,}; --all shows all"
        page.title("Disruptions", some if len(records) < len(answer.records) else "")
        lines = [
            (
                account.shown(record.time),
                Name(record.pod, PODS, "bad"),
                Name(record.node, NODES),
                why_of(record),
                outcome_of(record),
            )
            for record in records
        ]
        page.table(lines, ("at", "pod", "node", "why", "outcome"))
    page.caveats(account.caveats)


def headline_of(answer: LedgerAnswer) -> str:
    """Return the sums in one line."""
    total, hidden = answer.total, answer.account.hidden
    if not total.disruptions and hidden:
        return f"no disruptions are known, but listing {' and '.join(hidden)} is forbidden"
    if not total.disruptions:
        return "no disruptions" if not answer.account.records else "no disruptions of that kind"
    causes = ", ".join(f"{number:,} {cause}" for cause, number in total.causes.items())
    found = f"{counted(total.disruptions, 'disruption')}: {causes}"
    if total.in_vain:
        found += f"; {total.in_vain:,} in vain"
    if total.lost_seconds:
        found += f"; {_lasting(total.lost_seconds)} of running time lost"
    return found


def _group_row(group: DisruptionGroup) -> list[Part]:
    ready = f"{group.replaced:,} of {group.disruptions:,}"
    if group.longest_until_ready is not None:
        ready += f", in {_lasting(group.longest_until_ready)} at most"
    cpu = group.work.get("cpu", 0)
    return [
        Name(group.name, WORKLOADS),
        f"{group.disruptions:,}",
        Cell(f"{group.in_vain:,}", "warn") if group.in_vain else "",
        _lasting(group.lost_seconds) if group.lost_seconds else "",
        f"{cpu:,.0f} core-seconds" if cpu else "",
        ready,
        ", ".join(group.causes),
    ]


def why_of(record: Disruption) -> Part:
    """Return the cause of a disruption, and the pod that benefits from it."""
    beneficiary = record.beneficiary
    if beneficiary is None:
        return record.cause
    return Name(beneficiary.pod, PODS, before=f"{record.cause} for ")


def outcome_of(record: Disruption) -> Part:
    """Return the state of a victim's replacement."""
    replacement = record.replacement
    if replacement is None:
        return Cell("not replaced", "dim") if record.owner else Cell("has no controller that replaces it", "dim")
    if replacement.node is None:
        return Cell("its replacement is pending", "warn")
    when = f" after {_lasting(replacement.ready_after)}" if replacement.ready_after is not None else ", not ready yet"
    where = "came back" if replacement.node == record.node else f"on {replacement.node}"
    return f"{where}{when}"


def _lasting(time: Seconds) -> str:
    return format_duration(round(time) * SECOND)


_HOUR_S = 3_600
_GIB = 1024**3
_MAX_ROWS = 40


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """The selected usage, by hour, namespace and priority."""

    account: Account
    rows: tuple[UsageEntry, ...]

    @property
    def totals(self) -> tuple[UsageEntry, ...]:
        """Return the totals of each namespace and priority, each with its first hour."""
        found = []
        groups = by_key(((used.namespace, used.priority_class, used.priority), used) for used in self.rows)
        for some in groups.values():
            total: Counter[str] = Counter()
            for used in some:
                total.update(used.requested)
            found.append(replace(some[0], requested=dict(total)))
        return tuple(sorted(found, key=lambda used: (used.namespace, -used.priority, used.priority_class)))

    def to_dict(self) -> dict[str, Any]:
        account = self.account
        totals = [{name: value for name, value in used.to_dict().items() if name != "hour"} for used in self.totals]
        return {
            "schemaVersion": SCHEMA_VERSION,
            "source": account.source,
            "times": "since 1970" if account.is_dated else "since the start",
            "totals": totals,
            "hours": [used.to_dict() for used in self.rows],
            "caveats": [caveat.to_dict() for caveat in account.usage_caveats],
        }

    def csv(self) -> str:
        """Return a row for each hour, namespace, priority and resource."""
        return in_csv(
            ("hour", "namespace", "priorityClass", "priority", "resource", "resourceHours"),
            (
                (_hour(self.account, used), used.namespace, used.priority_class, used.priority, name, round(amount, 9))
                for used in self.rows
                for name, amount in sorted(used.requested.items())
            ),
        )


def usage_of(account: Account, query: LedgerQuery) -> UsageAnswer:
    """Return the usage in the selected hours, namespaces and priorities. Raises InputError."""
    since_s, until_s = query.period(account)
    rows = tuple(
        used
        for used in account.usage
        if (since_s is None or used.hour + _HOUR_S > since_s)
        and (until_s is None or used.hour <= until_s)
        and query.covers(used)
    )
    return UsageAnswer(account, rows)


def write_usage(page: Page, answer: UsageAnswer, *, every: bool) -> None:
    """Write the sums by namespace and priority; with `every`, of each hour."""
    if not answer.rows:
        page.paragraph(Cell("no usage was recorded in that time", "bold"))
    else:
        hours = len({used.hour for used in answer.rows})
        where = counted(len({used.namespace for used in answer.rows}), "namespace")
        page.paragraph(Cell(f"requested by the pods of {where} within {counted(hours, 'hour')}", "bold"), hanging=2)
        page.line()
        _write_table(page, answer.account, answer.rows if every else answer.totals, by_hour=every)
    page.caveats(answer.account.usage_caveats)


def _write_table(page: Page, account: Account, rows: Sequence[UsageEntry], *, by_hour: bool) -> None:
    others = sorted({name for used in rows for name in used.requested} - {CPU, MEMORY, POD_COUNT})
    names = (POD_COUNT, CPU, MEMORY, *others)
    first = ("hour", "namespace") if by_hour else ("namespace",)
    of_names = {name: f"{name} GiB-hours" if is_bytes(name) else f"{name}-hours" for name in names}
    of_names |= {CPU: "core-hours", POD_COUNT: "pod-hours"}
    headings = (*first, "class", "priority", *of_names.values())
    table = []
    for used in rows:
        places = (account.shown(used.hour), used.namespace) if by_hour else (used.namespace,)
        amounts = [used.requested.get(name, 0.0) / (_GIB if is_bytes(name) else 1) for name in names]
        first_cells = (*map(str, places), used.priority_class or "none", str(used.priority))
        table.append([*first_cells, *map("{:,.2f}".format, amounts)])
    page.table(table, headings, most=None if by_hour else _MAX_ROWS, right=range(len(first) + 1, len(headings)))


def _hour(account: Account, used: UsageEntry) -> str | int:
    return account.shown(used.hour) if account.is_dated else used.hour
