"""Leader election by a Lease."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.apirequests.request import Request, Response
from podium.client.leader_election import LeaderElection, LeaseSettings
from podium.client.session import Wait
from podium.store.errors import StoreError
from tests.apirequests.asking import API
from tests.store.objects import SECOND

NOW = 1_767_225_600 * SECOND
KEY = "kube-system/kube-scheduler"


def candidate(name: str) -> LeaderElection:
    return LeaderElection(LeaseSettings(identity=name))


def step(machine: LeaderElection, api: API, now: int, *, answers: bool = True) -> Request | None:
    """One request of the machine, which the server gets; its answer may be lost."""
    ask = machine.ask(now)
    if isinstance(ask, Wait):
        return None
    response = api.answer(ask.request, now)
    machine.on_response(response if answers else None, now)
    return ask.request


def steps(machine: LeaderElection, api: API, now: int) -> None:
    while step(machine, api, now) is not None:
        pass


def test_a_missing_lease_is_created_and_held() -> None:
    api, machine = API(), candidate("a")

    steps(machine, api, NOW)

    spec = api.raw("Lease", KEY)["spec"]
    assert machine.leads
    assert machine.version == int(api.raw("Lease", KEY)["metadata"]["resourceVersion"])
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)
    assert re.fullmatch(r"2026-01-01T00:00:00\.000000Z", spec["renewTime"])


def test_a_held_lease_is_renewed_every_two_seconds_without_a_read() -> None:
    api, machine = API(), candidate("a")
    steps(machine, api, NOW)
    api.sent.clear()

    steps(machine, api, NOW + SECOND)
    steps(machine, api, NOW + 2 * SECOND)

    assert [request.verb for request in api.sent] == ["update"]
    assert machine.writes_until_ns() == NOW + 12 * SECOND
    assert api.raw("Lease", KEY)["spec"]["acquireTime"].startswith("2026-01-01T00:00:00.")


def test_a_candidate_waits_until_the_lease_is_unchanged_for_its_duration() -> None:
    api, first, second = API(), candidate("a"), candidate("b")
    steps(first, api, NOW)
    now = NOW + SECOND
    steps(second, api, now)
    assert (second.leads, second.holder) == (False, "a")

    seen_ns = now
    while not second.leads:
        now += SECOND
        steps(second, api, now)

    assert now - seen_ns >= 15 * SECOND
    assert api.raw("Lease", KEY)["spec"]["leaseTransitions"] == 1


def test_times_that_others_write_do_not_matter() -> None:
    api, first, second = API(), candidate("a"), candidate("b")
    steps(first, api, NOW - 10_000 * SECOND)

    steps(second, api, NOW)

    assert not second.leads


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    api, first, second = API(), candidate("a"), candidate("b")
    steps(first, api, NOW)
    release = first.release(NOW + SECOND)
    assert release is not None

    api.answer(release, NOW + SECOND)
    steps(second, api, NOW + SECOND)

    assert (first.leads, second.leads) == (False, True)
    assert first.writes_until_ns() == 0


def test_a_lease_is_released_after_an_unanswered_renewal() -> None:
    api, machine = API(), candidate("a")
    steps(machine, api, NOW)
    renewal = machine.ask(NOW + 2 * SECOND)
    assert not isinstance(renewal, Wait)
    api.answer(renewal.request, NOW + 2 * SECOND)

    release = machine.release(NOW + 2 * SECOND)
    assert release is not None
    assert api.answer(release, NOW + 2 * SECOND).code == 409
    again = machine.release(NOW + 2 * SECOND, api.answer(machine.reading(), NOW + 2 * SECOND).object)
    assert again is not None

    assert api.answer(again, NOW + 2 * SECOND).code == 200
    assert api.raw("Lease", KEY)["spec"]["holderIdentity"] == ""


def test_a_lease_that_was_acquired_without_an_answer_is_given_back() -> None:
    api, machine = API(), candidate("a")
    found = machine.ask(NOW)
    assert not isinstance(found, Wait)
    assert not machine.may_hold
    machine.on_response(api.answer(found.request, NOW), NOW)
    creation = machine.ask(NOW)
    assert not isinstance(creation, Wait)
    api.answer(creation.request, NOW)

    assert (machine.leads, machine.may_hold) == (False, True)
    assert machine.release(NOW + SECOND) is None
    release = machine.release(NOW + SECOND, api.answer(machine.reading(), NOW + SECOND).object)

    assert release is not None
    assert api.answer(release, NOW + SECOND).code == 200
    assert api.raw("Lease", KEY)["spec"]["holderIdentity"] == ""


def test_a_lease_that_another_holds_by_then_is_not_given_back() -> None:
    api, machine = API(), candidate("a")
    steps(machine, api, NOW)
    lease = api.raw("Lease", KEY)
    theirs = {**lease, "spec": {**lease["spec"], "holderIdentity": "b"}}

    assert machine.release(NOW + SECOND) is not None
    assert machine.release(NOW + SECOND, theirs) is None


def test_a_leader_that_cannot_renew_stops_before_another_may_lead() -> None:
    api, machine = API(), candidate("a")
    steps(machine, api, NOW)

    for second in range(2, 10):
        machine.ask(NOW + second * SECOND)
        if machine._sent is not None:
            machine.on_response(None, NOW + second * SECOND)
    assert machine.leads
    machine.ask(NOW + 10 * SECOND)

    assert machine.is_lost
    assert "could not be renewed" in machine.problem


def test_a_renewal_counts_from_when_it_was_sent() -> None:
    api, machine = API(), candidate("a")
    steps(machine, api, NOW)
    ask = machine.ask(NOW + 2 * SECOND)
    assert not isinstance(ask, Wait)

    machine.on_response(api.answer(ask.request, NOW + 2 * SECOND), NOW + 6 * SECOND)

    assert machine.writes_until_ns() == NOW + 12 * SECOND


def test_after_a_renewal_without_an_answer_the_lease_is_read_and_renewed_again() -> None:
    api, machine = API(), candidate("a")
    steps(machine, api, NOW)
    step(machine, api, NOW + 2 * SECOND, answers=False)
    api.sent.clear()

    steps(machine, api, NOW + 5 * SECOND)

    assert [request.verb for request in api.sent] == ["get", "update"]
    assert machine.leads


def test_a_leader_that_sees_another_holder_stops_leading() -> None:
    api, machine = API(), candidate("a")
    steps(machine, api, NOW)
    lease = api.raw("Lease", KEY)
    api.store.update({**lease, "spec": {**lease["spec"], "holderIdentity": "b"}})

    steps(machine, api, NOW + 2 * SECOND)
    assert machine.leads
    steps(machine, api, NOW + 5 * SECOND)

    assert machine.is_lost
    assert "b holds it" in machine.problem


def test_a_lease_taken_by_another_candidate_is_not_acquired() -> None:
    api, first, second = API(), candidate("a"), candidate("b")
    step(first, api, NOW)
    step(second, api, NOW)

    steps(first, api, NOW)
    steps(second, api, NOW)

    assert (first.leads, second.leads) == (True, False)


@pytest.mark.parametrize("error", [StoreError(403, "Forbidden", "no"), StoreError(500, "InternalError", "oops")])
def test_a_rejected_lease_update_is_retried_and_reported(error: StoreError) -> None:
    machine = candidate("a")
    machine.ask(NOW)

    machine.on_response(Response(code=error.code, error=error), NOW)

    assert machine.problem == str(error)
    assert isinstance(machine.ask(NOW), Wait)
    assert not isinstance(machine.ask(NOW + 3 * SECOND), Wait)


@pytest.mark.parametrize(("duration", "deadline", "period"), [(10, 10, 2), (15, 2, 2), (15, 10, 9), (0, 0, 0)])
def test_durations_that_do_not_go_together_are_refused(duration: int, deadline: int, period: int) -> None:
    settings = LeaseSettings(
        identity="a",
        duration_ns=duration * SECOND,
        renew_deadline_ns=deadline * SECOND,
        retry_period_ns=period * SECOND,
    )

    assert settings.problem()
    assert not LeaseSettings(identity="a").problem()


Fate = st.tuples(st.integers(0, 2), st.integers(0, 4_000), st.sampled_from(["well", "well", "lost", "late", "nothing"]))


@given(st.lists(Fate, max_size=120))
def test_never_may_two_write_at_once(story: list[tuple[int, int, str]]) -> None:
    """Whatever is lost, late or never sent, at most one candidate may write at a time."""
    api = API()
    machines = [candidate(name) for name in "abc"]
    late: list[tuple[int, Response]] = []
    now = NOW
    for who, elapsed_ms, fate in story:
        now += elapsed_ms * SECOND // 1_000
        machine = machines[who]
        if machine._sent is not None:
            for index, response in [entry for entry in late if entry[0] == who]:
                late.remove((index, response))
                machine.on_response(response, now)
        ask = machine.ask(now)
        if machine.is_lost:
            machines[who] = LeaderElection(LeaseSettings(identity=f"{machine.settings.identity}'"))
        elif not isinstance(ask, Wait):
            if fate == "nothing":
                machine.on_response(None, now)
                continue
            response = api.answer(ask.request, now)
            if fate == "late":
                late.append((who, response))
            else:
                machine.on_response(response if fate == "well" else None, now)
        assert sum(now < machine.writes_until_ns() for machine in machines) <= 1
