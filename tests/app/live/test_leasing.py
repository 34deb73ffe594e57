"""The Lease that a program requests."""

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.app.live.live_program import lease_of
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from tests.store.objects import SECOND


def configured(**election: Any) -> Configuration:
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "leaderElection": election}, "scheduler.yaml")


def test_without_a_word_it_is_kube_schedulers() -> None:
    lease = lease_of("me", {}, configured())

    assert lease is not None
    assert (lease.identity, lease.key) == ("me", "kube-system/kube-scheduler")
    seconds = [lease.duration_ns // SECOND, lease.renew_deadline_ns // SECOND, lease.retry_period_ns // SECOND]
    assert seconds == [15, 10, 2]


def test_the_configuration_says_another_and_options_come_before_it() -> None:
    settings = configured(resourceName="mine", resourceNamespace="shop", leaseDuration="30s", renewDeadline="20s")

    lease = lease_of("me", {"name": "other", "renew_deadline_ns": 25 * SECOND}, settings)

    assert lease is not None
    assert lease.key == "shop/other"
    assert (lease.duration_ns, lease.renew_deadline_ns) == (30 * SECOND, 25 * SECOND)


@pytest.mark.parametrize(
    ("option", "said", "elects"), [(None, False, False), (True, False, True), (False, True, False)]
)
def test_leader_election_can_be_disabled(option: bool | None, said: bool, elects: bool) -> None:
    assert (lease_of("me", {"elects": option}, configured(leaderElect=said)) is not None) is elects


@pytest.mark.parametrize(
    ("election", "problem"),
    [
        ({"leaseDuration": "soon"}, r"\.leaderElection\.leaseDuration"),
        ({"leaseDuration": "5s"}, "must be longer than the deadline"),
        ({"resourceLock": "endpoints"}, "use leases"),
    ],
)
def test_conflicting_leasing_settings_are_reported_with_their_field(election: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        lease_of("me", {}, configured(**election))
