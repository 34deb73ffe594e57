"""Invariants of disruption budgets after each write, and at rest.

The letters are those of the list of invariants that the project holds to.
"""

from collections import Counter

from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.api.times import parse_time
from podium.controllers.actions import Action, Evict
from podium.controllers.observations import ActionFinished
from podium.sim.simulation import Simulation
from podium.store.store import Store
from podium.store.watch_log import WatchEvent
from tests.sim.invariants import is_ready

DISRUPTIONS_COUNT_NS = 120 * 10**9


class BudgetChecker:
    """Looks at what is written of budgets; raises AssertionError.

    ``allowed`` is, by uid, what a budget allowed when its controller wrote it last, ``debited`` what evictions have
    taken since.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.allowed: dict[str, int] = {}
        self.debited: Counter[str] = Counter()

    def expect_calm(self, simulation: Simulation) -> None:
        """F3 from end to end: where nothing else disrupts pods, evictions leave as many healthy as budgets want."""
        server = simulation.server
        carry_out = server.carry_out

        def checked(action: Action, now: int, by: str = "") -> ActionFinished:
            healthy = [one for one in self._pods() if is_healthy(one)]
            finished = carry_out(action, now, by)
            if isinstance(action, Evict) and finished.problem is None:
                lost = [one for one in healthy if one.key == action.pod]
                self._check_left(lost)
            return finished

        server.carry_out = checked  # type: ignore[method-assign]

    def _check_left(self, lost: list[Pod]) -> None:
        for stored in self.store.objects("PodDisruptionBudget"):
            budget = stored.object
            assert isinstance(budget, PodDisruptionBudget)
            selector = compile_label_selector(budget.spec.selector)
            if not any(selector.matches(one.metadata.labels) for one in lost):
                continue
            left = sum(is_healthy(one) and selector.matches(one.metadata.labels) for one in self._pods())
            assert left >= budget.status.desired_healthy, (stored.key, left, budget.status)

    def _pods(self) -> list[Pod]:
        return [one.object for one in self.store.objects("Pod") if isinstance(one.object, Pod)]

    def after_write(self, event: WatchEvent) -> None:
        budget = event.stored.object
        if not isinstance(budget, PodDisruptionBudget) or event.type == "DELETED":
            return
        # F2
        assert budget.status.disruptions_allowed >= 0
        assert len(budget.status.disrupted_pods) <= 2000
        if self._is_debit(event):
            # F3, F4
            self.debited[event.stored.uid] += 1
            assert self.debited[event.stored.uid] <= self.allowed.get(event.stored.uid, 0), event.stored.key
        else:
            self.allowed[event.stored.uid] = budget.status.disruptions_allowed
            self.debited[event.stored.uid] = 0

    @staticmethod
    def _is_debit(event: WatchEvent) -> bool:
        """Return whether it was an eviction that changed the budget: one more pod is disrupted, and one fewer may
        be.
        """
        old, new = event.previous and event.previous.object, event.stored.object
        if not isinstance(old, PodDisruptionBudget) or not isinstance(new, PodDisruptionBudget):
            return False
        before, after = old.status.disrupted_pods, new.status.disrupted_pods
        added = [name for name in after if after[name] != before.get(name)]
        return len(added) == 1 and new.status.disruptions_allowed == old.status.disruptions_allowed - 1

    def at_rest(self, pods: list[Pod], now: int) -> None:
        """F1, L6: for budgets all of whose pods have controllers that scale."""
        for stored in self.store.objects("PodDisruptionBudget"):
            budget = stored.object
            assert isinstance(budget, PodDisruptionBudget)
            selector = compile_label_selector(budget.spec.selector)
            covered = [one for one in pods if selector.matches(one.metadata.labels)]
            expected = self._expected(budget, covered)
            if expected is None:
                assert budget.status.disruptions_allowed == 0, stored.key
                continue
            most, least = budget.spec.max_unavailable, budget.spec.min_available
            healthy = sum(is_ready(one) and not one.is_terminating for one in covered)
            desired = _rounded_up(least, expected) if most is None else max(0, expected - _rounded_up(most, expected))
            status = budget.status
            assert (status.current_healthy, status.desired_healthy, status.expected_pods) == (
                healthy,
                desired,
                expected,
            ), stored.key
            assert status.disruptions_allowed == (max(0, healthy - desired) if expected else 0), stored.key
            assert status.observed_generation == budget.metadata.generation
            # L7
            times = [parse_time(text) for text in status.disrupted_pods.values()]
            assert all(time + DISRUPTIONS_COUNT_NS > now for time in times), stored.key

    def _expected(self, budget: PodDisruptionBudget, covered: list[Pod]) -> int | None:
        """Return how many pods there should be; None where an owner has no scale."""
        if budget.spec.max_unavailable is None and isinstance(budget.spec.min_available, int):
            return len(covered)
        scales: dict[str, int] = {}
        for pod in covered:
            owner = pod.metadata.controller
            if owner is None:
                continue
            found = self.store.find(owner.kind, f"default/{owner.name}")
            if found is None or owner.kind in ("Job", "DaemonSet"):
                return None
            parent = found.object.metadata.controller
            if parent is not None:
                found = self.store.get(parent.kind, f"default/{parent.name}")
            scales[found.uid] = found.raw["spec"].get("replicas", 1)
        return sum(scales.values())


def is_healthy(pod: Pod) -> bool:
    """Return whether the pod counts for its budgets."""
    return is_ready(pod) and not pod.is_terminating and not pod.is_terminal


def _rounded_up(amount: int | str | None, expected: int) -> int:
    if amount is None:
        return 0
    return amount if isinstance(amount, int) else -(-int(amount.removesuffix("%")) * expected // 100)
