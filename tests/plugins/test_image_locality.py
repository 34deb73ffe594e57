"""The rules by which nodes that have a pod's images are liked."""

from __future__ import annotations

import pytest

from podium.api.pod import Container
from tests.builders import explain, node, pod

MEBIBYTE = 1024 * 1024


def score(image: str = "web:v1", *, nodes: int = 1, having: int = 1, megabytes: int = 500, containers: int = 1) -> int:
    """The score of the first of some nodes, of which the first few have the image."""
    held = {image: megabytes * MEBIBYTE}
    objects = [node(f"n{n}", images=held if n < having else {}) for n in range(nodes)]
    spec = {"containers": (Container(image=image), *(Container(name=str(n)) for n in range(1, containers)))}
    found = explain([*objects, pod("p", spec=spec)])
    return found.scores["n0"]["ImageLocality"]


@pytest.mark.parametrize(
    ("megabytes", "expected"), [(0, 0), (23, 0), (24, 0), (33, 1), (500, 48), (999, 99), (1000, 100), (5000, 100)]
)
def test_it_rises_from_23_to_1000_megabytes(megabytes: int, expected: int) -> None:
    assert score(megabytes=megabytes) == expected


def test_the_upper_bound_is_that_of_each_container() -> None:
    assert score(megabytes=1000, containers=2) == (100 * (1000 - 23)) // (2000 - 23)


def test_an_image_counts_in_proportion_to_the_nodes_that_have_it() -> None:
    """Or all pods would go to the one node that has it."""
    assert score(nodes=4, having=2, megabytes=1000) == score(megabytes=500)
    assert score(nodes=4, having=4, megabytes=1000) == 100


@pytest.mark.parametrize("image", ["web", "registry:5000/web", "registry:5000/team/web"])
def test_an_image_without_a_tag_is_the_latest(image: str) -> None:
    held = {f"{image}:latest": 1000 * MEBIBYTE}

    found = explain([node("n", images=held), node("other"), pod("p", image=image)]).scores

    assert (found["n"]["ImageLocality"], found["other"]["ImageLocality"]) == (48, 0)


def test_images_follow_the_nodes_that_come_and_go() -> None:
    held = {"web:v1": 1000 * MEBIBYTE}
    with_two = explain([node("a", images=held), node("b"), pod("p", image="web:v1")]).scores
    with_three = explain([node("a", images=held), node("b"), node("c"), pod("p", image="web:v1")]).scores

    assert with_two["a"]["ImageLocality"] > with_three["a"]["ImageLocality"]
