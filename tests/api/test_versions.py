"""Reading Kubernetes versions and feature gates, and the behaviors that they select."""

from __future__ import annotations

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import Document, decode
from podium.api.meta import Raw
from podium.api.versions.choice import CLUSTER_RELEASE, ReleaseChoice, read_choice
from podium.api.versions.gates import DEPENDENCIES_SINCE, MINORS, PATCHES, STAGES, Gate, dependencies, letters, stages
from podium.api.versions.release import (
    DEFAULT_RELEASE,
    PATCH_LEVELS,
    Behavior,
    Release,
    default_release,
    read_gates,
    read_version,
)


def node(kubelet: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{kubelet}x"},
        "status": {"nodeInfo": {"kubeletVersion": kubelet}},
    }


def snapshot(version: str) -> Raw:
    return {"apiVersion": "podium.dev/v1alpha1", "kind": "Snapshot", "serverVersion": version}


def scenario(version: str) -> Raw:
    return {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "spec": {"kubernetesVersion": version}}


def found(*objects: Raw, choice: ReleaseChoice = CLUSTER_RELEASE) -> tuple[str, list[str]]:
    documents = [Document("", 1, raw, decode(raw) if raw["kind"] == "Node" else None) for raw in objects]
    release, caveats = choice.for_documents(documents)
    return str(release), [caveat.message for caveat in caveats]


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.34", "v1.34.9"), ("v1.34", "v1.34.9"), ("1.34.1", "v1.34.1"), ("v1.35.0-gke.12+a", "v1.35.0")],
)
def test_a_version_without_a_patch_level_is_the_measured_one(text: str, version: str) -> None:
    assert str(read_version(text)) == version


@pytest.mark.parametrize("text", ["1.30", "1.38", "2.34", "", "latest", "1." + "9" * 50])
def test_an_unsupported_version_is_an_error_that_lists_the_supported_ones(text: str) -> None:
    with pytest.raises(InputError, match=r"1\.31, 1\.32, 1\.33, 1\.34, 1\.35, 1\.36, 1\.37"):
        read_version(text)


def test_a_behavior_holds_from_its_patch_level_on_and_in_all_later_minors() -> None:
    has = Behavior.TAINT_UNNAMED
    versions = ["1.33", "1.34.0", "1.34.1", "1.34.2", "1.35.0"]
    assert [read_version(text).has(has) for text in versions] == [False, False, False, True, True]


def test_gates_have_the_default_of_their_version_and_patch_level() -> None:
    gate = "SchedulerAsyncAPICalls"
    versions = ["1.33", "1.34.0", "1.34.1", "1.34.2", "1.35.0", "1.35.1", "1.36"]
    assert [read_version(text).enabled(gate) for text in versions] == [False, True, True, False, True, False, False]


def test_all_alpha_sets_the_alpha_gates_that_are_not_set() -> None:
    release = read_version("1.34").with_gates({"AllAlpha": True, "DRADeviceTaints": False})
    assert release.enabled("DRAPartitionableDevices")
    assert not release.enabled("DRADeviceTaints")


