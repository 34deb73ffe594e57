"""Pods of a dump that are created like one before them are the same as those that the store completes by itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.input.codec import load_text
from podium.api.input.documents import Document
from podium.controlplane import population
from podium.controlplane.population import create_objects
from podium.sim.run import play_on, simulation_of
from podium.sim.run_options import RunOptions
from podium.store.store import Store
from tests.api.dumps import Raw, dump
from tests.api.test_pod_stencils import pod_of, pod_of_stateful_set
from tests.fuzzing import Effort, efforts
from tests.store.objects import node, quota

NOW = 1_800_000_000 * 10**9
COUNT = 4
# Fields without which the store completes a pod, or takes it to run.
OPTIONAL = [
    ("spec", "schedulerName"),
    ("spec", "priority"),
    ("spec", "terminationGracePeriodSeconds"),
    ("status", "phase"),
    ("status", "startTime"),
    ("status", "conditions"),
    ("metadata", "generation"),
    ("metadata", "resourceVersion"),
    ("metadata", "uid"),
]


def documents(pods: Sequence[Raw]) -> list[Document]:
    return load_text(json.dumps(dump(*pods)), "dump")


def created(pods: Sequence[Raw]) -> list[tuple[Any, ...]]:
    """Return what a store has of the pods, with the order of fields."""
    store = Store(seed=7)
    create_objects(store, documents(pods), NOW)
    return [(one.key, one.version, json.dumps(one.raw), one.object) for one in store.objects("Pod")]


def completed_pods() -> list[Raw]:
    """Return similar pods with everything that a store adds to a pod."""
    added = {"schedulerName": "default-scheduler", "priority": 0, "terminationGracePeriodSeconds": 30}
    pods = [pod_of(number) for number in range(COUNT)]
    return [{**pod, "spec": {**pod["spec"], **added}} for pod in pods]


def created_one_by_one(pods: Sequence[Raw]) -> list[tuple[Any, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(population, "_pattern_of", lambda *_: None)
        return created(pods)


@efforts(30)
def test_similar_pods_are_created_as_each_would_be_by_itself(effort: Effort) -> None:
    @effort
    @given(
        st.lists(st.sampled_from([pod_of, pod_of_stateful_set]), min_size=1, max_size=2, unique=True),
        st.lists(st.sampled_from(OPTIONAL), unique=True),
    )
    def check_same(makers: Any, without: Any) -> None:
        pods = [make(number + COUNT * place) for place, make in enumerate(makers) for number in range(COUNT)]
        for pod in pods:
            for section, field in without:
                pod[section].pop(field, None)
        assert created(deepcopy(pods)) == created_one_by_one(pods)

    check_same()


def test_store_completes_only_the_first_pods_of_a_stencil(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[Raw] = []
    create = Store.create

    def noted(store: Store, raw: Raw, **options: Any) -> Any:
        alone.append(raw)
        return create(store, raw, **options)

    monkeypatch.setattr(Store, "create", noted)

    assert len(created(completed_pods())) == COUNT
    # The first pod is read by itself, and the stencil made of it reads the second.
    assert len(alone) == 2


def test_similar_pod_with_the_uid_of_another_is_refused() -> None:
    pods = [pod_of(number) for number in range(COUNT)]
    pods[-1]["metadata"]["uid"] = pods[-2]["metadata"]["uid"]

    with pytest.raises(InputError, match="was used before"):
        created(pods)


def test_wire_form_of_similar_pods_is_made_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_forms(monkeypatch)
    store = Store(seed=7)
    create_objects(store, documents(completed_pods()), NOW)
    # That of the second pod shows whether the others can be made like it.
    assert made == [pod_of(1)["metadata"]["name"]]

    first, again = ([stored.raw["metadata"]["name"] for stored in store.objects("Pod")] for _ in range(2))

    assert first == again
    assert sorted(made) == sorted([pod_of(1)["metadata"]["name"], *first[2:]])


def test_simulation_makes_no_wire_form_of_pods_that_run_undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_forms(monkeypatch)
    pods = completed_pods()
    nodes = [node(pod["spec"]["nodeName"]) for pod in pods]
    covering = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": pods[0]["metadata"]["namespace"]},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": pods[0]["metadata"]["labels"]}},
    }

    simulation = simulation_of(documents([*nodes, covering, *pods]), RunOptions())
    play_on(simulation)

    assert len(made) == 1
    assert [stored.raw["status"]["phase"] for stored in simulation.store.objects("Pod")] == ["Running"] * COUNT


def test_similar_pods_count_for_quotas() -> None:
    store = Store(seed=7)
    pods = completed_pods()
    limit = quota("q", {"pods": "100"})
    limit["metadata"]["namespace"] = pods[0]["metadata"]["namespace"]

    create_objects(store, documents([limit, *pods]), NOW)

    (stored,) = store.objects("ResourceQuota")
    assert stored.raw["status"]["used"] == {"pods": str(COUNT)}


def made_forms(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the names of pods are added whose wire form is made from that of a similar pod."""
    made: list[str] = []
    make = population._Pattern.raw

    def noted(pattern: Any, filled: Any, version: str) -> Raw:
        raw = make(pattern, filled, version)
        made.append(raw["metadata"]["name"])
        return raw

    monkeypatch.setattr(population._Pattern, "raw", noted)
    return made
