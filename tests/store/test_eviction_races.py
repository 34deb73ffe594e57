"""Evictions concurrent with each other and with the disruption controller, in any order."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.pod import Pod
from podium.store.errors import StoreError
from podium.store.revisions import JournalContent
from podium.store.store import Store
from podium.store.stored import Stored
from tests.store.objects import SECOND, Raw, budget, running
from tests.store.refusals import answer, everything, refusal

BUDGET = "default/web"


def pods(store: Store) -> dict[str, Pod]:
    return {one.key: one.object for one in store.objects("Pod") if isinstance(one.object, Pod)}


def healthy(found: dict[str, Pod]) -> set[str]:
    """Return the names of the pods that serve."""
    ready = (pod for pod in found.values() if not pod.is_terminating)
    return {
        pod.metadata.name
        for pod in ready
        if (condition := pod.status.condition("Ready")) and condition.status == "True"
    }


@dataclass
class BudgetController:
    """Keeps `minAvailable` pods, from what it saw of the pods a while ago, and of the budget just now."""

    store: Store
    min_available: int
    seen: dict[str, Pod] = field(default_factory=dict)
    read: Stored | None = None

    def look(self) -> None:
        self.seen = pods(self.store)

    def begin(self) -> None:
        self.read = self.store.get("PodDisruptionBudget", BUDGET)

    def write(self) -> None:
        if self.read is None:
            return
        raw, self.read = self.read.raw, None
        standing = {one.metadata.name for one in self.seen.values() if not one.is_terminating}
        entries = {name: time for name, time in raw["status"].get("disruptedPods", {}).items() if name in standing}
        count = len(healthy(self.seen) - entries.keys())
        allowed = max(0, count - self.min_available)
        status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "disruptedPods": entries}
        try:
            self.store.update_status({**raw, "status": status})
        except StoreError as error:
            if error.reason != "Conflict":
                raise


STEPS = st.lists(st.sampled_from(["evict", "evict", "look", "begin", "write", "finish", "replace"]), max_size=60)


@pytest.mark.upstream(48)
@pytest.mark.failure(66, 67, 68)
@given(steps=STEPS, count=st.integers(1, 6), min_available=st.integers(0, 5))
def test_concurrent_evictions_keep_the_budget_and_all_get_their_turn(
    steps: list[str], count: int, min_available: int
) -> None:
    store, targets = Store(), [f"default/web-{number}" for number in range(count)]
    for key in targets:
        store.create(running(key.removeprefix("default/")), now=0)
    store.create(budget(allowed=0), now=0)
    controller = BudgetController(store, min_available)
    created = count
    refused: list[tuple[int, str]] = []

    def evict() -> None:
        key = targets.pop(0)
        try:
            store.evict(key, now=0)
        except StoreError as error:
            refused.append(answer(error))
            targets.append(key)
        else:
            assert len(healthy(pods(store))) >= min_available

    def finish() -> None:
        for key, pod in pods(store).items():
            if pod.is_terminating:
                store.delete("Pod", key, now=0, grace_seconds=0)

    def replace() -> None:
        nonlocal created
        store.create(running(f"web-{created}"), now=0)
        created += 1

    actions = {
        "evict": lambda: evict() if targets else None,
        "finish": finish,
        "replace": replace,
        "look": controller.look,
        "begin": controller.begin,
        "write": controller.write,
    }
    # However it went so far, once the controller keeps up and pods are replaced everybody gets a turn.
    rest = ["finish", "replace", "look", "begin", "write", "evict"] * (count + min_available)
    for step in [*steps, *rest]:
        actions[step]()

    assert targets == []
    assert set(refused) <= {(429, "TooManyRequests")}


@pytest.mark.failure(66)
def test_a_status_computed_before_an_eviction_is_not_written_after_it() -> None:
    store = Store()
    for one in (running("web-0"), budget(allowed=1)):
        store.create(one, now=0)
    seen = store.get("PodDisruptionBudget", BUDGET)
    store.evict("default/web-0", now=0)

    computed = {**seen.raw, "status": {**seen.raw["status"], "expectedPods": 1}}

    assert answer(refusal(store, lambda: store.update_status(computed))) == (409, "Conflict")
    assert store.get("PodDisruptionBudget", BUDGET).raw["status"]["disruptionsAllowed"] == 0


@pytest.mark.failure(68)
def test_a_budget_of_one_allows_one_disruption_though_its_controller_sees_the_pod() -> None:
    store = Store()
    for one in (running("web-0"), running("web-1"), budget(allowed=1)):
        store.create(one, now=0)
    controller = BudgetController(store, min_available=1)
    controller.look()
    store.evict("default/web-0", now=0)

    assert answer(refusal(store, lambda: store.evict("default/web-1", now=0))) == (429, "TooManyRequests")
    controller.begin()
    controller.write()
    assert answer(refusal(store, lambda: store.evict("default/web-1", now=0))) == (429, "TooManyRequests")


class Broken:
    """A journal whose disk fails on request."""

    def __init__(self) -> None:
        self.fails = False

    def load(self) -> JournalContent:
        return JournalContent(0, [], [], 0, [])

    def append(self, events: object, identities: object) -> None:
        if self.fails:
            raise OSError("no space left")


@pytest.mark.failure(74)
def test_an_eviction_that_cannot_be_kept_leaves_no_debit_behind() -> None:
    journal = Broken()
    store = Store(journal=journal)
    for one in (running("web-0"), budget(allowed=1, rate="1/1h")):
        store.create(one, now=0)
    before = everything(store)

    journal.fails = True
    with pytest.raises(OSError, match="no space"):
        store.evict("default/web-0", now=0)
    assert everything(store) == before

    journal.fails = False
    assert store.evict("default/web-0", now=0) is not None


@pytest.mark.failure(74)
@pytest.mark.parametrize("field", ["uid", "resource_version"])
def test_an_eviction_whose_pod_is_another_leaves_no_debit_behind(field: str) -> None:
    store = Store()
    for one in (running("web-0"), budget(allowed=1)):
        store.create(one, now=0)
    options: Raw = {field: "1234"}

    assert answer(refusal(store, lambda: store.evict("default/web-0", now=SECOND, **options))) == (409, "Conflict")
