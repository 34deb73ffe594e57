"""The answer to a plan: what was asked in one line, what was found, and what it does to each workload and node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from podium.api.basis import Caveat
from podium.api.meta import Raw
from podium.app.console.cells import Part
from podium.app.planning.finding_codes import FINDING_CODES
from podium.app.shown import Shown
from podium.app.simulating.simulation_result import SimulationResult

if TYPE_CHECKING:
    from podium.app.console.page import Page
    from podium.app.frames import Frame

SCHEMA_VERSION = 1
"""That of `PlanAnswer.to_dict`; it grows when a field goes or means something else."""

_RUNS = ("without the plan", "with the plan")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that somebody may want to hear of: its code, a sentence, and whom it is about."""

    code: str
    message: str
    subjects: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.code not in FINDING_CODES:
            raise ValueError(f"{self.code} is no code of a finding")

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON shows it."""
        return {"code": self.code, "message": self.message, "subjects": list(self.subjects)}


@dataclass(frozen=True, slots=True)
class Held:
    """For how many seconds a budget held evictions of a workload's pods, and how many pods; `ended`: it let all go."""

    budget: str
    seconds: float
    pods: int
    ended: bool

    def to_dict(self) -> dict[str, Any]:
        """The fact as JSON shows it."""
        return {"budget": self.budget, "seconds": self.seconds, "pods": self.pods, "ended": self.ended}


