import pytest

from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.hints import pod_changes
from podium.framework.events import ActionType
from tests.controllers.pending import pending

PLAIN = pending("p", requests={"cpu": "2", "memory": "1Gi"}, labels={"app": "a"}, gates=("g", "h"))


@pytest.mark.parametrize(
    ("new", "changes"),
    [
        (pending("p", requests={"cpu": "2", "memory": "1Gi"}, labels={"app": "b"}, gates=("g", "h")), "LABEL"),
        (pending("p", requests={"cpu": "1", "memory": "1Gi"}, labels={"app": "a"}, gates=("g", "h")), "SCALE_DOWN"),
        (pending("p", requests={"cpu": "2"}, labels={"app": "a"}, gates=("g", "h")), "SCALE_DOWN"),
        (pending("p", requests={"cpu": "3", "memory": "1Gi"}, labels={"app": "a"}, gates=("g", "h")), "OTHER"),
        (pending("p", requests={"cpu": "2", "memory": "1Gi"}, labels={"app": "a"}, gates=("g",)), "OTHER"),
        (pending("p", requests={"cpu": "2", "memory": "1Gi"}, labels={"app": "a"}), "SCHEDULING_GATES"),
    ],
)
def test_an_update_is_named_for_what_it_changed(new: PodRecord, changes: str) -> None:
    assert pod_changes(PLAIN, new) == ActionType[f"UPDATE_POD_{changes}"]


def test_a_new_toleration_counts() -> None:
    assert pod_changes(pending("p"), pending("p", tolerated=("spot",))) == ActionType.UPDATE_POD_TOLERATION


def test_a_gate_that_returns_is_not_a_removal() -> None:
    assert pod_changes(pending("p"), pending("p", gates=("g",))) == ActionType.UPDATE_POD_OTHER


def test_several_changes_are_all_named() -> None:
    old = pending("p", requests={"cpu": "2"}, gates=("g",))
    new = pending("p", requests={"cpu": "1"}, labels={"app": "a"}, tolerated=("spot",))
    assert pod_changes(old, new) == (
        ActionType.UPDATE_POD_LABEL
        | ActionType.UPDATE_POD_SCALE_DOWN
        | ActionType.UPDATE_POD_TOLERATION
        | ActionType.UPDATE_POD_SCHEDULING_GATES
    )


def test_nothing_that_scheduling_reads_is_another_change() -> None:
    assert pod_changes(PLAIN, PLAIN) == ActionType.UPDATE_POD_OTHER
