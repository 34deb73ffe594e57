"""The account of disruptions for people: sums, who was hit most, chains, what was in vain, and the last of them."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.times import format_duration
from podium.app.accounting.answer import Group, LedgerAnswer
from podium.app.accounting.chains import Chain, in_words
from podium.app.console.basis_text import write_basis
from podium.app.console.cells import NODES, PODS, WORKLOADS
from podium.app.console.page import Cell, Name, Page, Part, counted
from podium.machines.ledger.disruption import Disruption, Seconds

_MOST_GROUPS = 15
_MOST_CHAINS = 8
_MOST_IN_VAIN = 8
_MOST_RECORDS = 20
_MOST_PODS = 8
_SECOND = 10**9
_HEADINGS = ("", "disruptions", "in vain", "lost", "cpu lost", "ready again", "by")
_TITLES = {
    "owner": "Who was disrupted most",
    "namespace": "By namespace",
    "priority": "By priority",
    "cause": "By cause",
    "node": "By node",
    "by": "By who did it",
    "for": "For whom",
}


def write_ledger(page: Page, answer: LedgerAnswer, *, every: bool) -> None:
    """Write the first screen; with `every`, each disruption."""
    page.paragraph(Cell(headline_of(answer), "bold"), hanging=2)
    if answer.account.dropped:
        page.paragraph(Cell(f"{answer.account.dropped:,} earlier ones are no longer kept", "dim"), indent=2)
    if answer.records:
        _write_groups(page, answer)
        _write_chains(page, answer.chains)
        _write_in_vain(page, answer)
        _write_records(page, answer, every=every)
    write_basis(page, answer.account.caveats)


def headline_of(answer: LedgerAnswer) -> str:
    """The sums in a line."""
    total = answer.total
    if not total.disruptions:
        return "no disruptions" if not answer.account.records else "no disruptions of that kind"
    causes = ", ".join(f"{number:,} {cause}" for cause, number in total.causes.items())
    found = f"{counted(total.disruptions, 'disruption')}: {causes}"
    if total.in_vain:
        found += f"; {total.in_vain:,} in vain"
    if total.lost:
        found += f"; {_lasting(total.lost)} of running time lost"
    return found


def title_of(answer: LedgerAnswer) -> str:
    """What the groups are."""
    return _TITLES[answer.grouping]


def _write_groups(page: Page, answer: LedgerAnswer) -> None:
    shown = answer.groups[:_MOST_GROUPS]
    page.title(title_of(answer))
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _HEADINGS]]
    rows += [_group_row(group) for group in shown]
    page.columns(rows, indent=2, right=range(1, len(_HEADINGS) - 1))
    _write_more(page, len(answer.groups) - len(shown))


def _group_row(group: Group) -> list[Part]:
    ready = f"{group.replaced:,} of {group.disruptions:,}"
    if group.longest is not None:
        ready += f", in {_lasting(group.longest)} at most"
    cpu = group.work.get("cpu", 0)
    return [
        Name(group.name, WORKLOADS),
        f"{group.disruptions:,}",
        Cell(f"{group.in_vain:,}", "warn") if group.in_vain else "",
        _lasting(group.lost) if group.lost else "",
        f"{cpu:,.0f} core-seconds" if cpu else "",
        ready,
        ", ".join(group.causes),
    ]


def _write_chains(page: Page, chains: Sequence[Chain]) -> None:
    if not chains:
        return
    page.title("Chains", "each pod took the place of the next")
    for chain in chains[:_MOST_CHAINS]:
        pods = in_words(chain)
        text = " → ".join(pods[:_MOST_PODS])
        if len(pods) > _MOST_PODS:
            text += f" → and {len(pods) - _MOST_PODS:,} more"
        page.paragraph(text, indent=2, hanging=2)
    _write_more(page, len(chains) - _MOST_CHAINS)


def _write_in_vain(page: Page, answer: LedgerAnswer) -> None:
    found = answer.in_vain
    if not found:
        return
    page.title("In vain", counted(len(found), "disruption"))
    rows: list[list[Part]] = [
        [answer.account.shown(record.time), Name(record.pod, PODS), Cell(record.in_vain, "warn")]
        for record in found[:_MOST_IN_VAIN]
    ]
    page.columns(rows, indent=2)
    _write_more(page, len(found) - _MOST_IN_VAIN)


def _write_records(page: Page, answer: LedgerAnswer, *, every: bool) -> None:
    records = answer.records if every else answer.records[-_MOST_RECORDS:]
    left = len(answer.records) - len(records)
    page.title("Disruptions", f"the last {len(records)} of {len(answer.records):,}; --all shows all" if left else "")
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in ("at", "pod", "node", "why", "what became of it")]]
    for record in records:
        rows.append(
            [
                answer.account.shown(record.time),
                Name(record.pod, PODS, "bad"),
                Name(record.node, NODES),
                why_of(record),
                fate_of(record),
            ]
        )
    page.columns(rows, indent=2)


def why_of(record: Disruption) -> Part:
    """What brought a disruption about, and for whom."""
    whom = record.beneficiary
    if whom is None:
        return record.cause
    return Name(whom.pod, PODS, before=f"{record.cause} for ")


def fate_of(record: Disruption) -> Part:
    """What became of a victim."""
    came = record.replacement
    if came is None:
        return Cell("nothing came in its place", "dim") if record.owner else Cell("nobody makes it again", "dim")
    if came.node is None:
        return Cell("its replacement waits", "warn")
    when = f" after {_lasting(came.ready_after)}" if came.ready_after is not None else ", not ready yet"
    where = "came back" if came.node == record.node else f"on {came.node}"
    return f"{where}{when}"


def _write_more(page: Page, number: int) -> None:
    if number > 0:
        page.line(Cell(f"and {number:,} more", "dim"), indent=2)


def _lasting(time: Seconds) -> str:
    return format_duration(round(time) * _SECOND)
