"""The controller that creates the claims of ephemeral volumes."""

from __future__ import annotations

from typing import Any

import pytest

from podium.controllers.observations import Problem
from podium.controllers.workloads.claims import EphemeralVolumes
from tests.controllers.store_rig import NO_ANSWER, UNAVAILABLE, Rig
from tests.store.objects import Raw, pod

ASKED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def user(name: str, *volumes: str, **metadata: Any) -> Raw:
    """Return a pod whose uid is uid-NAME, with volumes of its own."""
    template = {"metadata": {"labels": {"made": "yes"}}, "spec": ASKED}
    own = [{"name": volume, "ephemeral": {"volumeClaimTemplate": template}} for volume in volumes]
    raw = pod(name)
    given = {**raw["metadata"], "uid": f"uid-{name}", **metadata}
    return {**raw, "metadata": given, "spec": {**raw["spec"], "volumes": own}}


def claim(name: str) -> Raw:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": ASKED}


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(EphemeralVolumes, *objects)
    rig.settle()
    return rig


def claims(rig: Rig) -> list[str]:
    return rig.names("PersistentVolumeClaim")


def test_each_volume_gets_a_claim_that_belongs_to_the_pod() -> None:
    rig = rig_of(user("web", "cache", "logs"), pod("plain"))

    assert claims(rig) == ["web-cache", "web-logs"]
    made = rig.get("PersistentVolumeClaim", "web-cache")
    assert made["metadata"]["labels"] == {"made": "yes"}
    assert made["spec"]["resources"] == ASKED["resources"]
    assert [(one["kind"], one["uid"], one["controller"]) for one in made["metadata"]["ownerReferences"]] == [
        ("Pod", "uid-web", True)
    ]
    assert not rig.controller.deadline().keeps_alive


def test_a_deleted_claim_is_created_again_while_the_pod_exists() -> None:
    rig = rig_of(user("web", "cache"))

    rig.delete("PersistentVolumeClaim", "web-cache")
    rig.settle()
    assert claims(rig) == ["web-cache"]

    rig.delete("Pod", "web")
    rig.delete("PersistentVolumeClaim", "web-cache")
    rig.settle()
    assert claims(rig) == []


def test_nothing_is_made_for_a_pod_that_ends() -> None:
    ending = {"deletionTimestamp": "2026-01-01T12:00:30Z", "deletionGracePeriodSeconds": 30}
    assert claims(rig_of(user("web", "cache", **ending))) == []


def test_a_pod_waits_while_another_claim_has_its_name() -> None:
    rig = rig_of(claim("web-cache"), user("web", "cache"))
    assert rig.writes == []

    rig.delete("PersistentVolumeClaim", "web-cache")
    rig.settle()

    assert rig.get("PersistentVolumeClaim", "web-cache")["metadata"]["ownerReferences"][0]["uid"] == "uid-web"


def test_a_pod_with_a_conflicting_claim_name_waits_until_the_first_is_gone() -> None:
    rig = rig_of(user("a", "b-c"), user("a-b", "c"))
    assert rig.get("PersistentVolumeClaim", "a-b-c")["metadata"]["ownerReferences"][0]["name"] == "a"

    rig.delete("Pod", "a")
    rig.delete("PersistentVolumeClaim", "a-b-c")
    rig.settle()

    assert rig.get("PersistentVolumeClaim", "a-b-c")["metadata"]["ownerReferences"][0]["name"] == "a-b"


@pytest.mark.parametrize("problem", [UNAVAILABLE, NO_ANSWER])
def test_failed_claim_writes_are_retried(problem: Problem) -> None:
    rig = Rig(EphemeralVolumes, user("web", "cache"))
    rig.problems = [problem, problem]

    rig.wait(60)

    assert claims(rig) == ["web-cache"]
    assert not rig.controller.deadline().keeps_alive
