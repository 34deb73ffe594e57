"""`podium plan diff`: two settings over one cluster, played with the same seed: who gains, who loses, who moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.api.input.codec import Input
from podium.api.times import format_duration
from podium.app.console import cells
from podium.app.console.cells import Name, Part
from podium.app.planning.answer import PlanAnswer, Section
from podium.app.planning.answering import answer_of, pods
from podium.app.planning.question import PlanProgress, Played, Question, assumed, play_both, played_again, scenario_of
from podium.app.planning.settings import Setting, kept_priorities
from podium.sim.results.readiness import WorkloadReadiness
from podium.sim.results.result import Result
from podium.sim.run_options import RunOptions

GAINS, LOSES, MOVES = "gains", "loses", "moves"
_ORDER = (LOSES, GAINS, MOVES)
_MOST_ROWS = 20
_HAS_PLACE = ("ready", "running", "starting")
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class Difference:
    """What one workload has of the second setting: it gains, loses or moves.

    `ready` are its ready pods at the end with the first setting and with the second, `short_ns` for how long it had
    fewer than it wanted, `disrupted` how many of its pods were, and `moved` how many are on other nodes at the end.
    """

    workload: str
    what: str
    ready: tuple[int, int]
    short_ns: tuple[int, int]
    disrupted: tuple[int, int]
    moved: int

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON shows it, each pair `before` and `after`."""
        seconds = tuple(short_ns / _SECOND for short_ns in self.short_ns)
        pairs = {"ready": self.ready, "shortSeconds": seconds, "disrupted": self.disrupted}
        return {
            "workload": self.workload,
            "what": self.what,
            **{name: {"before": pair[0], "after": pair[1]} for name, pair in pairs.items()},
            "moved": self.moved,
        }


def play_diff(
    read: Input,
    before: Setting,
    after: Setting,
    options: RunOptions,
    *,
    renews_priorities: bool = False,
    progress: PlanProgress | None = None,
    stories: int = 0,
) -> Played:
    """Play the cluster with both settings, for as long, with the same seed. Raises InputError and LimitError.

    With `stories` it is played so often, with other draws.
    """
    return played_again(
        lambda options, told: _play_once(read, before, after, options, told, renews_priorities=renews_priorities),
        options,
        progress,
        stories,
    )


def _play_once(
    read: Input,
    before: Setting,
    after: Setting,
    options: RunOptions,
    progress: PlanProgress | None,
    *,
    renews_priorities: bool,
) -> Played:
    sides = [
        (setting.input(read, renews_priorities=renews_priorities), setting.options(own))
        for setting, own in ((before, replace(options, on_attempt=None)), (after, options))
    ]
    baseline, result = play_both(sides, progress)
    changed = sides[1][0]
    question = Question("diff")
    kept = () if renews_priorities else kept_priorities(read, (before, after))
    return Played(changed, question, result, baseline, scenario_of(changed, question), (*assumed(options), *kept))


def diff_answer(played: Played, before: Setting, after: Setting) -> PlanAnswer:
    """The answer."""
    found = differences(played.baseline, played.result)
    answer = answer_of(played, _headline(played, found, before, after), sections=[_section(found, before, after)])
    return replace(answer, question="diff", runs=(before.name, after.name))


def differences(before: Result, after: Result) -> tuple[Difference, ...]:
    """The workloads with which the second run does something else: those that lose, gain, move, then by name."""
    known = {workload.workload: workload for workload in before.measures.workloads}
    others = {workload.workload: workload for workload in after.measures.workloads}
    places, other_places = _places(before), _places(after)
    disrupted, other_disrupted = _disrupted(before), _disrupted(after)
    found = []
    for label in sorted(known.keys() | others.keys()):
        pair = known.get(label, WorkloadReadiness(label)), others.get(label, WorkloadReadiness(label))
        moved = min((places[label] - other_places[label]).total(), (other_places[label] - places[label]).total())
        numbers = disrupted[label], other_disrupted[label]
        what = _what(pair, numbers, moved)
        if what:
            ready, short = (pair[0].ready, pair[1].ready), (pair[0].short_ns, pair[1].short_ns)
            found.append(Difference(label, what, ready, short, numbers, moved))
    return tuple(sorted(found, key=_by_weight))


