"""Inter-pod affinity and anti-affinity: pods that should be near, or apart from, other pods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.matchers import InNamespace, SelectedByTerms
from podium.cluster.pod_classes import AffinityTerm, PodClass
from podium.framework.rescheduling.bounds import Departures, Reliefs
from podium.framework.rescheduling.policy import Picture
from podium.plugins.pod_topology_spread import ConstraintSet, SpreadConstraint, SpreadDomains
from podium.plugins.rescheduling.demands import MICRO, Demand


class PodDemand(Demand):
    """One term of some classes (``carriers``), and the classes that it selects (``selected``).

    ``unit`` is the cost of a carrier for which the term does not hold at all; ``is_apart`` marks anti-affinity.
    ``targets`` are the rows that accept pods.

    A pod with affinity lacks all of it if its domain has no other selected pod. A pod with anti-affinity lacks all of
    it if its domain has one; but if carriers are selected themselves, n of them in a domain cost as much as n - 1 pods:
    that many have to leave until all are alone.
    """

    name = "affinity and anti-affinity to pods"

    def __init__(
        self,
        term: AffinityTerm,
        unit: int,
        *,
        is_apart: bool,
        carriers: Collection[int],
        selected: Collection[int],
        codes: Int32s,
        domains: int,
    ) -> None:
        super().__init__({*carriers, *selected})
        self._term, self._unit, self._is_apart = term, unit, is_apart
        self._carriers, self._selected = frozenset(carriers), frozenset(selected)
        self._codes, self._domains = codes, domains
        size = int(codes.max(initial=0)) + 1
        # By domain: selected pods, and carriers that are and that are not selected themselves.
        self._pods: Int64s = np.zeros((3, size), dtype=np.int64)
        self._missing: Int64s = np.zeros(size, dtype=np.int64)
        self._are_domains = np.arange(size) > 0
        self._sum = 0

    @property
    def missing(self) -> int:
        """Return what is missing. What is impossible does not count: missing partners, and more domains than exist."""
        selected, alike, unlike = map(int, self._pods.sum(axis=1))
        if not self._is_apart:
            return self._sum - self._unit * (selected == alike == 1) if selected else 0
        if unlike or alike != selected:
            return self._sum
        return max(0, self._sum - self._unit * max(0, alike - self._domains))

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        for class_id, found in rows.items():
            number: Int64s = np.bincount(self._codes[found], minlength=len(self._missing))
            self._pods += self._kinds(class_id) * number
        self._missing = self._misses(self._pods)
        self._sum = int(self._missing.sum())

    def count(self, class_id: int, row: int, number: int) -> None:
        code = self._codes.item(row)
        self._pods[:, code] += number * self._kinds(class_id)[:, 0]
        missing = int(self._misses(self._pods[:, code : code + 1], slice(code, code + 1))[0])
        self._sum += missing - self._missing.item(code)
        self._missing[code] = missing

    def relief(self, departures: Departures, reliefs: Reliefs, price: float) -> float | None:
        """Add for anti-affinity among equals a unit for each selected pod that leaves a crowded domain."""
        if not self._is_apart or int(self._pods[2].sum()):
            return None
        pods = departures.pods_of(self._selected)
        helping = pods[self._missing[self._codes[departures.pod_rows[pods]]] > 0]
        return at_most(reliefs, self.missing / MICRO, self._unit / MICRO, helping, price)

    def leaving(self, class_id: int) -> Int64s:
        return (self._missing - self._with(class_id, -1))[self._codes]

    def arriving(self, class_id: int) -> Int64s:
        return (self._with(class_id, 1) - self._missing)[self._codes]

    def complaint(self, class_id: int, row: int) -> str:
        if not self._missing[self._codes[row]]:
            return ""
        near = "apart from" if self._is_apart else "near"
        selected = f"pods with {self._term.selector}" if str(self._term.selector) else "pods"
        where = f"{near} {selected} by {self._term.topology_key}"
        return f"it wants to be {where}" if class_id in self._carriers else f"others want to be {where}"

    def _with(self, class_id: int, number: int) -> Int64s:
        """Return `[codes]` what is missing in each domain with ``number`` more pods of the class in it."""
        return self._misses(np.maximum(self._pods + number * self._kinds(class_id), 0))

    def _kinds(self, class_id: int) -> Int64s:
        """Return `[3, 1]` how a pod of a class counts: as selected, as a selected carrier, and as another carrier."""
        carries, is_selected = class_id in self._carriers, class_id in self._selected
        kinds = [is_selected, carries and is_selected, carries and not is_selected]
        return np.array(kinds, dtype=np.int64)[:, None]

    def _misses(self, pods: Int64s, codes: slice = slice(None)) -> Int64s:
        """Return `[codes]` what is missing in domains; nodes without the label (code 0) are in none, near no pod."""
        number, alike, unlike = pods
        others = np.where(self._are_domains[codes], number, 0)
        if self._is_apart:
            lacking = self._unit * alike * (others - 1) // np.maximum(others, 1) + self._unit * unlike
            return np.asarray(lacking * (others > 0))
        return np.asarray(self._unit * (alike * (others <= 1) + unlike * (others == 0)))


def at_most(reliefs: Reliefs, missing: float, unit: float, helping: Int64s, price: float) -> float:
    """Return what is ``missing`` at least, less the reliefs of pods (indices), each of which changes it by a unit.

    Often more pods help than have to move. So all is counted at a share by which no move pays for itself: what is
    missing then costs one move for each unit.
    """
    share = min(1.0, price / unit) if unit else 1.0
    reliefs.own[helping] += unit * share
    return missing * share


class NodeDemand(Struct, frozen=True):
    """The unmet demand of a pod by row: ``misses`` is `[rows]`, in millionths.

    ``complaints`` are the possible faults of a node, as texts, with their rows (`[rows]` each); the first that holds
    for a row is reported.
    """

    misses: Int64s
    complaints: tuple[tuple[Bools, str], ...]


class NodeDemands(Demand):
    """The demands on nodes of the pods of each class (id)."""

    missing = 0

    def __init__(self, of_class: Mapping[int, NodeDemand]) -> None:
        super().__init__(of_class)
        self._of_class = of_class

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        self.missing = sum(int(self._of_class[class_id].misses[found].sum()) for class_id, found in rows.items())

    def count(self, class_id: int, row: int, number: int) -> None:
        self.missing += number * self._of_class[class_id].misses.item(row)

    def relief(self, departures: Departures, reliefs: Reliefs, price: float) -> float:
        """Add what each pod lacks, all of which another node may have."""
        for class_id, demand in self._of_class.items():
            pods = departures.pods_of([class_id])
            reliefs.own[pods] += demand.misses[departures.pod_rows[pods]] / MICRO
        return self.missing / MICRO

    def leaving(self, class_id: int) -> Int64s:
        return self._of_class[class_id].misses

    def arriving(self, class_id: int) -> Int64s:
        return self._of_class[class_id].misses

    def complaint(self, class_id: int, row: int) -> str:
        demand = self._of_class[class_id]
        if not demand.misses[row]:
            return ""
        return next((text for where, text in demand.complaints if where[row]), "")


def node_demands(
    classes: Mapping[int, PodClass],
    key_of: Callable[[PodClass], Hashable | None],
    make: Callable[[PodClass], NodeDemand | None],
) -> NodeDemands:
    """Return the demands that ``make`` returns for classes; equal keys share one, and None has no demand."""
    known: dict[Hashable, NodeDemand | None] = {None: None}
    found: dict[int, NodeDemand] = {}
    for class_id, pod_class in classes.items():
        key = key_of(pod_class)
        if key not in known:
            known[key] = make(pod_class)
        demand = known[key]
        if demand is not None:
            found[class_id] = demand
    return NodeDemands(found)


def demand_of(misses: Int64s, possible: Bools, complaints: Sequence[tuple[Bools, str]]) -> NodeDemand | None:
    """Return what pods lack in each row, minus what they would lack in the best of the ``possible`` rows.

    Returns None if all nodes are equal or none is possible.
    """
    if not possible.any():
        return None
    beyond = np.maximum(misses - misses[possible].min(), 0)
    return NodeDemand(beyond, tuple(complaints)) if beyond.any() else None


class SpreadDemand(Demand):
    """One constraint of some classes (``carriers``), and the classes (``counted``) whose pods it counts.

    ``unit`` is the cost of one pod. The total is the number of pods that have to move until the constraint holds, but
    at most the number of its carriers in domains that exceed others by too much: other pods are well placed, however
    uneven pods without the constraint are. With fewer domains than ``minDomains`` it holds if no domain has more than
    ``maxSkew`` pods.
    """

    name = "topology spread"

    def __init__(
        self, domains: SpreadDomains, unit: int, *, carriers: Collection[int], counted: Collection[int]
    ) -> None:
        super().__init__(counted)
        self._constraint, self._unit = domains.constraint, unit
        self._carriers = frozenset(carriers)
        self._carrying = 0
        # Nodes that do not count are in domain 0, which is no domain.
        size = len(domains.counted)
        self._codes = np.where(domains.counted, domains.column.codes[:size], 0)
        self._domains = domains.codes[domains.codes != 0]
        self._pods: Int64s = np.zeros(len(domains.exists), dtype=np.int64)
        self._carriers_in: Int64s = np.zeros(len(domains.exists), dtype=np.int64)
        # The number of domains that hold a number of pods.
        self._holding = {0: len(self._domains)} if len(self._domains) else {}
        # None until it is computed.
        self._evenness: Evenness | None = None
        self._missing: int | None = None

    @property
    def missing(self) -> int:
        if self._missing is None:
            self._missing = 0
            if self._carrying and (moves := self._known().moves):
                # Only carriers in domains that exceed others by too much violate the constraint.
                lowest = min(self._holding) if len(self._domains) >= self._constraint.min_domains else 0
                beyond = self._domains[self._pods[self._domains] - lowest > self._constraint.max_skew]
                self._missing = self._unit * min(moves, int(self._carriers_in[beyond].sum()))
        return self._missing

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        for class_id, found in rows.items():
            number: Int64s = np.bincount(self._codes[found], minlength=len(self._pods))
            # Nodes that do not count are in no domain; pods there carry the constraint all the same.
            self._carrying += len(found) * (class_id in self._carriers)
            number[0] = 0
            self._pods += number
            self._carriers_in += number * (class_id in self._carriers)
        held, domains = np.unique(self._pods[self._domains], return_counts=True)
        self._holding = dict(zip(held.tolist(), domains.tolist(), strict=True))
        self._evenness = self._missing = None

    def count(self, class_id: int, row: int, number: int) -> None:
        self._carrying += number * (class_id in self._carriers)
        self._evenness = self._missing = None
        code = self._codes.item(row)
        if code:
            before = self._pods.item(code)
            self._pods[code] = before + number
            self._carriers_in[code] += number * (class_id in self._carriers)
            self._holding = _shifted(self._holding, before, number)

    def relief(self, departures: Departures, reliefs: Reliefs, price: float) -> float | None:
        """Add one unit for each counted pod, if all of them carry the constraint.

        The number of moves until it holds is then what is missing, and a move changes it by at most 1.
        """
        if not self._carriers.issuperset(self.concerns):
            return None
        return at_most(reliefs, self.missing / MICRO, self._unit / MICRO, departures.pods_of(self._carriers), price)

    def leaving(self, class_id: int) -> Int64s:
        """Return `[rows]` roughly by how much less would be missing without one pod in the row.

        A pod in a domain with too many counts fully, one in a domain with enough to give counts half.
        """
        if not self.missing:
            return np.zeros(len(self._codes), dtype=np.int64)
        return self._by_row({pods: max(self._surfeit(pods)) * self._unit // 2 for pods in self._holding})

    def arriving(self, class_id: int) -> Int64s:
        """Return `[rows]` roughly by how much more would be missing with one more pod in the row.

        A pod in a full domain counts fully, one in a domain with enough counts half.
        """
        if not (self._carrying or class_id in self._carriers):
            return np.zeros(len(self._codes), dtype=np.int64)
        if not self.missing:
            before = self._known().moves if self._carrying else 0
            after = {pods: self._evenness_of(_shifted(self._holding, pods, 1)).moves for pods in self._holding}
            return self._by_row({pods: self._unit * max(moves - before, 0) for pods, moves in after.items()})
        return self._by_row({pods: min(self._surfeit(pods + 1)) * self._unit // 2 for pods in self._holding})

    def complaint(self, class_id: int, row: int) -> str:
        code = self._codes[row]
        if not self.missing or not code or self._pods[code] <= self._pods[self._domains].min():
            return ""
        return f"its like lie unevenly over {self._constraint.key}"

    def _known(self) -> Evenness:
        if self._evenness is None:
            self._evenness = self._evenness_of(self._holding)
        return self._evenness

    def _evenness_of(self, holding: dict[int, int]) -> Evenness:
        if len(self._domains) < self._constraint.min_domains:
            return Evenness(surplus(holding, self._constraint.max_skew), (0,))
        return evenness(holding, self._constraint.max_skew)

    def _surfeit(self, pods: int) -> list[int]:
        """Return whether the last of ``pods`` in a domain is too many (2), could be spared (1) or is needed (0).

        The list covers each possible minimum of pods per domain.
        """
        skew = self._constraint.max_skew
        return [2 if pods > lowest + skew else int(pods > lowest) for lowest in self._known().lowest]

    def _by_row(self, by_pods: dict[int, int]) -> Int64s:
        """Return `[rows]` the value for domains with that many pods; 0 for nodes that do not count."""
        by_code: Int64s = np.zeros(len(self._pods), dtype=np.int64)
        pods = self._pods[self._domains]
        for held, value in by_pods.items():
            by_code[self._domains[pods == held]] = value
        return by_code[self._codes]


def _shifted(holding: dict[int, int], held: int, number: int) -> dict[int, int]:
    """Return the histogram of domains after a domain that holds ``held`` gets ``number`` more pods."""
    shifted = dict(holding)
    shifted[held] -= 1
    if not shifted[held]:
        del shifted[held]
    shifted[held + number] = shifted.get(held + number, 0) + 1
    return shifted


class Evenness(Struct, frozen=True):
    """The number of moves until no domain exceeds another by more than is allowed.

    The number is the same for every minimum of pods per domain from ``lowest[0]`` to ``lowest[1]``.
    """

    moves: int
    lowest: tuple[int, ...]


def evenness(domains: Mapping[int, int], max_skew: int) -> Evenness:
    """Return the least number of moves until the fullest domain exceeds the emptiest by at most ``max_skew``.

    ``domains`` maps a number of pods to the number of domains that hold it. If all domains are to hold from L to L +
    max_skew pods, domains above give pods away and domains below need pods; the larger of the two numbers suffices, and
    L minimizes it. A single move changes the result by at most 1.
    """
    if not domains:
        return Evenness(0, (0,))
    low, high = min(domains), max(domains)
    if high - low <= max_skew:
        return Evenness(0, (low,))
    # The need grows with L and the surplus falls: they meet at the minimum of their maximum.
    while low < high:
        middle = (low + high) // 2
        if pods_lacking(domains, middle) >= surplus(domains, middle + max_skew):
            high = middle
        else:
            low = middle + 1
    moves = {
        lowest: max(pods_lacking(domains, lowest), surplus(domains, lowest + max_skew))
        for lowest in (low - 1, low)
        if lowest >= 0
    }
    least = min(moves.values())
    return Evenness(least, tuple(lowest for lowest, number in moves.items() if number == least))


def pods_lacking(domains: Mapping[int, int], lowest: int) -> int:
    """Return how many pods the domains lack if each is to hold at least ``lowest``."""
    return sum([(lowest - pods) * number for pods, number in domains.items() if pods < lowest])


def surplus(domains: Mapping[int, int], highest: int) -> int:
    """Return how many pods there are beyond ``highest`` in each domain."""
    return sum([(pods - highest) * number for pods, number in domains.items() if pods > highest])


def domain_codes(picture: Picture, key: str) -> Int32s:
    """Return `[rows]` the present codes of the domains of a topology key, 0 without the label."""
    nodes = picture.cluster.nodes
    return nodes.labels(key).codes[: nodes.count].copy()


def matching(predicate: SelectedByTerms | InNamespace, picture: Picture, classes: Mapping[int, PodClass]) -> list[int]:
    """Return which of the classes match, by id."""
    cluster = picture.cluster
    return [
        pod_class.id
        for pod_class in cluster.classes.candidates(predicate.required_keys)
        if pod_class.id in classes and predicate.matches(pod_class, cluster.namespaces)
    ]


def pod_demands(
    picture: Picture, classes: Mapping[int, PodClass], carriers: Mapping[tuple[AffinityTerm, int, bool], Sequence[int]]
) -> Iterator[PodDemand]:
    """Yield a demand for each term, cost of a carrier, and whether it is anti-affinity; ``carriers`` are class ids."""
    keys = dict.fromkeys(term.topology_key for term, _, _ in carriers)
    codes_of = {key: domain_codes(picture, key) for key in keys}
    # The domains with a node that accepts pods; nodes without the label are in none.
    usable = {key: set(codes[picture.targets[: len(codes)]].tolist()) - {0} for key, codes in codes_of.items()}
    for (term, unit, is_apart), carrying in carriers.items():
        codes, number = codes_of[term.topology_key], len(usable[term.topology_key])
        selected = matching(SelectedByTerms((term,)), picture, classes)
        yield PodDemand(
            term, unit, is_apart=is_apart, carriers=carrying, selected=selected, codes=codes, domains=number
        )


def spread_demands(
    picture: Picture, classes: Mapping[int, PodClass], wanted: Iterable[tuple[PodClass, ConstraintSet, int]]
) -> Iterator[SpreadDemand]:
    """Yield a demand for each constraint of classes, cost of one pod, and set of nodes that it counts.

    Constraints that do not count the pod itself are skipped: moving the pod would not change them.
    """
    found: dict[tuple[SpreadConstraint, bytes, int], tuple[SpreadDomains, list[int]]] = {}
    for pod_class, constraints, unit in wanted:
        for domains in constraints.domains(picture.cluster, pod_class):
            if domains.constraint.matches_self and domains.constraint.counts_placed:
                place = (domains.constraint, domains.counted.tobytes(), unit)
                found.setdefault(place, (domains, []))[1].append(pod_class.id)
    for (constraint, _, unit), (domains, carriers) in found.items():
        counted = matching(constraint.predicate, picture, classes)
        yield SpreadDemand(domains, unit, carriers=carriers, counted=counted)
