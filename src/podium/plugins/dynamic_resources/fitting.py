"""On which nodes the claims of one pod can be served, each kind of node looked at once.

Source: Filter and Score of pkg/scheduler/framework/plugins/dynamicresources (dynamicresources.go).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from podium.api.resource_claims import MOST_ALTERNATIVES, AllocationResult, ResourceClaim
from podium.api.selectors import NodeTerm
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.node_selection import matching_rows
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.status import SUCCESS, Code, Status, unresolvable
from podium.plugins.dynamic_resources.allocator import allocate
from podium.plugins.dynamic_resources.errors import AllocationError, NodeAllocationError, TooManyStepsError
from podium.plugins.dynamic_resources.extended_resources import ExtendedClaim, extended_claim
from podium.plugins.dynamic_resources.selectors import Selectors

_CANNOT = unresolvable("cannot allocate all claims")
_LATE = unresolvable("timed out trying to allocate devices")
_STALE = unresolvable("cannot schedule extended resource claim")
_ELSEWHERE = unresolvable("resourceclaim not available on the node")

Results = tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class _Fit:
    """The answer for one kind of node, found on the node in ``row``; the results are those of `Fitting.waiting_on`."""

    status: Status
    row: int
    results: Results = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a pod asks for in one attempt.

    ``claims`` are those that it names. ``extended`` is the claim for its extended resources, None where it has none for
    which a class stands; ``backed`` are these resources. ``lost`` are the claims whose devices failed, by their number.
    """

    claims: tuple[ResourceClaim, ...]
    extended: ResourceClaim | None
    backed: tuple[str, ...]
    lost: frozenset[int] = frozenset()

    @property
    def has_alternatives(self) -> bool:
        """Whether some request lists alternatives."""
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)

    @property
    def is_stale(self) -> bool:
        """Whether the claim for extended resources is left over from an attempt that failed."""
        return self.extended is not None and bool(self.extended.spec.devices.requests)


class Fitting:
    """Finds out where a pod's claims can be served, and remembers it for the attempt.

    ``terms`` say, for claims that have devices, from which nodes these can be used. ``unavailable`` are the claims, by
    their number, for which some node was refused though the others could be served there.
    """

    def __init__(
        self,
        pod: PodRecord,
        cluster: Cluster,
        selectors: Selectors,
        asked: Asked,
        terms: dict[int, tuple[NodeTerm, ...]],
    ) -> None:
        self.asked = asked
        self.unavailable: set[int] = set()
        self.statuses: list[Status] = [SUCCESS]
        self._pod = pod
        self._cluster = cluster
        self._selectors = selectors
        self._terms = terms
        self._codes: dict[Status, int] = {SUCCESS: 0}
        self._fits: dict[Hashable, _Fit] = {}
        self._extended: dict[tuple[str, ...], ExtendedClaim] = {}
        self._on_row: dict[int, int] = {}
        self._results: dict[int, Results] = {}

    def codes(self, view: View) -> Int64s:
        """``[n]``: 0 where all claims can be served, and in rows without a node; else the number of the status.

        Pods that come and go do not change that, so that each row is looked at once.
        """
        rows = view.rows.tolist()
        present = self._cluster.nodes.present
        missing = [row for row in rows if row not in self._on_row and present[row]]
        if missing:
            part = View(self._cluster, np.array(missing, dtype=np.int64))
            away = {number: ~matching_rows(part, terms) for number, terms in self._terms.items()}
            for position, row in enumerate(missing):
                elsewhere = {number for number, refused in away.items() if refused[position]}
                self._on_row[row] = self._code(self._status(row, elsewhere | self.asked.lost))
        return np.array([self._on_row.get(row, 0) for row in rows], dtype=np.int64)

    @property
    def has_errors(self) -> bool:
        """Whether any answer so far was an error."""
        return any(status.code is Code.ERROR for status in self.statuses)

    def waiting_on(self, row: int) -> list[ResourceClaim]:
        """The claims that have no devices yet, as they are on a node; that for extended resources comes last."""
        waiting = [claim for claim in self.asked.claims if not claim.is_allocated]
        if self.asked.extended is not None and not self.asked.extended.is_allocated:
            waiting.append(self.extended_on(row).claim)
        return waiting

    def extended_on(self, row: int) -> ExtendedClaim:
        """The claim for those extended resources that a node does not offer itself."""
        resources = self._delegated(row)
        found = self._extended.get(resources)
        if found is None:
            found = self._extended[resources] = extended_claim(self._pod, resources, self._cluster.devices.backed)
        return found

    def results_on(self, row: int) -> list[tuple[ResourceClaim, AllocationResult]]:
        """What the claims that have no devices yet get on a node that can serve them; the same however often asked."""
        results = self._results.get(row)
        if results is None:
            fit = self._fit(row)
            # On a node that is alike the devices have other names.
            results = self._results[row] = (fit if fit.row == row else self._found(row)).results
        return list(zip(self.waiting_on(row), results, strict=True)) if results else []

    def score(self, row: int) -> int:
        """The earlier the alternatives that the requests get, the better (computeScore)."""
        found = iter(self._fit(row).results if self._needs_devices else ())
        total = 0
        for claim in self.asked.claims:
            allocation = claim.status.allocation or next(found)
            names = {result.request for result in allocation.devices.results}
            for request in claim.spec.devices.requests:
                for number, subrequest in enumerate(request.first_available):
                    total += MOST_ALTERNATIVES - number if f"{request.name}/{subrequest.name}" in names else 0
        return total

    @property
    def _needs_devices(self) -> bool:
        extended = self.asked.extended
        return any(not claim.is_allocated for claim in self.asked.claims) or (
            extended is not None and not extended.is_allocated
        )

    def _status(self, row: int, elsewhere: set[int]) -> Status:
        if self.asked.is_stale:
            return _STALE
        if not self.asked.claims and not self._delegated(row):
            return SUCCESS
        if self._needs_devices:
            status = self._fit(row).status
            if not status.is_success:
                return status
        if elsewhere:
            self.unavailable |= elsewhere
            return _ELSEWHERE
        return SUCCESS

    def _fit(self, row: int) -> _Fit:
        """The answer for a node, or for one that is alike. Errors name what they are about: each node has its own."""
        nodes = self._cluster.nodes
        kind = (self._cluster.devices.offer(nodes.name(row)), self._delegated(row))
        fit = self._fits.get(kind)
        if fit is None or (fit.row != row and fit.status.code is Code.ERROR):
            fit = self._fits[kind] = self._found(row)
        return fit

    def _found(self, row: int) -> _Fit:
        claims = [(claim.key, claim) for claim in self.waiting_on(row)]
        try:
            results = allocate(self._cluster.devices, self._cluster.nodes.node(row), claims, self._selectors)
        except TooManyStepsError:
            return _Fit(_LATE, row)
        except NodeAllocationError as error:
            return _Fit(unresolvable(str(error)), row)
        except AllocationError as error:
            # kube-scheduler says which filter failed (RunFilterPlugins).
            return _Fit(Status(Code.ERROR, (f'running "DynamicResources" filter plugin: {error}',)), row)
        return _Fit(_CANNOT, row) if results is None else _Fit(SUCCESS, row, results)

    def _delegated(self, row: int) -> tuple[str, ...]:
        """The extended resources for which a class stands on a node that has none of them itself."""
        nodes = self._cluster.nodes
        return tuple(name for name in self.asked.backed if not nodes.allocatable[nodes.resource_index[name], row])

    def _code(self, status: Status) -> int:
        code = self._codes.setdefault(status, len(self.statuses))
        if code == len(self.statuses):
            self.statuses.append(status)
        return code
