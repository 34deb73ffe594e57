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
from podium.controlplane import assembly
from podium.controlplane.assembly import create_objects
from podium.store.store import Store
from tests.api.dumps import Raw, dump
from tests.api.test_pod_stencils import pod_of, pod_of_stateful_set
from tests.fuzzing import Effort, efforts

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


def created_one_by_one(pods: Sequence[Raw]) -> list[tuple[Any, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "_pattern_of", lambda *_: None)
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
    pods = [pod_of(number) for number in range(COUNT)]
    for pod in pods:
        pod["spec"] |= {"schedulerName": "default-scheduler", "priority": 0, "terminationGracePeriodSeconds": 30}

    assert len(created(pods)) == COUNT
    # The first pod is read by itself, and the stencil made of it reads the second.
    assert len(alone) == 2


def test_similar_pod_with_the_uid_of_another_is_refused() -> None:
    pods = [pod_of(number) for number in range(COUNT)]
    pods[-1]["metadata"]["uid"] = pods[-2]["metadata"]["uid"]

    with pytest.raises(InputError, match="was used before"):
        created(pods)
