"""The resource claim controller."""

from __future__ import annotations

from typing import Any

from podium.api.devices import DELETE_PROTECTION, POD_CLAIM_NAME
from podium.api.objects import read_object
from podium.controllers.actions import Action, CreateObject, DeleteObject, PatchObject
from podium.controllers.observations import ActionFinished, Changed, Tick
from podium.controllers.workloads.claims import ResourceClaims
from tests.controllers.store_rig import NO_ANSWER, UNAVAILABLE, Rig
from tests.devices import allocated, claim, claim_template, request, using
from tests.store.objects import SECOND, Raw, pod

PROTECTED = {"finalizers": [DELETE_PROTECTION]}


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(ResourceClaims, *objects)
    rig.settle()
    return rig


def user(name: str, **more: Any) -> Raw:
    """Return a pod whose uid is uid-NAME."""
    raw = pod(name, **more)
    return {**raw, "metadata": {**raw["metadata"], "uid": f"uid-{name}"}}


def in_use(name: str, node: str, *by: str) -> Raw:
    """Return a claim that has a device, used by pods."""
    raw = claim(name, status=allocated(node, "a", to=by))
    return {**raw, "metadata": {**raw["metadata"], **PROTECTED}}


def made(rig: Rig) -> Raw:
    (name,) = rig.names("ResourceClaim")
    return rig.get("ResourceClaim", name)


def show(machine: ResourceClaims, raw: Raw) -> None:
    found = read_object(raw).object
    assert found is not None
    machine.handle(Changed(found, raw), 0)


def test_a_claim_is_created_from_a_template_and_named_in_the_pod_status() -> None:
    rig = rig_of(claim_template("gpu", request("r", count=2)), using(user("web"), template="gpu"))

    raw = made(rig)
    assert raw["metadata"]["name"].startswith("web-gpu-")
    assert raw["metadata"]["annotations"] == {POD_CLAIM_NAME: "gpu"}
    assert raw["metadata"]["labels"] == {"made": "yes"}
    assert raw["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    assert [(one["kind"], one["uid"], one["controller"]) for one in raw["metadata"]["ownerReferences"]] == [
        ("Pod", "uid-web", True)
    ]
    assert rig.get("Pod", "web")["status"]["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": raw["metadata"]["name"]}
    ]


def test_a_pod_waits_for_its_template() -> None:
    rig = rig_of(using(user("web"), template="gpu"))
    assert rig.writes == []
    assert not rig.controller.deadline().keeps_alive

    rig.sync(claim_template("gpu"))

    assert len(rig.names("ResourceClaim")) == 1


def test_a_deleted_claim_is_made_again_unless_its_pod_is_being_deleted() -> None:
    rig = rig_of(claim_template("gpu"), using(user("web"), template="gpu"))
    (first,) = rig.names("ResourceClaim")

    rig.store.delete("ResourceClaim", f"default/{first}", now=0)
    rig.settle()
    (second,) = rig.names("ResourceClaim")
    assert second != first
    assert rig.get("Pod", "web")["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": second}]

    rig.store.bind("default/web", "n1", now=0)
    rig.store.delete("Pod", "default/web", now=0)
    rig.store.delete("ResourceClaim", f"default/{second}", now=0)
    rig.settle()
    assert rig.names("ResourceClaim") == []


def test_a_claim_that_was_made_without_an_answer_is_not_made_again() -> None:
    rig = Rig(ResourceClaims, claim_template("gpu"), using(user("web"), template="gpu"))
    rig.problems = [NO_ANSWER]

    rig.wait(60)

    assert rig.get("Pod", "web")["status"]["resourceClaimStatuses"][0]["resourceClaimName"] in rig.names(
        "ResourceClaim"
    )
    assert len(rig.names("ResourceClaim")) == 1


def test_a_claim_that_was_made_and_is_shown_late_is_not_made_again_for_a_minute() -> None:
    machine = ResourceClaims()
    for raw in (claim_template("gpu"), using(user("web"), template="gpu")):
        found = read_object(raw).object
        assert found is not None
        machine.handle(Changed(found, raw), 0)
    (action,) = machine.handle(Tick(), 0)
    machine.handle(ActionFinished(action), 0)

    assert machine.handle(Tick(), 0) == []
    assert machine.deadline().time_ns == 60 * SECOND
    assert machine.handle(Tick(), 60 * SECOND) == [action]


def test_failed_claim_writes_are_retried() -> None:
    rig = Rig(ResourceClaims, claim_template("gpu"), using(user("web"), template="gpu"))
    rig.problems = [UNAVAILABLE, None, UNAVAILABLE]

    rig.wait(60)

    assert "resourceClaimStatuses" in rig.get("Pod", "web")["status"]
    assert not rig.controller.deadline().keeps_alive


def test_the_last_pod_to_end_frees_the_claim() -> None:
    rig = rig_of(user("a", node="n1"), user("b", node="n1"), in_use("c", "n1", "a", "b"))
    assert rig.writes == []

    rig.sync({**user("a", node="n1"), "status": {"phase": "Succeeded"}})
    status = rig.get("ResourceClaim", "c")["status"]
    assert [one["name"] for one in status["reservedFor"]] == ["b"]
    assert "allocation" in status

    rig.delete("Pod", "b")
    rig.settle()
    raw = rig.get("ResourceClaim", "c")
    assert (raw["status"]["reservedFor"], "allocation" in raw["status"]) == ([], False)
    assert not raw["metadata"].get("finalizers")


