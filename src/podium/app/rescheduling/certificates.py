"""Certificates of plans: how far the best possible placement can be, as text and JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.app.console.page import Page, Part, Section, listed
from podium.cluster.pods import PodRecord
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.decide.rescheduling.certificate import Certificate, MoveLimit, budget_limits, lower_bounds
from podium.decide.rescheduling.guards import BudgetRoom, PlanInputs
from podium.decide.rescheduling.round_robin import ReschedulingPlan
from podium.framework.rescheduling.policy import Picture
from podium.framework.rescheduling.settings import MoveLimitSettings, ReschedulerSettings

_DIGITS = 4
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class PlanCertificate:
    """The certificate of a plan within its limits and budgets, and against any number of further plans."""

    within_limits: Certificate
    ever: Certificate

    def each(self) -> Iterator[tuple[str, str, Certificate]]:
        """Yield both, each with its JSON name and a text."""
        yield "withinLimits", "within this plan's limits and budgets", self.within_limits
        yield "ever", "with any number of plans", self.ever

    def to_dict(self) -> dict[str, Any]:
        ever = self.ever
        return {
            "now": round(ever.now, _DIGITS),
            "after": round(ever.after, _DIGITS),
            "moves": ever.moves,
            "price": ever.price,
            **{
                name: {
                    "bound": round(found.bound, _DIGITS),
                    "gap": round(found.gap, _DIGITS),
                    "share": round(found.share, _DIGITS),
                }
                for name, _, found in self.each()
            },
            "covered": list(ever.objectives),
            "uncovered": list(ever.uncovered),
            "relaxed": [{"policy": policy, "what": list(names)} for policy, names in self.within_limits.relaxed],
        }


def lower_bounds_of(rescheduler: Rescheduler, now: int) -> tuple[Certificate, Certificate]:
    """Return the bounds on every plan that the rescheduler could make now, and on any number of plans."""
    (picture, policies, inputs), settings = rescheduler.show(now), rescheduler.settings
    movable = {pod.uid: pod for pod in picture.movable_pods()}
    picture = replace(picture, is_movable=lambda pod: pod.uid in movable)
    limits = tuple(_limits_of([*movable.values()], picture, settings, inputs))
    return lower_bounds(picture, policies, settings.threshold, limits)


def certified(plan: ReschedulingPlan, bounds: tuple[Certificate, Certificate]) -> PlanCertificate:
    """Return the certificate of a plan by the bounds on plans from its inputs."""
    moves = sum(not move.has_ended for planned in plan.planned for move in planned.moves)
    within_limits, ever = (bound.of_plan(plan.after, moves) for bound in bounds)
    return PlanCertificate(within_limits, ever)


def _limits_of(
    pods: Sequence[PodRecord], picture: Picture, settings: ReschedulerSettings, inputs: PlanInputs
) -> Iterator[MoveLimit]:
    """Yield the limits that the plan also respects: moves in flight and disruption budgets."""
    room = BudgetRoom(inputs, settings, picture.now)
    yield from _of_kinds(pods, settings.in_flight)
    yield from _of_kinds([pod for pod in pods if not room.is_protected(pod)], settings.without_budget)
    yield from budget_limits(pods, inputs, room)


def _of_kinds(pods: Sequence[PodRecord], limits: MoveLimitSettings) -> Iterator[MoveLimit]:
    if limits.total is not None:
        yield MoveLimit([pod.uid for pod in pods], limits.total)
    for most, kind in ((limits.node, "node_name"), (limits.namespace, "namespace"), (limits.owner, "owner_uid")):
        if most is None:
            continue
        groups: dict[str, list[str]] = defaultdict(list)
        for pod in pods:
            groups[getattr(pod, kind)].append(pod.uid)
        for uids in groups.values():
            if len(uids) > most:
                yield MoveLimit(uids, most)


def write_certificate(page: Page, found: PlanCertificate) -> None:
    """Write the certificate."""
    ever = found.ever
    if not ever.objectives:
        return
    page.title("Certificate", f"the plan is within {_percent(found.within_limits.gap)} of the best possible one")
    page.table(_rows(found), _HEADINGS, right=_RIGHT)
    for text in _notes(found):
        page.paragraph(text, indent=2, hanging=2)


_HEADINGS = ("what moves can reach", "now", "then", "at least", "gap", "gain reached")
_RIGHT = (1, 2, 3, 4, 5)


def certificate_section(found: PlanCertificate) -> Section:
    """Return the certificate as a part of an answer; its data are those of the plan."""
    return Section("certificate", "Certificate", _rows(found), _HEADINGS, rest=" ".join(_notes(found)), right=_RIGHT)


def _rows(found: PlanCertificate) -> tuple[tuple[Part, ...], ...]:
    return tuple(
        (words, *map(number_text, (each.now, each.after, each.bound)), _percent(each.gap), _percent(each.share))
        for _, words, each in found.each()
    )


def _notes(found: PlanCertificate) -> Iterator[str]:
    ever, covered = found.ever, [*found.ever.objectives]
    yield f"The sum of {listed(covered, _MOST_NAMES)} by their weights, plus {ever.price:g} for each moved pod."
    for policy, names in found.within_limits.relaxed:
        yield f"The bound{f' of {policy}' if policy else ''} ignores: {'; '.join(names)}."
    if ever.uncovered:
        yield f"Without a bound, and not counted: {listed(ever.uncovered, _MOST_NAMES)}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def number_text(value: float) -> str:
    """Return a number with at most two decimals."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")
