"""The metrics of a rescheduler. Labels are policies and results: nothing that grows with a cluster."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from podium.app.live.program_metrics import ProgramMetrics
from podium.decide.rescheduling.plan import Plan

_PLAN_BUCKETS = tuple(0.001 * 2**power for power in range(15))


class ReschedulerMetrics(ProgramMetrics):
    """Counts what a rescheduler finds and does."""

    prefix = "podium_rescheduler"

    def __init__(self) -> None:
        super().__init__()
        registry = self.registry
        self.plans = Counter("podium_rescheduler_plans", "Number of plans made.", registry=registry)
        self.plan_seconds = Histogram(
            "podium_rescheduler_plan_duration_seconds",
            "How long a plan takes, in seconds.",
            buckets=_PLAN_BUCKETS,
            registry=registry,
        )
        self.evictions = Counter(
            "podium_rescheduler_evictions",
            "Number of evictions asked for, by the policy and by what came of them: 'evicted', 'refused', 'gone', "
            "'failed', or 'unknown' where no answer came.",
            ["policy", "result"],
            registry=registry,
        )
        self.objective = Gauge(
            "podium_rescheduler_objective",
            "How bad each policy finds the placement at the last plan: 1 is one pod in quite the wrong place.",
            ["policy"],
            registry=registry,
        )
        self.planned = Gauge("podium_rescheduler_planned_moves", "Moves in the last plan.", registry=registry)
        self.left_alone = Gauge(
            "podium_rescheduler_left_alone", "Proposals that the last plan left alone.", registry=registry
        )
        self.policy_errors = Counter(
            "podium_rescheduler_policy_errors", "Number of times that a policy failed.", registry=registry
        )
        self.under_way = Gauge(
            "podium_rescheduler_moves_under_way", "Moves whose replacement is not ready yet.", registry=registry
        )

    def planned_once(self, plan: Plan, seconds: float) -> None:
        """A plan was made, in so many seconds."""
        self.plans.inc()
        self.plan_seconds.observe(seconds)
        for policy, objective in plan.before.items():
            self.objective.labels(policy).set(objective)
        self.planned.set(sum(len(planned.moves) for planned in plan.planned))
        self.left_alone.set(len(plan.left_alone))
        self.policy_errors.inc(len(plan.errors))
