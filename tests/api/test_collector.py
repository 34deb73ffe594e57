"""When the garbage collector examines loaded objects."""

from __future__ import annotations

import gc

import pytest

from podium.api.collector import collector_paused, settle_collector

pytestmark = pytest.mark.usefixtures("programs_freeze")


def test_a_settled_collector_does_not_examine_objects_that_stay() -> None:
    settle_collector()
    before = gc.get_freeze_count()

    with collector_paused(keeps_objects=True):
        kept = [[] for _ in range(1_000)]  # type: list[list[object]]

    assert gc.get_freeze_count() >= before + len(kept)
    assert gc.isenabled()


@pytest.mark.parametrize(("is_settled", "keeps_objects"), [(True, False), (False, True)])
def test_other_objects_are_examined(is_settled: bool, keeps_objects: bool) -> None:
    if is_settled:
        settle_collector()
    before = gc.get_freeze_count()

    with collector_paused(keeps_objects=keeps_objects):
        made = [[] for _ in range(1_000)]  # type: list[list[object]]

    assert gc.get_freeze_count() <= before
    assert len(made) == 1_000
