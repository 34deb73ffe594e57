import pytest

from podium.api.kinds import KEPT_KINDS, KIND_OF, KINDS, Kind, may_affect_pods, right_group, right_name


def test_no_kind_is_both_read_and_only_kept() -> None:
    assert {(kind.group, kind.name) for kind in KEPT_KINDS}.isdisjoint(KINDS)
    assert list(KIND_OF.values()) == list(KINDS.values())


@pytest.mark.parametrize(
    ("name", "plural"),
    [
        ("Pod", "pods"),
        ("StorageClass", "storageclasses"),
        ("NetworkPolicy", "networkpolicies"),
        ("CSIStorageCapacity", "csistoragecapacities"),
    ],
)
def test_plurals_are_those_of_the_api(name: str, plural: str) -> None:
    assert Kind("", name, True).plural == plural


@pytest.mark.parametrize(
    ("group", "kind", "right"),
    [
        ("", "pod", "Pod"),
        ("apps", "replicaSet", "ReplicaSet"),
        ("batch", "cronjob", "CronJob"),
        ("", "Pod", None),
        ("example.com", "pod", None),
        ("", "Pods", None),
    ],
)
def test_a_kind_of_kubernetes_in_other_letters_is_known(group: str, kind: str, right: str | None) -> None:
    assert right_name(group, kind) == right


def test_a_kind_that_a_group_really_has_is_not_sought_in_another() -> None:
    assert right_group("events.k8s.io", "Event") is None
    assert right_group("extensions", "Deployment") == "apps"


@pytest.mark.parametrize(
    ("group", "kind", "may"),
    [
        ("", "ConfigMap", False),
        ("rbac.authorization.k8s.io", "Role", False),
        ("batch", "CronJob", False),
        ("autoscaling", "HorizontalPodAutoscaler", True),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", True),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", True),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", False),
        ("kubeflow.org", "MPIJob", True),
    ],
)
def test_built_in_kinds_state_whether_they_affect_pods(group: str, kind: str, may: bool) -> None:
    assert may_affect_pods(group, kind) is may
