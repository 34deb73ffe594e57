"""The pods that a drain evicts, waits for, leaves, or refuses to drain because of."""

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.decide.evictions import DrainOptions, PodDrainAction, PodOnNode, plan_drain
from podium.decide.kubelet import has_empty_dir, has_local_storage
from tests.builders import DAY_ONE_NS, pod, tolerate

SECOND = 10**9
DAEMONS = {"default/agent"}


def action(one: Pod, *, empty_dir: bool = False, late: bool = False, now: int = 0, **options: Any) -> PodDrainAction:
    """Return what becomes of a pod alone on its node; the DaemonSet `agent` exists."""
    plan = plan_drain([PodOnNode(one, empty_dir, late)], DAEMONS, DrainOptions(**options), now)
    return plan.actions[0]


def ended(one: Pod) -> Pod:
    return replace(one, status=replace(one.status, phase="Succeeded"))


def mirror(one: Pod) -> Pod:
    annotations = {"kubernetes.io/config.mirror": "1"}
    return replace(one, metadata=replace(one.metadata, annotations=annotations))


WEB = pod("web-1", on="n1", owner="ReplicaSet/web")
BARE = pod("bare", on="n1")
AGENT = pod("agent-1", on="n1", owner="DaemonSet/agent")
ORPHAN = pod("orphan", on="n1", owner="DaemonSet/gone")
ENDING = pod("ending", on="n1", terminating=True)


def test_a_pod_with_a_controller_is_evicted() -> None:
    assert action(WEB).action == "evict"


def test_a_pod_without_a_controller_is_a_reason_to_refuse_unless_forced() -> None:
    assert action(BARE).action == "refuse"
    assert action(BARE).reason == "it has no controller; --force evicts it"
    assert action(BARE, force=True).action == "evict"


def test_a_pod_with_an_empty_dir_is_a_reason_to_refuse_unless_its_data_may_go() -> None:
    assert action(WEB, empty_dir=True, force=True).action == "refuse"
    assert action(WEB, empty_dir=True, delete_empty_dir_data=True).action == "evict"


def test_a_daemon_sets_pod_is_left_or_is_a_reason_to_refuse() -> None:
    assert action(AGENT).action == "leave"
    assert action(AGENT, ignore_daemon_sets=False, force=True).action == "refuse"


def test_a_pod_whose_daemon_set_is_gone_is_a_reason_to_refuse_unless_forced() -> None:
    assert action(ORPHAN).action == "refuse"
    assert action(ORPHAN, force=True).action == "evict"


def test_a_mirror_pod_is_left_even_if_it_has_ended() -> None:
    assert action(mirror(BARE), force=True).action == "leave"
    assert action(mirror(ended(BARE)), force=True).action == "leave"


@pytest.mark.parametrize("one", [BARE, AGENT, ORPHAN, WEB])
def test_drain_deletes_ended_pods_whatever_they_own_or_keep(one: Pod) -> None:
    assert action(ended(one), empty_dir=True).action == "evict"


def test_drain_waits_for_a_terminating_pod_of_any_kind() -> None:
    assert action(ENDING, empty_dir=True).action == "wait"


def test_a_terminating_pod_is_given_up_some_time_after_it_should_have_ended() -> None:
    due_ns = DAY_ONE_NS + 10**6 * SECOND
    waiting = action(ENDING, skip_wait_for_delete_ns=60 * SECOND, now=due_ns)

    assert (waiting.action, waiting.recheck_ns) == ("wait", due_ns + 60 * SECOND)
    assert action(ENDING, skip_wait_for_delete_ns=60 * SECOND, now=due_ns + 60 * SECOND).action == "leave"


def test_drain_leaves_pods_that_return_despite_the_cordon() -> None:
    stubborn = pod("web-2", on="n1", owner="ReplicaSet/web", tolerations=[tolerate()])

    assert action(stubborn).action == "evict"
    assert action(stubborn, late=True).action == "leave"
    assert action(WEB, late=True).action == "evict"


def test_a_plan_lists_every_pod_by_key() -> None:
    plan = plan_drain([PodOnNode(WEB), PodOnNode(AGENT), PodOnNode(BARE)], DAEMONS, DrainOptions(), 0)

    assert [(one.pod.metadata.name, one.action) for one in plan.actions] == [
        ("agent-1", "leave"),
        ("bare", "refuse"),
        ("web-1", "evict"),
    ]


@pytest.mark.parametrize(
    ("volume", "empty_dir", "local"),
    [
        ({"emptyDir": {}}, True, True),
        ({"emptyDir": {"medium": "Memory"}}, True, False),
        ({"hostPath": {"path": "/data"}}, False, True),
        ({"configMap": {"name": "settings"}}, False, False),
    ],
)
def test_drain_detects_local_data_of_a_pod(volume: dict[str, Any], empty_dir: bool, local: bool) -> None:
    raw = {"spec": {"volumes": [{"name": "v", **volume}]}}

    assert has_empty_dir(raw) is empty_dir
    assert has_local_storage(raw) is local


@pytest.mark.parametrize(
    ("says", "local"), [("v", False), ("u,v", False), ("u", True), ("", True), ("v ", True), ("vv", True)]
)
def test_volumes_that_a_pod_can_do_without_are_nothing_that_it_keeps(says: str, local: bool) -> None:
    annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": says}
    raw = {"metadata": {"annotations": annotations}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}

    assert has_local_storage(raw) is local
    assert has_empty_dir(raw)
    assert has_local_storage({**raw, "metadata": {"annotations": None}})
