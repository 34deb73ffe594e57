"""The order in which a workload deletes its pods."""

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.pod import Container, PodCondition
from podium.controllers.workloads.owned_pods import DELETION_COST, OwnedPod, first_to_go
from tests import builders
from tests.builders import DAY_ONE_NS, at, owned_pod

NOW = DAY_ONE_NS + 10**6 * 10**9


def owned(name: str, *, ready: int | None = 0, cost: str | None = None, restarts: int = 0, **fields: Any) -> OwnedPod:
    """Return a pod that runs on n1, ready since ``ready`` seconds after the first day, unless ``fields`` say
    otherwise.
    """
    made = builders.pod(name, **{"on": "n1", "created": 0, **fields})
    conditions = () if ready is None else (PodCondition(type="Ready", status="True"),)
    made = replace(made, status=replace(made.status, conditions=conditions))
    if cost is not None:
        made = replace(made, metadata=replace(made.metadata, annotations={DELETION_COST: cost}))
    return owned_pod(
        made,
        {
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at(ready or 0)}],
            "containerStatuses": [{"restartCount": restarts}, {"restartCount": 0}],
        },
    )


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(owned("b", on="", ready=None), owned("a", ready=None), id="one without a node"),
        pytest.param(owned("b", ready=None), owned("a"), id="one not ready"),
        pytest.param(owned("b", cost="-5"), owned("a"), id="the cheaper"),
        pytest.param(owned("b"), owned("a", cost="5"), id="one that costs nothing"),
        pytest.param(owned("b", cost="-5", ready=None), owned("a", cost="-9"), id="one not ready before the cheaper"),
        pytest.param(owned("b", ready=900_000), owned("a"), id="one ready for a much shorter time"),
        pytest.param(owned("b", restarts=3), owned("a", restarts=2), id="one restarted more often"),
        pytest.param(owned("b", created=900_000), owned("a"), id="a much younger one"),
        pytest.param(owned("a", created=1), owned("b", created=2), id="of about the same age the lower uid"),
        pytest.param(owned("a", ready=2), owned("b", ready=1, restarts=9), id="of ready times alike the lower uid"),
        pytest.param(owned("a", ready=1, restarts=9), owned("b", ready=2), id="and not the one restarted more often"),
        pytest.param(owned("a", cost="x"), owned("b", cost=str(2**31)), id="no number is no cost"),
    ],
)
def test_pod_ranking_decides_by_each_single_difference(first: OwnedPod, then: OwnedPod) -> None:
    assert first_to_go([then, first], 2, (), NOW) == [first, then]
    assert first_to_go([first, then], 1, (), NOW) == [first]


def test_pending_pods_go_before_running_ones() -> None:
    running = owned("a", ready=None)
    pending = owned_pod(replace(running.pod, status=replace(running.pod.status, phase="Pending")), {})
    pending = owned_pod(replace(pending.pod, metadata=replace(pending.pod.metadata, uid="z")), {})

    assert first_to_go([running, pending], 1, (), NOW) == [pending]


def test_pods_go_first_that_share_their_node_with_more_related_ones() -> None:
    alone, crowded = owned("a", on="n1"), owned("b", on="n2")
    related = [alone, crowded, owned("c", on="n2")]

    assert first_to_go([alone, crowded], 1, related, NOW) == [crowded]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(owned("b", created=2), owned("a", created=1), id="one a second younger"),
        pytest.param(owned("b", ready=2), owned("a", ready=1, restarts=9), id="one ready a second later"),
        pytest.param(owned("b", created=2), owned("a", created=1, cost="-5"), id="costs do not count"),
        pytest.param(owned("b", restarts=1), owned("a", created=9), id="one restarted more often"),
    ],
)
def test_pods_of_jobs_are_ranked_by_exact_times_and_without_costs(first: OwnedPod, then: OwnedPod) -> None:
    assert first_to_go([then, first], 2, None, NOW) == [first, then]


def test_restarts_of_sidecars_decide_between_pods_with_equal_restarts_of_containers() -> None:
    def pod_with(name: str, restarts: int, *, is_sidecar: bool) -> OwnedPod:
        container = Container(name="init", restart_policy="Always" if is_sidecar else "")
        made = builders.pod(name, on="n1", created=0, spec={"init_containers": (container,)})
        return owned_pod(made, {"initContainerStatuses": [{"name": "init", "restartCount": restarts}]})

    rarely, often = (pod_with(name, count, is_sidecar=True) for name, count in (("a", 1), ("b", 2)))
    assert first_to_go([rarely, often], 1, (), NOW) == [often]

    rarely, often = (pod_with(name, count, is_sidecar=False) for name, count in (("a", 1), ("b", 2)))
    assert first_to_go([rarely, often], 1, (), NOW) == [rarely]
