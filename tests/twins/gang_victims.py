"""Reference implementation of a gang's preemption: every set of victims, every placement of the members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.framework.handle import CycleState
from tests.builders import cluster_of, plain_runner
from tests.twins.filters import partners, required_terms
from tests.twins.plain import PlainCluster
from tests.twins.victims import Preemption, started
from tests.twins.wide_victims import Cost, Rules, WidePreemption, importance

Step = tuple[Pod, str]


class GangPreemption:
    """A search of all sets of pods below a ``priority`` for a gang that needs so many (``needed``) members.

    ``together`` has the pods (by name) of each group that is evicted as a whole; with a ``key`` all members go to nodes
    of one of its domains. All ``rules`` apply except ``across`` and ``together``. Partners are kept if each member has
    a required affinity partner near it, or there were none anywhere.
    """

    def __init__(
        self,
        objects: Iterable[Kubernetes],
        members: Sequence[Pod],
        needed: int,
        priority: int,
        *,
        together: Mapping[str, Collection[str]] | None = None,
        key: str = "",
        rules: Rules | None = None,
    ) -> None:
        self._objects = list(objects)
        self._members = list(members)
        self._needed = needed
        self._key = key
        self._rules = rules = rules or Rules()
        self._one_node = Preemption(self._objects, members[0], ())
        self._one_node.now = rules.now
        self._known: dict[tuple[bool, frozenset[str]], bool] = {}
        self._nodes = [item for item in self._objects if isinstance(item, Node)]
        self._plain = PlainCluster.of(self._objects)
        self.placed = sorted((one for others in self._plain.pods_on.values() for one in others), key=importance)
        self.takeable = [one for one in self.placed if one.priority < priority and one.metadata.uid not in rules.spared]
        self._together = together or {}
        self._goers = WidePreemption(
            self._objects,
            replace(members[0], spec=replace(members[0].spec, priority=priority)),
            (),
            Rules(dependents=rules.dependents, spared=rules.spared, together=list(self._together.values())),
        )

    def best(self) -> Cost | None:
        """Return the lowest cost of all sets without which the gang fits, () for none at all; None where there is no
        way.

        Where a cost is stated, sets of which a part would be enough do not count. Where partners are to be kept, sets
        that leave a member without any count only where all others do not make room, and cost the more.
        """
        if self._is_enough([]):
            return ()
        units = self.units()
        sets = [some for number in range(1, len(units) + 1) for some in combinations(units, number)]
        sets = [some for some in sets if self.is_closed(_pods(some))]
        allowed = [some for some in sets if not self._rules.requires_budgets or not self.violations(_pods(some))]
        ordered = sorted(allowed, key=lambda some: self.cost(_pods(some)))
        for beside in (True, False) if self._rules.keeps_partners else (False,):
            for some in ordered:
                if self._is_enough(some, beside=beside) and (
                    self._rules.cost is None or not self._has_enough(some, beside=beside)
                ):
                    lonely = (int(not beside),) if self._rules.keeps_partners else ()
                    return (*lonely, *self.cost(_pods(some)))
        return None

    def violations(self, victims: Sequence[Pod]) -> int:
        """Return how many of some victims are more than budgets allow."""
        return len(self._one_node.violating(sorted(victims, key=importance)))

    def _is_enough(self, units: Sequence[Sequence[Pod]], *, beside: bool = False) -> bool:
        victims = _pods(units)
        names = beside, frozenset(one.metadata.uid for one in victims)
        if names not in self._known:
            self._known[names] = self.fits(victims, beside=beside)
        return self._known[names]

    def _has_enough(self, units: Sequence[Sequence[Pod]], *, beside: bool) -> bool:
        """Return whether a part of some units is enough, with all that depend on it."""
        parts = (part for number in range(1, len(units)) for part in combinations(units, number))
        return any(self._is_enough(part, beside=beside) for part in parts if self.is_closed(_pods(part)))

    def fits(self, victims: Sequence[Pod], *, beside: bool = False) -> bool:
        """Return whether enough members find a place without some pods, wherever each goes; ``beside`` partners, if
        so.
        """
        return any(self._descend(victims, 0, [], nodes, beside=beside) for nodes in self._domains())

    def closed(self, victims: Sequence[Pod]) -> list[Pod] | None:
        """Pods with all that go along, None where one of these may not be a victim."""
        return self._goers.closed(victims)

    def is_closed(self, victims: Sequence[Pod]) -> bool:
        """Return whether the set includes all dependents, and all of its pods may be evicted."""
        found = self.closed(victims)
        return found is not None and len(found) == len(victims)

    def comes_alone(self, victims: Sequence[Pod], steps: Sequence[Step]) -> bool:
        """Return whether a member finds no required affinity partner nearby, though such pods exist elsewhere."""
        gone = {one.metadata.uid for one in victims}
        return any(self._is_alone(member, name, gone, steps[:number]) for number, (member, name) in enumerate(steps))

    def _is_alone(self, member: Pod, name: str, gone: Collection[str], before: Sequence[Step]) -> bool:
        terms = required_terms(member, near=True)
        return any(
            any(partners(self._plain, member, term.topology_key, node.metadata.name, ()) for node in self._nodes)
            and not partners(self._plain, member, term.topology_key, name, gone)
            and not any(
                other in (self._plain.domain(name, term.topology_key) or ())
                and all(self._plain.selects(each, member, mate, is_scheduled=True) for each in terms)
                for mate, other in before
            )
            for term in terms
        )

    def stands(self, victims: Sequence[Pod], steps: Sequence[Step]) -> bool:
        """Return whether members fit their nodes, one after the other, without some pods."""
        return all(name in self.fitting(victims, steps[:number], member) for number, (member, name) in enumerate(steps))

    def is_one_domain(self, steps: Sequence[Step]) -> bool:
        """Return whether members are where they may be together."""
        return any({name for _, name in steps} <= set(nodes) for nodes in self._domains())

    def cost(self, victims: Sequence[Pod]) -> Cost:
        """Return what a set costs, by the criteria in their order."""
        ordered = sorted(victims, key=importance)
        if self._rules.cost is not None:
            return self._rules.cost.of(ordered)
        highest = ordered[0].priority
        return (
            len(self._one_node.violating(ordered)),
            highest,
            sum(one.priority + 2**31 for one in ordered),
            len(ordered),
            -min(started(one) for one in ordered if one.priority == highest),
        )

    def cost_of(self, victims: Sequence[Pod], steps: Sequence[Step]) -> Cost:
        """Return what a way out costs, as `best` has it."""
        if not victims:
            return ()
        alone = (int(self.comes_alone(victims, steps)),) if self._rules.keeps_partners else ()
        return (*alone, *self.cost(victims))

    def fitting(self, victims: Sequence[Pod], steps: Sequence[Step], member: Pod) -> list[str]:
        """Return the nodes that a member fits beside those before it: beside all nominated pods that count, and
        without.
        """
        gone = {one.metadata.uid for one in victims}
        others = [item for item in self._objects if not isinstance(item, Pod)]
        left = [one for one in self.placed if one.metadata.uid not in gone]
        beside = [replace(one, spec=replace(one.spec, node_name=name)) for one, name in steps]
        nominated = [
            replace(item, spec=replace(item.spec, node_name=item.nominated_node_name))
            for item in self._objects
            if isinstance(item, Pod) and not item.spec.node_name and item.nominated_node_name
            if item.priority >= member.priority
        ]
        without = _asked([*others, *left, *beside], member)
        if not nominated:
            return without
        return [
            name
            for name in without
            if name
            in _asked([*others, *left, *beside, *(item for item in nominated if item.spec.node_name == name)], member)
        ]

    def units(self) -> list[list[Pod]]:
        """Return the pods that may go, those of a group as one, where all of them may."""
        grouped = {name for names in self._together.values() for name in names}
        alone = [[one] for one in self.takeable if one.metadata.name not in grouped]
        wholes = []
        for names in self._together.values():
            whole = [one for one in self._objects if isinstance(one, Pod) and one.metadata.name in names]
            whole = [one for one in whole if one.spec.node_name]
            if whole and all(one in self.takeable for one in whole):
                wholes.append(whole)
        return [*alone, *wholes]

    def _descend(
        self, victims: Sequence[Pod], number: int, steps: list[Step], nodes: Collection[str], *, beside: bool
    ) -> bool:
        if len(steps) == self._needed:
            return True
        if len(steps) + len(self._members) - number < self._needed:
            return False
        member = self._members[number]
        gone = {one.metadata.uid for one in victims}
        return any(
            self._descend(victims, number + 1, [*steps, (member, name)], nodes, beside=beside)
            for name in self.fitting(victims, steps, member)
            if name in nodes and not (beside and self._is_alone(member, name, gone, steps))
        ) or self._descend(victims, number + 1, steps, nodes, beside=beside)

    def _domains(self) -> list[list[str]]:
        if not self._key:
            return [[node.metadata.name for node in self._nodes]]
        found: dict[str, list[str]] = {}
        for node in self._nodes:
            if self._key in node.metadata.labels:
                found.setdefault(node.metadata.labels[self._key], []).append(node.metadata.name)
        return list(found.values())


def _pods(units: Sequence[Sequence[Pod]]) -> list[Pod]:
    return [one for unit in units for one in unit]


def _asked(objects: list[Kubernetes], member: Pod) -> list[str]:
    cluster = cluster_of(*objects)
    runner, state, record = plain_runner(cluster), CycleState(), cluster.read(member)
    found = runner.pre_filter(state, record)
    if not found.status.is_success:
        return []
    feasible = runner.filter(state, record).feasible
    return [cluster.nodes.name(int(row)) for row in feasible if found.rows is None or row in found.rows]