@pytest.mark.parametrize(
    ("version", "gates", "says"),
    [
        ("1.36", "Preempting=false", "unrecognized feature gate: Preempting"),
        ("1.33", "DRAExtendedResource=true", "1.33 does not know it; 1.34, 1.35, 1.36, 1.37 do"),
        ("1.36", "CSIMigrationPortworx=false", "1.36 does not know it; 1.31, 1.32, 1.33, 1.34, 1.35 do"),
        (
            "1.36",
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true in 1.36 (GA)",
        ),
        (
            "1.36",
            "NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=false",
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: "
            "[NodeDeclaredFeatures]",
        ),
        ("1.36", "NonPreemptingPriority", 'missing bool value for "NonPreemptingPriority"'),
        ("1.36", "NonPreemptingPriority=off", 'invalid value of NonPreemptingPriority="off"; it must be true or false'),
    ],
)
def test_gates_are_refused_as_kube_scheduler_refuses_them(version: str, gates: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        read_choice(version, gates).of()
    assert says in str(refused.value)


def test_the_last_value_of_a_gate_counts() -> None:
    assert read_gates(" DRAAdminAccess=1 ,DRAAdminAccess=F") == (("DRAAdminAccess", False),)


def test_dependencies_are_not_checked_before_1_35() -> None:
    gates = {"DRAPrioritizedList": True, "DynamicResourceAllocation": False}
    assert DEPENDENCIES_SINCE == 35
    assert read_version("1.34").with_gates(gates).enabled("DRAPrioritizedList")


def test_the_version_is_the_one_asked_for_else_the_scenarios_the_snapshots_the_kubelets_or_1_36() -> None:
    objects = [node("v1.33.2"), node("v1.31.0"), snapshot("v1.35.6+x"), scenario("1.32")]
    assert found(*objects, choice=read_choice("1.34.1")) == ("v1.34.1", [])
    assert found(*objects) == ("v1.32.13", [])
    assert found(*objects[:3]) == ("v1.35.6", [])
    version, caveats = found(*objects[:2])
    assert version == "v1.33.2"
    assert "a guess" in caveats[0]
    assert found(node("")) == found() == (str(DEFAULT_RELEASE), [])


@pytest.mark.parametrize("kubelet", ["v1.33.2", str(DEFAULT_RELEASE)])
def test_a_version_by_kubelets_is_a_guess_even_if_it_is_the_usual_one(kubelet: str) -> None:
    assert found(node(kubelet)) == (
        kubelet,
        [
            f"decided as kube-scheduler {kubelet}, the version of the newest kubelet: a guess, since a scheduler may "
            "be up to three minor versions ahead"
        ],
    )


@pytest.mark.parametrize(("kubelet", "version"), [("v1.28.3", "v1.31.14"), ("v1.40.0", "v1.37.0")])
def test_a_cluster_of_an_unknown_version_uses_the_nearest_with_a_caveat(kubelet: str, version: str) -> None:
    decided, caveats = found(node(kubelet))
    assert decided == version
    says = f"the newest kubelet is {kubelet}, which Podium does not know: decided as kube-scheduler {version}"
    assert caveats[0] == says


def test_answers_say_what_was_only_read_and_which_gates_have_no_effect() -> None:
    _, caveats = found(choice=read_choice("1.37", "KubeletPSI=true"))
    assert caveats == [
        "decisions of Kubernetes 1.37 were read from its source, and not measured",
        "feature gates without effect here: KubeletPSI",
    ]


def test_every_gate_has_a_letter_for_every_version_and_every_dependency_is_a_gate() -> None:
    known = letters()
    assert all(len(cells) == len(MINORS) and set(cells) <= {*STAGES, "-"} for cells in known.values())
    assert set(Gate) <= known.keys()
    assert {name for one in dependencies().items() for name in (one[0], *one[1])} <= known.keys()
    assert {name for name, _ in PATCHES} <= known.keys()
    assert PATCH_LEVELS.keys() == set(MINORS)


@pytest.mark.parametrize("minor", MINORS)
def test_the_defaults_of_every_version_satisfy_its_own_dependencies(minor: int) -> None:
    assert default_release(minor).with_gates({}) == Release(minor, PATCH_LEVELS[minor])
    assert stages(minor, PATCH_LEVELS[minor])


def test_behaviors_are_in_the_order_of_their_versions() -> None:
    versions = [behavior.value.version for behavior in Behavior]
    assert versions == sorted(versions)


@pytest.mark.parametrize(
    ("choice", "source", "expected"),
    [
        (CLUSTER_RELEASE, "snapshot", []),
        (CLUSTER_RELEASE, "manifest.yaml", ["Pod .spec.resources of 1"]),
        (read_choice("1.33"), "snapshot", ["Pod .spec.resources of 1"]),
        (read_choice("1.34"), "manifest.yaml", []),
    ],
)
def test_fields_that_the_version_drops_are_a_caveat_except_in_its_own_snapshot(
    choice: ReleaseChoice, source: str, expected: list[str]
) -> None:
    spec: Raw = {"containers": [{"name": "a", "image": "a"}], "resources": {"requests": {"cpu": "1"}}}
    pod: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    documents = [Document("snapshot", 1, snapshot("v1.33.2"), None), Document(source, 2, pod, decode(pod))]
    release, _ = choice.for_documents(documents)
    assert [name for caveat in choice.dropped(documents, release) for name in caveat.names] == expected
