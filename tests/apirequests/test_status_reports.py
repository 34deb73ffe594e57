"""The writes of a status report, by the short path and by the general one."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from podium.api.pod import PodCondition
from podium.apirequests.request import Request, Response
from podium.apirequests.status_reports import patch_status
from podium.controllers.actions import ReportStatus
from podium.store.api_resources import POD
from podium.store.patching import StatusPatch, patched

TIMES = ("2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z")
NOW_NS = 1_700_000_000 * 10**9
UNREADY = {"conditions": [{"type": "Ready", "lastTransitionTime": TIMES[0], "message": ""}]}
READY = PodCondition(type="Ready", status="True")

words = st.sampled_from(["", "a", "b"])
written_conditions = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["Ready", "PodScheduled", "Other"])},
        optional={
            "lastTransitionTime": st.sampled_from(TIMES),
            "reason": words,
            "status": st.sampled_from(["True", "False"]),
            "message": words,
            "observedGeneration": st.just(3),
        },
    ).flatmap(lambda condition: st.permutations(list(condition.items())).map(dict)),
    max_size=4,
)
statuses = st.fixed_dictionaries(
    {},
    optional={
        "reason": words,
        "conditions": written_conditions,
        "phase": st.sampled_from(["Pending", "Running"]),
        "containerStatuses": st.just([{"name": "c", "state": {"waiting": {"reason": "r"}}}]),
    },
)
conditions = st.builds(
    PodCondition,
    type=st.sampled_from(["Ready", "PodScheduled"]),
    status=st.sampled_from(["True", "False"]),
    reason=words,
    message=words,
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["Running", "Failed"]),
        "message": words,
        "reason": st.none() | words,
        "containerStatuses": st.just([{"state": {"running": {}}, "name": "c"}]),
    },
)


def patch_of(pod: dict[str, Any], report: ReportStatus) -> Request | None:
    """Return what is asked for once the pod has been read."""
    conversation = patch_status(report.kind, report.key, report.uid, report.fields, report.conditions, NOW_NS)
    next(conversation)
    try:
        return conversation.send(Response(object=pod))
    except StopIteration:
        return None


@example(UNREADY, {}, [READY, msgspec.structs.replace(READY, message="a")])
@given(statuses, fields, st.lists(conditions, max_size=2))
def test_a_status_report_equals_the_result_of_its_patch(
    status: dict[str, Any], fields: dict[str, Any], conditions: list[PodCondition]
) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p", "uid": "u", "namespace": "n"}, "spec": {}, "status": status}
    asked = patch_of(pod, ReportStatus("Pod", "n/p", "u", "kubelet", tuple(conditions), fields))
    if asked is None:
        return
    known = patched(POD, pod, asked.body, "strategic", "status")
    worked_out = patched(POD, pod, asked.written_body, "strategic", "status")

    assert msgspec.json.encode(known) == msgspec.json.encode(worked_out)


def test_a_report_made_from_an_older_version_is_merged_with_the_newer_one() -> None:
    status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    read = {"kind": "Pod", "metadata": {"name": "p", "uid": "u", "namespace": "n"}, "spec": {}, "status": status}
    report = ReportStatus(
        "Pod", "n/p", "u", "kubelet", (PodCondition(type="Ready", status="True"),), {"phase": "Running"}
    )
    asked = patch_of(read, report)
    assert asked is not None
    assert isinstance(asked.body, StatusPatch)
    newer = {**read, "status": {**status, "nominatedNodeName": "m"}}

    result = patched(POD, newer, asked.body, "strategic", "status")["status"]

    assert result["nominatedNodeName"] == "m"
    assert [condition["type"] for condition in result["conditions"]] == ["PodScheduled", "Ready"]


def test_a_condition_with_an_empty_status_is_removed() -> None:
    status = {"conditions": [{"type": "PodResizePending", "status": "True"}, {"type": "Ready", "status": "True"}]}
    read = {"kind": "Pod", "metadata": {"name": "p", "uid": "u", "namespace": "n"}, "spec": {}, "status": status}
    ended = ReportStatus("Pod", "n/p", "u", "kubelet", (PodCondition(type="PodResizePending", status=""),))
    asked = patch_of(read, ended)
    assert asked is not None

    result = patched(POD, read, asked.body, "strategic", "status")

    assert [condition["type"] for condition in result["status"]["conditions"]] == ["Ready"]
    assert patch_of(result, ended) is None
    assert patch_of({**read, "status": {}}, ended) is None