@dataclass(frozen=True, slots=True)
class WorkloadImpact:
    """What the plan does to one workload, as in `Deployment default/web`, less what would have happened anyway.

    `ready_before` is at the start, `lowest` for any time on the way, `ready_after` and `wanted` at the end, and
    `ready_anyway` at the end without the plan. `missing` are pods that it has too few at the end, beyond those that it
    would have too few anyway. `stuck` are pods that wait at the end, beyond those that would anyway, where none is
    missing: a rollout that cannot go on. `short_seconds` is for how long it had fewer ready pods than it wanted,
    `pending_seconds` how long its pods waited for nodes, added up; either is negative where the plan helps.
    `disruptions` are by cause. `why` says why it has too few at the end, or why pods wait, "" where neither is so.
    """

    workload: str
    ready_before: int
    lowest: int
    ready_after: int
    ready_anyway: int
    wanted: int
    missing: int
    pending: int
    short_seconds: float
    pending_seconds: float
    disruptions: Mapping[str, int] = field(default_factory=dict)
    held: tuple[Held, ...] = ()
    is_new: bool = False
    why: str = ""
    stuck: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The impact as JSON shows it."""
        return {
            "workload": self.workload,
            "readyBefore": self.ready_before,
            "lowestReady": self.lowest,
            "readyAfter": self.ready_after,
            "readyWithoutPlan": self.ready_anyway,
            "wanted": self.wanted,
            "missing": self.missing,
            "pending": self.pending,
            "stuck": self.stuck,
            "shortSeconds": self.short_seconds,
            "pendingSeconds": self.pending_seconds,
            "disruptions": dict(self.disruptions),
            "held": [held.to_dict() for held in self.held],
            "isNew": self.is_new,
            "why": self.why or None,
        }


@dataclass(frozen=True, slots=True)
class NodeImpact:
    """What becomes of one node: `change` is added, emptied, gone, down, not ready or cordoned."""

    node: str
    change: str
    pods_before: int
    pods_after: int

    def to_dict(self) -> dict[str, Any]:
        """The impact as JSON shows it."""
        return {
            "node": self.node,
            "change": self.change,
            "podsBefore": self.pods_before,
            "podsAfter": self.pods_after,
        }


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an answer that only some questions have: a title and rows of cells, for people; `data` for programs.

    The last column of the rows may be long. `headings` may be empty. Names in a row (`podium.app.console.cells`) are
    shortened where a terminal is narrow.
    """

    name: str
    title: str
    rows: tuple[tuple[Part, ...], ...]
    headings: tuple[str, ...] = ()
    rest: str = ""
    data: Any = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """The change that the headline names, in words, and the `objects` as they would be written with it.

    They take the place of those of their kind and name, or come beside them, as with `--override`.
    """

    text: str
    objects: tuple[Raw, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """What spreadsheets are given where there is no impact by workload: rows of values under their headings.

    `numbers` are the headings of whole numbers; all others are of text.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]
    numbers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, repr=False)
class PlanAnswer(Shown):
    """An answer. `question` names what was asked (drain, deploy, ...), `headline` answers it in a line.

    `impact` are the workloads to which something happens, `nodes` those to which something does; `node_hours` with the
    plan and without. `result` is the run behind it and `baseline` the one with nothing asked; None for questions that
    play none. `scenario` is what was played, as a document, or what shows the answer when it is played over what was
    read; `remedy` is the change that helps, for questions that look for one. `sections` are what the question has to
    say beyond that, `further` parts that are shown on request, named as the options are. `table` stands in the place of
    the impact for those that play nothing. `runs` are what baseline and result are called where both are seen.
    """

    question: str
    headline: str
    findings: tuple[Finding, ...] = ()
    impact: tuple[WorkloadImpact, ...] = ()
    nodes: tuple[NodeImpact, ...] = ()
    node_hours: tuple[float, float] | None = None
    rests_on: tuple[Caveat, ...] = ()
    result: SimulationResult | None = None
    baseline: SimulationResult | None = None
    scenario: Raw | None = None
    remedy: Remedy | None = None
    sections: tuple[Section, ...] = ()
    further: tuple[Section, ...] = ()
    table: Table | None = None
    runs: tuple[str, str] = _RUNS

    def _in_a_line(self) -> str:
        return f"{self.question}: {self.headline}"

    def write(self, page: Page) -> None:
        """Write the first screen, as `podium plan` does."""
        from podium.app.planning.text import write_answer

        write_answer(page, self)

    def _pictured(self) -> PlanAnswer:
        result, baseline = self.result, self.baseline
        return replace(
            self,
            result=None if result is None else result._pictured(),
            baseline=None if baseline is None else baseline._pictured(),
        )

    def frame(self, name: str = "") -> Frame:
        """A table of the answer. Raises PodiumError for one that it does not have.

        Without a name it is the one that `-o csv` prints: `table` of pending, fit and survive, `impact` of all others.
        `impact` has a row for each workload to which something happens, `nodes` for each such node, `findings` for each
        finding, with the names that `to_dict` has; the number of disruptions by a cause is in `disruptions.CAUSE`,
        seconds are differences to what would happen anyway. `events`, `pods`, `series`, `workloads` and `readiness`
        are those of the run with the plan (`SimulationResult.frame`), `all_nodes` its nodes.
        """
        from podium.app.planning.tables import frame_of

        return frame_of(self, name)

    @property
    def otherwise(self) -> str:
        """The run that the impact is a difference to, in a sentence: `without the plan`, or with which setting."""
        return self.runs[0] if self.runs == _RUNS else f"with {self.runs[0]}"

    @property
    def anyway(self) -> Mapping[str, int]:
        """What happens without the plan, too: pods that wait at the end, that are preempted, and that are evicted."""
        if self.baseline is None:
            return {}
        summary = self.baseline.summary
        return {
            "pending": summary["pods"]["pending"],
            "preempted": summary["preempted"],
            "evicted": sum(summary["evictedBy"].values()),
        }

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the findings, each once, in the order of `FINDING_CODES`."""
        found = {finding.code for finding in self.findings}
        return tuple(code for code in FINDING_CODES if code in found)

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON shows it."""
        shown: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "question": self.question,
            "headline": self.headline,
            "findings": [finding.to_dict() for finding in self.findings],
            "impact": [impact.to_dict() for impact in self.impact],
            "nodes": [node.to_dict() for node in self.nodes],
        }
        if self.baseline is not None:
            shown["anyway"] = dict(self.anyway)
        if self.node_hours is not None:
            shown["nodeHours"] = {"with": self.node_hours[0], "without": self.node_hours[1]}
        for section in self.sections:
            shown[section.name] = section.data
        shown["restsOn"] = [caveat.to_dict() for caveat in self.rests_on]
        if self.result is not None:
            shown["result"] = self.result.to_dict()
        return shown
