"""What a page shows: stories side by side, a decision, or runs; and what it has to say in words."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.api.basis import Caveat
from podium.api.errors import escape
from podium.app.console.cells import WORKLOADS, Name, Part, text_of
from podium.app.console.page import Section
from podium.app.reporting.story import Story

SCHEMA_VERSION = 1
"""The version of a page's data; page and data come in one file, and so agree."""

_LONGEST = 4_000
_POD = "Pod "


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """Rows under headings; numbers stand to the right. `subjects` are what rows are about, for a click on one."""

    title: str
    headings: list[str]
    rows: list[list[str | int | float | None]]
    note: str = ""
    subjects: list[str] = []


class Decision(msgspec.Struct, frozen=True, rename="camel"):
    """A decision about one pod, node by node.

    Nodes and groups go by number. `groups` are what nodes answered, those that fit first; `group_of` is each node's.
    `scores` are those of the nodes in `rated`, best first, by plugin, weighted. `rejected` is by node why preemption
    does not help there. `taken` is the node that is taken or nominated, -1 for none,
    and `role` says in words which of them it is. `counts` are how many nodes gave each answer, where not all of them
    are among the nodes. `criteria` are those by which candidates are compared, None for kube-scheduler's.
    """

    pod: str
    taken: int
    nodes: list[str]
    groups: list[str]
    group_of: list[int]
    fits: bool
    plugins: list[str]
    rated: list[int]
    scores: list[list[int]]
    totals: list[int]
    candidates: list[Candidate]
    rejected: list[tuple[int, str]]
    decided_by: str
    role: str
    counts: list[int] | None = None
    criteria: list[str] | None = None


class Candidate(msgspec.Struct, frozen=True, rename="camel"):
    """A node where preemption would help: its victims, the most important first, and budgets that they would break.

    The highest `priority` of these is None where it is not known. `costs` are what stated criteria say of them.
    """

    node: int
    violations: int
    priority: int | None
    count: int
    victims: list[str]
    costs: list[str] | None = None


class Disruptions(msgspec.Struct, frozen=True, rename="camel"):
    """Who had to go when, for whom, and when that was made good: a row for each workload, those for whom it was first.

    Times are in seconds after `start`, which is since 1970 where `is_dated`, and last for `span`. Of each disruption:
    its `row`, its cause by number, when it began (`at`), when the victim was `gone`, and when what came in its place
    was `ready`, None for what has not been; the row of those for whom it was (`whom`, -1 for nobody); whether it was in
    `vain`; the one to which it led (`following`, -1 for none); and what is said of it, its pod first.
    """

    rows: list[str]
    causes: list[str]
    is_dated: bool
    start: float
    span: float
    row: list[int]
    cause: list[int]
    at: list[float]
    gone: list[float | None]
    ready: list[float | None]
    whom: list[int]
    vain: list[bool]
    following: list[int]
    said: list[list[str]]
    note: str = ""


class Runs(msgspec.Struct, frozen=True, rename="camel"):
    """The runs of a sweep: the place of its settings, its seed, and its figures, None for what there is none of."""

    settings: list[str]
    figures: list[str]
    places: list[int]
    seeds: list[int]
    values: list[list[float | None]]


class Picture(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A page: what made it (`command`), and what it says in a line (`headline`).

    `facts` and `tables` are what else is to be said first, `more` comes behind the picture. `changes` are what would
    have to change, under a title. Of more than two stories two at a time are seen.
    """

    command: str
    headline: str
    facts: list[str] = []
    tables: list[Table] = []
    more: list[Table] = []
    stories: list[Story] = []
    decision: Decision | None = None
    runs: Runs | None = None
    disruptions: Disruptions | None = None
    changes: list[str] = []
    changes_title: str = ""
    caveats: list[str] = []
    text: str = ""
    schema_version: int = SCHEMA_VERSION


def told(caveats: tuple[Caveat, ...]) -> list[str]:
    """What an answer rests on, in words."""
    return [escape(caveat.message, _LONGEST) for caveat in caveats]


def drawn(sections: Iterable[Section]) -> list[Table]:
    """Return the tables of the sections that have rows; a row is about the node, pod or workload that begins it."""
    found = []
    for section in sections:
        width = max((len(row) for row in section.rows), default=0)
        rows: list[list[str | int | float | None]] = [
            [part if isinstance(part, int) else escape(text_of(part), _LONGEST) for part in row] for row in section.rows
        ]
        table = Table(
            section.title,
            list(section.headings) or [""] * width,
            [[*row, *[""] * (width - len(row))] for row in rows],
            note=section.rest,
            subjects=[subject for row in section.rows if (subject := _subject(row[0]))],
        )
        found += [table] if rows else []
    return found


def _subject(part: Part) -> str:
    """Return what a click on a row that begins so selects; a pod without a controller is a workload of its own."""
    if not isinstance(part, Name):
        return ""
    name = escape(part.name, _LONGEST)
    if part.kind == WORKLOADS and name.startswith(_POD):
        return f"pod {name.removeprefix(_POD)}"
    return f"{part.kind.removesuffix('s')} {name}"
