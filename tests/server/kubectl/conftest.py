"""One cluster for all tests of a process, and a namespace for each test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server.kubectl.cluster import Cluster, running_cluster
from tests.server.kubectl.command import Kubectl, minor_version, program

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if program() is None:
        pytest.skip("there is no kubectl on PATH")
    with running_cluster(nodes=2) as found:
        yield found


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(cluster: Cluster, home: Path) -> Iterator[Kubectl]:
    namespace = f"test-{next(_NUMBERS)}"
    cluster.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    yield Kubectl(cluster, home, namespace)
    cluster.ask("DELETE", f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def needs_version() -> Callable[[int], None]:
    """Skips a test for a kubectl that is older than 1.N."""

    def check(minor: int) -> None:
        if minor_version() < minor:
            pytest.skip(f"kubectl 1.{minor} or later is needed")

    return check


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    """Provide a node of the test's own, by its name."""
    name = f"node-of-test-{next(_NUMBERS)}"
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    cluster.create(
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"capacity": capacity, "allocatable": capacity},
        },
    )
    yield name
    cluster.ask("DELETE", f"/api/v1/nodes/{name}")