def test_an_unused_claim_keeps_its_devices_until_it_is_deleted() -> None:
    rig = rig_of(in_use("c", "n1"))
    assert rig.writes == []

    rig.delete("ResourceClaim", "c")
    rig.settle()

    assert rig.names("ResourceClaim") == []


def test_a_claim_that_was_made_for_a_pod_goes_when_the_pod_has_ended() -> None:
    rig = rig_of(claim_template("gpu"), using(user("web", node="n1"), template="gpu"))
    assert len(rig.names("ResourceClaim")) == 1

    rig.sync({**using(user("web", node="n1"), template="gpu"), "status": {"phase": "Failed"}})

    assert rig.names("ResourceClaim") == []


def test_a_claim_that_was_deleted_is_not_deleted_again_before_that_is_seen() -> None:
    ended = {**using(user("web", node="n1"), template="gpu"), "status": {"phase": "Failed"}}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-web", "controller": True}
    left = claim("web-gpu")
    left["metadata"] |= {"uid": "uid-claim", "ownerReferences": [owner]}
    machine = ResourceClaims()
    for raw in (ended, left):
        show(machine, raw)
    (action,) = machine.handle(Tick(), 0)
    assert isinstance(action, DeleteObject)

    machine.handle(ActionFinished(action), 0)

    assert machine.handle(Tick(), 0) == []
    assert machine.deadline().time_ns is None


def test_a_claim_that_is_seen_to_go_before_its_deletion_is_answered_is_freed_when_it_is() -> None:
    ended = {**using(user("web", node="n1"), template="gpu"), "status": {"phase": "Failed"}}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-web", "controller": True}
    left = claim("web-gpu")
    left["metadata"] |= {"uid": "uid-claim", "ownerReferences": [owner]}
    goes = claim("web-gpu", status=allocated("n1", "a"))
    goes["metadata"] |= {**left["metadata"], **PROTECTED, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    machine = ResourceClaims()
    for raw in (ended, left):
        show(machine, raw)
    (deletion,) = machine.handle(Tick(), 0)
    show(machine, goes)
    assert machine.handle(Tick(), 0) == []

    machine.handle(ActionFinished(deletion), 0)

    (freeing,) = machine.handle(Tick(), 0)
    assert isinstance(freeing, PatchObject)
    assert freeing.patch["status"]["allocation"] is None


def test_a_pod_that_was_never_seen_is_waited_for_and_then_taken_off() -> None:
    rig = rig_of(in_use("c", "n1", "gone"))
    rig.wait(59)
    assert rig.writes == []

    rig.wait(2)

    assert "allocation" not in rig.get("ResourceClaim", "c")["status"]


def test_a_pod_that_is_seen_late_keeps_its_claim() -> None:
    rig = Rig(ResourceClaims, in_use("c", "n1", "late"))
    rig.held = {"Pod"}
    rig.put(user("late", node="n1"))
    rig.wait(30)
    rig.held = set()

    rig.wait(120)

    assert rig.writes == []


def test_a_deleted_pod_without_a_node_will_not_run() -> None:
    raw = {**in_use("c", "n1", "web")}
    waiting = user("web")
    waiting["metadata"]["finalizers"] = ["example.com/keep"]
    rig = rig_of(waiting, raw)

    rig.delete("Pod", "web")
    rig.settle()

    assert "allocation" not in rig.get("ResourceClaim", "c")["status"]


def test_nothing_is_remembered_of_what_is_gone() -> None:
    rig = rig_of(
        claim_template("gpu"), using(user("web", node="n1"), template="gpu"), user("a"), in_use("c", "n1", "a")
    )
    for name in ("web", "a"):
        rig.delete("Pod", name)
    rig.settle()
    for name in rig.names("ResourceClaim"):
        rig.delete("ResourceClaim", name)
    rig.delete("ResourceClaimTemplate", "gpu")
    rig.wait(600)

    assert isinstance(rig.controller, ResourceClaims)
    fields = {**vars(rig.controller), **vars(rig.controller.claims)}
    kept = {name: value for name, value in fields.items() if isinstance(value, dict | set) and value}

    assert kept == {}


def test_a_claim_name_is_written_only_to_the_observed_version_of_a_pod() -> None:
    """A controller with an old version of a pod must not overwrite a name with which the pod may be bound by now."""
    machine = ResourceClaims()
    web = using(user("web"), template="gpu")
    web["metadata"]["resourceVersion"] = "7"
    show(machine, claim_template("gpu"))
    show(machine, web)
    (creation,) = machine.handle(Tick(), 0)
    assert isinstance(creation, CreateObject)
    machine.handle(ActionFinished(creation), 0)
    show(machine, {**creation.raw, "metadata": {**creation.raw["metadata"], "name": "web-gpu-1", "uid": "c1"}})

    (patch,) = machine.handle(Tick(), 0)

    assert isinstance(patch, PatchObject)
    assert patch.patch["metadata"] == {"resourceVersion": "7"}


def test_a_pod_replaced_by_a_namesake_counts_as_deleted() -> None:
    machine = ResourceClaims()
    used = in_use("c", "n1", "a")
    first, second = user("a", node="n1"), {**user("a", node="n2")}
    second["metadata"] = {**second["metadata"], "uid": "another"}

    def shown(raw: Raw) -> list[Action]:
        show(machine, raw)
        return machine.handle(Tick(), 0)

    assert shown(first) == shown(used) == []
    (patch,) = shown(second)
    assert isinstance(patch, PatchObject)
    assert (patch.kind, patch.key) == ("ResourceClaim", "default/c")
