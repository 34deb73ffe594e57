"""Parts of recordings, and recordings with compressed time."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import Input
from podium.api.times import parse_time
from podium.sim.recording.excerpt import Excerpt, excerpt
from podium.sim.recording.tape import recordings_of
from podium.sim.run import play, simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import split_documents
from tests.app.manifests import EXAMPLES
from tests.sim.recording.recording import SEED, read, recorded

SECOND = 10**9
MINUTE = 60 * SECOND


def drain(until_ns: int = 10 * MINUTE) -> Input:
    return recorded(read(EXAMPLES / "drain.yaml"), RunOptions(until_ns=until_ns, seed=SEED))


def steps_of(found: Input) -> list[tuple[float, Any]]:
    _, scenario = split_documents(found.documents)
    return [(step.at_ns / SECOND, type(step.change).__name__) for step in scenario.steps]


def test_all_of_it_at_its_own_speed_is_what_it_is() -> None:
    found = drain()

    assert excerpt(found, Excerpt()) is found


def test_from_a_time_on_the_cluster_is_as_it_was_then() -> None:
    found = drain()
    recording = next(recording for recording, _ in recordings_of(found.documents))
    bound = {
        event.key: event.node for event in recording.events if event.what == "bound" and event.at_ns < 150 * SECOND
    }
    gone = {event.key for event in recording.events if event.what == "gone" and event.at_ns < 150 * SECOND}

    later = excerpt(found, Excerpt(from_ns=150 * SECOND))
    there = {
        document.raw["metadata"]["name"]: document.raw["spec"].get("nodeName")
        for document in later.documents
        if document.object is not None and document.object.kind == "Pod"
    }

    assert gone
    for key, node in bound.items():
        name = key.partition("/")[2]
        assert there.get(name, node) == node
        assert (name in there) is (key not in gone)
    assert later.snapshots[0].taken_ns == (found.snapshots[0].taken_ns or 0) + 150 * SECOND
    assert simulation_of(later.documents, RunOptions()).settings.start_ns == parse_time("2026-01-01T00:02:30Z")
    assert all(at >= 0 for at, _ in steps_of(later))
    assert play(later, RunOptions()).recorded is not None


def test_an_excerpt_has_the_steps_of_its_time_and_ends_with_it() -> None:
    found = drain()
    first = steps_of(found)[0][0]

    part = excerpt(found, Excerpt(to_ns=int(first + 1) * SECOND))
    result = play(part, RunOptions())

    assert {at for at, _ in steps_of(part)} == {first}
    assert result.summary["end"] == first + 1


def test_speed_divides_the_times_of_steps_and_events() -> None:
    found = drain()

    fast = excerpt(found, Excerpt(speed=10))

    assert steps_of(fast) == [(at / 10, what) for at, what in steps_of(found)]
    (before,), (after,) = ([one for one, _ in recordings_of(part.documents)] for part in (found, fast))
    assert after.length_ns == before.length_ns // 10
    assert [event.at_ns for event in after.events] == [round(event.at_ns / 10) for event in before.events]


def test_a_scenario_by_hand_can_be_cut_and_hastened_but_not_begun_later() -> None:
    found = Input(read(EXAMPLES / "node-down.yaml"))

    fast = excerpt(found, Excerpt(to_ns=2 * MINUTE, speed=2))

    assert [at for at, _ in steps_of(fast)] == [15, 30]
    with pytest.raises(InputError, match="--from needs a recording by `podium record`"):
        excerpt(found, Excerpt(from_ns=1))


def test_invalid_excerpts_are_rejected() -> None:
    with pytest.raises(InputError, match="there is none in the input"):
        excerpt(Input([]), Excerpt(speed=2))
    with pytest.raises(InputError, match="--to is not after --from"):
        excerpt(drain(MINUTE), Excerpt(from_ns=2 * MINUTE, to_ns=MINUTE))
    with pytest.raises(InputError, match="--from is not before the end of the recording, after 1m"):
        excerpt(drain(MINUTE), Excerpt(from_ns=MINUTE))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"format": 9}, r"\.format: 9 is written by a newer Podium"),
        ({"length": "long"}, r"\.length: \"long\" is not a duration"),
        (
            {"events": [{"at": "-1s", "what": "gone", "kind": "Pod", "key": "a"}]},
            r"\.events\[0\]\.at: \"-1s\" is negative",
        ),
        ({"events": [{"at": "1s", "what": "lost", "kind": "Pod", "key": "a"}]}, r"\.events\[0\]\.what"),
        ({"events": [{"at": "1s"}]}, r"\.events\[0\]\.what: is missing"),
    ],
)
def test_an_unreadable_recording_is_reported_with_its_field(fields: dict[str, Any], problem: str) -> None:
    found = drain(MINUTE)
    recording = next(document for _, document in recordings_of(found.documents))
    recording.raw.update(fields)

    with pytest.raises(InputError, match=problem):
        play(found, RunOptions())
