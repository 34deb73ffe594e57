import json
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.api.errors import InputError, PodiumError
from podium.api.input.codec import load_text
from podium.api.meta import ObjectMeta
from podium.api.policy import PriorityClass
from tests.app.processes import run
from tests.builders import configuration, node, pod

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "creationTimestamp": None},
    "status": {"allocatable": {"cpu": "4", "pods": 10}},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "creationTimestamp": None},
    "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}
CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
LIST = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}


def test_the_levels_of_a_policy_are_priorities_for_an_explanation_too() -> None:
    policy = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": "default"},
        "spec": {"priorities": "Critical > Normal"},
    }
    waiting = {**POD, "spec": {**POD["spec"], "priorityClassName": "critical"}}

    explanation = podium.explain([NODE, policy, waiting], "web")

    assert explanation.record.priority == 666_666_667


def test_objects_may_be_dictionaries_lists_typed_documents_or_files(tmp_path: Path) -> None:
    file = tmp_path / "both.json"
    file.write_text(json.dumps(LIST))
    given: list[Any] = [
        [NODE, POD],
        [LIST],
        load_text(json.dumps(LIST), "text"),
        [node("n", cpu=4, pods=10), pod("web", cpu=1)],
        [NODE, pod("web", cpu=1)],
        file,
        str(file),
        [tmp_path],
        LIST,
    ]

    for objects in given:
        found = podium.explain(objects, "web")
        assert (found.outcome, found.node) == ("schedulable", "n")
        assert [(one["pod"], one["node"]) for one in podium.simulate(objects).pods] == [("default/web", "n")]


def test_a_pod_is_named_with_its_namespace_or_is_in_default() -> None:
    assert podium.explain([NODE, POD], "default/web").to_dict() == podium.explain([NODE, POD], "web").to_dict()


