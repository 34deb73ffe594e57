"""Rules of ImageLocality."""

from __future__ import annotations

import numpy as np
import pytest

from podium.api.pod import Container
from podium.cluster.view import View
from podium.framework.handle import CycleState
from tests.builders import cluster_of, explain, node, plain_runner, pod

MEBIBYTE = 1024 * 1024


def score(image: str = "web:v1", *, nodes: int = 1, having: int = 1, megabytes: int = 500, containers: int = 1) -> int:
    """Return the score of the first of some nodes, of which the first few have the image."""
    held = {image: megabytes * MEBIBYTE}
    objects = [node(f"n{n}", images=held if n < having else {}) for n in range(nodes)]
    spec = {"containers": (Container(image=image), *(Container(name=str(n)) for n in range(1, containers)))}
    found = explain([*objects, pod("p", spec=spec)])
    return found.scores["n0"]["ImageLocality"]


@pytest.mark.parametrize(
    ("megabytes", "expected"), [(0, 0), (23, 0), (24, 0), (33, 1), (500, 48), (999, 99), (1000, 100), (5000, 100)]
)
def test_the_image_score_rises_from_23_to_1000_megabytes(megabytes: int, expected: int) -> None:
    assert score(megabytes=megabytes) == expected


def test_the_upper_bound_is_that_of_each_container() -> None:
    assert score(megabytes=1000, containers=2) == (100 * (1000 - 23)) // (2000 - 23)


def test_init_containers_count_too() -> None:
    held = {"setup:v1": 1000 * MEBIBYTE}
    spec = {"containers": (Container(image="web:v1"),), "init_containers": (Container(image="setup:v1"),)}

    found = explain([node("n", images=held), pod("p", spec=spec)])

    assert found.scores["n"]["ImageLocality"] == (100 * (1000 - 23)) // (2000 - 23)


def test_an_image_counts_in_proportion_to_the_nodes_that_have_it() -> None:
    """Or all pods would go to the one node that has it."""
    assert score(nodes=4, having=2, megabytes=1000) == score(megabytes=500)
    assert score(nodes=4, having=4, megabytes=1000) == 100


@pytest.mark.parametrize("image", ["web", "registry:5000/web", "registry:5000/team/web"])
def test_an_image_without_a_tag_is_the_latest(image: str) -> None:
    held = {f"{image}:latest": 1000 * MEBIBYTE}

    found = explain([node("n", images=held), node("other"), pod("p", image=image)]).scores

    assert (found["n"]["ImageLocality"], found["other"]["ImageLocality"]) == (48, 0)


def test_a_score_changes_when_other_nodes_get_the_image_or_come() -> None:
    """To a scheduler that has been there all the time."""
    held = {"web:v1": 1000 * MEBIBYTE}
    cluster = cluster_of(node("a", images=held), node("b"))
    runner, record = plain_runner(cluster, "ImageLocality"), cluster.read(pod("p", image="web:v1"))

    def score_of_a() -> int:
        state = CycleState()
        return int(runner.scoring.totals(state, record, View(cluster))[0])

    scores = [score_of_a()]
    for change in (node("b", images=held), node("c"), node("b")):
        cluster.put(change)
        scores.append(score_of_a())
    cluster.remove_node("b")
    scores.append(score_of_a())

    assert scores == [48, 100, 65, 31, 48]


def test_the_image_size_is_that_reported_by_the_first_node() -> None:
    """Until no node holds it any more."""
    large, small = {"web:v1": 1000 * MEBIBYTE}, {"web:v1": 100 * MEBIBYTE}
    cluster = cluster_of(node("a", images=large), node("b", images=small))
    runner, record = plain_runner(cluster, "ImageLocality"), cluster.read(pod("p", image="web:v1"))

    def scores() -> list[int]:
        rows = np.array([row for _, row in sorted(cluster.nodes.row_of.items())])
        totals: list[int] = runner.scoring.totals(CycleState(), record, View(cluster, rows)).tolist()
        return totals

    assert scores() == [100, 100]
    cluster.put(node("a", images=small))
    assert scores() == [100, 100]
    cluster.remove_node("a")
    assert scores() == [100]
    cluster.put(node("b", images=small))
    assert scores() == [7]
    cluster.put(node("a", images=large))
    assert scores() == [7, 7]
