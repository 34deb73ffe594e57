"""kubectl applies the manifests of `deploy/`, and the stored objects equal them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.kubectl.command import Kubectl

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.mark.parametrize("folder", ["base", "reader", "crds"])
def test_a_kustomization_is_created_and_nothing_differs_afterwards(folder: str, kubectl: Kubectl) -> None:
    created = kubectl("apply", "-n", "podium", "-k", str(DEPLOY / folder)).splitlines()
    again = kubectl("apply", "-n", "podium", "-k", str(DEPLOY / folder)).splitlines()

    assert created
    assert {line.rpartition(" ")[2] for line in created} == {"created"}
    assert {line.rpartition(" ")[2] for line in again} <= {"unchanged", "configured"}
    kubectl("delete", "-n", "podium", "-k", str(DEPLOY / folder), "--wait=false")
