"""The rules that apply to pods of an unknown scheduler."""

from __future__ import annotations

import numpy as np
import pytest

from podium.api.pod import Pod
from podium.framework.handle import CycleState
from podium.framework.rescheduling.policy import KUBELET_FILTERS, kubelet_runner
from podium.framework.settings.registry import Registry
from podium.plugins.registry import IN_TREE
from tests.builders import cluster_of, node, node_term, pod, spread_over, term, tolerate

ZONE = "topology.kubernetes.io/zone"
HERE = node("here", cpu=2, zone="z", taints=["team=x:NoSchedule"])
RUNNING = pod("running", on="here", cpu=1, ports=[80], labels={"app": "web"})


def fits(pod_: Pod) -> bool:
    """Return whether kubelets would let a pod onto the node."""
    cluster = cluster_of(HERE, RUNNING)
    runner, state = kubelet_runner(cluster, Registry(IN_TREE)), CycleState()
    record = cluster.read(pod_)
    if not runner.pre_filter(state, record).status.is_success:
        return False
    return bool(runner.filter(state, record, np.array([0])).refused[0] == 0)


TOLERATES = [tolerate("team")]


@pytest.mark.parametrize(
    ("pod_", "let_in"),
    [
        (pod("p", cpu=1, tolerations=TOLERATES), True),
        (pod("p", cpu=2, tolerations=TOLERATES), False),
        (pod("p", ports=[80], tolerations=TOLERATES), False),
        (pod("p", node_selector={"disk": "ssd"}, tolerations=TOLERATES), False),
        (pod("p", needs_nodes=[node_term(name="other")], tolerations=TOLERATES), False),
        (pod("p"), False),
        # Only schedulers care for these.
        (pod("p", apart=[term("app=web", ZONE)], tolerations=TOLERATES), True),
        (pod("p", near=[term("app=db", ZONE)], tolerations=TOLERATES), True),
        (pod("p", spread=[spread_over("rack", "app=web")], tolerations=TOLERATES), True),
    ],
)
def test_a_pod_fits_where_it_could_run(pod_: Pod, let_in: bool) -> None:
    assert fits(pod_) is let_in


def test_its_plugins_are_podiums_own() -> None:
    assert set(KUBELET_FILTERS) <= set(IN_TREE)
