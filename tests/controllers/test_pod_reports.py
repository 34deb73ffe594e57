"""A scheduler's own writes of pods and groups, until a watch shows them or a newer write."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.api.pod_group import SCHEDULED, Condition
from podium.controllers.actions import PatchObject, ReportUnschedulable
from podium.controllers.observations import ActionFinished
from podium.controllers.scheduling.gangs.group_reports import GroupReports
from podium.controllers.scheduling.pod_reports import PodReports
from tests.builders import pod_group
from tests.controllers.driving import Driver, nominated, the
from tests.controllers.pending import pending
from tests.controllers.preempting import HIGH, N1, A, B


def raw(version: str, node: str = "") -> dict[str, Any]:
    """Return a pod as an answer tells it."""
    return {"metadata": {"uid": "high", "resourceVersion": version}, "status": {"nominatedNodeName": node}}


def at(version: int, node: str = "") -> Pod:
    """Return the preemptor as the API shows it."""
    metadata = replace(HIGH.metadata, resource_version=str(version))
    return nominated(replace(HIGH, metadata=metadata), node)


def nominating(version: str = "9") -> Driver:
    """Return a scheduler that has nominated the preemptor, and was answered; nothing of that is seen yet."""
    driver = Driver(N1, A, B)
    driver.see(at(5))
    report = the(ReportUnschedulable, driver.tick())
    driver.deliver(ActionFinished(report, None, raw(version, "n1")))
    return driver


def test_a_reading_from_before_a_nomination_does_not_end_it() -> None:
    driver = nominating()

    driver.see(at(7))

    assert driver.nominated(HIGH) == "n1"


def test_a_nomination_ended_by_another_client_before_it_was_seen_is_over() -> None:
    driver = nominating()

    driver.see(at(11))

    assert driver.nominated(HIGH) == ""


def test_a_nomination_with_incomparable_versions_counts_until_it_is_seen() -> None:
    driver = nominating("x9")

    driver.see(at(11))
    assert driver.nominated(HIGH) == "n1"
    driver.see(at(12, "n1"))
    driver.see(at(13))

    assert driver.nominated(HIGH) == ""


def test_the_answer_to_an_earlier_write_says_nothing_of_the_last_one() -> None:
    reports = PodReports()
    reports.write("high", "n1")
    earlier = ReportUnschedulable("default/high", "high", "Unschedulable", "no room", "n1")
    reports.write("high", "n2")

    reports.on_finished(earlier, ActionFinished(earlier, None, raw("9", "n1")), 0)

    assert not reports.read("high", "n1", "9")
    assert reports.nominated("high") == "n2"


def test_a_second_report_rewords_the_first_unless_its_reason_or_the_nomination_is_new() -> None:
    reports, record = PodReports(), pending("a")

    def rewords(message: str, reason: str = "Unschedulable", *, may_reword: bool = True) -> bool:
        return reports.report(record, reason, message, may_reword=may_reword)[0].rewords

    assert not rewords("0/3 nodes")
    assert rewords("0/4 nodes")
    assert not rewords("0/5 nodes", may_reword=False)
    assert not rewords("0/6 nodes", "SchedulerError")
    reports.write(record.uid, "n1")
    assert not rewords("0/7 nodes", "SchedulerError")


def test_nothing_is_left_of_a_pod_that_is_forgotten() -> None:
    reports = PodReports()
    reports.write("high", "n1")
    written = ReportUnschedulable("default/high", "high", "Unschedulable", "no room", "n1")
    reports.on_finished(written, ActionFinished(written, None, raw("9", "n1")), 0)

    reports.forget("high")

    writes = reports._writes
    assert not any((reports._shown, reports._reported, writes.written, writes._versions))


@pytest.mark.parametrize(("version", "is_over"), [(7, False), (9, True), (11, True)])
def test_a_group_report_counts_until_its_version_is_seen(version: int, is_over: bool) -> None:
    group = pod_group("g", 2)
    reports = GroupReports()
    action = the(PatchObject, reports.report(group, "True", "Scheduled", "all are", 0))
    reports.on_finished(action, ActionFinished(action, None, {"metadata": {"resourceVersion": "9"}}), 0)

    others = Condition(type=SCHEDULED, status="False", reason="Gone", message="somebody else says so")
    status = replace(group.status, conditions=(others,))
    seen = replace(group, status=status, metadata=replace(group.metadata, resource_version=str(version)))
    reports.on_update(seen)

    assert reports.is_scheduled(seen) is not is_over
