"""The content of a page: runs side by side, a decision, or a sweep, with texts and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from podium.api.basis import Caveat
from podium.api.errors import escape
from podium.app.answers import Value
from podium.app.console.cells import WORKLOADS, Name, Part, text_of
from podium.app.console.page import Section
from podium.app.reporting.story import Story

SCHEMA_VERSION = 1
"""The version of a page's data; page and data are in one file, so that they agree."""

_LONGEST = 4_000
_POD = "Pod "


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """Rows under headings; numbers are right-aligned. `subjects` are what a click on each row selects."""

    title: str
    headings: list[str]
    rows: list[list[Value]]
    note: str = ""
    subjects: list[str] = []


class Decision(msgspec.Struct, frozen=True, rename="camel"):
    """A decision about one pod, node by node.

    Nodes and groups are indices. `groups` are the nodes' verdicts, success first; `group_of` has that of each node.
    `scores` are the weighted scores by plugin of the nodes in `rated`, best first. `rejected` says by node why
    preemption does not help. `taken` is the chosen or nominated node, -1 for none, and `role` names which of them.
    `counts` is the number of nodes by verdict, if `nodes` does not contain all. `criteria` compare the candidates; None
    means kube-scheduler's.
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
    """A node where preemption would help: its victims, the most important first, and the number of PDB violations.

    `priority` is the victims' highest one, None if unknown. `costs` are the values of stated criteria.
    """

    node: int
    violations: int
    priority: int | None
    count: int
    victims: list[str]
    costs: list[str] | None = None


class Disruptions(msgspec.Struct, frozen=True, rename="camel"):
    """Disruptions over time, with a row for each workload, beneficiaries first.

    Times are in seconds after `start`, which counts from 1970 if `is_dated`; the picture covers `span`. Each disruption
    has its `row`, the index of its cause, the times when it began (`at`), when the victim was `gone` and when the
    replacement was `ready` (None: not yet), the row of its `beneficiary` (-1 for none), whether it was in `vain`, the
    next in its chain (`following`, -1 for none), and lines of text about it (`said`), its pod first.
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
    beneficiary: list[int]
    vain: list[bool]
    following: list[int]
    said: list[list[str]]
    note: str = ""


class Runs(msgspec.Struct, frozen=True, rename="camel"):
    """The runs of a sweep: the index of each run's settings, its seed, and its figures; None for a missing figure."""

    settings: list[str]
    figures: list[str]
    places: list[int]
    seeds: list[int]
    values: list[list[float | None]]


class Picture(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A page: the `command` that made it, and its answer in one line (`headline`).

    `facts` and `tables` come before the picture, `more` after it. `changes` are required changes, under a title. Of
    more than two `stories`, two are shown at a time.
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


def caveat_texts(caveats: tuple[Caveat, ...]) -> list[str]:
    """Return the messages of the caveats."""
    return [escape(caveat.message, _LONGEST) for caveat in caveats]


def drawn(sections: Iterable[Section]) -> list[Table]:
    """Return the tables of the sections that have rows; a row is about the node, pod or workload that begins it."""
    found = []
    for section in sections:
        width = max((len(row) for row in section.rows), default=0)
        rows = [[part if isinstance(part, int) else text_of(part) for part in row] for row in section.rows]
        found += table_of(
            section.title,
            section.headings or [""] * width,
            [[*row, *[""] * (width - len(row))] for row in rows],
            section.rest,
            [subject for row in section.rows if (subject := _subject(row[0]))],
        )
    return found


def table_of(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[Value]], note: str = "", subjects: Sequence[str] = ()
) -> list[Table]:
    """Return the table of the rows, with harmless text; empty without rows."""
    cells = [[escape(value, _LONGEST) if isinstance(value, str) else value for value in row] for row in rows]
    return [Table(title, list(headings), cells, note, list(subjects))] if rows else []


def _subject(part: Part) -> str:
    """Return what a click on a row that begins with the part selects; a pod without a controller is a workload."""
    if not isinstance(part, Name):
        return ""
    name = escape(part.name, _LONGEST)
    if part.kind == WORKLOADS and name.startswith(_POD):
        return f"pod {name.removeprefix(_POD)}"
    return f"{part.kind.removesuffix('s')} {name}"