def test_a_configuration_may_be_read_or_a_dictionary_or_a_file(tmp_path: Path) -> None:
    settings = configuration(schedulerName="mine")
    file = tmp_path / "scheduler.yaml"
    api_version = "kubescheduler.config.k8s.io/v1"
    file.write_text(
        f"apiVersion: {api_version}\nkind: KubeSchedulerConfiguration\nprofiles: [{{schedulerName: mine}}]\n"
    )

    written = {
        "apiVersion": api_version,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "mine", "percentageOfNodesToScore": None}],
    }

    for one in (settings, file, str(file), written):
        with pytest.raises(PodiumError, match="is for scheduler default-scheduler, which is not configured"):
            podium.explain([NODE, POD], "web", one)
        assert podium.explain([NODE, pod("web", scheduler="mine")], "web", one).node == "n"
        assert podium.simulate([NODE, pod("web", scheduler="mine")], configuration=one).summary["bindings"] == 1


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({"kind": "KubeSchedulerConfiguration"}, "apiVersion"),
        ({**CONFIGURATION, "profile": []}, 'configuration: there is no field "profile"'),
        ({**CONFIGURATION, "profiles": [{"pluginConfig": [{"name": object()}]}]}, "is not plain JSON"),
        ({"apiVersion": "v1", "kind": "List", "items": []}, "holds 0 objects"),
    ],
)
def test_an_invalid_dictionary_names_its_field(written: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        podium.explain([NODE, POD], "web", written)
    with pytest.raises(InputError, match=says):
        podium.simulate([NODE, POD], configuration=written)


def test_a_configuration_with_extenders_is_refused_unless_they_are_ignored() -> None:
    written = {**CONFIGURATION, "extenders": [{"urlPrefix": "http://rater:80", "filterVerb": "filter"}]}

    with pytest.raises(InputError, match=r"\.extenders: has 1 of them, and Podium calls none"):
        podium.explain([NODE, POD], "web", written)
    with pytest.raises(InputError, match=r"\.extenders: has 1 of them, and Podium calls none"):
        podium.simulate([NODE, POD], configuration=written)
    explained = podium.explain([NODE, POD], "web", written, ignore_extenders=True).to_dict()
    played = podium.simulate([NODE, POD], configuration=written, ignore_extenders=True).to_dict()
    for answer in (explained, played):
        (about,) = (one for one in answer["caveats"] if one["about"] == "extenders-ignored")
        assert about["names"] == ["http://rater:80"]


def test_an_object_that_is_given_twice_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        podium.explain([NODE, POD, pod("web")], "web")

    assert str(caught.value) == (
        "objects[2], document 1, Pod default/web: is given twice, first in objects[1], document 1; remove one"
    )


@pytest.mark.parametrize("given", [3, None, [3], [[]], b"cluster.yaml"])
def test_an_invalid_object_value_raises_an_error(given: Any) -> None:
    with pytest.raises(podium.PodiumError, match="a dictionary, a typed object, or the name of a file or directory"):
        podium.load(given)


@pytest.mark.parametrize("given", [3, [], ["file.yaml"]])
def test_an_invalid_configuration_value_raises_an_error(given: Any) -> None:
    with pytest.raises(podium.PodiumError, match="give a file name, a dictionary or a Configuration"):
        podium.load([], configuration=given)


def test_fields_that_are_not_a_mapping_are_an_error() -> None:
    plan = podium.load("examples/plan/cluster.yaml").plan()
    with pytest.raises(podium.PodiumError, match='fields: "replicas=5" is not a mapping'):
        plan.change("deploy/shop/report", "replicas=5")  # type: ignore[arg-type]


def test_an_invalid_dictionary_is_reported_with_its_index() -> None:
    with pytest.raises(InputError) as caught:
        podium.explain([NODE, {**POD, "spec": 5}], "web")

    assert str(caught.value) == "objects[1], document 1, Pod default/web, .spec: 5 is not an object"


def test_a_pod_that_no_api_server_has_seen_gets_the_priority_of_its_class() -> None:
    high = PriorityClass(metadata=ObjectMeta(name="high"), value=7, preemption_policy="Never")
    own = {**POD, "spec": {**POD["spec"], "priorityClassName": "high"}}

    record = podium.explain([NODE, high, own], "web").record

    assert (record.priority, record.preemption_policy) == (7, "Never")


def test_the_default_class_counts_for_pods_without_one_and_leaves_others_alone() -> None:
    default = PriorityClass(metadata=ObjectMeta(name="usual"), value=3, global_default=True)
    given = {**POD, "spec": {**POD["spec"], "priority": 5}}

    assert podium.explain([NODE, default, POD], "web").record.priority == 3
    assert podium.explain([NODE, default, given], "web").record.priority == 5


def test_a_class_that_does_not_exist_is_refused_as_the_api_server_does() -> None:
    own = {**POD, "spec": {**POD["spec"], "priorityClassName": "gone"}}

    with pytest.raises(PodiumError, match="no PriorityClass with name gone was found"):
        podium.explain([NODE, own], "web")


def test_importing_podium_imports_nothing_else() -> None:
    code = "import sys, podium; print(*(name for name in sys.modules if name.startswith(('podium.', 'numpy'))))"

    assert run(code=code, real=True).stdout == "\n"


def test_podium_has_no_other_attributes() -> None:
    assert podium.__all__ == ["Cluster", "PodiumError", "explain", "load", "plan", "simulate", "sweep"]
    with pytest.raises(AttributeError, match="module 'podium' has no attribute 'explode'"):
        podium.explode  # noqa: B018


def test_a_pod_that_admission_refuses_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x}]}}\n---\n"
        "{apiVersion: v1, kind: Pod, metadata: {name: b},"
        " spec: {runtimeClassName: nope, containers: [{name: a, image: x}]}}\n"
    )

    with pytest.raises(InputError, match=r'pods.yaml, document 2, Pod default/b: .*RuntimeClass "nope" not found'):
        podium.explain(file, "default/a")


def test_plans_and_sweeps_take_the_latency_of_requests() -> None:
    example = Path("examples/starvation-1.yaml")

    plans = podium.plan(example, latency="7ms")
    sweep = podium.sweep(example, {"start-delay": ["0s"]}, until="1m", latency="7ms")

    assert plans._run.options.latency_ns == 7_000_000
    assert sweep._sweep is not None
    assert {variant.options.latency_ns for variant in sweep._sweep.variants} == {7_000_000}