def _what(pair: tuple[WorkloadReadiness, WorkloadReadiness], disrupted: tuple[int, int], moved: int) -> str:
    """Who ends with more ready pods gains; of the same number who was short for less time, or was disrupted less."""
    before, after = pair
    more = (after.ready - before.ready, before.short_ns - after.short_ns, disrupted[0] - disrupted[1])
    decisive = next((difference for difference in more if difference), 0)
    if decisive:
        return GAINS if decisive > 0 else LOSES
    return MOVES if moved else ""


def _by_weight(difference: Difference) -> tuple[int, int, int, str]:
    ready = abs(difference.ready[1] - difference.ready[0])
    return _ORDER.index(difference.what), -ready, -difference.moved, difference.workload


def _places(result: Result) -> dict[str, Counter[str]]:
    """By workload, how many of its pods are on which node at the end."""
    found: dict[str, Counter[str]] = _Counters()
    for pod in result.pods:
        if pod["state"] in _HAS_PLACE and pod["node"]:
            found[pod["workload"]][pod["node"]] += 1
    return found


def _disrupted(result: Result) -> Counter[str]:
    return Counter(pod["workload"] for pod in result.pods if pod["disruption"] or pod["evictedBy"])


class _Counters(dict[str, Counter[str]]):
    """A counter for each key."""

    def __missing__(self, key: str) -> Counter[str]:
        found = self[key] = Counter()
        return found


def _headline(played: Played, found: Sequence[Difference], before: Setting, after: Setting) -> str:
    said = f"{after.name} in place of {before.name}"
    if not found:
        return f"{said}: no workload fares otherwise"
    parts = []
    for what in (GAINS, LOSES, MOVES):
        some = [difference for difference in found if difference.what == what]
        if some:
            verb = what if len(some) == 1 else what.removesuffix("s")
            parts.append(f"{len(some):,} workload{'' if len(some) == 1 else 's'} {verb}{_amount(what, some)}")
    runs = (played.baseline.summary["preempted"], played.result.summary["preempted"])
    if runs[0] != runs[1]:
        parts.append(f"{pods(runs[1])} {'is' if runs[1] == 1 else 'are'} preempted, {runs[0]:,} before")
    return f"{said}: {'; '.join(parts)}"


def _amount(what: str, some: Sequence[Difference]) -> str:
    if what == MOVES:
        return f" ({pods(sum(difference.moved for difference in some))})"
    ready = sum(abs(difference.ready[1] - difference.ready[0]) for difference in some)
    if ready:
        return f" ({ready:,} ready pod{'' if ready == 1 else 's'})"
    disrupted = sum(difference.disrupted[1] - difference.disrupted[0] for difference in some)
    if not disrupted:
        return ""
    return f" ({abs(disrupted):,} {'more' if disrupted > 0 else 'fewer'} disrupted)"


def _section(found: Sequence[Difference], before: Setting, after: Setting) -> Section:
    rows: list[tuple[Part, ...]] = [
        (
            Name(difference.workload, cells.WORKLOADS),
            difference.what,
            f"{difference.ready[0]:,} -> {difference.ready[1]:,}" if difference.ready[0] != difference.ready[1] else "",
            _seconds(difference),
            f"{difference.disrupted[0]:,} -> {difference.disrupted[1]:,}" if any(difference.disrupted) else "",
            pods(difference.moved) if difference.moved else "",
        )
        for difference in found[:_MOST_ROWS]
    ]
    left = len(found) - _MOST_ROWS
    if left > 0:
        rows.append((f"and {left:,} more", "", "", "", "", ""))
    headings = ("workload", "", "ready at the end", "short for", "disrupted", "on other nodes")
    data = [difference.to_dict() for difference in found]
    return Section("differences", "Differences", tuple(rows), headings, f"{before.name} -> {after.name}", data)


def _seconds(difference: Difference) -> str:
    if difference.short_ns[0] == difference.short_ns[1]:
        return ""
    shown = [format_duration(short_ns) if short_ns else "0s" for short_ns in difference.short_ns]
    return " -> ".join(shown)
