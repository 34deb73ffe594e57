"""Fixtures for pytest: write `pytest_plugins = ["podium.testing.plugin"]` into a conftest.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from podium.testing.control_plane import ControlPlane


@pytest.fixture
def podium_cluster(podium_clusters: Callable[..., ControlPlane]) -> ControlPlane:
    """Return a new control plane with three nodes, in virtual time."""
    return podium_clusters(nodes=3)


@pytest.fixture
def podium_clusters() -> Iterator[Callable[..., ControlPlane]]:
    """Return a function that creates control planes, with the arguments of `ControlPlane`; they end with the test."""
    with ExitStack() as stack:

        def make(**settings: Any) -> ControlPlane:
            return stack.enter_context(ControlPlane(**settings))

        yield make
