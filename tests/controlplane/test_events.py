"""Events: their sources, aggregation and expiry."""

import pytest

from podium.apirequests.events import EventRecorder
from podium.apirequests.request import Request, Response, run_conversation
from podium.apirequests.router import Router
from podium.controllers.actions import Record
from podium.controlplane import control_plane as event_expiry
from podium.store.store import Store
from podium.testing import ControlPlane
from tests.store.objects import SECOND, pod

NOW = 1_767_225_600 * SECOND


def failed(name: str = "a", message: str = "0/3 nodes are available") -> Record:
    return Record(f"default/{name}", f"uid-{name}", "Warning", "FailedScheduling", message)


class Rig:
    def __init__(self) -> None:
        self.store = Store()
        self.router = Router(self.store)
        self.recorder = EventRecorder()
        self.asked: list[str] = []

    def record(self, action: Record, now: int = NOW) -> None:
        run_conversation(self.recorder.record(action, "default-scheduler", now), self.ask, now)

    def ask(self, request: Request, now: int) -> Response:
        self.asked.append(request.verb)
        return self.router.answer(request, now)

    def counts(self) -> list[int]:
        return [stored.raw["count"] for stored in self.store.objects("Event")]


def test_the_same_of_the_same_object_is_counted() -> None:
    rig = Rig()

    for second in range(3):
        rig.record(failed(), NOW + second * SECOND)
    rig.record(failed("b"))

    assert rig.counts() == [3, 1]
    assert rig.store.objects("Event")[0].raw["lastTimestamp"] == "2026-01-01T00:00:02Z"


def test_events_of_one_object_at_one_instant_have_names_of_their_own() -> None:
    rig = Rig()

    rig.record(failed())
    rig.record(failed(message="0/4 nodes are available"))

    assert rig.counts() == [1, 1]


def test_a_deleted_event_is_created_again() -> None:
    rig = Rig()
    rig.record(failed())
    rig.store.delete("Event", rig.store.objects("Event")[0].key, now=NOW)

    rig.record(failed())

    assert rig.counts() == [1]
    assert rig.asked == ["create", "patch", "create"]


def about(reason: str) -> Record:
    return Record("default/a", "uid-a", "Warning", reason, "no")


def test_one_object_may_have_25_events_and_one_more_each_five_minutes() -> None:
    rig = Rig()
    for number in range(100):
        rig.record(about(f"Reason{number}"))

    assert len(rig.counts()) == 25
    rig.record(about("Late"), NOW + 300 * SECOND)
    rig.record(about("Later"), NOW + 301 * SECOND)
    rig.record(failed("b"))
    assert len(rig.counts()) == 27


def test_the_tenth_message_of_one_reason_and_further_ones_are_one_event_with_the_last_message() -> None:
    rig = Rig()
    for number in range(13):
        rig.record(failed(message=f"{number}"), NOW + number * 600 * SECOND)
    rig.record(failed(message="3"), NOW + 12 * 600 * SECOND)

    events = [(stored.raw["message"], stored.raw["count"]) for stored in rig.store.objects("Event")]
    assert sorted(events) == sorted(
        [
            *((f"{number}", 2 if number == 3 else 1) for number in range(9)),
            ("(combined from similar events): 12", 4),
        ]
    )


def test_messages_that_come_ten_minutes_after_the_last_one_are_not_combined() -> None:
    rig = Rig()
    for number in range(12):
        rig.record(failed(message=f"{number}"), NOW + number * 601 * SECOND)

    assert rig.counts() == [1] * 12


def test_events_name_the_scheduler_as_pods_do_and_go_after_an_hour() -> None:
    with ControlPlane(nodes=1) as cluster:
        cluster.apply(pod("a"))
        [event] = cluster.events("Scheduled")
        assert event["source"]["component"] == "default-scheduler"
        assert event["involvedObject"]["name"] == "a"

        cluster.advance("59m")
        assert cluster.events("Scheduled")
        cluster.advance("1m")
        assert cluster.events() == []


def test_an_event_that_is_written_again_stays_an_hour_from_then() -> None:
    with ControlPlane(nodes=1) as cluster:
        cluster.apply(pod("a"))
        name = cluster.events("Scheduled")[0]["metadata"]["name"]

        cluster.advance("30m")
        cluster.patch("Event", name, {"message": "once more"})
        cluster.advance("59m")
        assert cluster.events("Scheduled")
        cluster.advance("2m")
        assert not cluster.events("Scheduled")


def test_there_are_so_many_events_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each pod has Events for its binding, and for its container's creation and start.
    monkeypatch.setattr(event_expiry, "MOST", 5 * 3)
    with ControlPlane(nodes=1) as cluster:
        for number in range(10):
            cluster.apply(pod(f"a{number}", cpu="100m"))
            cluster.advance("1s")

        assert [event["involvedObject"]["name"] for event in cluster.events()] == [
            f"a{number}" for number in range(5, 10) for _ in range(3)
        ]
