from msgspec.structs import replace

from podium.app.console.cells import whole_reason
from podium.app.console.page import Page
from podium.app.simulating.text import since, write_digest, write_timeline
from podium.sim.history import SimEvent

SHORT = "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Insufficient cpu."


def event(time: float, reason: str, pod: str | None = None, message: str = "", **other: str) -> SimEvent:
    return SimEvent(time, reason, pod, other.get("node"), other.get("by"), message, 1, time)


def failed(time: float, pod: str, message: str = SHORT) -> SimEvent:
    return event(time, "FailedScheduling", pod, message, by="default-scheduler")


def failed_twice(time: float, last: float, pod: str, message: str = SHORT) -> SimEvent:
    return replace(failed(time, pod, message), count=2, last_time=last)


def lines_of(*events: SimEvent, width: int = 100, shortened: bool = False) -> list[str]:
    page = Page(width, shortened=shortened)
    write_timeline(page, list(events))
    return page.text.splitlines()[2:]


def test_a_timeline_row_states_time_event_pod_place_and_cause() -> None:
    assert lines_of(
        failed_twice(0, 30, "default/c"),
        event(30.5, "Preempted", "default/a", "Preempted by pod x on node n1", node="n1", by="default/c"),
        event(30.5, "Killing", "default/a", "grace period 30s", node="n1", by="default/c"),
        event(90, "Scheduled", "default/c", "Successfully assigned", node="n1", by="default-scheduler"),
        event(90, "NodeAdded", node="n2", by="scenario"),
    ) == [
        "     +0s  FailedScheduling  default/c      2 Insufficient cpu (2 times, last at +30s)",
        "  +30.5s  Preempted         default/a  n1  by default/c",
        "  +30.5s  Killing           default/a  n1  by default/c: grace period 30s",
        "  +1m30s  Scheduled         default/c  n1",
        "  +1m30s  NodeAdded                    n2  by scenario",
    ]


LONG = "a-namespace-of-some-length/a-pod-with-a-long-name-5d4f8c7b9-x2x4z"
MESSAGE = "0/9 nodes are available: " + ", ".join(f"{number} reason" for number in range(40))


def test_on_a_terminal_long_names_are_shortened_and_long_messages_take_several_lines() -> None:
    lines = lines_of(failed_twice(0, 9, LONG, MESSAGE), event(9, "Started", "a", node="n" * 63), shortened=True)

    assert max(map(len, lines)) <= 100
    assert "39 reason (2 times, last at +9s)" in " ".join(" ".join(lines).split())


def test_elsewhere_names_stay_whole() -> None:
    lines = lines_of(failed_twice(0, 9, LONG, MESSAGE), event(9, "Started", "a", node="n" * 63))

    assert f"  +0s  FailedScheduling  {LONG}  " in lines[0]
    assert lines[-1].endswith(f"  {'n' * 63}")


def test_more_than_two_equal_failures_at_one_time_share_a_line() -> None:
    assert lines_of(
        *(failed(0, pod) for pod in ("a", "b", "c")), *(failed(1, pod) for pod in ("a", "b")), event(1, "Started", "d")
    ) == [
        "  +0s  FailedScheduling  a and 2 more    2 Insufficient cpu",
        "  +1s  FailedScheduling  a               2 Insufficient cpu",
        "  +1s  FailedScheduling  b               2 Insufficient cpu",
        "  +1s  Started           d",
    ]


def test_every_event_has_its_line_where_that_is_asked_for() -> None:
    page = Page()

    write_timeline(page, [failed(0, pod) for pod in ("a", "b", "c")], every_event=True)

    assert [line.split()[2] for line in page.text.splitlines()[2:]] == ["a", "b", "c"]


def test_the_timeline_reports_a_pod_that_may_not_preempt() -> None:
    message = "0/1 nodes are available: 1 Too many pods. preemption: not eligible due to preemptionPolicy=Never.."

    assert lines_of(failed(0, "a", message)) == [
        "  +0s  FailedScheduling  a    1 Too many pods, not eligible due to preemptionPolicy=Never"
    ]


def test_the_whole_reason_keeps_what_preemption_says() -> None:
    assert whole_reason(SHORT) == "2 Insufficient cpu. preemption: 2 Insufficient cpu"


def test_a_digest_counts_reasons_and_lists_preemptions() -> None:
    page = Page()

    write_digest(page, [event(0, "Created", "b"), failed_twice(1, 2, "b"), *_preemptions(25)])

    lines = page.text.splitlines()
    assert lines[1] == "Events  28; --events lists them all"
    assert lines[2:5] == ["  25  Preempted", "   2  FailedScheduling", "   1  Created"]
    assert lines[6:8] == ["Preemptions  the first 20", "   +0s  v0   on n  by b"]
    assert len(lines) == 27


def _preemptions(number: int) -> list[SimEvent]:
    return [event(one, "Preempted", f"v{one}", node="n", by="b") for one in range(number)]


def test_times_are_given_from_the_start_in_the_units_that_they_fill() -> None:
    assert [since(time) for time in (0, 0.25, 59, 3600, -5)] == ["+0s", "+250ms", "+59s", "+1h", "+-5s"]


def test_an_empty_timeline_is_labelled() -> None:
    page = Page()

    write_timeline(page, [])

    assert page.text == "\nTimeline  nothing happens\n"
