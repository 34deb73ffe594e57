"""The scheduler whose preemptions look beyond a node, each of whose decisions is judged by what it saw."""

from dataclasses import replace

from podium.api.pod import Pod
from podium.api.policy import NEVER_PREEMPTED, NEVER_PREEMPTS
from podium.framework.plugin import PostFilterResult
from tests.sim.judged_scheduler import JudgedScheduler
from tests.sim.oracle import Sight, policy_of
from tests.twins.wide_victims import WidePreemption


class WideJudgedScheduler(JudgedScheduler):
    """Judges plans whose victims may be on any nodes. ``wide_plans`` is how many of them had some elsewhere."""

    wide_plans = 0
    """Of all of them, in all their lives."""

    def sight(self, besides: str = "") -> Sight:
        return replace(super().sight(besides), reach=self.cluster.nominations.reach_domains)

    def _judge_plan(self, before: Sight, pod: Pod, was_nominated: str, planned: PostFilterResult) -> None:
        """No victim without need, none that may not be one, and enough of them."""
        if pod.spec.volumes or pod.spec.resource_claims:
            return
        # E4
        assert not before.feasible(pod), pod.key
        victims, node = planned.victims, planned.nominated_node
        # E1
        assert not victims or policy_of(pod) not in NEVER_PREEMPTS
        assert all(victim.priority < pod.priority for victim in victims)
        assert all(policy_of(before.placed[victim.uid]) not in NEVER_PREEMPTED for victim in victims)
        if not node:
            return
        gone = {victim.uid for victim in victims}
        if any(before.placed[uid].is_terminating for uid in gone):
            # As in its base: what is ending and not counted is taken off on the node all the same.
            return
        WideJudgedScheduler.wide_plans += any(before.placed[uid].spec.node_name != node for uid in gone)
        # E2
        assert before.fits(pod, node, without=gone), (pod.key, node, gone)
        # E3: without any one of them the pod does not fit, or else it is one that depends on others.
        twin = WidePreemption([*before.nodes.values(), *before.placed.values()], pod, ())
        for uid in gone:
            left = twin.closed(one for one in twin.placed if one.metadata.uid in gone - {uid})
            still = None if left is None else {one.metadata.uid for one in left}
            is_dependent = still is not None and uid in still
            fits = still is not None and before.fits(pod, node, without=still)
            assert is_dependent or not fits, (pod.key, node, before.placed[uid].key)
