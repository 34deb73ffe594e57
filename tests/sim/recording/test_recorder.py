"""The recording of a cluster's events, and its simulation."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins

from podium.api.input.codec import Input, load_text
from podium.api.objects import read_object
from podium.controllers.observations import Changed, Deleted
from podium.sim.recording.recorder import ClusterRecorder
from podium.sim.recording.tape import RecordingEntry, recordings_of
from podium.sim.run import play
from podium.sim.run_options import RunOptions
from tests.app.manifests import EXAMPLES
from tests.sim.recording.recording import SEED, Raw, read, recorded

MINUTE = 60 * 10**9
# What a recording does not know decides there: several schedulers, the policy of preemption loops, and for how long an
# evicted pod is to stay away, and what was left for its replacement.
ON_OTHER_NODES = {"avoid-list", "preemption-loop", "replacement", "two-schedulers"}
STORIES = sorted(file for file in EXAMPLES.glob("*.yaml") if file.stem not in ON_OTHER_NODES)


@pytest.mark.parametrize("example", STORIES, ids=lambda path: path.stem)
def test_a_replayed_recording_repeats_its_events(example: Any) -> None:
    found = recorded(read(example), RunOptions(until_ns=20 * MINUTE, seed=SEED))

    comparison = play(found, RunOptions()).recorded

    assert comparison is not None
    assert comparison.other_node == ()
    assert comparison.same_node > 0
    assert comparison.simulated == comparison.recorded


def test_pods_take_as_long_to_end_as_they_took_in_what_was_recorded() -> None:
    """A preemptor waits for its victim: a second here, where all of the grace period would be half a minute."""
    story = read(EXAMPLES / "one-victim.yaml")
    found = recorded(story, RunOptions(until_ns=20 * MINUTE, seed=SEED, termination_ns=10**9))
    assert [each.termination_ns for each, _ in recordings_of(found.documents)] == [10**9]

    again, slow = play(found, RunOptions()), play(found, RunOptions(termination_ns=30 * 10**9))

    assert again.recorded is not None
    assert slow.recorded is not None
    assert again.recorded.simulated == again.recorded.recorded
    assert slow.recorded.simulated != slow.recorded.recorded


def node(**fields: Any) -> Raw:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "n"}, **fields}


def workload(kind: str, name: str = "web", owner: Raw | None = None, **spec: Any) -> Raw:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    body = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata(name, kind, owner), "spec": body}


def metadata(name: str, kind: str, owner: Raw | None = None, **others: Any) -> Raw:
    found = {"name": name, "namespace": "default", "uid": f"{kind}-{name}", **others}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        found["ownerReferences"] = [{**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]
    return found


def pod(name: str = "a", owner: Raw | None = None, *, node: str = "", phase: str = "Pending", **others: Any) -> Raw:
    spec: Raw = {"containers": [{"name": "main", "image": "i"}]}
    if node:
        spec["nodeName"] = node
    conditions = [{"type": "PodScheduled", "status": "True"}] if node else []
    if "disrupted" in others:
        conditions.append({"type": "DisruptionTarget", "status": "True", "reason": others.pop("disrupted")})
    status = {"phase": phase, "conditions": conditions}
    meta = metadata(name, "Pod", owner, **others)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


class Seen:
    """A recorder to which raw objects are shown."""

    def __init__(self, *there: Raw) -> None:
        self.recorder = ClusterRecorder(lambda raw: raw)
        for raw in there:
            assert self(raw) == ([], [])
        self.began = list(self.recorder.begin())

    def __call__(self, raw: Raw) -> tuple[list[Raw], list[Raw]]:
        return reported(self.recorder.see(Changed(read_object(raw, "ignore").object, raw), MINUTE))  # type: ignore[arg-type]

    def gone(self, raw: Raw) -> tuple[list[Raw], list[Raw]]:
        return reported(self.recorder.see(Deleted(read_object(raw, "ignore").object), MINUTE))  # type: ignore[arg-type]


def reported(entry: RecordingEntry) -> tuple[list[Raw], list[Raw]]:
    """Return steps and events without uids and without their time, which is one minute."""
    steps = [dict(step) for step in entry.steps]
    events = [to_builtins(event) for event in entry.events]
    assert all(one.pop("at") == "1m" for one in (*steps, *events))
    return steps, [{name: value for name, value in event.items() if name != "uid"} for event in events]


DELETED: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}


def test_objects_present_at_the_start_are_not_steps() -> None:
    assert Seen(node(), pod()).began == [node(), pod()]


def test_a_user_created_pod_is_a_step_and_its_binding_an_event() -> None:
    seen = Seen(node())

    (step,), made = seen(pod())
    bound = seen(pod(node="n", phase="Pending"))

    assert step["apply"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "i"}]},
        }
    ]
    assert made == [{"what": "created", "kind": "Pod", "key": "default/a"}]
    assert bound == ([], [{"what": "bound", "kind": "Pod", "key": "default/a", "node": "n"}])


def test_the_zone_that_a_binding_adds_to_a_pods_labels_is_no_step() -> None:
    seen = Seen(node())
    seen(pod(labels={"app": "a"}))

    bound = seen(pod(node="n", labels={"app": "a", "topology.kubernetes.io/zone": "z"}))
    (relabelled,), _ = seen(pod(node="n", labels={"app": "b", "topology.kubernetes.io/zone": "z"}))

    assert bound == ([], [{"what": "bound", "kind": "Pod", "key": "default/a", "node": "n"}])
    assert relabelled["apply"][0]["metadata"]["labels"] == {"app": "b"}


def test_a_changed_pod_keeps_the_volumes_that_its_containers_mount() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}]
    volumes = [{"name": "data", "emptyDir": {}}]

    def made(image: str) -> Raw:
        container = {"name": "main", "image": image, "volumeMounts": mounts}
        return pod() | {"spec": {"containers": [container], "volumes": volumes, "schedulerName": "own"}}

    seen = Seen(node(), made("a"))
    (changed,), _ = seen(made("b"))

    assert changed["apply"][0]["spec"] == {"containers": made("b")["spec"]["containers"], "volumes": volumes}


def test_a_pod_that_comes_with_its_node_keeps_it_unless_a_scheduler_gave_it() -> None:
    given = pod()
    given["spec"] = {**given["spec"], "nodeName": "n"}

    (by_hand,), _ = Seen(node())(given)
    (by_scheduler,), _ = Seen(node())(pod(node="n"))

    assert by_hand["apply"][0]["spec"]["nodeName"] == "n"
    assert "nodeName" not in by_scheduler["apply"][0]["spec"]


def test_objects_created_by_workloads_are_not_steps() -> None:
    deployment = workload("Deployment")
    set_ = workload("ReplicaSet", "web-1", deployment)
    seen = Seen(node())

    made = seen(deployment)
    of_it = [seen(set_), seen(pod("web-1-a", set_)), seen(workload("ReplicaSet", "web-1", deployment, replicas=0))]

    assert len(made[0]) == 1
    assert [steps for steps, _ in of_it] == [[], [], []]
    assert [event["what"] for _, events in of_it for event in events] == ["created", "created", "changed"]
    assert of_it[2][1][0]["object"]["spec"]["replicas"] == 0


def test_a_scale_a_cordon_and_a_new_template_are_steps() -> None:
    seen = Seen(node(spec={}), workload("Deployment"))

    scaled, _ = seen(workload("Deployment", replicas=3))
    rolled, _ = seen(workload("Deployment", replicas=3, minReadySeconds=5))
    cordoned, _ = seen(
        node(
            spec={
                "unschedulable": True,
                "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
            }
        )
    )
    uncordoned, _ = seen(node(spec={}))

    assert scaled == [{"scale": {"kind": "Deployment", "namespace": "default", "name": "web", "replicas": 3}}]
    assert rolled[0]["apply"][0]["spec"]["minReadySeconds"] == 5
    assert cordoned == [{"cordon": {"name": "n"}}]
    assert uncordoned == [{"uncordon": {"name": "n"}}]


def test_changes_of_status_and_by_controllers_are_not_steps() -> None:
    seen = Seen(node(), workload("Deployment"))
    annotated = workload("Deployment")
    annotated["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "2"}

    assert seen({**workload("Deployment"), "status": {"replicas": 1}}) == ([], [])
    assert seen(annotated) == ([], [])
    assert seen(node(spec={"podCIDR": "10.0.0.0/24"})) == ([], [])


def test_a_node_that_falls_silent_and_comes_back_is_down_and_up() -> None:
    seen = Seen(node(status={"conditions": [{"type": "Ready", "status": "True"}]}))

    down, _ = seen(node(status={"conditions": [{"type": "Ready", "status": "Unknown"}]}))
    up, _ = seen(node(status={"conditions": [{"type": "Ready", "status": "True"}]}))

    assert (down, up) == ([{"nodeDown": {"name": "n"}}], [{"nodeUp": {"name": "n"}}])


@pytest.mark.parametrize(
    ("reason", "what", "steps"),
    [
        ("PreemptionByScheduler", "preempted", []),
        ("DeletionByTaintManager", "disrupted", []),
        ("EvictionByEvictionAPI", "evicted", [{"evict": {"namespace": "default", "name": "a"}}]),
    ],
)
def test_the_recorder_names_the_disrupting_component_from_the_condition(
    reason: str, what: str, steps: list[Raw]
) -> None:
    seen = Seen(node(), pod(node="n", phase="Running"))
    going = pod(node="n", phase="Running", disrupted=reason, **DELETED)

    assert seen(going) == (steps, [{"what": what, "kind": "Pod", "key": "default/a", "reason": reason}])
    assert seen(going) == ([], [])
    assert seen.gone(going) == ([], [{"what": "gone", "kind": "Pod", "key": "default/a"}])


def test_a_deletion_by_hand_is_a_step_once_also_where_only_the_end_is_seen() -> None:
    seen = Seen(node(), pod("a", node="n"), pod("b", node="n"))
    step = {"delete": {"kind": "Pod", "namespace": "default", "name": "a", "outright": True}}

    assert seen(pod("a", node="n", **DELETED))[0] == [step]
    assert seen.gone(pod("a", node="n", **DELETED))[0] == []
    assert seen.gone(pod("b", node="n"))[0] == [{"delete": {**step["delete"], "name": "b"}}]


def test_a_deletion_of_a_replica_sets_pod_is_a_step_only_if_the_set_has_no_more_pods_than_it_wants() -> None:
    set_, job = (
        workload("ReplicaSet", replicas=2),
        {**workload("ReplicaSet", "job"), "kind": "Job", "apiVersion": "batch/v1"},
    )
    seen = Seen(node(), set_, job, *(pod(f"web-{name}", set_) for name in "abcd"), pod("job-a", job))

    assert seen(pod("web-a", set_, **DELETED))[0] == []
    assert seen(pod("web-b", set_, phase="Failed"))[0] == []
    assert seen(pod("web-b", set_, phase="Failed", **DELETED))[0] == []
    step = {"delete": {"kind": "Pod", "namespace": "default", "name": "web-c", "outright": True}}
    assert seen(pod("web-c", set_, **DELETED))[0] == [step]
    assert seen.gone(pod("web-c", set_, **DELETED))[0] == []
    assert seen(pod("web-d", set_, disrupted="EvictionByEvictionAPI", **DELETED))[0] == [
        {"evict": {"namespace": "default", "name": "web-d"}}
    ]
    assert seen(pod("job-a", job, **DELETED))[0] == []


@pytest.mark.parametrize(
    ("name", "revision", "is_step"),
    [
        ("db-1", "new", True),
        ("db-4", "new", True),
        ("db-1", "old", False),
        ("db-5", "new", False),
        ("other", "new", False),
    ],
)
def test_a_deletion_of_a_stateful_sets_pod_is_a_step_if_the_set_wants_it(
    name: str, revision: str, is_step: bool
) -> None:
    set_ = workload("StatefulSet", "db", replicas=4, serviceName="db", ordinals={"start": 1})
    set_["status"] = {"replicas": 4, "currentRevision": "old", "updateRevision": "new"}
    labels: dict[str, Any] = {"labels": {"controller-revision-hash": revision}}
    seen = Seen(node(), set_, pod(name, set_, **labels))

    step = {"delete": {"kind": "Pod", "namespace": "default", "name": name, "outright": True}}
    assert seen(pod(name, set_, **labels, **DELETED))[0] == [step] * is_step


def test_a_deleted_pod_of_a_replica_set_that_is_deleted_or_another_one_is_no_step() -> None:
    set_ = workload("ReplicaSet", replicas=2)
    another = {**set_, "metadata": {**set_["metadata"], "uid": "another"}}

    for later in ({**set_, "metadata": {**set_["metadata"], **DELETED}}, another):
        seen = Seen(node(), set_, pod("web-a", set_))
        seen(later)
        assert seen(pod("web-a", set_, **DELETED))[0] == []


def test_deletions_by_controllers_or_of_a_namespace_are_not_recorded_as_steps() -> None:
    set_ = workload("ReplicaSet", replicas=0)
    namespace: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "uid": "d"}}
    seen = Seen(node(), set_, pod("web-a", set_), pod("b"), namespace)

    assert seen(pod("web-a", set_, **DELETED))[0] == []
    ending, _ = seen({**namespace, "metadata": {**namespace["metadata"], **DELETED}})
    assert ending == [{"delete": {"kind": "Namespace", "name": "default"}}]
    assert seen(pod("b", **DELETED))[0] == []


def test_a_pod_that_finishes_does_so_by_name_and_as_one_of_its_workload() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("j", "Job"), "spec": workload("Job")["spec"]}
    seen = Seen(node(), job, pod("j-there", job, node="n", phase="Running"))
    seen(pod("j-later", job))
    seen(pod("j-later", job, node="n", phase="Running"))

    there, events = seen(pod("j-there", job, node="n", phase="Succeeded"))
    later, _ = seen(pod("j-later", job, node="n", phase="Succeeded"))

    of_job = {"kind": "Job", "namespace": "default", "name": "j"}
    assert there == [{"finish": {**of_job, "pod": "j-there"}}]
    assert later == [{"finish": {**of_job, "pod": "j-later", "after": "0s"}}]
    assert events == [{"what": "finished", "kind": "Pod", "key": "default/j-there"}]


def test_a_namesake_is_a_new_object_when_the_first_deletion_was_missed() -> None:
    seen = Seen(node(), pod("a", node="n"))

    steps, events = seen(pod("a", uid="another"))

    assert [next(iter(step)) for step in steps] == ["delete", "apply"]
    assert [event["what"] for event in events] == ["gone", "created"]


def test_a_job_comes_without_what_its_uid_gave_it() -> None:
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": "x"}}
    template = workload("Job")["spec"]["template"]
    labelled = {**template, "metadata": {"labels": {"app": "web", "controller-uid": "x", "job-name": "j"}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("j", "Job")}

    (step,), _ = Seen(node())({**job, "spec": {"selector": selector, "template": labelled}})

    (made,) = step["apply"]
    assert "selector" not in made["spec"]
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "web"}


def test_claims_and_volumes_created_for_others_are_not_steps() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    set_ = workload("StatefulSet", "db-x", volumeClaimTemplates=[template])
    seen = Seen(node(), set_)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata("data-db-x-0", "c"), "spec": {}}
    other = {**claim, "metadata": metadata("data-db-y-0", "c")}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v", "uid": "v", "annotations": {"pv.kubernetes.io/provisioned-by": "x"}},
        "spec": {"capacity": {"storage": "1Gi"}},
    }

    assert seen(claim)[0] == []
    assert len(seen(other)[0]) == 1
    assert seen(volume)[0] == []


def test_steps_that_cannot_be_played_are_skipped_where_they_were_recorded() -> None:
    scenario = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "s"},
        "spec": {
            "recorded": True,
            "until": "1m",
            "steps": [
                {"at": "1s", "finish": {"kind": "Job", "name": "none"}},
                {"at": "2s", "delete": {"kind": "Pod", "name": "none"}},
                {"at": "3s", "cordon": {"name": "none"}},
            ],
        },
    }
    documents = load_text(str(scenario).replace("'", '"').replace("True", "true"), "s")

    events = play(Input(documents), RunOptions()).events

    assert [(event.time, event.reason, event.pod) for event in events] == [
        (1, "StepSkipped", "default/none"),
        (2, "StepSkipped", "default/none"),
        (3, "StepSkipped", "none"),
    ]
