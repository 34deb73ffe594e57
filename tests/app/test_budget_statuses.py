"""Budgets without a status: the disruptions that Podium computes for them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium.api.basis import lacks_status
from podium.api.input.codec import Document, load_text
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from podium.api.reading import read
from podium.app.cluster_session import with_budget_statuses
from podium.controllers.actions import ReplaceStatus
from podium.controllers.disruption.disruption_controller import DisruptionController
from podium.controllers.observations import Changed, Observation, Tick
from podium.controlplane.population import as_running
from podium.store.stored import reread

Raw = dict[str, Any]


def pod(name: str, node: str = "", **status: Any) -> Raw:
    spec: Raw = {"priority": 1, "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def node(name: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "1", "pods": "10"}},
    }


def budget(minimum: int | str, **rest: Any) -> Raw:
    spec = {"minAvailable": minimum, "selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec, **rest}


def allowed(*raws: Raw) -> int:
    documents = load_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(raws)}), "input")
    (found,) = (one for one in with_budget_statuses(documents) if isinstance(one, PodDisruptionBudget))
    return found.status.disruptions_allowed


def test_pods_with_a_node_are_taken_to_run_there_unless_their_status_says_otherwise() -> None:
    well, waits = pod("a", "n"), pod("b")
    unwell = pod("c", "n", phase="Running", conditions=[{"type": "Ready", "status": "False"}])

    assert allowed(budget(1), well, pod("d", "n"), waits, unwell) == 1
    assert allowed(budget(1), well, waits, unwell) == 0


def test_a_status_that_is_there_is_believed() -> None:
    assert allowed(budget(0, status={"disruptionsAllowed": 0}), pod("a", "n"), pod("b", "n")) == 0


def test_a_budget_without_pods_is_reported_with_its_numbers() -> None:
    cluster = podium.load([node("n"), pod("p"), {**budget(1), "spec": {"minAvailable": 1}}])

    (report,) = cluster.explain("p").disruptions_found().budgets
    assert (report.healthy, report.desired, report.expected, report.allowed) == (0, 1, 0, 0)


def test_a_victim_violates_its_budget_only_if_that_is_used_up() -> None:
    urgent: Raw = {**pod("urgent"), "metadata": {"name": "urgent"}}
    urgent["spec"] = {**urgent["spec"], "priority": 9}
    cluster = [node("n"), pod("a", "n"), urgent]

    assert violations(*cluster, budget(0)) == 0
    assert violations(*cluster, budget(1)) == 1


def test_pods_that_no_budget_without_status_covers_are_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    examined: list[str] = []
    handle = DisruptionController.handle

    def noted(self: DisruptionController, observation: Observation, now: int) -> list[Any]:
        if isinstance(observation, Changed) and isinstance(observation.object, Pod):
            examined.append(observation.object.key)
        return handle(self, observation, now)

    monkeypatch.setattr(DisruptionController, "handle", noted)
    database = {**pod("database", "n"), "metadata": {"name": "database", "labels": {"app": "database"}}}
    elsewhere = {**pod("elsewhere", "n"), "metadata": {"name": "a", "namespace": "other", "labels": {"app": "web"}}}

    assert allowed(budget(1), pod("a", "n"), database, pod("b", "n"), elsewhere) == 1
    assert examined == ["default/a", "default/b"]


def violations(*raws: Raw) -> int:
    plan = podium.explain(raws, "urgent").plan
    assert plan is not None
    return plan.candidates["n"].budget_violations


def type_of(condition: Any) -> str:
    return str(condition["type"])


STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        "conditions": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["Ready", "Other"]), "status": st.sampled_from(["True", "False"])}
            ),
            max_size=2,
            unique_by=type_of,
        ),
    },
)
PODS = st.lists(st.tuples(st.sampled_from(["", "n"]), STATUSES, st.booleans(), st.booleans()), max_size=5)


@given(pods=PODS, minimum=st.sampled_from([0, 1, 2, "50%"]), replicas=st.integers(0, 4), has_generation=st.booleans())
def test_the_computed_status_is_that_of_a_controller_that_sees_every_object_whole(
    pods: list[tuple[str, Raw, bool, bool]], minimum: int | str, replicas: int, has_generation: bool
) -> None:
    owner: Raw = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "set", "controller": True}
    template: Raw = {"metadata": {"labels": {"app": "web"}}, "spec": pod("t")["spec"]}
    spec: Raw = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    workload: Raw = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "uid": "set"},
        "spec": spec,
    }
    raws: list[Raw] = [workload, budget(minimum), {**budget(1), "metadata": {"name": "c", "namespace": "other"}}]
    if has_generation:
        raws[1]["metadata"]["generation"] = 3
    for number, (node_name, status, is_owned, is_terminating) in enumerate(pods):
        raw = pod(f"p{number}", node_name, **status)
        if is_owned:
            raw["metadata"]["ownerReferences"] = [owner]
        if is_terminating:
            raw["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "uid": f"u{number}"}
        raws.append(raw)
    documents = load_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": raws}), "input", "ignore")

    found = [one for one in with_budget_statuses(documents) if isinstance(one, PodDisruptionBudget)]

    assert {one.key: one.status for one in found} == statuses_by_wire_form(documents)


def statuses_by_wire_form(documents: list[Document]) -> dict[str, PodDisruptionBudgetStatus]:
    """Return the statuses that the controller writes when it sees all objects in wire form, as the API would show
    them.
    """
    controller = DisruptionController()
    for document in documents:
        assert document.object is not None
        raw = as_running(document.raw, document.object, 0)
        if lacks_status(document):
            raw = {**raw, "metadata": {"generation": 1, **raw["metadata"]}}
        controller.handle(Changed(reread(document.object, document.raw, raw), raw), 0)
    written = [action.raw for action in controller.handle(Tick(), 0) if isinstance(action, ReplaceStatus)]
    budgets = [read(raw, PodDisruptionBudget) for raw in written if raw["kind"] == "PodDisruptionBudget"]
    return {one.key: one.status for one in budgets}
